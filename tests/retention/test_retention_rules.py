"""Retention as a transform against Kafka's own, and against the broker's loops of each release."""

import os
import random
import re
from collections import Counter
from dataclasses import replace

import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from kafka_segments.verbs.judge.retention.decide.decisions import decide_retention
from kafka_segments.verbs.judge.retention.decide.rules import RetentionRules
from support.kafka.kafka_referee import Referee
from support.model.plain_retention import (
    NOW_MS,
    Log,
    Segment,
    draw_log,
    rolled_by_size_then_gone_by_time,
    run_retention,
)
from support.spark.rows_of import rows_of

LOGS = int(os.environ.get("REFEREE_LOGS", "200"))
PARTS = 4
VERSIONS = ("0.8.2", "0.10.2", "2.3", "2.8", "3.5", "4.3.1")
COLUMNS = (
    "cluster string, broker_id int, log_dir string, topic string, partition int,"
    " base_offset long, size_bytes long, next_offset long, max_timestamp_ms long,"
    " offset_of_max_timestamp long, last_modified_ms long, largest_timestamp_ms long,"
    " largest_timestamp_source string, is_active boolean, high_watermark long,"
    " log_start_offset long, highest_remote_offset long, retention_ms long, retention_bytes long,"
    " cleanup_policy string, local_retention_ms long, local_retention_bytes long,"
    " remote_storage_enable boolean, remote_log_copy_disable boolean, log_cleaner_enable boolean,"
    " file_delete_delay_ms long"
)

_BY_SIZE = re.compile(r"((?:local\.)?retention\.bytes)=(\d+): ")


def frame(spark: SparkSession, logs: list[Log]) -> DataFrame:
    """Give the segments of logs as rows; the number of a log is its partition."""
    rows = [
        (
            *("c", 1, "/d", "t", number, part.base, part.bytes, part.next),
            *(part.timestamp, part.base, part.mtime, part.largest),
            "record" if part.timestamp >= 0 else "last_modified",
            part is log.segments[-1],
            *(
                log.high_watermark,
                log.log_start,
                log.highest_remote,
                *log.config.values(),
                True,
                60_000,
            ),
        )
        for number, log in enumerate(logs)
        for part in log.segments
    ]
    return rows_of(spark, rows, COLUMNS)


@pytest.fixture(scope="module")
def logs(seed: int) -> list[Log]:
    drawn = [draw_log(random.Random(seed + number)) for number in range(LOGS)]
    return [rolled_by_size_then_gone_by_time(), *drawn]


@pytest.fixture(scope="module")
def decided(spark: SparkSession, logs: list[Log]) -> list[Row]:
    """What 4.3 decides of every segment."""
    decide = decide_retention(now_ms=NOW_MS, rules=RetentionRules.of("4.3"))
    rows = frame(spark, logs).transform(decide)
    return rows.orderBy("partition", "base_offset").collect()


def test_drawn_logs_meet_every_reason(logs: list[Log], decided: list[Row]) -> None:
    found = Counter()
    for row in decided:
        found[row["reason_code"]] += 1
        found[f"rolls, {row['decision']}"] += row["rolls"]
        found[f"{logs[row['partition']].config['cleanup_policy']}: {row['decision']}"] += 1

    print(sorted(found.items()))
    for code in ("log_start_offset", "retention_bytes", "retention_ms", "high_watermark"):
        assert found[code]
    for code in ("active_empty", "not_uploaded", "cleanup_policy", "blocked", "future_timestamp"):
        assert found[code]
    assert found["rolls, delete"]
    assert found["rolls, keep"]


@pytest.mark.parametrize("part", range(PARTS))
def test_kafkas_own_log_keeps_what_we_keep(
    referee: Referee, logs: list[Log], decided: list[Row], part: int
) -> None:
    left: dict[int, list[int]] = {number: [] for number in range(part, len(logs), PARTS)}
    for row in decided:
        if row["partition"] in left:
            kept = left[row["partition"]]
            kept += [row["base_offset"]] if row["decision"] == "keep" else []
            kept += [logs[row["partition"]].segments[-1].next] if row["rolls"] else []

    kafkas = dict(zip(left, referee.retention(logs[n].request() for n in left), strict=True))

    different = [n for n in left if left[n] != kafkas[n]]
    assert [(logs[n], left[n], kafkas[n]) for n in different[:3]] == []


