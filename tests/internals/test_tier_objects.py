"""What the objects of a tier tell by themselves, by rows that are written down."""

from typing import Any

import pytest
from pyspark.sql import SparkSession

from kafka_segments.verbs.find.internals.tier.decide.objects import rebuildable, with_topic_ids
from support.spark.rows_of import rows_of

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("few")]

FOUND = (
    "struct<end_offset: long, size_bytes: long, event_ms: long,"
    " leader_epochs: array<struct<epoch: int, start_offset: long>>>"
)
OBJECTS = (
    "topic string, topic_id string, partition int, segment_id string, base_offset long,"
    f" last_modified_ms long, missing array<string>, found {FOUND}, problem string"
)
SOUND = (9, 100, 5, [(0, 0)])


def _object(
    name: str,
    base_offset: int = 0,
    *,
    topic_id: str | None = "A",
    partition: int = 0,
    modified_ms: int = 5,
    missing: tuple[str, ...] = (),
    found: tuple[Any, ...] = SOUND,
    problem: str | None = None,
) -> tuple[Any, ...]:
    place = ("t", topic_id, partition, name, base_offset, modified_ms)
    return (*place, list(missing), found, problem)


def test_an_id_is_that_of_the_one_topic_that_has_the_name(spark: SparkSession) -> None:
    columns = "topic string, topic_id string, segment_id string"
    objects = [("one", None, "1"), ("one", "OLD", "2"), ("two", None, "3"), ("none", None, "4")]
    topics = [("one", "A"), ("two", "B"), ("two", "C")]
    known = rows_of(spark, topics, "topic string, topic_id string")

    found = rows_of(spark, objects, columns).transform(with_topic_ids(known))

    assert found.columns == ["topic", "topic_id", "segment_id"]
    assert sorted((row.segment_id, row.topic_id) for row in found.collect()) == [
        *(("1", "A"), ("2", "OLD"), ("3", None), ("4", None)),
    ]


def test_what_is_rebuilt_is_whole_and_says_all_that_is_announced(spark: SparkSession) -> None:
    objects = [
        _object("sound"),
        _object("empty", found=(9, 0, None, [(0, 0)])),
        _object("no id", topic_id=None),
        _object("no index", missing=(".indexes",)),
        _object("unreadable", problem="cut off"),
        _object("no end", found=(None, 100, 5, [(0, 0)])),
        _object("no size", found=(9, None, 5, [(0, 0)])),
        _object("no such size", found=(9, -1, 5, [(0, 0)])),
        _object("no epochs", found=(9, 100, 5, [])),
        _object("unknown epochs", found=(9, 100, 5, None)),
    ]

    found = rows_of(spark, objects, OBJECTS).transform(rebuildable).collect()

    assert {row.segment_id for row in found} == {"sound", "empty"}


def test_segments_are_announced_in_the_order_in_which_they_were_or_were_written(
    spark: SparkSession,
) -> None:
    undated = (9, 100, None, [(0, 0)])
    objects = [
        _object("f", partition=1, modified_ms=1),
        _object("e", topic_id="B", found=(9, 100, 1, [(0, 0)])),
        _object("d", 20, modified_ms=9, found=undated),
        _object("c", 20, modified_ms=1, found=(9, 100, 8, [(0, 0)])),
        _object("b", 10, modified_ms=7, found=undated),
        _object("a", 0, modified_ms=7, found=undated),
        _object("a2", 0, modified_ms=7, found=undated),
    ]

    found = rows_of(spark, objects, OBJECTS).transform(rebuildable).collect()

    assert [row.segment_id for row in found] == ["a", "a2", "b", "c", "d", "f", "e"]
