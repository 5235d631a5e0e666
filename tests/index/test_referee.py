"""Kafka's own LogSegment.recover() against ours, on segments made afresh in each run."""

import os
import shutil
from pathlib import Path

import pytest

from kafka_segments.kafka.broker_rules.lookups import lookup_timestamp
from kafka_segments.kafka.index.segment.offset_index import decode_offset_index, lookup_offset
from kafka_segments.kafka.index.segment.recovery_options import RecoveryOptions
from kafka_segments.kafka.index.segment.time_index import decode_time_index
from support.kafka.kafka_referee import Referee
from support.kafka.side_by_side import recovered_by_kafka, recovered_by_us

PARTITIONS = int(os.environ.get("REFEREE_PARTITIONS", "150"))
PARTS = 3  # each has all kinds and intervals, sound and damaged
INTERVALS = (0, 64, 512, 4096, 100_000)
KINDS = ("v2", "transactions", "legacy", "mixed")


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_random_segments_damaged_ones_among_them_are_recovered_as_kafka_does(
    referee: Referee, tmp_path: Path, seed: int, part: int
) -> None:
    differences = []
    for number in range(part, PARTITIONS, PARTS):
        folder = referee.generate(tmp_path / f"{number}", seed + number, KINDS[number % 4])
        damage = referee.damage(folder, seed + number) if number // 4 % 2 else []
        options = RecoveryOptions(index_interval_bytes=INTERVALS[number % 5])
        mine = recovered_by_us(folder, options)
        kafkas = recovered_by_kafka(referee, folder, options)
        differences += [
            (seed + number, base_offset, damage, kafkas[base_offset], mine[base_offset])
            for base_offset in kafkas
            if kafkas[base_offset] != mine[base_offset]
        ]
        shutil.rmtree(tmp_path / f"{number}")

    assert differences == []


def test_lookups_in_our_index_files_are_kafkas(referee: Referee, tmp_path: Path, seed: int) -> None:
    folder = referee.generate(tmp_path, seed, "v2")
    for base_offset, mine in recovered_by_us(
        folder, RecoveryOptions(index_interval_bytes=100)
    ).items():
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

    mine = recovered_by_us(folder, options)

    assert mine == recovered_by_kafka(referee, folder, options)
