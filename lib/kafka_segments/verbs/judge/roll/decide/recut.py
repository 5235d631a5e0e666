"""Decide which segments other settings would have given: cut the history of logs anew."""

from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from kafka_segments.engine.tables.keys import LOG_KEYS, SEGMENT_KEYS, Transform
from kafka_segments.verbs.judge.retention.decide.other_rules import (
    LEFT_OVER,
    METADATA_LOG,
    roll_words,
    with_other_rules,
)
from kafka_segments.verbs.judge.roll.decide.cutting import Points, cut

CUTS = (
    "cluster string, broker_id int, log_dir string, topic string, partition int, setting string,"
    " segments_today long, segments long, segments_least long, segments_most long, files long,"
    " memory_maps long, index_bytes long, index_bytes_least long, index_bytes_most long,"
    " retention_overshoot_bytes long, retention_overshoot_ms long, cut_error_bytes long,"
    " is_in_order boolean, not_decided string"
)
SETTINGS = ("segment_bytes", "segment_ms", "index_interval_bytes")
_POINTS = ("position", "timestamp_ms", "gap_bytes", "is_in_order", "batch_count", "segments_today")
_NOT_CUT = (METADATA_LOG, LEFT_OVER)
_POINTS_A_SEGMENT = 1024


def compare_cuts(
    *,
    offset_index: DataFrame,
    time_index: DataFrame,
    grid: Sequence[Mapping[str, int]],
    points_a_segment: int = _POINTS_A_SEGMENT,
) -> Transform:
    """Cut every log anew under each setting of ``grid``, from its index entries alone.

    1. An entry says where a batch begins, and the greatest timestamp up to it. So the place of a
       cut is known but for the batches between two entries. ``segments_least`` and
       ``segments_most`` are bounds that hold wherever between them it lies.
    2. Of a long log not all entries are walked: a segment of the smallest settings has
       ``points_a_segment`` of them by bytes, and as many by time.
    3. A row of ``grid`` has some of segment_bytes, segment_ms and index_interval_bytes. For the
       others the log's own columns of these names hold.
    4. Where timestamps are missing, or go back from segment to segment, is_in_order is false, and
       the bounds are those that bytes and batches give.
    5. What only a broker knows is left out: jitter, full indexes, restarts.
    6. KRaft's own log, and one that ``is_left_over``, if the segments tell, are not cut. Their rows
       say why in not_decided, which is null for all others.

    Needs: the key of a segment, size_bytes, first_batch_timestamp_ms, max_timestamp_ms,
        batch_count, segment_bytes, segment_ms, index_interval_bytes; the tables offset_index and
        time_index.
    Gives: a row for each log and setting, columns ``CUTS``.
    """
    walk = _walker([dict(row) for row in grid])

    def step(key: str) -> Column:
        tried = [F.lit(row[key]) if key in row else F.col(key) for row in grid]
        return F.greatest(F.lit(1), F.floor(F.array_min(F.array(*tried)) / points_a_segment))

    def transform(segments: DataFrame) -> DataFrame:
        placed = _placed(segments.transform(with_other_rules)).withColumns(
            {"_step_bytes": step("segment_bytes"), "_step_ms": step("segment_ms")}
        )
        inside = _entries(offset_index, time_index, placed)
        buckets = (
            F.floor(F.col("position") / F.col("_step_bytes")).alias("_bytes"),
            F.floor(F.col("timestamp_ms") / F.col("_step_ms")).alias("_ms"),
        )
        thinned = inside.groupBy(*SEGMENT_KEYS, *buckets).agg(
            F.min("position").alias("position"),
            F.min("timestamp_ms").alias("timestamp_ms"),
            F.max("gap_bytes").alias("gap_bytes"),
        )
        points = thinned.join(placed, list(SEGMENT_KEYS), how="inner").withColumn(
            "position", F.col("position") + F.col("_start")
        )
        walked = points.select(*LOG_KEYS, "base_offset", *_POINTS, *SETTINGS, "not_decided")
        return walked.groupBy(*LOG_KEYS).applyInArrow(walk, CUTS)

    return transform


