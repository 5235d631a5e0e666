"""Make the segments that the benchmarks read."""

import os
import struct
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np

from kafka_segments.wire.crc import crc32c

_HEADER_BYTES = 61
_V1_HEADER_BYTES = 34
_GZIP = 1
_FIRST_TIMESTAMP = 1_700_000_000_000


def batch(size_bytes: int, records: int, timestamp: int) -> bytes:
    """Make a v2 batch of random content with a good checksum; its offset is 0."""
    covered = struct.pack(
        ">hiqqqhii", 0, records - 1, timestamp, timestamp, -1, -1, -1, records
    ) + os.urandom(size_bytes - _HEADER_BYTES)
    return struct.pack(">qiibI", 0, size_bytes - 12, 0, 2, crc32c(covered)) + covered


def _v1(size_bytes: int, timestamp: int, attributes: int) -> bytes:
    value = os.urandom(size_bytes - _V1_HEADER_BYTES)
    covered = struct.pack(">bbqii", 1, attributes, timestamp, -1, len(value)) + value
    return struct.pack(">qiI", 0, size_bytes - 12, zlib.crc32(covered)) + covered


def v1_message(size_bytes: int, records: int, timestamp: int) -> bytes:
    """Make a message v1, not compressed, of random content."""
    return _v1(size_bytes, timestamp, 0)


def v1_wrapper(size_bytes: int, records: int, timestamp: int) -> bytes:
    """Make a message v1 marked as gzipped; recovery does not look into its random content."""
    return _v1(size_bytes, timestamp, _GZIP)


def write_segment(
    file: Path,
    *,
    batch_bytes: int,
    size_bytes: int,
    make: Callable[[int, int, int], bytes] = batch,
) -> None:
    """Write one segment of equal batches: 64 different ones in turn, timestamps in steps.

    ``make`` gives one from its size, its number of records and its timestamp. The offset at its
    start counts up by the records, to the first of a v2 batch and the last of a v1 wrapper.
    """
    records = 1 if make is v1_message else max(1, batch_bytes // 100)
    first_offset = records - 1 if make is v1_wrapper else 0
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
            block.tofile(stream)
