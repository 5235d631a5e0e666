"""Which copies of coordinators' topics have other records at one place, by hand."""

import pytest
from pyspark.sql import SparkSession

from kafka_segments.engine.derived.contradictions import contradictions, several_copies
from kafka_segments.engine.derived.replicas import KnownReplicas
from support.spark.rows_of import frame, rows_of

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("few")]

TOPIC_ID = "topic_id string"
RECORD = (
    "offset long, leader_epoch int, kind string, key_version int, value_version int,"
    " key_json string, value_json string, key binary, value binary"
)
Copy = dict[int, tuple[int, str]]
WHOLE: Copy = {0: (1, "a"), 1: (1, "b"), 2: (1, "c")}


@pytest.mark.parametrize(
    ("other", "until"),
    [
        (WHOLE, None),
        ({0: (1, "a"), 1: (1, "x"), 2: (1, "c")}, 2),
        ({0: (1, "x"), 1: (1, "b"), 2: (1, "x")}, 3),
        ({0: (1, "a"), 1: (0, "x")}, None),  # a deposed leader's
        ({0: (-1, "x")}, None),  # of an old format, which tells no epoch
        ({0: (1, "a"), 2: (1, "c")}, None),  # compacted
        ({0: (1, "a")}, None),  # shorter
        ({2: (1, "c"), 3: (1, "d")}, None),  # it begins later, and is longer
    ],
)
def test_other_records_at_an_offset_of_one_epoch_contradict(
    spark: SparkSession, other: Copy, until: int | None
) -> None:
    rows = [
        {
            "broker_id": broker,
            "offset": offset,
            "leader_epoch": epoch,
            "kind": "OffsetCommit",
            "value_json": value,
        }
        for broker, copy in ((1, WHOLE), (2, other))
        for offset, (epoch, value) in copy.items()
    ]
    copies = frame(spark, TOPIC_ID, {"broker_id": 1}, {"broker_id": 2})

    found = frame(spark, RECORD, *rows).transform(contradictions(copies)).collect()

    assert [row["lost"]["until"] for row in found] == ([] if until is None else [until])
    assert all(f"at offset {until and until - 1} in leader" in row["lost"]["why"] for row in found)


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
