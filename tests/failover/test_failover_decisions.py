"""What a failover goes by, on a few rows."""

import pytest
from pyspark.sql import SparkSession

from kafka_segments.verbs.find.failover.decide import (
    ask_other_cluster,
    in_doubt,
    plan_failover,
    plan_restore,
    segments_around,
    sum_up_records,
)
from kafka_segments.verbs.find.failover.report import print_failover, print_restore
from support.spark.rows_of import frame, rows_of

LOG = ("c", 1, "/d", "t", 0)
COLUMNS = (
    "cluster string, broker_id int, log_dir string, topic string, partition int,"
    " committed_offset long, is_active boolean, damage struct<kind: string>, path string,"
    " offset long, timestamp_ms long, is_control boolean, error string"
)


def test_what_cannot_be_read_around_a_committed_offset_is_a_problem(spark: SparkSession) -> None:
    torn, cut = ("partial_batch",), ("bad_checksum",)
    read = [
        (*LOG, 2, True, torn, "/d/t-0/2.log", 1, 100, False, None),
        (*LOG, 2, True, torn, "/d/t-0/2.log", 2, 90, False, None),
        (*LOG, 2, True, torn, "/d/t-0/2.log", 3, 50, True, None),
        (*LOG, 2, True, torn, "/d/t-0/2.log", None, None, None, "the batch says 70 bytes"),
    ]
    unread = [
        (*LOG[:4], 1, 0, False, cut, "/d/t-1/0.log", None, None, None, "checksum is 1"),
        (*LOG[:4], 2, 0, False, None, "/d/t-2/0.log", None, None, None, "no such file"),
    ]

    rows = spark.createDataFrame([*read, *unread], COLUMNS).transform(sum_up_records)

    why = "not known: a message around the committed offset may not have been read: /d/t-"
    assert {tuple(row)[4:] for row in rows.collect()} == {
        (0, 100, 90, None),
        (1, None, None, f"{why}1/0.log: checksum is 1"),
        (2, None, None, f"{why}2/0.log: no such file"),
    }


def test_the_segment_of_the_last_message_consumed_is_read_and_what_follows(
    spark: SparkSession,
) -> None:
    ends = {"t": (10, 20, 30, None), "u": (10, 20)}
    segments = frame(
        spark,
        "next_offset long",
        *({"topic": topic, "next_offset": end} for topic, of_log in ends.items() for end in of_log),
    )
    commits = frame(spark, "committed_offset long, n int", {"committed_offset": 20, "n": 1})

    found = segments.transform(segments_around(commits)).collect()

    assert sorted((row["topic"], row["next_offset"], row["committed_offset"]) for row in found) == [
        *(("t", 20, 20), ("t", 30, 20)),
    ]


def test_the_records_around_a_committed_offset_are_summed_up(spark: SparkSession) -> None:
    log = {"committed_offset": 5, "is_active": False, "path": "/p"}
    read = [
        (3, 900, False), (4, 700, False), (5, 650, True), (6, 660, False), (7, -1, False),
        (8, 600, None), (9, 0, False),
    ]  # fmt: skip
    records = frame(
        spark,
        "committed_offset long, is_active boolean, damage struct<kind: string>, path string,"
        " offset long, timestamp_ms long, is_control boolean, error string",
        *(
            {**log, "offset": offset, "timestamp_ms": timestamp, "is_control": is_control}
            for offset, timestamp, is_control in read
        ),
        *(
            {**log, "topic": "consumed", "offset": offset, "timestamp_ms": 10}
            for offset in (1, 4)
        ),
        {**log, "topic": "old", "offset": 4, "timestamp_ms": 5},
        {**log, "topic": "old", "offset": 8, "timestamp_ms": 3},
    )  # fmt: skip

    rows = records.transform(sum_up_records).collect()

    assert {row["topic"]: tuple(row)[5:] for row in rows} == {
        "t": (700, 0, None),
        "consumed": (10, None, None),
        "old": (5, 3, None),
    }


def test_the_other_cluster_is_asked_for_the_target_and_what_lies_behind_it(
    spark: SparkSession,
) -> None:
    aimed = frame(
        spark,
        "target_ms long, last_timestamp_ms long",
        {"target_ms": 4_000, "last_timestamp_ms": 5_000},
        {"topic": "unread", "target_ms": 0},
        {"topic": "nothing"},
    )

    rows = aimed.transform(ask_other_cluster(max_latency_ms=1_000)).collect()

    assert {(row["topic"], row["question"]): row["target_ms"] for row in rows} == {
        ("t", "to_offset"): 4_000,
        ("t", "after_last"): 5_001,
        ("t", "after_margin"): 6_001,
        ("unread", "to_offset"): 0,
    }


