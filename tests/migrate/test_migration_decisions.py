"""What a migration does with segments and logs, row by row."""

from collections.abc import Mapping
from typing import Any

from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F

from kafka_segments.kafka.text.names import METADATA_TOPIC
from kafka_segments.verbs.change.migrate.decide.actions import SegmentAction
from kafka_segments.verbs.change.migrate.decide.inventory import is_counted_again
from kafka_segments.verbs.change.migrate.decide.listing import staged_root, with_listing_problems
from kafka_segments.verbs.change.migrate.decide.obstacles import obstacles_of_settings
from kafka_segments.verbs.change.migrate.decide.plan import decide_migration, with_whole_logs
from kafka_segments.verbs.change.migrate.decide.steps import (
    latest_steps,
    staged_bytes,
    with_outcomes,
    with_proof_problems,
    with_refusals,
)
from kafka_segments.verbs.change.migrate.planned_segment import MigrationRules
from support.spark.rows_of import frame

KEEP, INDEXES, CONVERT, CUT, REFUSE = (action.value for action in SegmentAction)
SEGMENTS = (
    "base_offset long, problem string, unmodelled string, damage string, conversion_refusal string,"
    " converted_bytes long, cut_bytes long, index_findings array<string>,"
    " conversion_hazards array<string>, size_bytes long, was_clean_shutdown boolean,"
    " topic_id string, own_topic_id string"
)
SOUND = {
    "index_findings": [],
    "conversion_hazards": [],
    "size_bytes": 100,
    "was_clean_shutdown": True,
    "own_topic_id": "id",
}
REPLICA = "base_offset long, topic_id string, action string, conversion_refusal string"


def _decided(spark: SparkSession, *changes: Mapping[str, Any]) -> list[Row]:
    rows = [{"base_offset": number, **SOUND, **one} for number, one in enumerate(changes)]
    decided = frame(spark, SEGMENTS, *rows).transform(decide_migration)
    return decided.orderBy("base_offset").collect()


def test_each_segment_is_kept_indexed_converted_cut_or_refused(spark: SparkSession) -> None:
    rows = _decided(
        spark,
        {},
        {"cut_bytes": 0},
        {"cut_bytes": 1, "damage": "torn"},
        {"index_findings": ["no .index", "no .timeindex"]},
        {"converted_bytes": 120, "cut_bytes": 1, "damage": "torn"},
        {"converted_bytes": 120, "conversion_refusal": "no"},
        {"problem": "refused", "cut_bytes": 1},
        {"problem": "refused", "topic": METADATA_TOPIC, "topic_id": "id", "cut_bytes": 1},
        {"unmodelled": "of its own", "cut_bytes": 1},
    )

    assert [(row["action"], row["expected_bytes"]) for row in rows] == [
        (KEEP, 100),
        (KEEP, 100),
        (CUT, 99),
        (INDEXES, 100),
        (CONVERT, 120),
        (KEEP, 100),
        (REFUSE, 99),
        (KEEP, 100),
        (KEEP, 100),
    ]
    cut = "its last 1 bytes stay behind, as recovery cuts them off: torn"
    assert [row["reason"] for row in rows] == [
        "its index files are those it is to have",
        "its index files are those it is to have",
        cut,
        "no .index; no .timeindex",
        f"it has messages v0 or v1; {cut}",
        "its index files are those it is to have",
        "refused",
        "KRaft's own log, no topic: it has rules of its own",
        "of its own",
    ]
    assert rows[2]["hazards"] == [f"records are lost on this replica: {cut}"]
    assert rows[5]["hazards"] == ["it is not converted: no"]
    assert [(row["topic_id"], row["cut_bytes"]) for row in rows[7:]] == [(None, None)] * 2


def test_hazards_of_the_folder_are_named(spark: SparkSession) -> None:
    no_id = {"own_topic_id": None}

    rows = _decided(
        spark, {"was_clean_shutdown": False}, no_id, {**no_id, "topic_id": "given"}, SOUND
    )

    assert [[words.split(":")[0] for words in row["hazards"]] for row in rows] == [
        ["no .kafka_cleanshutdown"],
        ["no partition.metadata"],
        [],
        [],
    ]


