"""States of remote segments and their lineage, by the same records as Kafka's own classes."""

import base64
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from kafka_segments.kafka.messages.records import REMOTE_LOG_TOPIC, decode_internal
from kafka_segments.verbs.find.internals.record_columns import decode_row
from kafka_segments.verbs.find.internals.tier.decide.lineage import (
    choose_lineage,
    goes_beyond_log,
    is_within_lineage,
)
from kafka_segments.verbs.find.internals.tier.decide.tier import (
    SAID,
    decide_findings,
    fold_states,
    hold_against_objects,
    records_that_count,
)
from support.kafka.cluster_disks import internal_files
from support.kafka.kafka_referee import Answer, Referee
from support.logs.remote_records import (
    COPIED,
    COPYING,
    DELETED,
    DELETING,
    added,
    partition_deleted,
    segment_id,
    updated,
)
from support.model.plain_decoder import plain_records
from support.spark.rows_of import rows_of
from support.stores.tiered_objects import TOPIC_ID

pytestmark = pytest.mark.spark

LOG = ("c", 1, "/d", REMOTE_LOG_TOPIC, 0)
RECORDS = (
    "cluster string, broker_id int, log_dir string, topic string, partition int, offset long,"
    " leader_epoch int, kind string, value_json string, is_tombstone boolean, key binary"
)
SEGMENTS, LINEAGES = 300, 2_000
Record = tuple[bytes | None, bytes | None]


def _rows(records: Sequence[Record], log: tuple[Any, ...] = LOG) -> list[tuple[Any, ...]]:
    rows = []
    for offset, (key, value) in enumerate(records):
        found = decode_internal(REMOTE_LOG_TOPIC, key, value)
        rows.append((*log, offset, 0, found.kind, found.value_json(), value is None, key))
    return rows


def _states(spark: SparkSession, rows: list[tuple[Any, ...]]) -> dict[str, dict[str, Any]]:
    records = rows_of(spark, rows, RECORDS).transform(records_that_count())
    found = records.transform(fold_states).collect()
    return {row["segment_id"]: row.asDict(recursive=True) for row in found}


def _drawn(choice: random.Random) -> list[bytes]:
    """Draw what is told of many segments, much of it out of turn."""
    values = []
    for number in range(SEGMENTS):
        name = base64.urlsafe_b64encode(number.to_bytes(16, "big")).decode().rstrip("=")
        for _ in range(choice.randint(1, 7)):
            state = choice.choice((COPYING, COPIED, COPIED, DELETING, DELETED))
            start, broker = choice.randrange(100), choice.randrange(9)
            ms = len(values) + 1
            if choice.random() < 0.35:
                begins = choice.choice((COPYING, COPYING, COPYING, state))
                epochs = [(1, start), (2, start + 3)]
                values.append(
                    added(name, start, start + 9, state=begins, ms=ms, broker=broker, epochs=epochs)
                )
            else:
                values.append(updated(name, state, ms=ms, broker=broker))
    return values


@pytest.mark.slow
def test_states_and_refused_updates_are_those_of_kafkas_cache(
    spark: SparkSession, referee: Referee, seed: int
) -> None:
    values = _drawn(random.Random(f"{seed} states"))

    kafkas = referee.remote_states(values)
    ours = _states(spark, _rows([(None, value) for value in values]))

    assert {name: row["refused_updates"] for name, row in ours.items()} == kafkas["refused"]
    is_known = {"COPY_SEGMENT_STARTED", "COPY_SEGMENT_FINISHED", "DELETE_SEGMENT_STARTED"}
    known = {name: row for name, row in ours.items() if row["state"] in is_known}
    assert {name: _told(row) for name, row in known.items()} == {
        name: _kafka_told(row) for name, row in kafkas["segments"].items()
    }
    assert {row["state"] for row in ours.values()} == {*is_known, "DELETE_SEGMENT_FINISHED", None}


_SAME = ("state", "state_ms", "start_offset", "end_offset", "max_timestamp_ms", "size_bytes")


def _told(row: dict[str, Any]) -> list[Any]:
    epochs = [[entry["epoch"], entry["start_offset"]] for entry in row["leader_epochs"]]
    return [*(row[name] for name in _SAME), row["state_broker_id"], epochs]


