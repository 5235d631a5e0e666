"""Small sound logs drawn from a ``random.Random``: every format, codec, several segments.

Plain builders, nothing of ``kafka_segments``: a log costs a millisecond, so tests can draw many.
"""

from __future__ import annotations

import random
import struct
from dataclasses import dataclass, field

import cramjam

from support.logs.strategies import (
    CONTROL,
    DELETE_HORIZON,
    GZIP,
    LOG_APPEND_TIME,
    NO_TIMESTAMP,
    TRANSACTIONAL,
    Record,
    empty_batch,
    v0_message,
    v1_message,
    v2_batch,
    v2_record,
)

SNAPPY, LZ4, ZSTD = 2, 3, 4
CLOCK_MS = 1_700_000_000_000
ABORT, COMMIT = 0, 1


@dataclass
class LogSegment:
    """A segment: its base offset, and its log in parts, a batch each while it is sound."""

    base_offset: int
    batches: list[bytes] = field(default_factory=list)

    @property
    def log(self) -> bytes:
        return b"".join(self.batches)


@dataclass
class Producer:
    """A producer as its batches show it."""

    producer_id: int
    epoch: int
    sequence: int
    is_transactional: bool
    is_open: bool = False


def compressed(data: bytes, codec: int) -> bytes:
    """Compress as Kafka's clients do; a codec that there is not leaves the bytes as they are."""
    if codec == GZIP:
        return bytes(cramjam.gzip.compress(data, 1))
    if codec == SNAPPY:
        block = bytes(cramjam.snappy.compress_raw(data))
        return b"\x82SNAPPY\x00" + struct.pack(">iii", 1, 1, len(block)) + block
    if codec == LZ4:
        frame = cramjam.lz4.Compressor(block_linked=False)
        frame.compress(data)
        return bytes(frame.finish())
    if codec == ZSTD:
        return bytes(cramjam.zstd.compress(data, 1))
    return data


def marker(
    offset: int,
    timestamp: int,
    producer: Producer,
    *,
    key: bytes | None,
    value: bytes | None,
    **fields: object,
) -> bytes:
    """Write a control batch of a producer; any key and value."""
    return v2_batch(
        offset,
        [(timestamp, key, value)],
        flags=CONTROL | TRANSACTIONAL,
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        **fields,
    )


