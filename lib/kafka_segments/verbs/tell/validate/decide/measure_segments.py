"""Measure segments and their index entries: one row a segment, numbers that checks bound."""

from pyspark.sql import Column, DataFrame, Window, WindowSpec
from pyspark.sql import functions as F

from kafka_segments.engine.derived.first_look_only import with_unverified
from kafka_segments.engine.tables.findings import is_finding
from kafka_segments.engine.tables.keys import LOG_KEYS, SEGMENT_KEYS, Transform
from kafka_segments.engine.tables.long_arithmetic import minus, plus
from kafka_segments.engine.tables.windows import whole_log

_HASH = "_hash"
_COUNTS = ("size_bytes", "valid_bytes", "truncated_bytes", "batch_count", "record_count")


def measure_segments(logs: DataFrame, *, now_ms: int) -> Transform:
    """Measure the segments that are there.

    Needs: rows of ``segments`` that have not vanished; ``logs``: rows of table ``logs``.
    Gives: the keys and one column a check, null where there is nothing to measure.
    """
    explaining = logs.select(*LOG_KEYS, "cleaner_offset", "log_start_offset").dropDuplicates(
        list(LOG_KEYS)
    )
    before = _earlier_segments()
    same_key = whole_log((_HASH, *SEGMENT_KEYS))

    def transform(segments: DataFrame) -> DataFrame:
        return (
            segments.transform(with_unverified)
            .withColumn(_HASH, _hash_of(LOG_KEYS))
            .withColumns(
                {
                    "_end_before": F.max("next_offset").over(before),
                    "_max_before": F.max("max_timestamp_ms").over(before),
                    "_damaged_before": F.max(F.coalesce("truncated_bytes", F.lit(1))).over(before),
                    "rows_of_key": F.count(F.lit(1)).over(same_key),
                }
            )
            .join(F.broadcast(explaining), list(LOG_KEYS), how="left")
            .select(*SEGMENT_KEYS, "rows_of_key", *_offsets(), *_sizes(), *_times(now_ms))
        )

    return transform


def _earlier_segments() -> WindowSpec:
    ordered = Window.partitionBy(_HASH, *LOG_KEYS).orderBy("base_offset")
    return ordered.rangeBetween(Window.unboundedPreceding, -1)


def _offsets() -> list[Column]:
    base, following, end_before = F.col("base_offset"), F.col("next_offset"), F.col("_end_before")
    is_compacted = F.coalesce(end_before < F.col("cleaner_offset"), F.lit(False))
    is_expired = F.coalesce(base <= F.col("log_start_offset"), F.lit(False))
    is_explained = is_compacted | is_expired | (F.col("_damaged_before") > 0)
    span = minus(following, base)
    max_offset = F.col("offset_of_max_timestamp")
    has_timestamp = F.col("max_timestamp_ms") >= 0
    is_outside = has_timestamp & ((max_offset < base) | (max_offset >= following))
    return [
        minus(end_before, base).alias("overlap_offsets"),
        F.when(~is_explained, minus(base, end_before)).alias("hole_offsets"),
        span.alias("span_offsets"),
        minus("record_count", span).alias("records_beyond_span"),
        is_outside.cast("int").alias("max_timestamp_outside"),
    ]


def _sizes() -> list[Column]:
    is_empty = [
        (F.col("valid_bytes") == 0).cast("int"),
        (F.col("batch_count") == 0).cast("int"),
        (F.col("next_offset") == F.col("base_offset")).cast("int"),
    ]
    empty_parts = is_empty[0] + is_empty[1] + is_empty[2]
    difference = minus(plus("valid_bytes", "truncated_bytes"), "size_bytes")
    grown = F.when(F.col("is_active"), F.least(difference, F.lit(0))).otherwise(difference)
    return [
        grown.alias("size_difference_bytes"),  # an active one may grow after it was listed
        F.least(*_COUNTS, "index_entries", "time_index_entries").alias("least_count"),
        (~empty_parts.isin(0, 3)).cast("int").alias("emptiness_conflicts"),
        is_finding().cast("int").alias("is_damaged"),
        F.col("is_unverified").cast("int").alias("is_unverified"),
    ]


