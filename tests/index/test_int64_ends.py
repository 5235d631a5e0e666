"""Batches whose fields lie at the ends of a long or an int: no log fails its build."""

import random
import struct
from pathlib import Path

import pyarrow as pa
import pytest

from kafka_segments.kafka.index.log.loading import RecoveryMode
from kafka_segments.kafka.index.segment.recovery_options import RecoveryOptions
from support.logs.built_alone import build_alone
from support.logs.strategies import MAX_INT64, crc32c, gzip_wrapper, v0_message, v1_message

MIN_INT64 = -(2**63)
LONGS = [
    end + step
    for end in (MIN_INT64, -(2**31), 0, 2**31, 2**32, MAX_INT64 - 2**31, MAX_INT64)
    for step in (-2, -1, 0, 1, 2)
    if MIN_INT64 <= end + step <= MAX_INT64
]
INTS = [value for value in LONGS if -(2**31) <= value < 2**31]
LOGS = 150
NUMBERS = (
    "next_offset",
    "producer_end_offset",
    "max_timestamp",
    "min_timestamp",
    "first_batch_timestamp",
    "offset_of_max_timestamp",
)


def _batch(draw: random.Random, base_offset: int) -> bytes:
    near = [base_offset + step for step in (0, 1, 5, 2**31 - 1) if base_offset + step <= MAX_INT64]
    offset = draw.choice([*near, *near, draw.choice(LONGS)])
    timestamp = draw.choice(LONGS)
    if draw.random() < 0.2:
        message = v1_message(offset, timestamp, b"k", b"v")
        inner = draw.choice([[], [message], [v0_message(offset, b"k", b"v")]])
        return gzip_wrapper(inner, offset=offset, timestamp=timestamp) if inner else message
    covered = struct.pack(
        ">hiqqqhii",
        draw.choice([0, 0, 0x10, 0x20, 0x30, 0x40, 0x08, 0x05]),
        draw.choice([0, 1, 5, *INTS]),
        timestamp,
        draw.choice(LONGS),
        draw.choice([-1, 5, draw.choice(LONGS)]),
        draw.choice([0, -1, 32767]),
        draw.choice(INTS),
        draw.choice([0, 1, *INTS]),
    ) + bytes(draw.choice([0, 30]))
    epoch = draw.choice(INTS)
    return struct.pack(">qiibI", offset, 9 + len(covered), epoch, 2, crc32c(covered)) + covered


@pytest.mark.parametrize("mode", list(RecoveryMode))
def test_fields_at_the_ends_of_their_types_fail_no_build(
    tmp_path: Path, seed: int, mode: RecoveryMode
) -> None:
    for number in range(LOGS):
        draw = random.Random(seed + number)
        partition = tmp_path / f"{number}" / "t-0"
        partition.mkdir(parents=True)
        for _ in range(draw.randint(1, 3)):
            base_offset = draw.choice([value for value in LONGS if value >= 0])
            batches = [_batch(draw, base_offset) for _ in range(draw.randint(1, 6))]
            (partition / f"{base_offset:020d}.log").write_bytes(b"".join(batches))
        options = RecoveryOptions(index_interval_bytes=draw.choice([0, 100, 4096]))

        built = build_alone(partition, partition.parent, mode, now_ms=0, recovery=options)

        for row in built.rows.values():
            pa.array([getattr(row.recovery, name) for name in NUMBERS], type=pa.int64())
            for entries in (row.recovery.offset_entries, row.recovery.time_entries):
                assert entries is None or entries.dtype == "int64"