def _kafka_told(row: Answer) -> list[Any]:
    return [*(row[name] for name in _SAME), row["broker_id"], row["leader_epochs"]]


def test_the_replica_that_reaches_furthest_counts_and_tombstones_delete_what_their_key_had(
    spark: SparkSession,
) -> None:
    whole: list[Record] = [
        (None, added(1, 0, 9)),
        (b"two", added(2, 10, 19)),
        (b"two", None),
        (None, updated(1, COPIED)),
        (b"three", None),
        (b"three", added(3, 20, 29, partition=1)),
        (None, partition_deleted(0, partition=1)),
        (None, partition_deleted(1, partition=1)),
    ]
    behind = _rows(whole[:2], ("c", 2, "/d", REMOTE_LOG_TOPIC, 0))

    found = _states(spark, [*_rows(whole), *behind])

    assert {
        name[20]: (row["state"], row["partition_state"], row["topic"], row["partition"])
        for name, row in found.items()
    } == {
        "1": ("COPY_SEGMENT_FINISHED", None, "orders", 0),
        "3": ("COPY_SEGMENT_STARTED", "DELETE_PARTITION_STARTED", "orders", 1),
    }


@pytest.mark.slow
def test_of_an_update_that_compaction_left_alone_nothing_is_known(spark: SparkSession) -> None:
    left: list[Record] = [
        (b"one", updated(1, COPIED)),
        (b"two", None),
        (b"three", added(3, 20, 29)),
        (b"three too", updated(3, COPIED)),
    ]
    objects = [
        ("orders", TOPIC_ID, 0, segment_id(number), 3, 100, 5, f"/tier/{number}", [], None, None)
        for number in (1, 2, 3)
    ]
    found = f"struct<{SAID}, source: string>"
    columns = (
        "topic string, topic_id string, partition int, segment_id string, objects int,"
        " stored_bytes long, last_modified_ms long, path string, missing array<string>,"
        f" found {found}, problem string"
    )
    states = rows_of(spark, _rows(left), RECORDS).transform(records_that_count())
    held = states.transform(fold_states).transform(
        hold_against_objects(rows_of(spark, objects, columns), cluster="c")
    )

    rows = (
        held.withColumn("is_in_lineage", F.lit(None).cast("boolean"))
        .transform(decide_findings(now_ms=10, grace_ms=0, is_listed=True))
        .orderBy("segment_id")
        .collect()
    )

    assert [(row["state"], row["start_offset"], row["findings"]) for row in rows] == [
        (None, None, ["refused_updates"]),
        (None, None, ["orphan"]),
        ("COPY_SEGMENT_FINISHED", 20, []),
    ]


@pytest.mark.slow
def test_objects_and_records_that_were_not_looked_at_are_not_known(spark: SparkSession) -> None:
    objects = rows_of(
        spark,
        [("orders", TOPIC_ID, 0, segment_id(9), 1, 100, 5, "/tier/9", [], None, None)],
        "topic string, topic_id string, partition int, segment_id string, objects int,"
        " stored_bytes long, last_modified_ms long, path string, missing array<string>,"
        f" found struct<{SAID}, source: string>, problem string",
    )
    records = rows_of(spark, _rows([(None, added(1, 0, 9)), (None, updated(1, COPIED))]), RECORDS)
    held = records.transform(records_that_count()).transform(fold_states)
    held = held.transform(hold_against_objects(objects, cluster="c"))
    held = held.withColumn("is_in_lineage", F.lit(None).cast("boolean"))

    told = {}
    for seen, read in ((True, True), (False, True), (True, False), (None, True)):
        decide = decide_findings(
            now_ms=10,
            grace_ms=0,
            is_listed=seen is not None,
            has_seen_all=bool(seen),
            has_all_records=read,
        )
        rows = held.transform(decide).orderBy("segment_id").collect()
        told[seen, read] = [(row["findings"], row["stored_bytes"], row["detail"]) for row in rows]

    is_missing, is_orphan = (["missing"], 0, None), (["orphan"], 100, None)
    assert told[True, True] == [is_missing, is_orphan]
    assert told[False, True][0][0] == ["not_found"]
    assert "not known: its log was not found" in told[False, True][0][2]
    assert told[False, True][1] == is_orphan
    assert told[True, False][0][0] == ["not_found"]
    assert "was read, where it may say otherwise" in told[True, False][0][2]
    assert told[True, False][1][0] == ["no_record"]
    assert "not known: no record claims it" in told[True, False][1][2]
    assert told[None, True] == [([], None, None), ([], None, None)]


