"""A compacted topic that is drawn, and replicas of it that roll and are cleaned when they like."""

import random
import struct
from pathlib import Path

from support.kafka.kafka_referee import Referee
from support.logs.log_copies import LogCopy
from support.logs.sound_logs import ABORT, COMMIT, LZ4, Producer, compressed, marker
from support.logs.strategies import (
    LOG_APPEND_TIME,
    TRANSACTIONAL,
    v1_message,
    v2_batch,
    v2_record,
)


class CompactedTopic:
    """Draws the log of a compacted topic: few keys, tombstones, transactions, leader epochs.

    ``oddities``: records without a key, with headers and of old formats too, batches without a
    producer, and no compression.
    """

    def __init__(self, rng: random.Random, *, oddities: bool = False) -> None:
        self._rng, self._oddities = rng, oddities
        self.batches: list[tuple[int, bytes]] = []
        self.offset = 0
        self.epochs: list[tuple[int, int]] = [(0, 0)]
        self._producers = [Producer(number, 0, 0, number % 2 == 0) for number in range(1, 5)]

    def write(self, count: int, at_ms: int) -> None:
        """Append batches of a moment."""
        rng = self._rng
        for _ in range(count):
            if rng.random() < 0.03:
                self.epochs.append((self.epochs[-1][0] + 1, self.offset))
            producer = rng.choice(self._producers)
            if self._oddities and rng.random() < 0.3:
                self._put_odd(at_ms)
            elif producer.is_open and rng.random() < 0.4:
                self._end(producer, at_ms)
            else:
                self._put(producer, at_ms)

    def end_all(self, at_ms: int) -> None:
        """End the transactions that are open."""
        for producer in self._producers:
            if producer.is_open:
                self._end(producer, at_ms)

    def _end(self, producer: Producer, at_ms: int) -> None:
        producer.is_open = False
        key = struct.pack(">hh", 0, self._rng.choice([ABORT, COMMIT, COMMIT]))
        value = struct.pack(">hi", 0, 0)
        batch = marker(
            self.offset, at_ms, producer, key=key, value=value, leader_epoch=self.epochs[-1][0]
        )
        self._add(batch, 1)

    def _put(self, producer: Producer, at_ms: int) -> None:
        rng, count = self._rng, self._rng.choice([1, 1, 2, 5, 20])
        records = [
            (
                at_ms,
                b"key %d" % rng.randrange(40),
                None if rng.random() < 0.2 else rng.randbytes(rng.randrange(30)),
            )
            for _ in range(count)
        ]
        codec = 0 if self._oddities else rng.choice([0, 0, LZ4])
        payload = b"".join(
            v2_record(timestamp_delta=0, offset_delta=delta, key=key, value=value)
            for delta, (_, key, value) in enumerate(records)
        )
        batch = v2_batch(
            self.offset,
            records,
            leader_epoch=self.epochs[-1][0],
            codec=codec,
            flags=TRANSACTIONAL if producer.is_transactional else 0,
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            base_sequence=producer.sequence,
            payload=compressed(payload, codec),
        )
        producer.sequence += count
        producer.is_open = producer.is_transactional
        self._add(batch, count)

    def _put_odd(self, at_ms: int) -> None:
        rng = self._rng
        key = rng.choice([None, b"", b"key %d" % rng.randrange(40)])
        value = None if rng.random() < 0.3 else rng.randbytes(rng.randrange(90))
        kind = rng.randrange(4)
        if kind == 0:
            self._add(v1_message(self.offset, at_ms, key, value), 1)
            return
        records = [(at_ms + rng.randrange(-9, 9_000_000), key, value) for _ in range(kind)]
        flags = LOG_APPEND_TIME if rng.random() < 0.3 else 0
        headers = [("h" * rng.randrange(4), rng.choice([None, b"", b"x" * 70]))] * rng.randrange(3)
        batch = v2_batch(
            self.offset, records, headers=headers, flags=flags, leader_epoch=self.epochs[-1][0]
        )
        self._add(batch, kind)

    def _add(self, batch: bytes, count: int) -> None:
        self.batches.append((self.offset, batch))
        self.offset += count


class Replica:
    """A replica's folder, rolled and cleaned when it likes."""

    def __init__(self, folder: Path, rng: random.Random) -> None:
        self._folder, self._rng = folder, rng
        self.clean: int | None = None
        folder.mkdir(parents=True)

    def fetch(self, batches: list[tuple[int, bytes]]) -> None:
        """Append what the leader has."""
        logs = sorted(self._folder.glob("*.log"))
        path = logs[-1] if logs else None
        for base, batch in batches:
            if path is None or self._rng.random() < 0.08:
                path = self._folder / f"{base:020d}.log"
            with path.open("ab") as stream:
                stream.write(batch)

    def clean_now(self, referee: Referee, at_ms: int) -> None:
        """Let the log cleaner at it."""
        found = referee.clean_log(self._folder, first_dirty=self.clean or 0, now_ms=at_ms)
        self.clean = found["clean"]

    def copy(self, epochs: list[tuple[int, int]], *, has_checkpoint: bool) -> LogCopy:
        """Give the copy as it lies there."""
        logs = sorted(self._folder.glob("*.log"))
        segments = [(int(path.stem), [path.read_bytes()]) for path in logs]
        clean = self.clean if has_checkpoint else None
        return LogCopy(segments, segments[0][0], epochs=tuple(epochs), cleaner_offset=clean)
