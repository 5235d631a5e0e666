"""Make the segments that the benchmarks read."""

import os
import struct
from pathlib import Path

import numpy as np

from kafka_segments.wire.crc import crc32c

_HEADER_BYTES = 61
_FIRST_TIMESTAMP = 1_700_000_000_000


def batch(size_bytes: int, records: int, timestamp: int) -> bytes:
    """Make a v2 batch of random content with a good checksum; its offset is 0."""
    covered = struct.pack(
        ">hiqqqhii", 0, records - 1, timestamp, timestamp, -1, -1, -1, records
    ) + os.urandom(size_bytes - _HEADER_BYTES)
    return struct.pack(">qiibI", 0, size_bytes - 12, 0, 2, crc32c(covered)) + covered


def write_segment(file: Path, *, batch_bytes: int, size_bytes: int) -> None:
    """Write one segment of equal batches: 64 different ones in turn, timestamps in steps."""
    records = max(1, batch_bytes // 100)
    templates = np.stack(
        [
            np.frombuffer(batch(batch_bytes, records, _FIRST_TIMESTAMP + 1000 * number), np.uint8)
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
            offsets = (first + np.arange(count, dtype=np.int64)) * records
            block[:, :8] = offsets.astype(">i8").view(np.uint8).reshape(count, 8)
            block.tofile(stream)
