"""When a backup was taken, and what it alone holds, by rows that are written down."""

from typing import Any

import pytest
from pyspark.sql import SparkSession

from kafka_segments.files.folders import kinds
from kafka_segments.verbs.copies.backup.decide.ends import told_moment
from kafka_segments.verbs.copies.backup.decide.verdicts import only_in_backup
from support.spark.rows_of import rows_of

NS_A_MS = 1_000_000


def _moment(
    spark: SparkSession, listed: list[tuple[str, str, int]], last: list[tuple[str, int | None]]
) -> Any:
    ends = rows_of(spark, last, "copy string, timestamp_ms long")
    files = rows_of(spark, listed, "kind string, copy string, mtime_ns long")
    (row,) = files.transform(told_moment(ends, backup="b")).collect()
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
