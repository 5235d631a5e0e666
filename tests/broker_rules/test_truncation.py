"""Truncation of a segment with its indexes and of a log, against Kafka's own."""

import os
import random
from pathlib import Path

import pytest

from kafka_segments.kafka.broker_rules.limits import index_limits
from kafka_segments.kafka.broker_rules.truncation import (
    TruncatedLog,
    TruncatedSegment,
    truncate_log,
    truncate_segment,
)
from kafka_segments.kafka.index.segment.offset_index import decode_offset_index, encode_offset_index
from kafka_segments.kafka.index.segment.time_index import decode_time_index, encode_time_index
from support.kafka.kafka_referee import Answer, Referee
from support.logs.log_reading import batches_of, recovered
from support.logs.strategies import example_e1, v2_batch

BASE, E1 = example_e1()
ROUNDS = int(os.environ.get("REFEREE_PARTITIONS", "40"))
PARTS = 2
INTERVALS = (0, 64, 512, 4096)
INDEX_BYTES = 100_001


def truncated_e1(offset: int) -> TruncatedSegment:
    found = recovered(E1, base_offset=BASE, interval_bytes=200)
    assert found.offset_entries is not None
    assert found.time_entries is not None
    return truncate_segment(
        batches_of(E1), found.offset_entries, found.time_entries, offset, base_offset=BASE
    )


@pytest.mark.parametrize(
    ("offset", "log_bytes", "offsets", "times", "largest"),
    [
        (1000, 0, [], [], (-1, 1000)),
        (1001, 0, [], [], (-1, 1000)),
        (1004, 293, [], [], (5001, 1001)),
        (1006, 525, [(1005, 293)], [(7002, 1005)], (7002, 1005)),
        (1009, 818, [(1005, 293), (1007, 525)], [(7002, 1005)], (7002, 1005)),
        (
            1010,
            936,
            [(1005, 293), (1007, 525), (1009, 818)],
            [(7002, 1005), (9000, 1009)],
            (9000, 1009),
        ),
    ],
)
def test_e1(
    offset: int,
    log_bytes: int,
    offsets: list[tuple[int, int]],
    times: list[tuple[int, int]],
    largest: tuple[int, int],
) -> None:
    found = truncated_e1(offset)

    assert found.log_bytes == log_bytes
    assert [tuple(row) for row in found.offset_entries.tolist()] == offsets
    assert [tuple(row) for row in found.time_entries.tolist()] == times
    assert (found.max_timestamp, found.offset_of_max_timestamp) == largest


def ours(log: bytes, base_offset: int, folder: Path, offset: int) -> Answer:
    """Truncate as the referee does: with the index files that recovery left."""
    stem = folder / f"{base_offset:020d}"
    offsets = decode_offset_index(stem.with_suffix(".index").read_bytes(), base_offset=base_offset)
    times = decode_time_index(stem.with_suffix(".timeindex").read_bytes(), base_offset=base_offset)
    found = truncate_segment(batches_of(log), offsets, times, offset, base_offset=base_offset)
    limits = index_limits(INDEX_BYTES)
    offset_count, time_count = len(found.offset_entries), len(found.time_entries)
    return {
        "log_bytes": found.log_bytes,
        "max_timestamp": found.max_timestamp,
        "offset_of_max_timestamp": found.offset_of_max_timestamp,
        "offset_index": {
            "entries": encode_offset_index(found.offset_entries, base_offset=base_offset).hex(),
            "file_bytes": limits.preallocated_offset_index_bytes,
            "max_entries": limits.max_offset_entries,
            "is_full": limits.is_offset_index_full(offset_count),
        },
        "time_index": {
            "entries": encode_time_index(found.time_entries, base_offset=base_offset).hex(),
            "file_bytes": limits.preallocated_time_index_bytes,
            "max_entries": limits.max_time_entries,
            "is_full": limits.is_time_index_full(time_count),
        },
    }


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_random_segments_are_truncated_as_kafka_does(
    referee: Referee, tmp_path: Path, seed: int, part: int
) -> None:
    draw = random.Random(f"{seed} {part}")
    compared = 0
    for number in range(ROUNDS // PARTS):
        kind = draw.choice(("v2", "legacy", "mixed"))
        folder = referee.generate(tmp_path / str(number), draw.randrange(2**31), kind)
        interval_bytes = draw.choice(INTERVALS)
        referee.recover(
            folder, index_interval_bytes=interval_bytes, segment_index_bytes=INDEX_BYTES
        )
        for path in sorted(folder.glob("*.log")):
            base_offset, log = int(path.name[:20]), path.read_bytes()
            end = recovered(log, base_offset=base_offset).next_offset
            offsets = [base_offset, *(draw.randint(base_offset, end + 1) for _ in range(3))]
            if not path.with_suffix(".index").exists():
                continue  # Kafka refuses it
            kafkas = referee.truncate(folder, base_offset, offsets, INDEX_BYTES)
            for offset, theirs in zip(offsets, kafkas, strict=True):
                where = f"seed {seed}, part {part}, {path}, to {offset}"
                assert ours(log, base_offset, folder, offset) == theirs, where
                compared += 1
    assert compared >= ROUNDS // PARTS


def test_a_log_is_truncated_as_kafka_does(referee: Referee, tmp_path: Path) -> None:
    bases = (100, 110, 120)
    for offset in (0, 99, 100, 105, 109, 110, 111, 120, 125, 129, 130, 131):
        folder = tmp_path / str(offset) / "t-0"
        folder.mkdir(parents=True)
        for base in bases:
            log = v2_batch(base, [(base, None, b"v")] * 10)
            (folder / f"{base:020d}.log").write_bytes(log)
        expected = truncate_log(bases, offset, log_end_offset=130)

        found = referee.load_log(folder, is_clean=True, truncate_to=offset)

        left = (expected.created,) if expected.created is not None else expected.kept
        assert found == {
            "base_offsets": list(left),
            "log_end_offset": expected.log_end_offset,
        }
        deleted = sorted(int(path.name[:20]) for path in folder.glob("*.log.deleted"))
        assert deleted == list(expected.deleted)


def test_a_negative_offset_is_refused() -> None:
    with pytest.raises(ValueError, match="cannot truncate to offset -1, the least is 0"):
        truncate_log((0,), -1, log_end_offset=5)


def test_nothing_happens_at_the_log_end() -> None:
    assert truncate_log((0, 5), 9, log_end_offset=9) == TruncatedLog((0, 5), (), None, None, 9)
