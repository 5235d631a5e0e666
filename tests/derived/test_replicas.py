"""Which replica of a partition answers for it."""

import os
import random
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from kafka_segments.engine.derived.replicas import (
    KnownReplicas,
    answering_logs,
    choose_replica,
    last_epoch,
    left_over,
    out_of_metadata,
)
from kafka_segments.kafka.text.names import METADATA_TOPIC
from support.spark.rows_of import frame, rows_of

pytestmark = pytest.mark.spark

NAMED = "cluster string, topic string, partition int, topic_id string, in_sync array<int>"
CASES = int(os.environ.get("PARTIAL_CASES", "300"))
LOG = (
    "topic_id string, last_epoch int, log_end_offset long, high_watermark long,"
    " lost struct<until: long, why: string>"
)
Log = tuple[int, str | None, int | None, int]


def _logs(spark: SparkSession, *logs: Log) -> DataFrame:
    names = ("broker_id", "topic_id", "last_epoch", "log_end_offset")
    return frame(spark, LOG, *(dict(zip(names, log, strict=True)) for log in logs))


def _named(spark: SparkSession, topic_id: str, *in_sync: int) -> DataFrame:
    return rows_of(spark, [("c", "t", 0, topic_id, list(in_sync))], NAMED)


@pytest.mark.parametrize(
    ("logs", "broker"),
    [
        ([(1, "new", 0, 9), (2, "new", 0, 10), (3, "old", 5, 99)], 2),
        ([(1, "new", 1, 9), (2, "new", 0, 99), (3, "new", None, 100)], 1),
        ([(1, "new", 1, 9), (2, "new", 1, 10), (3, None, 1, 11)], 3),
        ([(2, "new", 1, 10), (4, "new", 1, 11)], 2),
        ([(2, "new", 1, 10), (1, "new", 1, 10)], 1),
    ],
)
def test_topic_id_then_epoch_then_length_choose(
    spark: SparkSession, logs: list[Log], broker: int
) -> None:
    rows = _logs(spark, *logs).transform(choose_replica(_named(spark, "new", 1, 2, 3))).collect()

    assert [(row["broker_id"], row["doubt"]) for row in rows] == [(broker, None)]
    assert rows[0].asDict().keys().isdisjoint({"topic_id", "last_epoch"})


@pytest.mark.parametrize(
    ("logs", "broker"),
    [
        ([(1, 1, 10, 5), (2, 1, 10, None)], 2),
        ([(1, 1, 10, 5), (2, 1, 10, 4)], 2),
        ([(1, 1, 10, 5), (2, 1, 9, None)], 1),  # which lacks what the longer one has
        ([(1, 2, 9, 5), (2, 1, 10, None)], 1),
    ],
)
def test_of_equal_copies_one_that_lost_no_records_answers(
    spark: SparkSession, logs: list[tuple[int, int, int, int | None]], broker: int
) -> None:
    rows = [
        {
            "broker_id": number,
            "last_epoch": epoch,
            "log_end_offset": end,
            "lost": None if until is None else (until, "why"),
        }
        for number, epoch, end, until in logs
    ]

    (row,) = frame(spark, LOG, *rows).transform(choose_replica(None)).collect()

    assert row["broker_id"] == broker


def test_left_over_logs_alone_answer_nothing(spark: SparkSession) -> None:
    logs = _logs(spark, (1, "old", 5, 99), (2, None, 0, 3), (3, "new", 0, 3))
    named = _named(spark, "new", 3)

    assert logs.where("broker_id = 1").transform(choose_replica(named)).isEmpty()
    (row,) = logs.transform(left_over(named)).collect()
    assert (row["broker_id"], row["doubt"].split(":")[0]) == (1, "not known")


def test_a_log_of_a_partition_that_the_metadata_lacks_is_in_doubt(spark: SparkSession) -> None:
    other = {"topic_id": "new", "last_epoch": 0, "log_end_offset": 9}
    places = [
        {},
        {"partition": 1},
        {"topic": "deleted"},
        {"topic": METADATA_TOPIC},
        {"cluster": "without metadata", "topic": "deleted"},
    ]
    logs = frame(spark, LOG, *({**other, **place} for place in places))
    named = _named(spark, "new", 1)

    chosen = logs.transform(choose_replica(named)).where("doubt IS NOT NULL")
    told = logs.transform(out_of_metadata(named))

    for rows in (chosen, told):
        found = {(row["topic"], row["partition"]): row["doubt"] for row in rows.collect()}
        assert found.keys() == {("t", 1), ("deleted", 0)}
        assert all("has no such partition" in doubt for doubt in found.values())


def test_a_log_is_out_of_the_metadata_for_one_reason(spark: SparkSession) -> None:
    logs = frame(spark, LOG, {"topic_id": "old", "partition": 1})

    (row,) = logs.transform(out_of_metadata(_named(spark, "new", 1))).collect()

    assert "left over from a topic that was deleted" in row["doubt"]


@pytest.mark.parametrize(
    ("logs", "in_sync", "word"),
    [
        ([(2, "new", 1, 10)], (1, 3), "in sync (1, 3)"),
        ([(2, "new", 1, 10), (3, "new", 1, 9)], (1, 3), None),
        ([(-1, "new", 1, 10)], (1, 3), None),
        ([(1, "new", 1, 9), (2, "old", 2, 10)], None, "several topic ids"),
        ([(1, "new", 1, 9), (2, None, 2, 10)], None, None),
        ([(1, "new", 1, 9), (2, "new", 2, 10)], None, None),
    ],
)
def test_an_answer_is_in_doubt_that_the_metadata_does_not_bear_out(
    spark: SparkSession, logs: list[Log], in_sync: tuple[int, ...] | None, word: str | None
) -> None:
    named = None if in_sync is None else _named(spark, "new", *in_sync)

    (row,) = _logs(spark, *logs).transform(choose_replica(named)).collect()

    assert row["doubt"] is None if word is None else word in row["doubt"]


