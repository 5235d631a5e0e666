"""Which local data no copy has: copies that count, topics that are tiered, topic ids."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from pyspark.sql import SparkSession

from kafka_segments.engine.derived.tier_fronts import tiered_topics
from kafka_segments.verbs.find.internals.tier.decide.not_copied import (
    not_copied,
    tiered_partitions,
)
from kafka_segments.verbs.find.internals.tier.decide.tier import STATES
from support.spark.rows_of import rows_of

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("few")]

COPIED, OLD, NEW = STATES[1], "old-id", "new-id"
HELD = (
    "cluster string, topic string, topic_id string, partition int, state string,"
    " partition_state string, start_offset long, end_offset long, findings array<string>"
)
LOCAL = (
    "cluster string, topic string, partition int, local_topic_id string, log_start_offset long,"
    " log_end_offset long"
)


def _copy(start: int, end: int, *findings: str, **other: Any) -> dict[str, Any]:
    usual = {"topic": "t", "topic_id": NEW, "state": COPIED, "partition_state": None}
    return {**usual, "start_offset": start, "end_offset": end, "findings": [*findings], **other}


def _gaps(
    spark: SparkSession,
    copies: Sequence[Mapping[str, Any]],
    *logs: tuple[str, str | None],
    tiered: Sequence[str] | None = (),
) -> list[tuple[Any, ...]]:
    """Ask of logs from offset 100 up to 199 which offsets no copy has."""
    held = [
        (
            *("c", copy["topic"], copy["topic_id"], 0, copy["state"], copy["partition_state"]),
            *(copy["start_offset"], copy["end_offset"], copy["findings"]),
        )
        for copy in copies
    ]
    local = [("c", topic, 0, topic_id, 100, 200) for topic, topic_id in logs or [("t", NEW)]]
    topics = None
    if tiered is not None:
        topics = rows_of(spark, [("c", name) for name in tiered], "cluster string, topic string")
    decide = not_copied(rows_of(spark, local, LOCAL), tiered=topics)
    found = rows_of(spark, held, HELD).transform(decide).collect()
    return sorted((row.topic, row.copies, row.from_offset, row.to_offset) for row in found)


def test_ranges_lie_between_copies_and_within_the_local_log(spark: SparkSession) -> None:
    copies = [_copy(0, 119), _copy(110, 129), _copy(140, 149), _copy(145, 147), _copy(300, 309)]

    assert _gaps(spark, copies) == [("t", 5, 130, 139), ("t", 5, 150, 199)]


@pytest.mark.parametrize(
    "worthless",
    [
        *(
            _copy(100, 199, "refused_updates", finding)
            for finding in ("missing", "incomplete", "disagrees", "unreadable", "lost_leadership")
        ),
        *(_copy(100, 199, state=state) for state in (STATES[0], STATES[2], STATES[3])),
        _copy(100, 199, partition_state="DELETE_PARTITION_MARKED"),
    ],
    ids=lambda copy: "-".join([*copy["findings"], copy["state"]]),
)
def test_a_copy_counts_only_if_a_broker_serves_it(
    spark: SparkSession, worthless: Mapping[str, Any]
) -> None:
    sound = _copy(100, 149, "refused_updates")

    assert _gaps(spark, [sound, worthless]) == [("t", 1, 150, 199)]


def test_copies_of_a_topic_that_was_deleted_are_none_of_the_one_of_its_name(
    spark: SparkSession,
) -> None:
    copies = [_copy(0, 199, topic_id=OLD), _copy(100, 119)]

    assert _gaps(spark, copies) == [("t", 1, 120, 199)]
    assert _gaps(spark, copies[:1]) == []
    assert _gaps(spark, copies[:1], tiered=None) == [("t", 0, 100, 199)]
    assert _gaps(spark, copies[:1], ("t", None)) == []


def test_a_tiered_topic_of_which_nothing_was_copied_is_there(spark: SparkSession) -> None:
    never = ("never", "some-id")

    copies = [_copy(0, 149)]

    told = _gaps(spark, copies, ("t", NEW), never, ("local", "i"), tiered=["never", "gone"])
    assert told == [("never", 0, 100, 199), ("t", 1, 150, 199)]
    assert _gaps(spark, [], never, tiered=["never"]) == [("never", 0, 100, 199)]
    assert _gaps(spark, copies, ("t", NEW), never, tiered=None) == [("t", 1, 150, 199)]


@pytest.mark.slow
def test_a_topic_is_tiered_whose_own_setting_says_so(spark: SparkSession) -> None:
    setting = "remote.storage.enable"
    configs = [
        ("c", "topic", "plain", setting, "true"),
        ("c", "topic", "spaced", setting, " TRUE "),
        ("c", "topic", "disabled", setting, "false"),
        ("c", "topic", "other", "cleanup.policy", "true"),
        ("c", "broker", "1", setting, "true"),
        ("d", "topic", "plain", setting, "true"),
    ]
    columns = (
        "cluster string, resource_type string, resource_name string, name string, value string"
    )

    found = rows_of(spark, configs, columns).transform(tiered_topics)

    assert found.columns == ["cluster", "topic"]
    assert sorted(map(tuple, found.collect())) == [("c", "plain"), ("c", "spaced"), ("d", "plain")]


def test_partitions_are_tiered_by_their_topic_or_by_copies_of_its_id(spark: SparkSession) -> None:
    named = [("c", "t", 0, NEW), ("c", "t", 1, NEW), ("c", "set", 0, NEW), ("c", "plain", 0, NEW)]
    copies = [
        *(("c", "t", NEW, 0, COPIED, None), ("c", "t", OLD, 1, COPIED, None)),
        *(("c", "plain", NEW, 0, STATES[3], None), ("d", "not-named", NEW, 0, COPIED, None)),
        ("d", "deleted", NEW, 0, COPIED, "DELETE_PARTITION_MARKED"),
    ]
    claimed = rows_of(spark, [(*copy, None, None, []) for copy in copies], HELD)
    columns = "cluster string, topic string, partition int, topic_id string"
    tiered = rows_of(spark, [("c", "set"), ("d", "set")], "cluster string, topic string")

    decide = tiered_partitions(rows_of(spark, named, columns), tiered)

    found = sorted(tuple(row) for row in claimed.transform(decide).collect())
    assert found == [("c", "set", 0), ("c", "t", 0), ("d", "not-named", 0)]
    without = claimed.where("cluster = 'd'").transform(tiered_partitions(None, None)).collect()
    assert [tuple(row) for row in without] == [("d", "not-named", 0)]