def test_a_log_is_migrated_as_a_whole_and_told_of_its_replicas(spark: SparkSession) -> None:
    rows = [
        {"topic": "refused", "action": REFUSE},
        {"topic": "refused", "action": CONVERT, "base_offset": 1},
        {"topic": "refused", "action": CONVERT, "log_dir": "/e"},
        {"topic": "legacy", "action": CUT, "conversion_refusal": "no"},
        {"topic": "legacy", "action": CUT, "log_dir": "/e"},
        {"topic": "kept", "action": KEEP},
        {"topic": "kept", "action": INDEXES, "log_dir": "/e"},
        {"topic": "named", "action": KEEP, "topic_id": "id"},
    ]
    hazards = [{"base_offset": 0, **row, "hazards": [f"of {row['action']}"]} for row in rows]
    segments = frame(spark, f"{REPLICA}, hazards array<string>", *hazards)

    decided = segments.transform(with_whole_logs).orderBy("topic", "log_dir", "base_offset")

    found = [(row["topic"], row["is_migrated"], row["hazards"]) for row in decided.collect()]
    refused = "a replica is refused and stays as it is: broker 1, /d"
    legacy = "a replica has segments that are not converted: broker 1, /d"
    assert found == [
        ("kept", False, ["of keep"]),
        ("kept", True, ["of indexes"]),
        ("legacy", True, ["of cut"]),
        ("legacy", True, ["of cut", legacy]),
        ("named", True, ["of keep"]),
        ("refused", False, ["of refuse"]),
        ("refused", False, ["of convert"]),
        ("refused", True, ["of convert", refused]),
    ]


def test_closed_logs_that_stay_are_links_beside_their_indexes(spark: SparkSession) -> None:
    columns = (
        "base_offset long, action string, expected_bytes long, next_base_offset long, rules string"
    )
    rows = [
        {"action": KEEP, "expected_bytes": 1_000, "next_base_offset": 9},
        {"action": CONVERT, "expected_bytes": 1_000, "next_base_offset": 9},
        {"action": CUT, "expected_bytes": 1_000, "next_base_offset": 9},
        {"action": INDEXES, "expected_bytes": 1_000},
    ]
    segments = frame(spark, columns, *({"base_offset": n, **row} for n, row in enumerate(rows)))

    def staged(interval: int) -> list[int]:
        by_rules = segments.withColumn(
            "rules", F.lit(MigrationRules(index_interval_bytes=interval).text)
        )
        found = by_rules.select("base_offset", staged_bytes().alias("bytes"))
        return [row["bytes"] for row in found.orderBy("base_offset").collect()]

    assert list(zip(staged(100), staged(0), strict=True)) == [
        (220, 340),
        (1_220, 1_340),
        (1_220, 1_340),
        (1_220, 1_340),
    ]


def test_the_newest_event_of_each_step_counts(spark: SparkSession) -> None:
    columns = (
        "step string, sequence long, at long, run_id string, status string, message string,"
        " folder string, root string, segment_count long, size_bytes long"
    )
    events = [("stage", 1, "failed"), ("stage", 2, "done"), ("verify", 3, "refused")]
    rows = [{"step": step, "sequence": n, "status": status} for step, n, status in events]

    (row,) = frame(spark, columns, *rows).transform(latest_steps).collect()

    assert (row["stage"]["status"], row["verify"]["status"]) == ("done", "refused")
    assert (row["apply"], row["rollback"]) == (None, None)


def test_a_listing_forbids_objects_folders_on_the_move_and_other_topic_ids(
    spark: SparkSession,
) -> None:
    columns = (
        "name string, folder_state string, own_topic_id string, given_topic_id string,"
        " problem string"
    )
    sound = {"name": "0.log", "folder_state": "live", "own_topic_id": "id"}
    rows = [
        {},
        {"given_topic_id": "id"},
        {"problem": "its own"},
        {"own_topic_id": None, "given_topic_id": "other"},
        {"given_topic_id": "other", "problem": "its own"},
        {"folder_state": "delete", "given_topic_id": "other"},
        {"name": "0-abc.log", "folder_state": "future"},
    ]
    segments = frame(spark, columns, *(sound | row for row in rows))

    found = segments.transform(with_listing_problems).collect()

    assert [row["problem"] for row in found] == [
        None,
        None,
        "its own",
        None,
        "its partition.metadata has topic id id, the topic's is other",
        "its folder is marked -delete: finish that move first",
        "an object of tiered storage: migrate the brokers' log directories",
    ]


