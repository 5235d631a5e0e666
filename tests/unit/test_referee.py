"""Kafka's own LogSegment.recover() against ours, on segments made afresh in each run."""

import os
import random
import shutil
from pathlib import Path
from typing import Any

import pytest

from kafka_referee import Referee
from kafka_segments.index.offset_index import (
    decode_offset_index,
    encode_offset_index,
    lookup_offset,
)
from kafka_segments.index.recovery import RecoveryOptions, SegmentRecoverer
from kafka_segments.index.time_index import decode_time_index, encode_time_index, lookup_timestamp

PARTITIONS = int(os.environ.get("REFEREE_PARTITIONS", "150"))
INTERVALS = (0, 64, 512, 4096, 100_000)
KINDS = ("v2", "legacy", "mixed")


def _recovered(folder: Path, options: RecoveryOptions) -> dict[int, dict[str, Any]]:
    recoverer = SegmentRecoverer(options)
    found = {}
    for log in sorted(folder.glob("*.log")):
        base_offset = int(log.name[:20])
        with log.open("rb", buffering=0) as stream:

            def read_into(
                position: int, view: memoryview, descriptor: int = stream.fileno()
            ) -> int:
                return os.preadv(descriptor, [view], position)

            mine = recoverer.recover(
                read_into, size_bytes=log.stat().st_size, base_offset=base_offset
            )
        if mine.offset_entries is None or mine.time_entries is None:
            found[base_offset] = {"threw": True}
            continue
        found[base_offset] = {
            "validBytes": mine.valid_bytes,
            "nextOffset": mine.next_offset,
            "largestTimestamp": mine.max_timestamp,
            "offsetOfLargestTimestamp": mine.offset_of_max_timestamp,
            "firstBatchTimestamp": mine.first_batch_timestamp,
            "index": encode_offset_index(mine.offset_entries, base_offset=base_offset),
            "timeindex": encode_time_index(mine.time_entries, base_offset=base_offset),
        }
    return found


def _is_about_transactions(row: dict[str, Any]) -> bool:
    """Tell a segment that Kafka refuses for its transactions; the indexes have no say in it."""
    thrown = f"{row.get('threw')}: {row.get('message')}"
    return "InvalidTxnStateException" in thrown or "offset of appended transactions" in thrown


def _kafkas(referee: Referee, folder: Path, options: RecoveryOptions) -> dict[int, dict[str, Any]]:
    rows = referee.recover(
        folder,
        index_interval_bytes=options.index_interval_bytes,
        segment_index_bytes=options.segment_index_bytes,
    )
    found = {}
    for row in rows:
        if _is_about_transactions(row):
            continue
        if "threw" in row:
            found[row["baseOffset"]] = {"threw": True}
            continue
        stem = folder / f"{row['baseOffset']:020d}"
        found[row["baseOffset"]] = {
            "validBytes": row["validBytes"],
            "nextOffset": row["nextOffset"],
            "largestTimestamp": row["largestTimestamp"],
            "offsetOfLargestTimestamp": row["offsetOfLargestTimestamp"],
            "firstBatchTimestamp": row["firstBatchTimestamp"],
            "index": stem.with_suffix(".index").read_bytes(),
            "timeindex": stem.with_suffix(".timeindex").read_bytes(),
        }
    return found


def test_random_segments_damaged_ones_among_them_are_recovered_as_kafka_does(
    referee: Referee, tmp_path: Path
) -> None:
    seed = int(os.environ.get("REFEREE_SEED", random.SystemRandom().randrange(2**31)))
    print(f"REFEREE_SEED={seed}")
    differences = []
    for number in range(PARTITIONS):
        folder = referee.generate(tmp_path / f"{number}", seed + number, KINDS[number % 3])
        damage = referee.damage(folder, seed + number) if number % 2 else []
        options = RecoveryOptions(index_interval_bytes=INTERVALS[number % 5])
        mine = _recovered(folder, options)
        kafkas = _kafkas(referee, folder, options)
        differences += [
            (seed + number, base_offset, damage, kafkas[base_offset], mine[base_offset])
            for base_offset in kafkas
            if kafkas[base_offset] != mine[base_offset]
        ]
        shutil.rmtree(tmp_path / f"{number}")

    assert differences == []


def test_lookups_in_our_index_files_are_kafkas(referee: Referee, tmp_path: Path) -> None:
    seed = random.SystemRandom().randrange(2**31)
    print(f"seed={seed}")
    folder = referee.generate(tmp_path, seed, "v2")
    for base_offset, mine in _recovered(folder, RecoveryOptions(index_interval_bytes=100)).items():
        stem = folder / f"{base_offset:020d}"
        stem.with_suffix(".index").write_bytes(mine["index"])
        stem.with_suffix(".timeindex").write_bytes(mine["timeindex"])
        offsets = decode_offset_index(mine["index"], base_offset=base_offset)
        times = decode_time_index(mine["timeindex"], base_offset=base_offset)
        targets = [base_offset + step for step in range(0, 2000, 7)]
        moments = [int(time) + step for time in times[:, 0] for step in (-1, 0, 1)]

        answers = referee.lookup(folder, base_offset, targets, moments)

        assert [tuple(pair) for pair in answers["offsets"]] == [
            lookup_offset(offsets, target, base_offset=base_offset) for target in targets
        ]
        assert [tuple(pair) for pair in answers["timestamps"]] == [
            lookup_timestamp(times, moment, base_offset=base_offset) for moment in moments
        ]
        assert (answers["offset_index_sanity"], answers["time_index_sanity"]) == (None, None)


@pytest.mark.parametrize("segment_index_bytes", [12, 24, 96, 600])
def test_full_indexes_end_as_kafkas_do(
    referee: Referee, tmp_path: Path, segment_index_bytes: int
) -> None:
    folder = referee.generate(tmp_path, 11, "v2")
    options = RecoveryOptions(index_interval_bytes=64, segment_index_bytes=segment_index_bytes)

    mine = _recovered(folder, options)

    assert mine == _kafkas(referee, folder, options)