class SoundLog:
    """Draws the batches of a log, one after another."""

    def __init__(self, rng: random.Random, magics: tuple[int, ...], transactional: float) -> None:
        self.rng = rng
        self.offset = rng.choice([0, 0, 0, 1000, 2**31 - 40, 2**40, 2**62])
        self.magics = magics
        self.leader_epoch = rng.choice([-1, 0, 0, 3])
        self.clock = CLOCK_MS + rng.randrange(1000)
        self.value_bytes = rng.choice([0, 10, 60, 300, 1200])
        self.producers = [
            Producer(
                producer_id=rng.choice([0, 1, 7, 4711, 2**40, 2**63 - 1]) + number * 16 & 2**63 - 1,
                epoch=rng.choice([0, 0, 5, 2**15 - 2]),
                sequence=rng.choice([0, 0, 2**31 - 3]),
                is_transactional=rng.random() < transactional,
            )
            for number in range(rng.choice([0, 1, 2, 3, 14]) if max(magics) == 2 else 0)
        ]

    def segments(self) -> list[LogSegment]:
        drawn = []
        for _ in range(self.rng.choice([1, 1, 2, 3, 4])):
            segment = LogSegment(self.offset)
            for _ in range(self.rng.choice([0, 1, 2, 4, 7, 12, 25])):
                self.offset += self.rng.choice([0] * 9 + [5])
                segment.batches.append(self.batch())
            self.offset = max(self.offset, segment.base_offset + 1)
            drawn.append(segment)
        return drawn

    def batch(self) -> bytes:
        """Draw the next batch, in one of the log's formats."""
        magic = self.rng.choice(self.magics)
        if magic < 2:
            return self._legacy(magic)
        if self.rng.random() < 0.05:
            self.leader_epoch += self.rng.randint(1, 3)
        producer = None
        if self.producers and self.rng.random() < 0.8:
            producer = self.rng.choice(self.producers)
        if producer is not None and producer.is_open and self.rng.random() < 0.4:
            return self._end_of_transaction(producer)
        return self._v2(producer)

    def _timestamp(self) -> int:
        self.clock += self.rng.choice([0, 1, 1, 7, 500])
        if self.rng.random() < 0.04:
            return NO_TIMESTAMP
        return self.clock + self.rng.choice([0, 0, 0, -5, -900])

    def _records(self) -> list[Record]:
        count = self.rng.choice([1, 1, 2, 3, 6])
        return [
            (self._timestamp(), self.rng.choice([None, b"", b"k"]), self._value())
            for _ in range(count)
        ]

    def _value(self) -> bytes:
        return self.rng.randbytes(self.rng.randint(0, self.value_bytes))

    def _v2(self, producer: Producer | None) -> bytes:
        rng, records, base = self.rng, self._records(), self.offset
        last = len(records) - 1 + rng.choice([0] * 9 + [4])
        self.offset += last + 1
        if rng.random() < 0.05:
            return empty_batch(base, last_offset_delta=last, max_timestamp=self._timestamp())
        codec = rng.choice([0, 0, 0, GZIP, SNAPPY, LZ4, ZSTD])
        flags = rng.choice([0] * 5 + [LOG_APPEND_TIME, DELETE_HORIZON])
        sequence = producer.sequence if producer else -1
        if producer is not None:
            producer.sequence = (producer.sequence + last + 1) & 2**31 - 1
            producer.is_open |= producer.is_transactional
            flags |= TRANSACTIONAL if producer.is_transactional else 0
        first = records[0][0]
        payload = b"".join(
            v2_record(timestamp_delta=time - first, offset_delta=delta, key=key, value=value)
            for delta, (time, key, value) in enumerate(records)
        )
        return v2_batch(
            base,
            records,
            last_offset_delta=last,
            leader_epoch=self.leader_epoch,
            codec=codec,
            flags=flags,
            producer_id=producer.producer_id if producer else -1,
            producer_epoch=producer.epoch if producer else -1,
            base_sequence=sequence,
            payload=compressed(payload, codec),
        )

    def _end_of_transaction(self, producer: Producer) -> bytes:
        producer.is_open = False
        if self.rng.random() < 0.2:
            producer.epoch, producer.sequence = producer.epoch + 1 & 2**15 - 1, 0
        self.offset += 1
        return marker(
            self.offset - 1,
            self._timestamp(),
            producer,
            key=struct.pack(">hh", 0, self.rng.choice([ABORT, ABORT, COMMIT])),
            value=struct.pack(">hi", 0, self.rng.randrange(5)),
            leader_epoch=self.leader_epoch,
        )

    def _legacy(self, magic: int) -> bytes:
        rng, records, base = self.rng, self._records(), self.offset
        codec = rng.choice([0, 0, GZIP, SNAPPY, LZ4])
        if codec == 0:
            self.offset += 1
            return legacy_message(magic, base, *records[0])
        last = base + len(records) - 1
        self.offset = last + 1
        return wrapper(
            magic,
            last,
            codec,
            [
                legacy_message(magic, number + (0 if magic else base), *record)
                for number, record in enumerate(records)
            ],
            timestamp=max(time for time, _, _ in records),
            attributes=rng.choice([0, 0, LOG_APPEND_TIME]) if magic else 0,
        )


def legacy_message(
    magic: int, offset: int, timestamp: int, key: bytes | None, value: bytes | None
) -> bytes:
    """Write an uncompressed message v0 or v1."""
    if magic == 0:
        return v0_message(offset, key, value)
    return v1_message(offset, timestamp, key, value)


def wrapper(
    magic: int,
    offset: int,
    codec: int,
    inner: list[bytes],
    *,
    timestamp: int = CLOCK_MS,
    attributes: int = 0,
    value: bytes | None = None,
) -> bytes:
    """Write a compressed message around others; ``value`` in place of what they give."""
    data = compressed(b"".join(inner), codec) if value is None else value
    if magic == 0:
        return v0_message(offset, None, data, attributes=codec | attributes)
    return v1_message(offset, timestamp, None, data, attributes=codec | attributes)


STYLES: dict[str, tuple[tuple[int, ...], float]] = {
    "v2": ((2,), 0.2),
    "transactions": ((2,), 1.0),
    "legacy": ((0, 1), 0.0),
    "mixed": ((0, 1, 2, 2), 0.5),
}


def sound_log(rng: random.Random, style: str | None = None) -> list[LogSegment]:
    """Draw a log, of one of ``STYLES``."""
    magics, transactional = STYLES[style or rng.choice([*STYLES])]
    return SoundLog(rng, magics, transactional).segments()