def _placed(segments: DataFrame) -> DataFrame:
    """Return where each segment begins in its log, and what is known of the whole log."""
    by_base = Window.partitionBy(*LOG_KEYS).orderBy("base_offset")
    before = by_base.rowsBetween(Window.unboundedPreceding, -1)
    whole = Window.partitionBy(*LOG_KEYS).rowsBetween(
        Window.unboundedPreceding, Window.unboundedFollowing
    )
    size = F.coalesce("size_bytes", F.lit(0))
    first = F.coalesce("first_batch_timestamp_ms", F.lit(-1))
    follows = F.coalesce(F.max("max_timestamp_ms").over(before) <= first, F.lit(True))
    is_sound = (size == 0) | (follows & (first >= 0))
    return segments.select(
        *SEGMENT_KEYS,
        size.alias("_size"),
        first.alias("_first"),
        F.coalesce("max_timestamp_ms", F.lit(-1)).alias("_max"),
        F.coalesce(F.sum(size).over(before), F.lit(0)).alias("_start"),
        F.min(is_sound).over(whole).alias("is_in_order"),
        F.sum("batch_count").over(whole).alias("batch_count"),
        F.count("*").over(whole).alias("segments_today"),
        *SETTINGS,
        F.when(F.col("other_rules").isin(*_NOT_CUT), roll_words()).alias("not_decided"),
    )


def _entries(offset_index: DataFrame, time_index: DataFrame, placed: DataFrame) -> DataFrame:
    """Return the known batches of each segment: its first, the indexed ones, and its end."""

    def rows(frame: DataFrame, offset: Column, position: Column, timestamp: Column) -> DataFrame:
        return frame.select(
            *SEGMENT_KEYS,
            offset.cast("long").alias("_offset"),
            position.cast("long").alias("position"),
            timestamp.cast("long").alias("_timestamp"),
            *(name for name in steps if name in frame.columns),
        )

    none, steps = F.lit(None), ("_step_bytes", "_step_ms")
    entries = rows(time_index, F.col("offset"), none, F.col("timestamp_ms")).unionByName(
        rows(offset_index, F.col("offset"), F.col("position"), none)
    )
    known = (
        rows(placed, F.lit(-1), F.lit(0), F.col("_first"))
        .unionByName(rows(placed, F.lit(2**63 - 1), F.col("_size"), F.col("_max")))
        .unionByName(entries, allowMissingColumns=True)
    )
    order = Window.partitionBy(*SEGMENT_KEYS).orderBy("_offset", F.asc_nulls_first("position"))
    so_far = order.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    before = order.rowsBetween(Window.unboundedPreceding, -1)
    previous = F.coalesce(F.last("position", ignorenulls=True).over(before), F.lit(0))
    return (
        known.withColumn("timestamp_ms", F.max("_timestamp").over(so_far))
        .withColumns({name: F.first(name).over(so_far) for name in steps})
        .withColumn("gap_bytes", F.col("position") - previous)
        .where(F.col("position").isNotNull())
    )


def _walker(
    grid: Sequence[Mapping[str, int]],
) -> Callable[[tuple[pa.Scalar, ...], pa.Table], pa.Table]:
    kinds = {"string": pa.string(), "int": pa.int32(), "long": pa.int64(), "boolean": pa.bool_()}
    columns = (column.split() for column in CUTS.split(","))
    cuts = pa.schema([(name, kinds[kind]) for name, kind in columns])

    def walk(log: tuple[pa.Scalar, ...], table: pa.Table) -> pa.Table:
        keys = {name: value.as_py() for name, value in zip(LOG_KEYS, log, strict=True)}
        why_not = table["not_decided"][0].as_py()
        if why_not is not None:
            left = [keys | {"setting": _name(row), "not_decided": why_not} for row in grid]
            return pa.Table.from_pylist(left, cuts)
        points = Points.of(table)
        own = {name: table[name][0].as_py() for name in SETTINGS}
        settings = [{**own, **row} for row in grid]
        rows = [keys | {"setting": _name(setting)} | cut(points, **setting) for setting in settings]
        return pa.Table.from_pylist(rows, cuts)

    return walk


def _name(setting: Mapping[str, int]) -> str:
    return " ".join(f"{key}={value}" for key, value in setting.items())
