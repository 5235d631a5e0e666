"""Timestamp forensics over rows of batches made for each finding."""

from typing import Any

from pyspark.sql import Row, SparkSession

from kafka_segments.verbs.find.forensics.decide import (
    Admission,
    find_unread,
    judge_timestamps,
    only_of_producers,
    sum_by_producer,
)
from support.spark.rows_of import rows_of

NOW_MS = 1_700_000_000_000
HOUR_MS = 3_600_000
DEFAULTS = Admission()
COLUMNS = (
    "path string, topic string, partition int, segment_base_offset long, position long,"
    " last_offset long, timestamp_type string, has_delete_horizon boolean,"
    " base_timestamp_ms long, max_timestamp_ms long, producer_id long, record_count int"
)


def _batch(
    number: int, timestamp: int, *, base: int | None = None, producer: int = 7, **other: Any
) -> tuple[Any, ...]:
    kind = other.get("kind", "CreateTime")
    base = timestamp if base is None else base
    horizon = other.get("horizon", False)
    return ("/p", "t", 0, 0, 100 * number, number, kind, horizon, base, timestamp, producer, 2)


def _summary(
    spark: SparkSession, rows: list[tuple[Any, ...]], admission: Admission = DEFAULTS
) -> dict[int, Row]:
    judge = judge_timestamps(now_ms=NOW_MS, admission=admission)
    frame = rows_of(spark, rows, COLUMNS).transform(judge)
    return {row["producer_id"]: row for row in frame.transform(sum_by_producer()).collect()}


def test_units_are_guessed_by_producer(spark: SparkSession) -> None:
    factors = {1: 1_000, 2: 1, 3: -1_000, 4: -1_000_000}
    rows = []
    for producer, factor in factors.items():
        stamp = NOW_MS // factor if factor > 0 else NOW_MS * -factor
        rows += [_batch(10 * producer + step, stamp + step, producer=producer) for step in range(3)]
    rows += [_batch(90, -1, producer=9), _batch(91, 5, producer=8), _batch(92, -(2**63))]
    rows += [_batch(93, 2**63 - 1, producer=6)]

    found = _summary(spark, rows)

    assert {producer: row["unit"] for producer, row in found.items()} == {
        1: "s", 2: "ms", 3: "us", 4: "ns", 6: "unknown", 7: None, 8: "unknown", 9: None,
    }  # fmt: skip
    assert (found[3]["future_share"], found[3]["unit_share"]) == (1, 1)
    assert found[9]["unit_share"] is None
    assert found[6]["refused_after_batches"] == 1
    assert (found[9]["regressions"], found[9]["future_batches"]) == (0, 0)


def test_steps_back_and_gaps_are_a_producers_own(spark: SparkSession) -> None:
    stamps = [NOW_MS - 9_000, NOW_MS - 5_000, NOW_MS - 8_000, NOW_MS - 6_000, NOW_MS]
    rows = [_batch(number, stamp) for number, stamp in enumerate(stamps)]
    rows.append(_batch(9, NOW_MS - 10**6, producer=8))

    row = _summary(spark, rows)[7]

    assert (row["batches"], row["records"], row["future_batches"]) == (5, 10, 0)
    assert (row["regressions"], row["largest_regression_ms"]) == (2, 3_000)
    assert (row["largest_step_ms"], row["largest_step_offset"]) == (5_000, 4)


def test_skew_is_the_brokers_stamp_less_the_producers(spark: SparkSession) -> None:
    stamped = {"kind": "LogAppendTime"}
    rows = [
        _batch(0, NOW_MS, base=NOW_MS - 300, **stamped),
        _batch(1, NOW_MS, base=NOW_MS + 2 * HOUR_MS, **stamped),
        _batch(2, NOW_MS, base=NOW_MS + 10**9, horizon=True, **stamped),
        _batch(3, NOW_MS, base=-1, **stamped),
    ]

    row = _summary(spark, rows)[7]

    assert (row["skew_least_ms"], row["skew_most_ms"]) == (-2 * HOUR_MS, 300)
    assert (row["refused_after_batches"], row["first_refused_offset"]) == (1, 1)


def test_limits_count_what_they_would_have_refused(spark: SparkSession) -> None:
    rows = [
        _batch(0, NOW_MS - 10_000),
        _batch(1, NOW_MS),
        _batch(2, NOW_MS - 2_000),  # exactly at the limit
        _batch(3, NOW_MS - 2_001),
        _batch(4, NOW_MS + HOUR_MS),
        _batch(5, NOW_MS + HOUR_MS + 1),
        _batch(6, NOW_MS + 1),
    ]

    row = _summary(spark, rows, Admission(before_ms=2_000, difference_ms=HOUR_MS))[7]

    assert (row["refused_before_batches"], row["refused_before_records"]) == (1, 2)
    assert (row["refused_after_batches"], row["refused_difference_batches"]) == (1, 1)
    assert row["first_refused_offset"] == 3
    assert (row["future_batches"], row["largest_ahead_ms"]) == (3, HOUR_MS + 1)


def test_the_most_frequent_unit_is_a_producers_and_of_equals_the_first_by_name(
    spark: SparkSession,
) -> None:
    seconds, ms = NOW_MS // 1_000, NOW_MS
    stamps = {1: [ms, seconds, seconds], 2: [ms, ms, seconds], 3: [seconds, ms]}
    rows = [
        _batch(number, stamp, producer=producer)
        for producer, found in stamps.items()
        for number, stamp in enumerate(found)
    ]

    found = _summary(spark, rows)

    assert {producer: row["unit"] for producer, row in found.items()} == {1: "s", 2: "ms", 3: "ms"}
    assert {row["unit_share"] for row in found.values()} == {2 / 3, 1 / 2}


def test_without_limits_the_greatest_difference_is_refused_by_none(spark: SparkSession) -> None:
    ends = [_batch(0, 0), _batch(1, NOW_MS), _batch(2, 0)]

    row = _summary(spark, ends)[7]

    assert (row["refused_before_batches"], row["refused_difference_batches"]) == (0, 0)
    assert row["first_refused_offset"] is None
    assert (DEFAULTS.before_ms, DEFAULTS.difference_ms) == (2**63 - 1, 2**63 - 1)


def test_what_a_broker_writes_itself_is_no_producers(spark: SparkSession) -> None:
    rows = spark.createDataFrame(
        [(1, None, False), (2, None, None), (3, None, True), (4, "torn", False)],
        "offset int, error string, is_control boolean",
    )

    assert [row["offset"] for row in only_of_producers(rows).collect()] == [1, 2]


def test_the_last_segment_of_a_log_may_end_early_and_no_other(spark: SparkSession) -> None:
    torn = "it ends"
    batches = spark.createDataFrame(
        [
            ("/a/t-0/0.log", 0, 70, torn),
            ("/a/t-0/9.log", 9, 0, None),
            ("/a/t-0/9.log", 9, 70, torn),
            ("/a/t-1/0.log", 0, 0, torn),
            ("/a/t-2/0.log", 0, 70, None),
            ("/a/t-3", None, None, "not listed"),
        ],
        "path string, segment_base_offset long, position long, error string",
    )

    found = {row["path"]: row["is_finding"] for row in find_unread(batches).collect()}

    assert found == {
        "/a/t-0/0.log": True, "/a/t-0/9.log": False, "/a/t-1/0.log": True, "/a/t-3": True,
    }  # fmt: skip
