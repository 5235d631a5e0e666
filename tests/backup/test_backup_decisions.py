"""When a backup was taken, and what it alone holds, by rows that are written down."""

from typing import Any

import pytest
from pyspark.sql import SparkSession

from kafka_segments.files.folders import kinds
from kafka_segments.verbs.copies.backup.decide.ends import Moment, backup_moment
from kafka_segments.verbs.copies.backup.decide.verdicts import (
    missing_logs,
    named_logs,
    only_in_backup,
)
from support.spark.rows_of import rows_of

NS_A_MS = 1_000_000
MOMENT = 1_700_000_000_000
_LOG = "topic string, partition int"


def _moment(
    spark: SparkSession, listed: list[tuple[str, str, int]], last: list[tuple[str, int | None]]
) -> Any:
    ends = rows_of(spark, last, "copy string, timestamp_ms long")
    files = rows_of(spark, listed, "kind string, copy string, mtime_ns long")
    (row,) = files.transform(backup_moment(ends, backup="b")).collect()
    assert row.asDict().keys() == {"moment_ms"}
    return row.moment_ms


@pytest.mark.parametrize(
    ("ends", "expected"),
    [
        ([("b", 70), ("b", 90), ("b", 80)], 90),
        ([("b", 70), ("b", 100)], 100),
        ([("b", 70), ("b", 101)], 70),
        ([("b", 0), ("b", -1)], 0),
        ([("b", 101), ("b", -1), ("b", None), ("a", 95)], 100),
        ([], 100),
    ],
)
def test_the_moment_is_the_youngest_past_timestamp_at_the_ends_of_the_backups_logs(
    spark: SparkSession, ends: list[tuple[str, int | None]], expected: int
) -> None:
    listed = [
        (kinds.SEGMENT, "b", 60 * NS_A_MS),
        (kinds.SEGMENT, "b", 101 * NS_A_MS - 1),
        (kinds.SEGMENT, "a", 200 * NS_A_MS),
        (kinds.LOG_DIR, "b", 300 * NS_A_MS),
    ]

    assert _moment(spark, listed, ends) == expected


def test_a_backup_without_a_segment_has_no_moment(spark: SparkSession) -> None:
    listed = [(kinds.SEGMENT, "a", 200 * NS_A_MS), (kinds.LOG_DIR, "b", 300 * NS_A_MS)]

    assert _moment(spark, listed, [("b", 70)]) is None


def test_logs_that_the_cluster_has_no_more_are_told(spark: SparkSession) -> None:
    copies = [("b", "t", 0), ("b", "t", 1), ("b", "gone", 0), ("a", "t", 0), ("a", "new", 0)]
    logs = rows_of(spark, copies, "copy string, topic string, partition int")

    found = only_in_backup(logs, backup="b")

    assert found.columns == ["topic", "partition"]
    assert sorted(map(tuple, found.collect())) == [("gone", 0), ("t", 1)]


_TOLD = {
    "named since": [(MOMENT, None, False)],
    "named shortly before": [(MOMENT - 1, None, False)],
    "named until": [(MOMENT - 9, MOMENT, False)],
    "named in a snapshot": [(MOMENT - 9, None, True)],
    "made later": [(MOMENT + 1, MOMENT + 2, False), (MOMENT + 2, None, False)],
    "in a later snapshot": [(MOMENT + 1, None, True)],
    "made again": [(MOMENT - 9, MOMENT - 1, False), (MOMENT + 1, None, False)],
    "nothing": [],
}


@pytest.mark.usefixtures("few")
def test_a_log_without_a_batch_that_tells_is_judged_by_the_metadata_log(
    spark: SparkSession,
) -> None:
    firsts = {
        "none": [],
        "unreadable": [(0, None)],
        "cut": [(9, MOMENT + 1)],
        "young": [(0, MOMENT + 1)],
    }
    logs = [(f"{told}, {first}", 0) for told in _TOLD for first in firsts]
    found = [(*log, *row, True) for log in logs for row in firsts[log[0].split(", ")[1]]]
    partitions = [(*log, *row) for log in logs for row in _TOLD[log[0].split(", ")[0]]]
    moment = Moment(MOMENT, is_given=True)
    history = f"{_LOG}, from_ms long, until_ms long, is_from_snapshot boolean"
    first = f"{_LOG}, offset long, timestamp_ms long, is_of_broker boolean"

    named = named_logs(rows_of(spark, partitions, history), moment=moment)
    decide = missing_logs(
        rows_of(spark, found, first), rows_of(spark, [], _LOG), named, moment=moment
    )
    rows = rows_of(spark, logs, _LOG).transform(decide).collect()

    was_there = {row["topic"] for row in rows if row["detail"]}
    doubted = {row["topic"]: row["doubt"] for row in rows if row["doubt"]}
    there = ("named since", "named shortly before", "named in a snapshot")
    assert was_there == {f"{told}, {first}" for told in there for first in firsts}
    unclear = ("named until", "in a later snapshot", "nothing")
    assert doubted == {
        f"{told}, {first}": why
        for told in unclear
        for first, why in {
            "none": "it holds no batch that tells since when it is there",
            "unreadable": "its first batch cannot be read",
            "cut": "what lay in front of its first batch is gone, so it may be older",
        }.items()
    }
