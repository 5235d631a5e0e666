"""Logs that are drawn, with their index files, and files in memory that are read by ranges."""

import random

from kafka_segments.kafka.index.segment.index_ends import RangedFile
from kafka_segments.kafka.index.segment.offset_index import encode_offset_index
from kafka_segments.kafka.index.segment.recovered_segment import SegmentRecovery
from kafka_segments.kafka.index.segment.time_index import encode_time_index
from support.logs.log_reading import recovered as recovered_of
from support.logs.strategies import v2_batch

BASE = 5_000
INTERVAL = 1000
Files = dict[str, bytes | None]


class Counted:
    """Bytes that are read by ranges; counts the reads, and the bytes of all."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.reads = self.bytes = 0

    def file(self) -> RangedFile:
        return RangedFile(len(self.data), self._read)

    def _read(self, position: int, length: int) -> bytes:
        assert 0 <= position <= position + length <= len(self.data)
        self.reads += 1
        self.bytes += length
        return self.data[position : position + length]


def recovered(log: bytes, interval_bytes: int = INTERVAL) -> SegmentRecovery:
    return recovered_of(log, base_offset=BASE, interval_bytes=interval_bytes)


def index_files(found: SegmentRecovery) -> Files:
    assert found.offset_entries is not None
    assert found.time_entries is not None
    return {
        ".index": encode_offset_index(found.offset_entries, base_offset=BASE),
        ".timeindex": encode_time_index(found.time_entries, base_offset=BASE),
        ".txnindex": None,
    }


def drawn_log(draw: random.Random, batches: int = 40) -> bytes:
    """Draw a sound log: gaps, batches of all sizes, timestamps that repeat and go back."""
    log, offset, clock = [], BASE + draw.choice([0, 0, 3]), 1_700_000_000_000
    back = draw.choice([0, 0, 5, 5_000])
    step = draw.choice([0, 1, 40])
    for _ in range(batches):
        offset += draw.choice([0, 0, 0, 7])
        clock += draw.randint(0, step) + draw.choice([0] * 40 + [90_000])
        count = draw.choice([1, 1, 2, 9])
        times = [clock - draw.randint(0, back) for _ in range(count)]
        value = draw.randbytes(draw.choice([0, 30, 30, 300, 300, 1_500]) // count)
        log.append(v2_batch(offset, [(time, None, value) for time in times]))
        offset += count
    return b"".join(log)
