"""Which replica of a log is compared with which of its mirror's, by rows that are written down."""

from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from kafka_segments.verbs.copies.divergence.mirror.decide.logs import (
    MIRROR,
    NOTED,
    SOURCE,
    best_replicas,
    logs_to_mirror,
    of_offset_syncs,
    pair_with_mirrors,
)
from kafka_segments.verbs.copies.divergence.mirror.decide.unknown_mirrors import unknown_mirrors
from support.spark.rows_of import rows_of

pytestmark = pytest.mark.spark

SEGMENTS = (
    "copy string, topic string, partition int, path string, base_offset long, size_bytes long"
)
LOGS = (
    "copy string, topic string, partition int, log_start_offset long, cleaner_offset long,"
    " has_cleaner_checkpoint boolean, is_compact boolean"
)
CHOSEN = (
    "side string, topic string, partition int, path string, base_offset long, size_bytes long,"
    " start long"
)
NOTHING = (None, False, None)
"""What is noted of compaction."""


def _best(
    spark: SparkSession, segments: list[tuple[Any, ...]], logs: list[tuple[Any, ...]]
) -> dict[str, tuple[Any, ...]]:
    """Give (side, start, what is noted) by path; copies with an s are of the source."""
    noted = rows_of(spark, [(*log, None) for log in logs], f"{LOGS}, high_watermark long")
    choose = best_replicas(noted, ["s1", "s2", "s3"])
    rows = rows_of(spark, segments, SEGMENTS).transform(choose).collect()
    return {row.path: (row.side, row.start, tuple(row[name] for name in NOTED)) for row in rows}


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
    logs = [(copy, "t", 0, None, *NOTHING) for copy in ("s1", "s2", "s3", "m1", "m2")]

    assert _best(spark, segments, [*logs, ("s1", "t", 1, None, *NOTHING)]) == {
        "s2-20": (SOURCE, 20, NOTHING),
        "s2-60": (SOURCE, 20, NOTHING),
        "s1-1": (SOURCE, 0, NOTHING),
        "m1-0": (MIRROR, 0, NOTHING),
    }


@pytest.mark.parametrize(("start", "expected"), [(None, 20), (10, 20), (30, 30)])
def test_a_replica_starts_as_its_own_notes_say(
    spark: SparkSession, start: int | None, expected: int
) -> None:
    segments = [("s1", "t", 0, "first", 20, 1), ("s1", "t", 0, "last", 40, 1)]
    logs = [("s1", "t", 0, start, *NOTHING), ("m1", "t", 0, 35, *NOTHING)]

    found = _best(spark, segments, logs)

    assert {place[:2] for place in found.values()} == {(SOURCE, expected)}


def test_the_greatest_high_watermark_of_each_side_counts(spark: SparkSession) -> None:
    segments = [(copy, "t", 0, copy, 0, size) for copy, size in (("s1", 9), ("s2", 1), ("m1", 9))]
    marks = {"s1": 40, "s2": 60, "m1": None}
    logs = [(copy, "t", 0, None, *NOTHING, mark) for copy, mark in marks.items()]
    choose = best_replicas(rows_of(spark, logs, f"{LOGS}, high_watermark long"), ["s1", "s2"])

    rows = rows_of(spark, segments, SEGMENTS).transform(choose).collect()

    assert {row.path: row.high_watermark for row in rows} == {"s1": 60, "m1": None}


def test_what_all_replicas_of_a_side_note_of_compaction_counts(spark: SparkSession) -> None:
    segments = [("s1", "t", 0, "first", 20, 1)]
    notes = {"s1": (None, False, None), "s2": (7, True, None), "s3": (9, True, True)}
    logs = [(copy, "t", 0, None, *noted) for copy, noted in notes.items()]

    found = _best(spark, segments, [*logs, ("m1", "t", 0, None, 30, True, False)])

    assert found == {"first": (SOURCE, 20, (9, True, True))}


def _chosen(spark: SparkSession) -> DataFrame:
    rows = [
        (side, topic, partition, f"{side} {topic} {partition}", 0, 1, 0)
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


NAMED = "cluster string, topic string, partition int, is_in_sync_there boolean"
AT_HAND = "copy string, cluster string, topic string, partition int"
METADATA = {"s1": "west", "m1": "east"}


def _untold(
    spark: SparkSession,
    named: list[tuple[str, str, int, bool]],
    logs: dict[str, list[str]],
    metadata: dict[str, str],
) -> list[str]:
    rows = [(copy, METADATA[copy], topic, 0) for copy, topics in logs.items() for topic in topics]
    rows += [(copy, cluster, "__cluster_metadata", 0) for copy, cluster in metadata.items()]
    untold = unknown_mirrors(rows_of(spark, rows, AT_HAND), ["s1"], "w.")
    return sorted(row.topic for row in rows_of(spark, named, NAMED).transform(untold).collect())


@pytest.mark.parametrize(
    ("named", "logs", "metadata", "expected"),
    [
        pytest.param(
            [("west", "a", 0, True), ("east", "w.a", 0, True)],
            {"s1": ["a", "alone"], "m1": ["w.a"]},
            METADATA,
            [],
            id="all at hand",
        ),
        pytest.param(
            [("west", "a", 0, False), ("west", "b", 0, False), ("east", "w.b", 0, False)],
            {"s1": [], "m1": ["w.a"]},
            METADATA,
            ["a", "b"],
            id="no log of the source",
        ),
        pytest.param(
            [("west", "a", 0, True), ("west", "b", 0, True), ("east", "w.a", 0, False)],
            {"s1": ["a", "b"], "m1": []},
            METADATA,
            ["a"],
            id="no log of the mirror",
        ),
        pytest.param(
            [("west", "a", 0, False), ("west", "mm2-x.internal", 0, False)],
            {"s1": [], "m1": []},
            {"s1": "west"},
            ["a"],
            id="what the mirror has is not known",
        ),
        pytest.param(
            [("west", "a", 0, False)], {"s1": [], "m1": []}, METADATA, [], id="no mirror of it"
        ),
        pytest.param(
            [("west", "a", 0, False), ("east", "w.a", 0, True)],
            {"s1": ["a"], "m1": ["w.a"]},
            METADATA,
            ["a"],
            id="a replica out of sync alone",
        ),
        pytest.param(
            [("", "a", 0, False)], {"s1": [], "m1": []}, {"s1": "", "m1": ""}, [], id="no names"
        ),
    ],
)
def test_logs_that_only_the_metadata_knows_are_not_known_to_be_mirrored(
    spark: SparkSession,
    named: list[tuple[str, str, int, bool]],
    logs: dict[str, list[str]],
    metadata: dict[str, str],
    expected: list[str],
) -> None:
    assert _untold(spark, named, logs, metadata) == expected