def test_staged_folders_lie_beside_their_log_directory_or_where_asked(spark: SparkSession) -> None:
    roots = [staged_root(given, "p").alias(str(given)) for given in (None, "/stage")]

    (row,) = frame(spark, "base_offset long", {}).select(*roots).collect()

    assert tuple(row) == ("/d.migration/p", "/stage/p/d")


def test_a_step_ends_done_refused_or_failed(spark: SparkSession) -> None:
    rows = [
        {"is_failed": False},
        {"is_failed": False, "problem": "changed"},
        {"is_failed": True, "problem": "full"},
    ]

    found = frame(spark, "problem string, is_failed boolean", *rows).transform(with_outcomes)

    assert [(row["status"], row["message"]) for row in found.collect()] == [
        ("done", ""),
        ("refused", "changed"),
        ("failed", "full"),
    ]


def test_problems_name_their_segment(spark: SparkSession) -> None:
    columns = "path string, action string, reason string, problem string"
    rows = [
        {"path": "/d/t-0/0.log", "action": KEEP, "reason": "sound"},
        {"path": "/d/t-0/1.log", "action": REFUSE, "reason": "torn", "problem": "other records"},
    ]
    segments = frame(spark, columns, *rows)

    refused = segments.transform(with_refusals).collect()
    unproven = segments.transform(with_proof_problems).collect()

    assert [row["problem"] for row in refused] == [None, "/d/t-0/1.log: torn"]
    assert [row["problem"] for row in unproven] == [None, "/d/t-0/1.log: other records"]
    assert {row["is_failed"] for row in (*refused, *unproven)} == {False}


def test_segments_of_several_formats_or_unknown_counts_are_counted_again(
    spark: SparkSession,
) -> None:
    columns = (
        "magics array<int>, codecs array<string>, timestamp_types array<string>,"
        " record_count long, valid_bytes long"
    )
    uniform = {
        "magics": [2],
        "codecs": ["none"],
        "timestamp_types": ["CreateTime"],
        "record_count": 3,
        "valid_bytes": 1,
    }
    unread = {"magics": None, "codecs": None, "timestamp_types": None}
    rows = [
        {},
        {"magics": [1, 2]},
        {"codecs": ["gzip", "none"]},
        {"timestamp_types": ["CreateTime", "LogAppendTime"]},
        {"record_count": None},
        {"magics": [], "codecs": [], "timestamp_types": []},
        unread,
        {"magics": [1, 2], "valid_bytes": 0},
        unread | {"valid_bytes": None},
    ]
    segments = frame(spark, columns, *(uniform | row for row in rows))

    asked = [
        segments.select(is_counted_again(decompresses=decompresses).alias("asked")).collect()
        for decompresses in (True, False)
    ]

    assert [[row["asked"] for row in rows] for rows in asked] == [
        [False, True, True, True, True, False, True, False, False],
        [False, True, True, True, False, False, True, False, False],
    ]


def test_an_upgrade_begins_at_3_3(spark: SparkSession) -> None:
    versions = ("0.11.0", "3.2", "3.2-IV0", "3.3", "3.3-IV3", "3.10", "4.0", "none")
    rows = [{"key": "inter.broker.protocol.version", "value": value} for value in versions]

    found = frame(spark, "key string, value string", *rows).transform(obstacles_of_settings)

    assert {row["example"].partition("=")[2]: row["code"] for row in found.collect()} == {
        "0.11.0": "old_protocol",
        "3.2": "old_protocol",
        "3.2-IV0": "old_protocol",
        "3.3": "gone_setting",
        "3.3-IV3": "gone_setting",
        "3.10": "gone_setting",
        "4.0": "gone_setting",
        "none": "old_protocol",
    }
