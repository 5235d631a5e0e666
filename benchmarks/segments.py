"""Make the segments that the benchmarks read."""

import gzip
import os
import struct
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np

from kafka_segments.kafka.wire.crc import crc32c

_HEADER_BYTES = 61
_V1_HEADER_BYTES = 34
_GZIP, _LZ4, _TRANSACTIONAL, _CONTROL = 1, 3, 16, 32
_STORED_BYTES = 23  # gzip's header and trailer, and the header of one block that is stored
_FIRST_TIMESTAMP = 1_700_000_000_000


def batch(
    size_bytes: int,
    records: int,
    timestamp: int,
    producer: tuple[int, int, int] = (-1, -1, -1),
    attributes: int = 0,
    body: bytes | None = None,
) -> bytes:
    """Make a v2 batch with a good checksum, of random content or a given one; its offset is 0.

    ``producer``: its id, epoch and first sequence.
    """
    covered = struct.pack(
        ">hiqqqhii", attributes, records - 1, timestamp, timestamp, *producer, records
    ) + (os.urandom(size_bytes - _HEADER_BYTES) if body is None else body)
    return struct.pack(">qiibI", 0, size_bytes - 12, 0, 2, crc32c(covered)) + covered


def idempotent_batch(size_bytes: int, records: int, timestamp: int, producers: int = 8) -> bytes:
    """Make a v2 batch of one of some idempotent producers, which write in turn."""
    return batch(size_bytes, records, timestamp, (timestamp // 1000 % producers, 0, 0))


def transactional_batch(size_bytes: int, records: int, timestamp: int) -> bytes:
    """Make a v2 batch in a transaction of one of eight producers, which write in turn."""
    producer = (timestamp // 1000 % 8, 0, 0)
    return batch(size_bytes, records, timestamp, producer, attributes=_TRANSACTIONAL)


def short_transaction_batch(size_bytes: int, records: int, timestamp: int) -> bytes:
    """Make one of seven v2 batches of a transaction, or the commit marker that follows them.

    Eight producers have a transaction each in turn. A marker has one record, whose key is longer
    than brokers write it.
    """
    number = timestamp // 1000
    producer = (number // 8 % 8, 0, 0)
    if number % 8 < 7:
        return batch(size_bytes, records, timestamp, producer, attributes=_TRANSACTIONAL)
    key_bytes = size_bytes - _HEADER_BYTES - 13
    key = struct.pack(">hh", 0, 1).ljust(key_bytes, b"\0")
    record = bytes(3) + bytes([2 * key_bytes]) + key + bytes([12]) + struct.pack(">hi", 0, 0)
    record += bytes(1)
    record = bytes([2 * len(record)]) + record
    attributes = _TRANSACTIONAL | _CONTROL
    return batch(size_bytes, 1, timestamp, producer, attributes=attributes, body=record)


def mixed_batch(size_bytes: int, records: int, timestamp: int) -> bytes:
    """Make an idempotent v2 batch that says it is compressed by lz4, or the next one not at all."""
    number = timestamp // 1000
    return batch(
        size_bytes, records, timestamp, (number % 8, 0, 0), attributes=_LZ4 if number % 2 else 0
    )


def _v1(timestamp: int, attributes: int, value: bytes) -> bytes:
    covered = struct.pack(">bbqii", 1, attributes, timestamp, -1, len(value)) + value
    return struct.pack(">qiI", 0, 4 + len(covered), zlib.crc32(covered)) + covered


def v1_message(size_bytes: int, records: int, timestamp: int) -> bytes:
    """Make a message v1, not compressed, of random content."""
    return _v1(timestamp, 0, os.urandom(size_bytes - _V1_HEADER_BYTES))


def v1_wrapper(size_bytes: int, records: int, timestamp: int) -> bytes:
    """Make a message v1 that holds messages of random content, stored in gzip's form."""
    room = size_bytes - _V1_HEADER_BYTES - _STORED_BYTES
    sizes = [room // records] * (records - 1)
    sizes.append(room - sum(sizes))
    inner = b"".join(
        struct.pack(">q", number) + v1_message(size, 1, timestamp)[8:]
        for number, size in enumerate(sizes)
    )
    return _v1(timestamp, _GZIP, gzip.compress(inner, compresslevel=0, mtime=0))


def write_segment(
    file: Path,
    *,
    batch_bytes: int,
    size_bytes: int,
    make: Callable[[int, int, int], bytes] = batch,
    first_offset: int = 0,
    epoch_batches: int = 0,
) -> None:
    """Write one segment of equal batches: 64 different ones in turn, timestamps in steps.

    ``make`` gives one from its size, its number of records and its timestamp. The offset at its
    start counts up by the records from ``first_offset``, to the first of a v2 batch and the last of
    a v1 wrapper. ``epoch_batches``: each so many batches v2 begin a new leader epoch; 0: none does.
    """
    records = 1 if make is v1_message else max(1, batch_bytes // 100)
    first_offset += records - 1 if make is v1_wrapper else 0
    templates = np.stack(
        [
            np.frombuffer(make(batch_bytes, records, _FIRST_TIMESTAMP + 1000 * number), np.uint8)
            for number in range(64)
        ]
    )
    batches = size_bytes // batch_bytes
    file.parent.mkdir(parents=True, exist_ok=True)
    step = max(64, (64 << 20) // batch_bytes // 64 * 64)
    with file.open("wb") as stream:
        for first in range(0, batches, step):
            count = min(step, batches - first)
            block = templates[np.arange(count) % 64]
            offsets = (first + np.arange(count, dtype=np.int64)) * records + first_offset
            block[:, :8] = offsets.astype(">i8").view(np.uint8).reshape(count, 8)
            if epoch_batches:
                epochs = (first + np.arange(count)) // epoch_batches
                block[:, 12:16] = epochs.astype(">i4").view(np.uint8).reshape(count, 4)
            block.tofile(stream)
