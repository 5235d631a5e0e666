"""Where the history of a cluster's metadata begins, and which records tell it."""

from typing import Any

import pytest
from pyspark.sql import SparkSession

from kafka_segments.verbs.find.internals.metadata.decide.history_start import (
    HistoryStart,
    MetadataLog,
    Part,
    Run,
    Snapshot,
    applied_from,
    choose_start,
    runs_of,
)
from support.spark.rows_of import frame

RECORDS = (
    "is_snapshot boolean, file string, row long, offset long, timestamp_ms long, kind string,"
    " value_json string, problem string"
)


def _log(
    first: int | None, last: int | None, *ends: int, epoch: int = 1, broker: int = 1
) -> MetadataLog:
    keys = ("c", broker)
    snapshots = tuple(Snapshot(end, f"{end}.checkpoint", 1000, keys) for end in ends)
    return MetadataLog(keys, first, last, epoch, snapshots)


@pytest.mark.parametrize(
    ("log", "begin"),
    [
        (_log(0, 9, 5), (None, 0)),
        (_log(3, 9, 2, 5, 8), (5, 5)),
        (_log(5, 9, 5), (5, 5)),
        (_log(5, 9, 10), (10, 10)),
        (_log(5, 9, 11), (11, 11)),
        (_log(None, None, 4, 7), (7, 7)),
        (_log(5, 9, 4), None),
        (_log(5, 9), None),
        (_log(None, None), None),
    ],
)
def test_a_history_begins_with_the_first_state_that_goes_on_without_a_gap(
    log: MetadataLog, begin: tuple[int | None, int] | None
) -> None:
    start = choose_start([log])

    found = start and (start.snapshot and start.snapshot.end_offset, start.from_offset)
    assert found == begin


def test_the_replica_counts_that_would_be_elected_and_of_equals_the_one_that_tells_most() -> None:
    old = _log(0, 99, epoch=1)
    short = _log(0, 40, epoch=2, broker=2)
    late = _log(30, 50, 35, epoch=2, broker=3)
    whole = _log(0, 50, epoch=2, broker=4)
    useless = _log(40, 60, epoch=2, broker=5)

    assert choose_start([old, short, late, whole, useless]) == HistoryStart(whole, None, 0)
    assert choose_start([old, short, late]) == HistoryStart(late, late.snapshots[0], 35)


def test_a_snapshot_beside_one_replica_begins_the_history_of_another() -> None:
    longer = _log(5, 60)
    with_snapshot = _log(None, None, 5, broker=2)

    assert choose_start([longer, with_snapshot]) == HistoryStart(
        longer, with_snapshot.snapshots[0], 5
    )
    assert choose_start([]) is None


def _run(first: int, last: int, *epochs: tuple[int, int]) -> Run:
    return Run(first, last, epochs or ((first, 1),))


def test_records_that_one_replica_lacks_are_taken_from_another_of_the_same_leader_epoch() -> None:
    late = _log(50, 90, 60)._replace(runs=(_run(50, 90),))
    early = _log(0, 55, broker=2)
    overlaps = early._replace(runs=(_run(0, 55),))
    touches = early._replace(last_offset=49, runs=(_run(0, 49),))
    part = Part(("c", 2), 0, 50)

    for other in (overlaps, touches):
        assert choose_start([late, other]) == HistoryStart(late, None, 0, parts=(part,))
    for run in (
        _run(0, 48),  # a gap between them
        _run(0, 55, (0, 0)),  # what another leader wrote, which was cut off
        _run(0, 55, (0, 1), (50, 2)),
        _run(50, 95),
    ):
        other = early._replace(runs=(run,), leader_epoch=0)
        assert choose_start([late, other]) == HistoryStart(late, late.snapshots[0], 60)


