"""What a start does with the logs of a warehouse, by rows that are written down."""

from typing import Any

import pytest
from pyspark.sql import Row

from kafka_segments.kafka.index.segment.recovered_segment import DamageKind
from kafka_segments.verbs.change.recovery.forecast.decide.forecasts import LogForecast
from kafka_segments.verbs.change.recovery.forecast.decide.table_logs import dirs_of
from kafka_segments.verbs.change.recovery.forecast.decide.times import LogWork

PLACE = {"cluster": "c", "broker_id": 1, "log_dir": "/d", "topic": "t", "partition": 0}
DIR = {"path": "/d/t-0", "folder_state": "live", "is_clean": False, "problem": None}
RECOVERED: dict[str, Any] = {
    **{"recovery_point": 15, "first_recovered_offset": 10, "segments": 3},
    **{"recovered_segments": 2, "recovered_bytes": 200, "recovered_batches": 5},
    **{"is_left_alone": False, "ends_empty": False, "damaged": []},
    **{"first_cut": None, "lost_bytes": 0, "lost_segments": 0, "lost_records": 0},
}


def _row(**other: Any) -> Row:
    return Row(**{**PLACE, **DIR, **RECOVERED, **other})


def _damage(base: int, kind: DamageKind, cut_bytes: int = 7) -> Row:
    return Row(
        base_offset=base,
        kind=kind.value,
        position=base + 1,
        message="why",
        cut_bytes=cut_bytes,
        next_offset=base + 3,
    )


def _log(**other: Any) -> LogForecast:
    ((log,),) = (one.logs for one in dirs_of([_row(**other)]))
    return log


def test_logs_are_gathered_by_directory_in_their_order() -> None:
    rows = [
        _row(log_dir="/a", is_clean=True),
        _row(log_dir="/a", partition=1, path="/a/t-1"),
        _row(log_dir="/b", problem="no meta.properties"),
        _row(broker_id=2, log_dir="/b"),
    ]

    found = [
        (one.broker_id, one.log_dir, one.is_clean, [log.folder for log in one.logs], one.problems)
        for one in dirs_of(rows)
    ]

    assert found == [
        (1, "/a", True, ["t-0", "t-1"], ()),
        (1, "/b", False, ["t-0"], ("no meta.properties",)),
        (2, "/b", False, ["t-0"], ()),
    ]


def test_a_log_has_the_work_of_its_row_and_nothing_is_known_of_its_other_files() -> None:
    log = _log()

    assert (log.topic, log.partition, log.folder_state, log.is_metadata) == ("t", 0, "live", False)
    assert (log.recovery_point, log.first_recovered_offset, log.work) == (
        15,
        10,
        LogWork(3, 2, 200, 5),
    )
    assert (log.missing_indexes, log.full_indexes, log.left_over_files) == (None, None, None)
    assert not log.knows_files
    assert _log(topic="__cluster_metadata").is_metadata


@pytest.mark.parametrize(
    ("row", "left"),
    [
        ({}, LogWork(4, 1)),
        ({"ends_empty": True}, LogWork(3, 1)),
        ({"is_left_alone": True}, LogWork(3, 2, 200, 5)),
        ({"recovered_segments": 0}, LogWork(3, 0, 200, 5)),
    ],
)
def test_a_kit_leaves_an_empty_segment_to_a_log_that_is_recovered(
    row: dict[str, Any], left: LogWork
) -> None:
    assert _log(**row).kit_work == left


def test_with_the_first_cut_go_the_segments_that_are_lost() -> None:
    damaged = [
        _damage(20, DamageKind.OFFSET_OVERFLOW, 0),
        _damage(10, DamageKind.CORRUPT_BATCH),
        _damage(0, DamageKind.CORRUPT_BATCH, 0),
    ]
    lost = {"first_cut": 10, "lost_bytes": 100, "lost_segments": 2, "lost_records": 30}

    found = _log(damaged=damaged, **lost).findings

    assert [(one.base_offset, one.consequence, one.position, one.message) for one in found] == [
        (0, "cut", 1, "why"),
        (10, "cut", 11, "why"),
        (20, "split", 21, "why"),
    ]
    assert [(one.lost_bytes, one.lost_records, one.lost_segments) for one in found] == [
        *((0, 0, 0), (107, None, 2), (0, 0, 0)),
    ]


def test_a_segment_that_a_build_could_not_read_is_a_problem_and_no_finding() -> None:
    damaged = [_damage(20, DamageKind.UNREADABLE), _damage(10, DamageKind.CORRUPT_BATCH)]

    (one,) = dirs_of([_row(damaged=damaged, problem="two ids")])

    assert one.problems == ("two ids", "t-0: segment 20: why")
    assert [finding.base_offset for finding in one.logs[0].findings] == [10]