@pytest.mark.parametrize(
    ("logs", "is_known"),
    [
        ([(1, "new", 1, 10, 10)], True),
        ([(1, "new", 1, 10, 11)], False),
        ([(1, None, None, 10, 11)], False),
        ([(1, "new", 1, 10, 9), (2, "new", 1, 9, 11)], False),
        ([(1, "new", 2, 10, None), (2, "new", 1, 12, 12)], True),
        ([(1, "new", 2, 10, 10), (2, "old", 3, 12, 12)], True),
    ],
)
def test_a_log_that_ends_below_a_checkpointed_high_watermark_lacks_its_end(
    spark: SparkSession, logs: list[tuple[Any, ...]], is_known: bool
) -> None:
    names = ("broker_id", "topic_id", "last_epoch", "log_end_offset", "high_watermark")
    rows = frame(spark, LOG, *(dict(zip(names, log, strict=True)) for log in logs))

    (row,) = rows.transform(choose_replica(_named(spark, "new", 1, 2))).collect()

    assert row["doubt"] is None if is_known else "below the high watermark 11" in row["doubt"]


def test_no_part_of_the_replicas_gives_another_answer_than_all(
    spark: SparkSession, seed: int
) -> None:
    choice = random.Random(seed)
    logs: list[dict[str, Any]] = []
    named, ends = [], {}
    for number in range(CASES):
        brokers = choice.sample(range(1, 8), 7)
        in_sync, behind, left = brokers[:2], brokers[2:4], brokers[4:6]
        epoch, end = choice.randrange(1, 4), choice.randrange(10, 20)
        named.append(("c", "t", number, "new", in_sync))
        ends[number] = end
        found = [(broker, "new", epoch, end) for broker in in_sync]
        found += [
            (broker, "new", choice.randrange(epoch), choice.randrange(40)) for broker in behind
        ]
        found += [(broker, "old", choice.randrange(9), choice.randrange(40)) for broker in left]
        part = choice.sample(found, choice.randrange(1, len(found) + 1))
        names = ("broker_id", "topic_id", "last_epoch", "log_end_offset")
        logs += [{"partition": number, **dict(zip(names, log, strict=True))} for log in part]

    rows = (
        frame(spark, LOG, *logs).transform(choose_replica(rows_of(spark, named, NAMED))).collect()
    )

    told = {row["partition"]: row["log_end_offset"] for row in rows if row["doubt"] is None}
    assert told == {number: ends[number] for number in told}
    sound = {log["partition"] for log in logs if log["broker_id"] in named[log["partition"]][4]}
    assert told.keys() == sound


def test_an_epoch_behind_the_end_is_none_that_the_log_has(spark: SparkSession) -> None:
    columns = "log_end_offset long, leader_epochs array<struct<epoch: int, start_offset: long>>"
    epochs = [(0, 0), (3, 10), (9, 11)]
    logs = frame(
        spark,
        columns,
        {"partition": 0, "log_end_offset": 10, "leader_epochs": epochs},
        {"partition": 1, "log_end_offset": 11, "leader_epochs": epochs},
        {"partition": 2, "log_end_offset": 11, "leader_epochs": []},
        {"partition": 3, "log_end_offset": 11},
    )

    rows = logs.withColumn("last", last_epoch()).orderBy("partition").collect()

    assert [row["last"] for row in rows] == [3, 9, None, None]


def test_the_records_of_a_log_tell_its_epoch_and_its_end(spark: SparkSession) -> None:
    def records(broker: int, *rows: tuple[int, int]) -> list[dict[str, Any]]:
        return [{"broker_id": broker, "leader_epoch": e, "offset": o} for e, o in rows]

    epochs = "topic_id string, leader_epochs array<struct<epoch: int, start_offset: long>>"
    given = [*records(1, (0, 4), (1, 5)), *records(2, (0, 4), (0, 9)), *records(3, (0, 5))]
    rows = frame(spark, "offset long, leader_epoch int", *given)
    logs = frame(spark, epochs, {"broker_id": 3, "leader_epochs": [(2, 6)]})

    found = [
        rows.transform(answering_logs(known)).collect()
        for known in (KnownReplicas(), KnownReplicas(logs))
    ]

    ends = [[(row["broker_id"], row["log_end_offset"]) for row in one] for one in found]
    assert ends == [[(1, 6)], [(3, 6)]]


def test_a_log_that_was_built_is_judged_by_its_segments_whether_its_records_were_read_or_not(
    spark: SparkSession,
) -> None:
    read = frame(
        spark,
        "leader_epoch int, offset long",
        *({"broker_id": broker, "leader_epoch": 1, "offset": 7} for broker in (1, 3)),
    )
    ends = "topic_id string, last_epoch int, log_end_offset long, high_watermark long"
    log = {"last_epoch": 1, "log_end_offset": 8}
    built = [
        {**log, "broker_id": 1},
        {**log, "broker_id": 2, "log_end_offset": 9},
        {**log, "partition": 1},
    ]
    found = [
        read.transform(answering_logs(KnownReplicas(built=frame(spark, ends, *logs)))).collect()
        for logs in (built, built[:1], [{**built[0], "high_watermark": 9}])
    ]

    assert [[(row["broker_id"], row["doubt"] is None) for row in rows] for rows in found] == [
        [(2, True)],
        [(1, True)],
        [(1, False)],
    ]