@pytest.mark.slow
@pytest.mark.parametrize("version", VERSIONS)
def test_each_release_deletes_what_its_loops_delete(
    spark: SparkSession, logs: list[Log], version: str
) -> None:
    rules = RetentionRules.of(version)
    decided = frame(spark, logs).transform(decide_retention(now_ms=NOW_MS, rules=rules))

    rows = decided.where("decision = 'delete' OR rolls").collect()

    found = {(row["partition"], row["base_offset"]): row["rule"] for row in rows if row["rule"]}
    rolled = {row["partition"] for row in rows if row["rolls"]}
    release = tuple(map(int, version.split(".")))
    outcomes = [run_retention(log, release) for log in logs]
    assert found == {
        (number, base): rule
        for number, (deleted, _) in enumerate(outcomes)
        for base, rule in deleted.items()
    }
    assert rolled == {number for number, (_, was_rolled) in enumerate(outcomes) if was_rolled}


def test_what_stays_goes_at_the_moment_that_is_given_and_not_before(
    spark: SparkSession, logs: list[Log]
) -> None:
    rules = RetentionRules.of("4.3")
    decided = frame(spark, logs).transform(decide_retention(now_ms=NOW_MS, rules=rules))
    kept = decided.where("decision = 'keep'").where(F.col("deletes_at_ms") < NOW_MS * 10).collect()
    assert kept
    for row in kept[:200]:
        log = logs[row["partition"]]
        moments = (row["deletes_at_ms"] - 1, row["deletes_at_ms"])
        log_later = [
            run_retention(
                Log(log.segments, None, log.log_start, 10**9, log.config, now=moment), (4, 3)
            )[0]
            for moment in moments
        ]
        assert [row["base_offset"] in deleted for deleted in log_later] == [False, True]


def test_without_a_log_start_offset_nothing_lies_below_it(spark: SparkSession) -> None:
    config = {
        **rolled_by_size_then_gone_by_time().config,
        **{"retention_ms": -1, "retention_bytes": -1, "remote_storage_enable": False},
    }
    segments = [Segment(base, base + 1, 10, NOW_MS, NOW_MS) for base in (0, 1)]
    one = Log(segments, high_watermark=2, log_start=0, highest_remote=None, config=config)
    decide = decide_retention(now_ms=NOW_MS, rules=RetentionRules.of("4.3"))

    rows = frame(spark, [one]).withColumn("log_start_offset", F.lit(None).cast("long"))

    assert [row["decision"] for row in rows.transform(decide).collect()] == ["keep", "keep"]


def test_a_remedy_by_size_frees_the_segment_when_it_is_followed(
    spark: SparkSession, logs: list[Log], decided: list[Row]
) -> None:
    held = [row for row in decided if row["reason_code"] in ("future_timestamp", "wrong_unit")]
    found = [_BY_SIZE.match(row["remedy"]) for row in held]
    advised = [
        replace(logs[row["partition"]], config=logs[row["partition"]].config | _set(by_size))
        for row, by_size in zip(held, found, strict=True)
        if by_size is not None
    ]
    decide = decide_retention(now_ms=NOW_MS, rules=RetentionRules.of("4.3"))

    after = frame(spark, advised).transform(decide).collect()

    outcome = {(row["partition"], row["base_offset"]): row for row in after}
    left = Counter()
    for number, row in enumerate(held):
        now = outcome[number, row["base_offset"]]
        assert (now["decision"] == "delete") == (", once " not in row["remedy"]), (row, now)
        left[now["decision"]] += 1
        if logs[row["partition"]].config["remote_storage_enable"]:
            left["tiered"] += 1
    assert len(advised) == len(held)
    assert left["delete"] > 10
    assert left["tiered"]


def _set(by_size: re.Match[str]) -> dict[str, int]:
    return {by_size[1].replace(".", "_"): int(by_size[2])}
