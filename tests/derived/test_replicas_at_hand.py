"""Which replicas that the metadata names are not among the logs at hand."""

import pytest
from pyspark.sql import DataFrame, SparkSession

from kafka_segments.engine.derived.replicas_at_hand import (
    named_last,
    with_logs_at_hand,
    without_log,
)
from support.spark.rows_of import rows_of

pytestmark = pytest.mark.spark

PARTITIONS = (
    "cluster string, topic string, partition int, topic_id string, replicas array<int>,"
    " isr array<int>, elr array<int>, until_offset long"
)
LOGS = "cluster string, broker_id int, topic string, partition int, topic_id string"
Log = tuple[str | None, int | None, str | None]
CASES: list[tuple[list[Log], list[int], bool, bool]] = [
    ([("c", 1, "new"), ("c", 2, "new"), ("c", 3, "new")], [], True, True),
    ([("c", 1, "new"), ("c", 3, "old")], [2, 3], True, True),
    ([("c", 1, None), (None, 2, "new")], [3], True, True),
    ([("c", 3, "new")], [1, 2], True, False),
    ([("c", 9, "new")], [1, 2, 3], True, False),
    ([("c", 3, "new"), (None, None, None)], [1, 2], True, True),
    ([(None, None, None)] * 3, [], True, True),
    ([("d", 1, "new"), ("d", 2, "new")], [1, 2, 3], False, False),
    ([], [1, 2, 3], False, False),
]
"""Cluster, broker and topic id of a partition's logs; who is absent, is any there, one in sync."""


def _named(spark: SparkSession, cluster: str | None = "c") -> DataFrame:
    rows = [
        row
        for number in range(len(CASES))
        for row in (
            (cluster, "t", number, "new", [1, 2, 3], [1], [2], None),
            (cluster, "t", number, "old", [7], [7], [], 90),
        )
    ]
    return rows_of(spark, rows, PARTITIONS).transform(named_last)


def _logs(spark: SparkSession) -> DataFrame:
    rows = [
        (cluster, broker, "t", number, topic_id)
        for number, (logs, *_) in enumerate(CASES)
        for cluster, broker, topic_id in logs
    ]
    return rows_of(spark, [*rows, ("c", 1, "u", 8, "new")], LOGS)


def test_a_replica_is_absent_that_is_none_of_the_logs(spark: SparkSession) -> None:
    rows = _named(spark).transform(with_logs_at_hand(_logs(spark))).collect()

    names = ("absent", "is_there", "is_in_sync_there")
    found = {row["partition"]: tuple(row[name] for name in names) for row in rows}
    assert found == {number: tuple(case[1:]) for number, case in enumerate(CASES)}


def test_metadata_that_does_not_tell_its_cluster_is_of_each(spark: SparkSession) -> None:
    of_each = _named(spark, None).where("partition = 0")

    (row,) = of_each.transform(with_logs_at_hand(_logs(spark))).collect()

    assert row["absent"] == []


def test_partitions_of_which_there_is_no_log_are_named_by_cluster(spark: SparkSession) -> None:
    rows = [(c, "t", n, "new", [1], [1], [], None) for c in "cd" for n in range(3)]
    there = rows_of(spark, [("c", 1, "t", 1, None)], LOGS)

    found = without_log(rows_of(spark, rows, PARTITIONS).transform(named_last), there)

    assert found == {"c": ["t-0", "t-2"], "d": ["t-0", "t-1", "t-2"]}