def test_gaps_are_closed_from_either_side_and_a_snapshot_begins_what_has_no_begin() -> None:
    one = _log(80, 90)._replace(runs=(_run(0, 30), _run(80, 90, (80, 2))))
    other = _log(20, 85, broker=2)._replace(runs=(_run(20, 85, (20, 1), (70, 2)),))
    parts = (Part(("c", 2), 20, 80), Part(("c", 1), 0, 20))
    assert choose_start([one, other]) == HistoryStart(one, None, 0, parts=parts)

    headless = one._replace(runs=one.runs[1:])
    assert choose_start([headless, other]) is None
    snapshots = _log(None, None, 10, 40, 85, broker=3)
    assert choose_start([headless, other, snapshots]) == HistoryStart(
        headless, snapshots.snapshots[1], 40, parts=parts[:1]
    )


def test_runs_end_at_gaps_and_at_records_that_are_not_understood() -> None:
    names = ("offset", "leader_epoch", "before", "is_unclear")
    steps = [
        (3, 1, None, False),
        (6, 2, 5, False),
        (9, 2, 7, False),
        (11, 2, 10, True),
        (12, 2, 11, False),
    ]
    told = [dict(zip(names, step, strict=True)) for step in steps]
    assert runs_of(told, 20) == (
        _run(3, 7, (3, 1), (6, 2)),
        _run(9, 10, (9, 2)),
        _run(12, 20, (12, 2)),
    )
    assert runs_of([], None) == ()


def _record(row: int, offset: int | None, **other: Any) -> dict[str, Any]:
    said = {"is_snapshot": False, "file": "0.log", "kind": "K", "value_json": "{}"}
    place = {"log_dir": "/d", "topic": "m", "row": row, "offset": offset, "timestamp_ms": row * 100}
    return {**place, **said, **other}


def _applied(spark: SparkSession, start: HistoryStart) -> list[tuple[Any, ...]]:
    """Give (is_snapshot, row, point_offset, point_ms) of the records that are applied."""
    of_snapshot = {"is_snapshot": True, "file": "5.checkpoint"}
    rows = [
        _record(1, 4),
        _record(2, 5),
        _record(3, 6, value_json=None),
        _record(4, 7, problem="cut off"),
        _record(5, 8, broker_id=2),
        _record(6, 0, **of_snapshot),
        _record(7, None, **of_snapshot),
        _record(8, 0, **of_snapshot, broker_id=2),
        _record(9, 9, is_snapshot=True, file="9.checkpoint"),
        _record(10, 11, cluster="other"),
    ]
    found = frame(spark, RECORDS, *rows).transform(applied_from(start))
    columns = ["cluster", "is_snapshot", "row", "kind", "value_json", "point_offset", "point_ms"]
    assert found.columns == columns
    ordered = found.orderBy("row").collect()
    return [(row.is_snapshot, row.row, row.point_offset, row.point_ms) for row in ordered]


def test_records_of_the_log_are_applied_where_they_lie(spark: SparkSession) -> None:
    log = MetadataLog(("c", 1, "/d", "m", 0), 0, 9, 1, ())

    assert _applied(spark, HistoryStart(log, None, 0)) == [(False, 1, 4, 100), (False, 2, 5, 200)]
    assert _applied(spark, HistoryStart(log, None, 5)) == [(False, 2, 5, 200)]


def test_records_of_another_replica_are_applied_once_in_the_place_of_those_that_lack(
    spark: SparkSession,
) -> None:
    log = MetadataLog(("c", 1, "/d", "m", 0), 5, 9, 1, ())
    parts = (Part(("c", 2, "/d", "m", 0), 5, 9),)

    assert _applied(spark, HistoryStart(log, None, 4, parts=parts)) == [(False, 5, 8, 500)]
    assert _applied(spark, HistoryStart(log, None, 5, parts=(Part(log.keys, 2, 5),))) == [
        (False, 2, 5, 200)
    ]


@pytest.mark.parametrize(("broker", "rows"), [(1, (6, 7)), (2, (8,))])
def test_records_of_the_snapshot_are_applied_at_its_end(
    spark: SparkSession, broker: int, rows: tuple[int, ...]
) -> None:
    log = MetadataLog(("c", 1, "/d", "m", 0), 5, 9, 1, ())
    snapshot = Snapshot(5, "5.checkpoint", 1000, ("c", broker, "/d", "m", 0))

    assert _applied(spark, HistoryStart(log, snapshot, 5)) == [
        (False, 2, 5, 200),
        *((True, row, 4, 1000) for row in rows),
    ]
