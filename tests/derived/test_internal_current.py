"""The last record of each key of internal topics, as coordinators have it."""

from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import StructField, StructType

from kafka_segments.engine.derived.internal_current import current_records
from kafka_segments.engine.derived.replicas import NOTHING_KNOWN, KnownReplicas
from kafka_segments.engine.derived.views import CURRENT, PROBLEMS, register_views, view_names
from kafka_segments.engine.frames.local_rows import local_rows
from kafka_segments.engine.tables.catalog import INTERNAL_RECORDS
from kafka_segments.engine.tables.delta import Warehouse
from support.spark.filled_tables import fill
from support.spark.rows_of import rows_of

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("few")]

OFFSETS, TRANSACTIONS = "__consumer_offsets", "__transaction_state"
ABORT, COMMIT = '{"type":0}', '{"type":1}'
NONE = -1
KEYS = "cluster string, broker_id int, log_dir string, topic string, partition int"


def _record(offset: int, name: str | None, kind: str | None = "OffsetCommit", **other: Any) -> Any:
    usual = {"cluster": "c", "broker_id": 1, "log_dir": "/d", "topic": OFFSETS, "file": "0.log"}
    said = {"offset": offset, "row": offset, "kind": kind, "key_json": name, "producer_id": NONE}
    said["leader_epoch"] = 1
    value = {"value_json": str(offset), "is_tombstone": False}
    return {**usual, **said, **value, **other}


def _marker(offset: int, kind: str, producer: int) -> Any:
    return _record(offset, kind, "EndTxnMarker", producer_id=producer, value_json="{}")


NULLABLE = StructType([StructField(f.name, f.dataType) for f in INTERNAL_RECORDS.schema])
DELETED = {"is_tombstone": True, "value_json": None}
LOG = [
    _record(0, "a", "LegacyOffsetCommit"),
    _record(1, "b"),
    _record(2, "a", key_version=1),
    _record(3, "b", **DELETED),
    _record(4, "c"),
    _record(5, "c", producer_id=7),  # committed
    _record(6, "d", producer_id=8),  # aborted
    _record(7, "e"),
    _record(8, "e", producer_id=9),  # open
    _marker(9, COMMIT, 7),
    _marker(10, ABORT, 8),
    _record(11, "c", producer_id=7),  # aborted: a later transaction
    _marker(12, ABORT, 7),
    _record(13, "a", "GroupMetadata"),
    _record(14, None, "unknown", key=b"k", value_json=None),
    _record(15, None, "unknown", key=b"k", value_json=None),
    _record(16, None, None, value_json=None, problem="cut off"),
    {**_record(17, None, None, problem="the rest"), "offset": None},
    _record(18, "f", producer_id=9, **DELETED),
]
BEHIND = [
    _record(17, "of the replica that is behind", broker_id=2),
    _record(30, "a", topic="__remote_log_metadata", broker_id=2),
    _record(5, "a", "TransactionLog", topic=TRANSACTIONS, broker_id=2, producer_id=3),
    _record(0, "a", topic=OFFSETS, partition=1, broker_id=2),
    _record(99, "of a deposed leader", broker_id=3, leader_epoch=0),
]
SHARES = [
    _record(offset, name, kind, topic="__share_group_state", partition=0, **other)
    for offset, (name, kind, other) in enumerate(
        [
            ("dead", "ShareUpdate", {}),
            ("dead", "ShareSnapshot", {}),
            ("alive", "ShareSnapshot", {}),
            ("alive", "ShareUpdate", {}),
            ("gone", "ShareUpdate", {}),
            ("gone", "ShareSnapshot", DELETED),
        ]
    )
]


def test_updates_of_a_share_state_go_with_a_later_snapshot(spark: SparkSession) -> None:
    values = [tuple(row.get(name) for name in INTERNAL_RECORDS.schema.names) for row in SHARES]
    records = local_rows(spark, values, NULLABLE)

    rows = records.transform(current_records(NOTHING_KNOWN)).collect()

    assert sorted((row["key_json"], row["kind"], row["is_tombstone"]) for row in rows) == [
        ("alive", "ShareSnapshot", False),
        ("alive", "ShareUpdate", False),
        ("dead", "ShareSnapshot", False),
        ("gone", "ShareSnapshot", True),
    ]


