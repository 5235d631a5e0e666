"""Which copies of coordinators' topics have other records at one place, by hand."""

from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from kafka_segments.engine.derived.contradicted_keys import with_contradicted
from kafka_segments.engine.derived.contradictions import (
    contradicted_keys,
    contradictions,
    several_copies,
    unsettled,
)
from kafka_segments.engine.derived.replicas import KnownReplicas
from support.spark.rows_of import frame, rows_of

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("few")]

TOPIC_ID = "topic_id string"
RECORD = (
    "offset long, leader_epoch int, timestamp_ms long, kind string, key_version int,"
    " value_version int, key_json string, value_json string, key binary, value binary,"
    " problem string, producer_id long, is_tombstone boolean"
)
Copy = dict[int, tuple[int, str]]
WHOLE: Copy = {0: (1, "a"), 1: (1, "b"), 2: (1, "c")}


def _rows(*copies: Copy) -> list[dict[str, Any]]:
    """Give records of copies; a value names its key by its first letter, `!` a marker."""
    return [
        {
            "broker_id": broker,
            "offset": offset,
            "leader_epoch": epoch,
            "timestamp_ms": 100 * broker + offset,
            "kind": "EndTxnMarker" if value == "!" else "OffsetCommit",
            "key_json": None if value == "?" else value[0],
            "value_json": value,
            "problem": "cut off" if value == "?" else None,
            "producer_id": -1,
        }
        for broker, copy in enumerate(copies, 1)
        for offset, (epoch, value) in copy.items()
    ]


@pytest.mark.parametrize(
    ("other", "places"),
    [
        (WHOLE, {}),
        ({0: (1, "a"), 1: (1, "x"), 2: (1, "c")}, {1: True}),
        ({0: (1, "x"), 1: (1, "b"), 2: (1, "x")}, {0: True, 2: True}),
        ({0: (1, "!"), 1: (1, "b"), 2: (1, "?")}, {0: False, 2: False}),
        ({0: (1, "a"), 1: (0, "x")}, {}),  # a deposed leader's
        ({0: (-1, "x")}, {}),  # of an old format, which tells no epoch
        ({0: (1, "a"), 2: (1, "c")}, {}),  # compacted
        ({0: (1, "a")}, {}),  # shorter
        ({2: (1, "c"), 3: (1, "d")}, {}),  # it begins later, and is longer
    ],
)
def test_other_records_at_an_offset_of_one_epoch_contradict(
    spark: SparkSession, other: Copy, places: dict[int, bool]
) -> None:
    copies = frame(spark, TOPIC_ID, {"broker_id": 1}, {"broker_id": 2})

    found = frame(spark, RECORD, *_rows(WHOLE, other)).transform(contradictions(copies)).collect()

    assert {row["offset"]: row["is_keyed"] for row in found} == places
    assert all(f"at offset {row['offset']} in leader" in row["why"] for row in found)


def test_each_key_that_a_copy_has_there_is_in_doubt_until_a_later_record_of_it(
    spark: SparkSession,
) -> None:
    both = [
        {0: (1, "a"), 1: (1, "b"), 2: (1, "c"), 3: (1, "d"), 4: (1, "a")},
        {0: (1, "x"), 1: (1, "b2"), 2: (1, "c"), 3: (1, "d"), 4: (1, "a")},
    ]
    copies = frame(spark, TOPIC_ID, {"broker_id": 1}, {"broker_id": 2})
    records = frame(spark, RECORD, *_rows(*both))
    places = records.transform(contradictions(copies))

    keys = records.transform(contradicted_keys(copies, places))
    said = keys.select("broker_id", "offset", "key_json", "timestamp_ms", "is_only_key").collect()
    left = records.transform(unsettled(keys)).select("broker_id", "key_json").collect()
    rows = records.where("broker_id = 1").transform(with_contradicted(keys))
    told = rows.select("offset", "key_json", "value_json", F.isnotnull("contradicted")).collect()

    assert sorted(said) == [
        (broker, *rest)
        for broker in (1, 2)
        for rest in ((0, "a", 100, False), (0, "x", 200, False), (1, "b", 101, True))
    ]
    assert sorted(left) == [(1, "b"), (1, "x"), (2, "b"), (2, "x")]
    assert sorted(told, key=str) == [
        (0, "a", "a", True),
        (0, "x", None, True),
        (1, "b", "b", True),
        (2, "c", "c", False),
        (3, "d", "d", False),
        (4, "a", "a", False),
    ]


def test_copies_are_logs_of_one_topic_id(spark: SparkSession) -> None:
    ids = {0: ["new", "new"], 1: ["new", None], 2: ["new", "old"], 3: ["new"]}
    rows = [
        {"partition": partition, "broker_id": broker, "topic_id": topic_id}
        for partition, brokers in ids.items()
        for broker, topic_id in enumerate(brokers)
    ]
    logs = frame(spark, TOPIC_ID, *rows)
    key = logs.drop("topic_id")
    named = rows_of(
        spark,
        [(*key.select("cluster", "topic").first(), number, "new", [1]) for number in ids],
        "cluster string, topic string, partition int, topic_id string, in_sync array<int>",
    )

    found = key.transform(several_copies(KnownReplicas(logs, named))).collect()

    assert sorted((row["partition"], row["topic_id"]) for row in found) == [
        *[(0, "new")] * 2,
        *[(1, "new")] * 2,
    ]
    assert key.transform(several_copies(KnownReplicas())).count() == 6
