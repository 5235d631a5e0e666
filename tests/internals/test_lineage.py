"""By which local log a remote segment is judged, by rows that are written down."""

from typing import Any

import pytest
from pyspark.sql import SparkSession

from kafka_segments.verbs.find.internals.tier.decide.lineage import local_logs, with_lineage
from support.spark.rows_of import frame, rows_of

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("few")]

EPOCHS = "array<struct<epoch: int, start_offset: long>>"
SEGMENTS = f"path string, base_offset long, next_offset long, leader_epochs {EPOCHS}"
LOGS = f"topic_id string, log_start_offset long, high_watermark long, leader_epochs {EPOCHS}"
LEADERS = "cluster string, topic string, partition int, leader int"
LOCAL = (
    "cluster string, topic string, partition int, local_topic_id string, log_start_offset long,"
    f" log_end_offset long, lineage {EPOCHS}"
)
HELD = (
    f"cluster string, topic string, topic_id string, partition int, leader_epochs {EPOCHS},"
    " end_offset long"
)


def test_a_local_log_is_the_leaders_without_segments_of_the_tier(spark: SparkSession) -> None:
    name = f"{0:020d}"
    rows = [
        {"broker_id": broker, "path": path, "base_offset": base, "next_offset": end}
        for broker, path, base, end in (
            (1, f"/d/t-0/{name}.log", 10, 50),
            (2, f"/d/t-0/{name}.log", 20, 90),
            (3, f"/d/t-0/{name}.log", 20, 95),
            (2, f"/tier/t-0/{name}-uuid.log", 0, 20),
        )
    ]
    segments = frame(spark, SEGMENTS, *({**row, "leader_epochs": [(0, 0)]} for row in rows))
    logs = frame(
        spark,
        LOGS,
        {"broker_id": 1, "topic_id": "A", "leader_epochs": [(0, 0)]},
        {
            "broker_id": 2,
            "topic_id": "B",
            "log_start_offset": 15,
            "leader_epochs": [(0, 0), (4, 40)],
        },
        {"broker_id": 3, "topic_id": "C", "leader_epochs": [(0, 0)]},
    )
    leaders = rows_of(spark, [("c", "t", 0, 2)], LEADERS)

    (row,) = segments.transform(local_logs(logs, leaders)).collect()

    assert row.asDict(recursive=True) == {
        "cluster": "c",
        "topic": "t",
        "partition": 0,
        "local_topic_id": "B",
        "log_start_offset": 20,
        "log_end_offset": 90,
        "lineage": [{"epoch": 0, "start_offset": 0}, {"epoch": 4, "start_offset": 40}],
    }


def _in_lineage(spark: SparkSession, *, local: bool = True) -> dict[str, Any]:
    lineage = [(0, 0), (2, 50)]
    segments = [
        ("c", "in", "A", 0, [(0, 0)], 49),
        ("c", "other epochs", "A", 0, [(1, 0)], 49),
        ("c", "beyond", "A", 0, [(2, 50)], 120),
        ("c", "another topic", "B", 0, [(1, 0)], 49),
        ("c", "no id", "B", 0, [(1, 0)], 49),
        ("c", "no log", "A", 0, [(1, 0)], 49),
    ]
    logs = [
        ("c", topic, 0, None if topic == "no id" else "A", 0, 100, lineage)
        for _, topic, *_ in segments
        if topic != "no log"
    ]
    logs.append(("other", "no log", 0, "A", 0, 100, lineage))
    decide = with_lineage(rows_of(spark, logs, LOCAL) if local else None)
    found = rows_of(spark, segments, HELD).transform(decide).collect()
    assert len(found) == len(segments)
    return {row.topic: row.is_in_lineage for row in found}


def test_a_segment_is_judged_by_a_log_of_its_topic_that_reaches_as_far(
    spark: SparkSession,
) -> None:
    assert _in_lineage(spark) == {
        "in": True,
        "other epochs": False,
        "beyond": None,
        "another topic": None,
        "no id": False,
        "no log": None,
    }


def test_without_local_logs_nothing_is_known_of_lineages(spark: SparkSession) -> None:
    assert set(_in_lineage(spark, local=False).values()) == {None}