def test_how_long_ago_a_clock_that_is_ahead_began_a_copy_is_not_known(spark: SparkSession) -> None:
    now_ms, grace_ms = 1_000, 100
    moments = {1: 901, 2: 900, 3: 1_099, 4: 1_100}
    values = [(None, added(number, 0, 9, ms=ms)) for number, ms in moments.items()]
    states = rows_of(spark, _rows(values), RECORDS).transform(records_that_count())
    nothing = "topic string, topic_id string, partition int, segment_id string, objects int,"
    nothing += " stored_bytes long, last_modified_ms long, path string, missing array<string>,"
    objects = rows_of(spark, [], f"{nothing} found struct<{SAID}, source: string>, problem string")
    held = states.transform(fold_states).transform(hold_against_objects(objects, cluster="c"))
    decide = decide_findings(now_ms=now_ms, grace_ms=grace_ms, is_listed=True)

    known = held.withColumn("is_in_lineage", F.lit(None).cast("boolean")).transform(decide)

    told = [(row["findings"], row["detail"]) for row in known.orderBy("segment_id").collect()]
    ahead = "not known since when: the time that it was announced with is yet to come"
    unfinished = ["copy_unfinished"]
    assert told == [([], None), (unfinished, None), ([], None), (unfinished, ahead)]


def _lineage(choice: random.Random, first: int, start: int) -> list[list[int]]:
    epochs = []
    for epoch in range(first, first + choice.randint(1, 4)):
        if choice.random() < 0.8 or not epochs:
            epochs.append([epoch, start])
            start += choice.choice((0, 5, 10))
    return epochs


def _case(choice: random.Random) -> Answer:
    """Draw a lineage, and a segment that is a part of it, or nearly."""
    lineage = _lineage(choice, choice.randint(0, 2), choice.choice((0, 5)))
    lineage = [
        e for e, after in zip(lineage, [*lineage[1:], [0, -1]], strict=True) if e[1] != after[1]
    ]
    end_of_log = lineage[-1][1] + 10
    first = choice.randrange(len(lineage))
    epochs = [list(entry) for entry in lineage[first : first + choice.randint(1, 3)]]
    if choice.random() < 0.3:
        epochs[0][1] += choice.choice((-3, 2))
    if choice.random() < 0.3:
        epochs = _lineage(choice, choice.randint(0, 3), choice.choice((0, 5, 10)))
    if choice.random() < 0.2:
        epochs.append([epochs[-1][0] + 1, epochs[-1][1]])
    after = [start for epoch, start in lineage if epoch > epochs[-1][0]]
    end = min([*after, end_of_log]) - 1 + choice.choice((0, 0, 0, -1, 1))
    epochs[0][1] = max(0, epochs[0][1])
    end = max(end, epochs[0][1])  # Kafka has no other segments
    return {"epochs": epochs, "end": end, "lineage": lineage, "log_end": end_of_log}


@pytest.mark.slow
def test_a_segment_is_in_the_lineage_as_kafka_has_it(
    spark: SparkSession, referee: Referee, seed: int
) -> None:
    choice = random.Random(f"{seed} lineage")
    cases = [_case(choice) for _ in range(LINEAGES)]
    epochs = "array<struct<epoch: int, start_offset: long>>"
    rows = [
        (
            n,
            [tuple(e) for e in c["epochs"]],
            c["end"],
            [tuple(e) for e in c["lineage"]],
            c["log_end"],
        )
        for n, c in enumerate(cases)
    ]
    columns = (
        f"n int, leader_epochs {epochs}, end_offset long, lineage {epochs}, log_end_offset long"
    )

    kafkas = referee.remote_within(cases)
    found = spark.createDataFrame(rows, columns).select("n", is_within_lineage().alias("is"))

    ours = [row["is"] for row in found.orderBy("n").collect()]
    differ = [(c, k, o) for c, k, o in zip(cases, kafkas, ours, strict=True) if k != o]
    assert differ == []
    assert 0.2 < sum(kafkas) / len(kafkas) < 0.8


