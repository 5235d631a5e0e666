"""Latency decided on a few batches: which tell it, and where each is counted."""

from typing import Any

from pyspark.sql import Row, SparkSession

from kafka_segments.verbs.find.latency.decide import decide_latency, only_stamped, only_wrapped
from support.spark.rows_of import frame

HOUR_MS = 3_600_000
BATCH = (
    "path string, is_active boolean, damage struct<kind: string>, magic int,"
    " timestamp_type string, is_control boolean, has_delete_horizon boolean, record_count int,"
    " base_timestamp_ms long, max_timestamp_ms long, error string"
)
STAMPED = {
    "path": "/p", "magic": 2, "timestamp_type": "LogAppendTime", "is_control": False,
    "has_delete_horizon": False, "record_count": 1, "is_active": False,
}  # fmt: skip


def _latency(spark: SparkSession, *batches: dict[str, Any]) -> dict[int | None, Row]:
    rows = frame(spark, BATCH, *({**STAMPED, **batch} for batch in batches))
    return {row["hour_ms"]: row for row in rows.transform(decide_latency()).collect()}


def _of(latency_ms: int, appended: int = HOUR_MS, **other: Any) -> dict[str, Any]:
    return {"base_timestamp_ms": appended - latency_ms, "max_timestamp_ms": appended, **other}


def test_each_latency_is_counted_below_the_first_bound_above_it(spark: SparkSession) -> None:
    bounds = (10, 100, 1_000, 10_000, 60_000)
    told = [1, *(bound + step for bound in bounds for step in (-1, 0)), 70_000]

    row = _latency(spark, *map(_of, [*told, 0, 0, -5, -7]))[HOUR_MS]

    histogram = {bar["below_ms"]: bar["batches"] for bar in row["histogram"]}
    assert histogram == {10: 2, 100: 2, 1_000: 2, 10_000: 2, 60_000: 2, None: 2}
    assert (row["batches"], row["max_ms"]) == (len(told), 70_000)
    assert (row["equal_batches"], row["negative_batches"], row["most_negative_ms"]) == (2, 2, -7)
    assert row["unread_segments"] == 0


def test_hours_begin_with_their_first_ms(spark: SparkSession) -> None:
    moments = (HOUR_MS - 1, HOUR_MS, 2 * HOUR_MS - 1)

    found = _latency(spark, *(_of(5, appended=moment) for moment in moments))

    assert {hour: row["batches"] for hour, row in found.items()} == {0: 1, HOUR_MS: 2}


def test_only_batches_that_keep_both_times_tell_it(spark: SparkSession) -> None:
    untold = [
        {"timestamp_type": "CreateTime"}, {"is_control": True}, {"has_delete_horizon": True},
        {"record_count": 0}, {"magic": 0, "timestamp_type": None, "is_control": None},
    ]  # fmt: skip
    wrapper = {"magic": 1, "timestamp_type": None, "is_control": None, "record_count": None}

    row = _latency(spark, *(_of(9, **kind) for kind in untold), _of(7, **wrapper))[HOUR_MS]
    undated = _latency(spark, _of(HOUR_MS + 1, record_count=1))

    assert (row["batches"], row["max_ms"]) == (1, 7)
    assert undated == {}
    assert _latency(spark, _of(HOUR_MS))[HOUR_MS]["max_ms"] == HOUR_MS


def test_a_segment_is_unread_unless_a_running_broker_left_it_open(spark: SparkSession) -> None:
    torn, cut, zeros = ("partial_batch",), ("bad_checksum",), ("preallocated_tail",)
    untimed = {"magic": None, "timestamp_type": None, "error": "it ends"}
    segments = [
        {"path": "/open", "is_active": True, "damage": torn},
        {"path": "/torn", "is_active": False, "damage": torn},
        {"path": "/zeros", "is_active": False, "damage": zeros},
        {"path": "/cut", "is_active": True, "damage": cut},
        {"path": "/cut", "is_active": True, "damage": cut},
        {"path": "/gone", "is_active": False, "damage": None},
    ]

    found = _latency(spark, *({**segment, **untimed} for segment in segments))

    assert {hour: row["unread_segments"] for hour, row in found.items()} == {None: 3}
    assert found[None]["batches"] == 0


def test_segments_are_read_that_can_tell_it(spark: SparkSession) -> None:
    columns = "base_offset long, timestamp_types array<string>, codecs array<string>"
    segments = frame(
        spark,
        f"{columns}, magics array<int>",
        {"base_offset": 1, "timestamp_types": ["CreateTime"], "codecs": ["none"], "magics": [2]},
        {"base_offset": 2, "timestamp_types": ["CreateTime", "LogAppendTime"], "codecs": ["gzip"],
         "magics": [2]},
        {"base_offset": 3, "timestamp_types": [], "codecs": ["none"], "magics": [1]},
        {"base_offset": 4, "timestamp_types": [], "codecs": ["none", "gzip"], "magics": [0, 1]},
        {"base_offset": 5, "timestamp_types": [], "codecs": ["gzip"], "magics": [0]},
    )  # fmt: skip

    stamped, wrapped = (
        [row["base_offset"] for row in segments.transform(keep).collect()]
        for keep in (only_stamped, only_wrapped)
    )

    assert (stamped, wrapped) == ([2], [4])