def test_a_commit_whose_marker_may_be_lost_is_kept_and_said_not_to_be_known(
    spark: SparkSession,
) -> None:
    log = [
        _record(0, "open", producer_id=7),
        _record(1, "both"),
        _record(2, "both", producer_id=7),
        _record(5, "behind", producer_id=8),
        _record(6, "known"),
        _record(0, "aborted", producer_id=9),
        _marker(3, ABORT, 9),
        _record(3, "of another transaction", producer_id=10),
        _marker(7, ABORT, 10),
    ]
    names = INTERNAL_RECORDS.schema.names
    values = [tuple({**row, "partition": 0}.get(name) for name in names) for row in log]
    problems = rows_of(
        spark,
        [("c", 1, "/d", OFFSETS, 0, 4, "a gap")],
        f"{KEYS}, until_offset long, problem string",
    )

    rows = local_rows(spark, values, NULLABLE).transform(current_records(NOTHING_KNOWN, problems))

    why = "not known whether it is current: a gap"
    found = [(row["key_json"], row["offset"], row["problem"]) for row in rows.collect()]
    assert sorted(found) == [
        ("both", 1, why),
        ("known", 6, None),
        ("of another transaction", 3, why),
        ("open", 0, why),
    ]


def test_a_key_that_only_another_copy_has_is_not_known_where_the_one_that_answers_lost_records(
    spark: SparkSession,
) -> None:
    theirs, of_deleted = {"broker_id": 2, "leader_epoch": 0}, {"broker_id": 3, "leader_epoch": 0}
    log = [
        _record(8, "both"),
        _record(9, "gone", **DELETED),
        *(_record(offset, name, **theirs) for offset, name in enumerate(["both", "gone", "only"])),
        _record(3, "only", **theirs),
        _record(4, "deleted", **theirs),
        _record(5, "deleted", **theirs, **DELETED),
        _record(6, "in a transaction", **theirs, producer_id=7),
        _record(7, "of a deleted topic", **of_deleted),
        _record(0, "known", partition=1),
        _record(0, "only in a whole one's copy", partition=1, **theirs),
    ]
    names = INTERNAL_RECORDS.schema.names
    values = [tuple({"partition": 0, **row}.get(name) for name in names) for row in log]
    problems = rows_of(
        spark,
        [("c", 1, "/d", OFFSETS, 0, 4, "a gap"), ("c", None, None, OFFSETS, 9, None, "no log")],
        f"{KEYS}, until_offset long, problem string",
    )
    logs = rows_of(
        spark,
        [
            ("c", broker, "/d", OFFSETS, 0, "old" if broker == 3 else "new", None)
            for broker in (1, 2, 3)
        ],
        f"{KEYS}, topic_id string, leader_epochs array<struct<epoch: int, start_offset: bigint>>",
    )
    named = rows_of(
        spark,
        [("c", OFFSETS, number, "new", [1, 2], [1, 2]) for number in (0, 1)],
        "cluster string, topic string, partition int, topic_id string, replicas array<int>,"
        " in_sync array<int>",
    )

    rows = local_rows(spark, values, NULLABLE)
    current = rows.transform(current_records(KnownReplicas(logs, named), problems)).collect()

    why = "not known whether it is current: only another copy has it: a gap"
    found = [(row["key_json"], row["broker_id"], row["offset"], row["problem"]) for row in current]
    assert sorted(found) == [
        ("both", 1, 8, None),
        ("gone", 1, 9, None),
        ("in a transaction", 2, 6, why),
        ("known", 1, 0, None),
        ("only", 2, 3, why),
    ]


def test_each_key_has_its_last_record(spark: SparkSession, tmp_path: Any) -> None:
    fill(Warehouse(spark, str(tmp_path)), INTERNAL_RECORDS, [*LOG, *BEHIND])

    assert view_names(str(tmp_path)) == [CURRENT, PROBLEMS, INTERNAL_RECORDS.name]
    register_views(Warehouse(spark, str(tmp_path)), only=[CURRENT])
    rows = spark.table(CURRENT).orderBy("topic", "partition", "offset").collect()
    spark.catalog.dropTempView(CURRENT)

    of_log = [row for row in rows if row["broker_id"] == 1]
    assert [(row["offset"], row["key_json"], row["is_tombstone"]) for row in of_log] == [
        (2, "a", False),
        (3, "b", True),
        (5, "c", False),
        (7, "e", False),
        (13, "a", False),
        (15, None, False),
        (18, "f", True),
    ]
    others = [row for row in rows if row["broker_id"] != 1]
    assert {(row["topic"], row["partition"]) for row in others if row["problem"] is None} == {
        (OFFSETS, 1),
        (TRANSACTIONS, 0),
    }
    assert {row["key_json"] for row in others if row["problem"] is not None} == {
        "of the replica that is behind",
        "of a deposed leader",
    }
    assert "timestamp" in rows[0]
    assert not [name for name in rows[0].asDict() if name.startswith("_")]