def _times(now_ms: int) -> list[Column]:
    greatest = F.col("max_timestamp_ms")
    has_timestamp = F.coalesce(greatest >= 0, F.lit(False))
    expected = F.when(has_timestamp, greatest).otherwise(F.col("last_modified_ms"))
    source = F.when(has_timestamp, "record").otherwise("last_modified")
    is_wrong = (F.col("largest_timestamp_ms") != expected) | (
        F.col("largest_timestamp_source") != source
    )
    return [
        F.when(has_timestamp, minus("min_timestamp_ms", greatest)).alias("reversed_ms"),
        is_wrong.cast("int").alias("largest_timestamp_error"),
        minus(greatest, now_ms).alias("ahead_ms"),
        F.when(has_timestamp, minus("_max_before", greatest)).alias("regress_ms"),
        (~has_timestamp & (F.col("batch_count") > 0)).cast("int").alias("is_mtime_fallback"),
    ]


def measure_offset_entries(segments: DataFrame) -> Transform:
    """Measure the rows of ``offset_index``, a row a segment; ``segments``: all, vanished too."""
    is_outside = (
        (F.col("_least") < F.col("base_offset"))
        | (F.col("_most") >= F.col("next_offset"))
        | (F.col("_other_least") < 0)
        | (F.col("_other_most") >= F.col("valid_bytes"))
    )
    return _measure_entries(
        segments, "offset", "position", F.col("index_entries"), is_outside, may_repeat=False
    )


def measure_time_entries(segments: DataFrame) -> Transform:
    """Measure the rows of ``time_index``, a row a segment; ``segments``: all, vanished too."""
    is_outside = (
        (F.col("_least") < 0)
        | (F.col("_other_least") < F.col("base_offset"))
        | (F.col("_other_most") >= F.col("next_offset"))
    )
    measure = _measure_entries(
        segments, "timestamp_ms", "offset", F.col("time_index_entries"), is_outside, may_repeat=True
    )
    is_wrong = F.col("_most") != F.col("max_timestamp_ms")

    def transform(entries: DataFrame) -> DataFrame:
        return entries.transform(measure).withColumn(
            "last_timestamp_error",
            F.when(F.col("is_orphan") == 0, is_wrong.cast("int")),
        )

    return transform


def _measure_entries(
    segments: DataFrame,
    first: str,
    second: str,
    expected: Column,
    is_outside: Column,
    *,
    may_repeat: bool,
) -> Transform:
    """Fold a segment's entries, in order of their first column, into one row.

    ``may_repeat``: the second column may stay the same from one entry to the next.
    """
    in_order = Window.partitionBy(_HASH, *SEGMENT_KEYS).orderBy(first, second)
    one_before = in_order.rowsBetween(-1, -1)
    known = {
        "next_offset": F.col("next_offset"),
        "valid_bytes": F.col("valid_bytes"),
        "max_timestamp_ms": F.col("max_timestamp_ms"),
        "_expected": F.coalesce(expected, F.lit(0)),
    }
    facts = segments.select(*SEGMENT_KEYS, *(value.alias(name) for name, value in known.items()))
    goes_back = F.col(second) < F.col("_second_before")
    if not may_repeat:
        goes_back = F.col(second) <= F.col("_second_before")
    is_double = F.col(first) == F.col("_first_before")
    has_entries = F.count(first) > 0

    def transform(entries: DataFrame) -> DataFrame:
        # A segment's own row comes first among its entries: a join would sort both once more.
        together = entries.select(*SEGMENT_KEYS, first, second).unionByName(
            facts, allowMissingColumns=True
        )
        folded = (
            together.withColumn(_HASH, _hash_of(SEGMENT_KEYS))
            .withColumns(
                {
                    "_first_before": F.max(first).over(one_before),
                    "_second_before": F.max(second).over(one_before),
                }
            )
            .groupBy(_HASH, *SEGMENT_KEYS)
            .agg(
                F.count(first).alias("_found"),
                F.when(has_entries, F.count_if(is_double)).alias("duplicate_entries"),
                F.when(has_entries, F.count_if(goes_back & ~is_double)).alias(
                    "entries_out_of_order"
                ),
                F.min(first).alias("_least"),
                F.max(first).alias("_most"),
                F.min(second).alias("_other_least"),
                F.max(second).alias("_other_most"),
                *(F.max(name).alias(name) for name in known),
            )
        )
        missing = F.col("_expected") - F.col("_found") + F.coalesce("duplicate_entries", F.lit(0))
        return (
            folded.withColumn("entries_missing", missing)
            .withColumn("entries_outside", is_outside.cast("int"))
            .withColumn("is_orphan", F.col("_expected").isNull().cast("int"))
        )

    return transform


def _hash_of(keys: tuple[str, ...]) -> Column:
    """Return a number by which Spark sorts keys first: their first strings are mostly the same."""
    return F.xxhash64(*keys)