def test_a_group_goes_on_at_the_answer_or_at_the_end_of_the_log_there(spark: SparkSession) -> None:
    answers = spark.createDataFrame(
        [
            ("t", 0, "to_offset", 70, 90, None),
            ("t", 0, "after_last", 75, 90, None),
            ("t", 0, "after_margin", None, 90, None),
            ("u", 0, "to_offset", 5, 9, "unread there"),
            ("v", 0, "to_offset", 5, 9, "unread there"),
            ("x", 0, "to_offset", None, 9, "not known there"),
        ],
        "topic string, partition int, question string, true_offset long, log_end_offset long,"
        " problem string",
    )
    columns = (
        "committed_offset long, last_timestamp_ms long, least_unread_timestamp_ms long,"
        " is_margin_enough boolean, target_ms long, unread_problem string"
    )
    topics = ({}, {"topic": "u", "unread_problem": "unread here"}, {"topic": "v"}, {"topic": "w"})
    topics = (*topics, {"topic": "x"}, {"topic": "y", "target_ms": 7})
    aimed = frame(spark, columns, *({"committed_offset": 50, **topic} for topic in topics))

    rows = aimed.transform(plan_failover(answers)).collect()

    names = ("to_offset", "expected_duplicates", "most_duplicates", "problem")
    found = {row["topic"]: tuple(row[name] for name in names) for row in rows}
    nothing = {topic: found.pop(topic)[-1] for topic in "wy"}
    assert found == {
        "t": (70, 5, 20, None),
        "u": (None, None, None, "unread here"),
        "v": (5, None, None, "unread there"),
        "x": (None, None, None, "not known there"),
    }
    assert nothing["w"].startswith("not known: no message around the committed offset")
    assert nothing["y"].startswith("not known: the tables of the other cluster have no log of it")
    assert {row["committed_offset"] for row in rows} == {50}


def test_a_cut_behind_damage_is_not_known(spark: SparkSession) -> None:
    damage = ("corrupt_batch", "a bit")
    kinds = {"before": damage, "behind": damage, "none": damage, "torn": ("partial_batch", "x")}
    kinds["short"] = None
    segment = {"base_offset": 0, "next_offset": 50, "path": "/p", "valid_bytes": 900}
    segments = frame(
        spark,
        "base_offset long, next_offset long, path string, valid_bytes long, is_active boolean,"
        " truncated_bytes long, damage struct<kind: string, message: string>",
        *(
            {**segment, "topic": topic, "is_active": True, "truncated_bytes": 7, "damage": kind}
            for topic, kind in kinds.items()
        ),
    )
    later = {"role": "true", "base_offset": 0, "path": "/p"}
    found = frame(
        spark,
        "base_offset long, role string, found_offset long, found_batch_offset long, path string,"
        " found_position long, problem string",
        *(
            {**later, "topic": topic, "found_offset": offset, "found_batch_offset": offset}
            | {"found_position": 10 * offset}
            for topic, offset in {"before": 49, "behind": 60}.items()
        ),
    )
    logs = frame(
        spark,
        "log_start_offset long, log_end_offset long, high_watermark long",
        *(
            {"topic": topic, "log_start_offset": 0, "log_end_offset": 70}
            | {"high_watermark": 71 if topic == "short" else 70}
            for topic in kinds
        ),
    )

    rows = found.transform(plan_restore(segments, logs)).collect()

    why = "not known: /p is damaged at byte 900, and records may follow: a bit"
    names = ("last_offset_kept", "file", "cut_position", "segments_needed", "bytes_needed")
    told = {row["topic"]: (*(row[name] for name in names), row["problem"]) for row in rows}
    *nothing, missing = told.pop("short")
    assert nothing == [None] * 5
    assert "ends at offset 70, below the high watermark 71" in missing
    assert told == {
        "before": (48, "/p", 490, 1, 490, None),
        "behind": (*[None] * 5, why),
        "none": (*[None] * 5, why),
        "torn": (69, "/p", None, 1, 900, None),
    }


def test_a_commit_tells_nothing_where_a_later_one_or_its_log_was_not_read(
    spark: SparkSession,
) -> None:
    names = ("commits_doubt", "doubt", "problem", "log_end_offset")
    commits = [(None, None, None, 9), ("why", None, None, 9), (None, None, "cut off", 9)]
    commits.append((None, None, None, None))
    rows = rows_of(
        spark,
        commits,
        ", ".join(
            f"{name} {kind}" for name, kind in zip(names, (*["string"] * 3, "long"), strict=True)
        ),
    )

    sound, unread, garbled, no_log = (row["doubt"] for row in rows.transform(in_doubt).collect())

    assert (sound, unread, garbled) == (None, "why", "not known: cut off")
    assert no_log.startswith("not known: the tables have no log of it")


def test_the_sums_of_a_plan_are_of_what_is_known(
    spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [("t", 0, 7, True, None), ("t", 1, None, None, "gone"), ("t", 2, 9, False, None)]
    columns = (
        "topic string, partition int, to_offset long, is_margin_enough boolean, problem string"
    )

    assert print_failover(rows_of(spark, rows, columns), "json") == 2
    assert "3 partitions; in 1 of the 2 that are known a message older" in capsys.readouterr().err

    needed = [("/d", "t", 0, 2, 50, None), ("/d", "t", 1, None, None, "not known: gone")]
    columns = (
        "log_dir string, topic string, partition int, segments_needed int, bytes_needed int,"
        " problem string"
    )
    assert print_restore(rows_of(spark, needed, columns), "json") == 1
    told = capsys.readouterr().err
    assert "2 segments needed, 50 bytes of 1 logs; 1 logs with a problem" in told
