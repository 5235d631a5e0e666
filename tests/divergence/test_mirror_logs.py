"""Which replica of a log is compared with which of its mirror's, by rows that are written down."""

from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from kafka_segments.divergence.decide.mirror_logs import (
    MIRROR,
    SOURCE,
    best_replicas,
    logs_to_mirror,
    of_offset_syncs,
    pair_with_mirrors,
)
from rows_of import rows_of

pytestmark = pytest.mark.spark

SEGMENTS = (
    "copy string, topic string, partition int, path string, base_offset long, size_bytes long"
)
LOGS = "copy string, topic string, partition int, log_start_offset long, cleaner_offset long"
CHOSEN = (
    "side string, topic string, partition int, path string, base_offset long, size_bytes long,"
    " start long, is_compacted boolean"
)


def _best(
    spark: SparkSession, segments: list[tuple[Any, ...]], logs: list[tuple[Any, ...]]
) -> dict[str, tuple[Any, ...]]:
    """Give (side, start, is_compacted) by path; copies with an s are of the source."""
    choose = best_replicas(rows_of(spark, logs, LOGS), ["s1", "s2", "s3"])
    rows = rows_of(spark, segments, SEGMENTS).transform(choose).collect()
    return {row.path: (row.side, row.start, row.is_compacted) for row in rows}


def test_the_replica_of_each_side_counts_whose_last_segment_goes_furthest(
    spark: SparkSession,
) -> None:
    segments = [
        ("s1", "t", 0, "s1-0", 0, 900),
        ("s1", "t", 0, "s1-50", 50, 10),
        ("s2", "t", 0, "s2-20", 20, 10),
        ("s2", "t", 0, "s2-60", 60, 10),
        ("s3", "t", 0, "s3-60", 60, 9),
        ("s1", "t", 1, "s1-1", 0, 1),
        ("m1", "t", 0, "m1-0", 0, 5),
        ("m2", "t", 0, "m2-0", 0, 5),
    ]
    logs = [(copy, "t", 0, None, None) for copy in ("s1", "s2", "s3", "m1", "m2")]

    assert _best(spark, segments, [*logs, ("s1", "t", 1, None, None)]) == {
        "s2-20": (SOURCE, 20, False),
        "s2-60": (SOURCE, 20, False),
        "s1-1": (SOURCE, 0, False),
        "m1-0": (MIRROR, 0, False),
    }


@pytest.mark.parametrize(
    ("start", "cleaned", "expected"),
    [
        (None, None, (SOURCE, 20, False)),
        (10, 0, (SOURCE, 20, False)),
        (30, 1, (SOURCE, 30, True)),
    ],
)
def test_a_replica_starts_and_is_compacted_as_its_own_notes_say(
    spark: SparkSession, start: int | None, cleaned: int | None, expected: tuple[Any, ...]
) -> None:
    segments = [("s1", "t", 0, "first", 20, 1), ("s1", "t", 0, "last", 40, 1)]

    found = _best(spark, segments, [("s1", "t", 0, start, cleaned), ("m1", "t", 0, 35, 5)])

    assert found == {"first": expected, "last": expected}


def _chosen(spark: SparkSession) -> DataFrame:
    rows = [
        (side, topic, partition, f"{side} {topic} {partition}", 0, 1, 0, False)
        for side, topic, partition in (
            (SOURCE, "orders", 0),
            (SOURCE, "orders", 1),
            (SOURCE, "alone", 0),
            (SOURCE, "__consumer_offsets", 0),
            (SOURCE, "heartbeats", 0),
            (SOURCE, "east.checkpoints.internal", 0),
            (SOURCE, "mm2-offset-syncs.east.internal", 0),
            (SOURCE, "checkpoints", 0),
            (MIRROR, "w.orders", 0),
            (MIRROR, "orders", 1),
            (MIRROR, "w.__consumer_offsets", 0),
            (MIRROR, "w.heartbeats", 0),
            (MIRROR, "mm2-offset-syncs.west.internal", 0),
            (MIRROR, "mm2-configs.west.internal", 0),
            (MIRROR, "my-mm2-offset-syncs.west.internal", 0),
        )
    ]
    return rows_of(spark, rows, CHOSEN)


def test_topics_that_are_kept_by_kafka_and_mirrormaker_are_not_mirrored(
    spark: SparkSession,
) -> None:
    named = _chosen(spark).transform(logs_to_mirror("w.")).collect()

    assert sorted((row.topic, row.partition, row.mirror_topic) for row in named) == [
        ("alone", 0, "w.alone"),
        ("checkpoints", 0, "w.checkpoints"),
        ("orders", 0, "w.orders"),
        ("orders", 1, "w.orders"),
    ]


def test_a_mirror_is_paired_with_its_log_by_name_and_partition(spark: SparkSession) -> None:
    paired = _chosen(spark).transform(pair_with_mirrors("w.")).collect()

    assert sorted((row.side, row.topic, row.partition, row.mirror_topic) for row in paired) == [
        (MIRROR, "orders", 0, "w.orders"),
        (SOURCE, "orders", 0, "w.orders"),
    ]
    assert {row.path for row in paired} == {"source orders 0", "mirror w.orders 0"}


def test_offset_syncs_may_lie_on_either_side(spark: SparkSession) -> None:
    found = _chosen(spark).transform(of_offset_syncs).collect()

    assert sorted((row.side, row.topic) for row in found) == [
        (MIRROR, "mm2-offset-syncs.west.internal"),
        (SOURCE, "mm2-offset-syncs.east.internal"),
    ]
