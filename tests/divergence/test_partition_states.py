"""What the metadata log says of partitions, by rows of its tables that are written down."""

from collections.abc import Sequence
from typing import Any

import pytest
from pyspark.sql import SparkSession

from kafka_segments.verbs.copies.divergence.elect.decide.partition_states import partition_states
from kafka_segments.verbs.copies.divergence.elect.decide.usable_copies import STATE
from support.spark.rows_of import rows_of

pytestmark = pytest.mark.spark

PARTITIONS = (
    "topic string, partition int, topic_id string, replicas array<int>, isr array<int>,"
    " elr array<int>, leader int, leader_epoch int, from_offset long, until_offset long"
)
CONFIGS = "resource_type string, resource_name string, name string, value string, until_offset long"
UNCLEAN = "unclean.leader.election.enable"


def _states(
    spark: SparkSession,
    partitions: Sequence[tuple[Any, ...]],
    configs: Sequence[tuple[Any, ...]] = (),
) -> dict[tuple[str, int], Any]:
    decide = partition_states(rows_of(spark, configs, CONFIGS))
    found = rows_of(spark, partitions, PARTITIONS).transform(decide).collect()
    assert all(row.asDict().keys() == {"topic", "partition", *STATE} for row in found)
    return {(row.topic, row.partition): row for row in found}


def test_the_last_row_holds_and_each_epoch_has_its_last_leader_and_members(
    spark: SparkSession,
) -> None:
    rows = [
        ("t", 0, "A", [1, 2, 3], [1, 2, 3], [], 1, 4, 10, 20),
        ("t", 0, "A", [1, 2, 3], [1, 2], [3], 1, 4, 20, 30),
        ("t", 0, "A", [2, 3], [2], [], -1, 5, 30, 40),
        ("t", 0, "A", [2, 3], [2], [2, 3], 2, 5, 40, None),
        ("t", 1, "A", [1], [1], [], 1, 9, 10, None),
        ("gone", 0, "B", [1], [1], [], 1, 0, 5, 6),
    ]

    states = _states(spark, rows)

    assert states.keys() == {("t", 0), ("t", 1)}
    row = states["t", 0]
    assert (row.topic_id, row.registered, row.isr, row.elr) == ("A", [2, 3], [2], [2, 3])
    assert [(term.epoch, term.leader, term.members) for term in row.terms] == [
        (4, 1, [1, 2, 3]),
        (5, 2, [2, 3]),
    ]
    assert [term.epoch for term in states["t", 1].terms] == [9]


def test_terms_of_a_topic_that_was_deleted_are_not_those_of_the_new_one(
    spark: SparkSession,
) -> None:
    rows = [
        ("t", 0, "OLD", [1], [1], [], 1, 3, 5, 6),
        ("t", 0, "NEW", [2], [2], [], 2, 0, 7, None),
    ]

    row = _states(spark, rows)["t", 0]

    assert (row.topic_id, [term.epoch for term in row.terms]) == ("NEW", [0])


@pytest.mark.parametrize(
    ("brokers", "expected"),
    [
        ([], [True, False, False, False]),
        ([("broker", "", UNCLEAN, "true", None)], [True, False, False, True]),
        ([("broker", "7", UNCLEAN, "true", None)], [True, False, False, True]),
        ([("broker", "", UNCLEAN, "true", 9)], [True, False, False, False]),
        ([("broker", "", UNCLEAN, "false", None)], [True, False, False, False]),
        ([("broker", "", "other", "true", None)], [True, False, False, False]),
        ([("client_metrics", "", UNCLEAN, "true", None)], [True, False, False, False]),
    ],
)
def test_any_replica_may_lead_where_the_topic_or_else_a_broker_enables_it(
    spark: SparkSession, brokers: list[tuple[Any, ...]], expected: list[bool]
) -> None:
    topics = ("enabled", "disabled", "unknown", "silent")
    rows = [(topic, 0, "A", [1], [1], [], 1, 0, 5, None) for topic in topics]
    configs = [
        ("topic", "enabled", UNCLEAN, "true", None),
        ("topic", "disabled", UNCLEAN, "false", None),
        ("topic", "unknown", UNCLEAN, None, None),
        ("topic", "silent", UNCLEAN, "true", 8),
        ("topic", "silent", "cleanup.policy", "true", None),
        ("client_metrics", "silent", UNCLEAN, "true", None),
        *brokers,
    ]

    states = _states(spark, rows, configs)

    assert [states[topic, 0].elects_any for topic in topics] == expected