@pytest.mark.parametrize(
    ("epochs", "end", "is_beyond"),
    [
        ([(2, 50)], 99, False),
        ([(2, 50)], 100, True),
        ([(0, 0)], 120, False),
        ([(2, 50), (3, 100)], 120, True),
        ([(2, 50), (3, 99)], 120, False),
        ([(4, 150)], 200, True),
        ([], 200, False),
    ],
)
def test_a_segment_goes_beyond_the_log_where_nothing_contradicts_it(
    spark: SparkSession, epochs: list[tuple[int, int]], end: int, is_beyond: bool
) -> None:
    pairs = "array<struct<epoch: int, start_offset: long>>"
    columns = f"leader_epochs {pairs}, end_offset long, lineage {pairs}, log_end_offset long"
    row = (epochs, end, [(0, 0), (2, 50)], 100)

    (found,) = spark.createDataFrame([row], columns).select(goes_beyond_log().alias("is")).collect()

    assert found["is"] == is_beyond


def test_the_leaders_log_is_judged_by_else_the_one_that_would_be_elected(
    spark: SparkSession,
) -> None:
    pairs = "array<struct<epoch: int, start_offset: long>>"
    columns = (
        "cluster string, broker_id int, log_dir string, topic string, partition int,"
        f" leader_epochs {pairs}, log_end_offset long"
    )
    deposed, ahead, lagging = [(0, 0)], [(0, 0), (4, 80)], [(0, 0), (4, 80)]
    logs = [
        ("c", broker, "/d", "t", partition, epochs, end)
        for partition in range(3)
        for broker, epochs, end in ((1, deposed, 200), (2, ahead, 100), (3, lagging, 90))
    ]
    leaders = spark.createDataFrame(
        [("c", "t", 0, 3), ("c", "t", 1, 7)],
        "cluster string, topic string, partition int, leader int",
    )

    found = spark.createDataFrame(logs, columns).transform(choose_lineage(leaders)).collect()

    assert {row["partition"]: row["broker_id"] for row in found} == {0: 3, 1: 2, 2: 2}


def test_of_an_empty_lineage_nothing_is_known(spark: SparkSession) -> None:
    epochs = "array<struct<epoch: int, start_offset: long>>"
    rows = [(1, [(0, 0)], 9, [], 10), (2, [(0, 0)], 9, None, 10), (3, [], 9, [(0, 0)], 10)]
    columns = (
        f"n int, leader_epochs {epochs}, end_offset long, lineage {epochs}, log_end_offset long"
    )

    found = spark.createDataFrame(rows, columns).where(is_within_lineage().isNotNull())

    assert found.agg(F.count("*")).collect()[0][0] == 0


def test_the_key_of_a_record_whose_key_says_nothing_is_kept() -> None:
    value = added(1, 0, 9)

    assert decode_row(REMOTE_LOG_TOPIC, b"k", value, False, None).key == b"k"
    assert decode_row(REMOTE_LOG_TOPIC, b"k", None, False, None).is_tombstone
    assert decode_row(REMOTE_LOG_TOPIC, None, value, False, None).key is None


def test_what_a_cluster_that_lived_announced_are_the_objects_of_its_tier(
    spark: SparkSession, cluster: Path
) -> None:
    disks = cluster / "disks"
    rows = []
    for topic, file in internal_files(disks):
        if topic != REMOTE_LOG_TOPIC:
            continue
        node, partition = int(file.parts[-4][-1]), int(file.parent.name[-1])
        for record in plain_records(file.read_bytes()):
            found = decode_internal(topic, record.key, record.value)
            value = (found.kind, found.value_json(), record.value is None, record.key)
            rows.append(
                ("c", node, str(file.parents[1]), topic, partition, record.offset, 0, *value)
            )

    states = _states(spark, rows)

    there = {line.split("/")[1] for line in (disks / "objects").read_text().splitlines()}
    by_state: dict[str | None, set[str]] = {}
    for name, row in states.items():
        by_state.setdefault(row["state"], set()).add(name)
    assert by_state["COPY_SEGMENT_FINISHED"] <= there
    assert there.isdisjoint(by_state["DELETE_SEGMENT_FINISHED"])
    assert there <= set(states)
    assert {row["refused_updates"] for row in states.values()} == {0}
