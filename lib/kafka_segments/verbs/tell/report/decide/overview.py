"""Sum up a warehouse in rows whose number does not grow with its segments."""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from kafka_segments.engine.derived.written_times import is_by_mtime
from kafka_segments.engine.tables.decisions import Decision
from kafka_segments.engine.tables.keys import LOG_KEYS, SEGMENT_KEYS, Transform
from kafka_segments.engine.tables.long_arithmetic import minus
from kafka_segments.verbs.judge.retention.decide.reasons import NOT_KNOWN

YEAR_10000_MS = 253_402_300_800_000
KAFKA_0_8_MS = 1_325_376_000_000
DAY_MS = 86_400_000
AGES_MS = (DAY_MS // 24, DAY_MS, 7 * DAY_MS, 30 * DAY_MS)
"""Where one band of ages ends and the next begins."""
_DIR_KEYS = LOG_KEYS[:3]
_SUMS = ("segments", "size_bytes", "damaged", "unverified", "in_future", "by_mtime")
SOUND, BY_MTIME, IN_FUTURE, DAMAGED = KINDS = ("sound", "by_mtime", "in_future", "damaged")
_STEPS_PER_DOUBLING = 4


def is_in_future(now_ms: int) -> Column:
    """Tell whether a segment's largest timestamp is later than now."""
    return F.col("largest_timestamp_ms") > now_ms


def summarize_logs(*, now_ms: int) -> Transform:
    """Sum up each log.

    Needs: rows of ``segments``, with is_unverified.
    Gives: the key of a log; segments, size_bytes, damaged, unverified, in_future, by_mtime (long);
        oldest_ms, newest_ms (long; null: there are no timestamps; oldest_ms is also null after a
        first look at some segment, which does not tell its least timestamp).
    """

    def transform(segments: DataFrame) -> DataFrame:
        least = F.col("min_timestamp_ms")
        is_unknown = least.isNull() & (F.col("max_timestamp_ms") >= 0) & F.col("damage").isNull()
        return segments.groupBy(*LOG_KEYS).agg(
            F.count("*").alias("segments"),
            F.sum("size_bytes").alias("size_bytes"),
            F.count("damage").alias("damaged"),
            F.count_if("is_unverified").alias("unverified"),
            F.count_if(is_in_future(now_ms)).alias("in_future"),
            F.count_if(is_by_mtime()).alias("by_mtime"),
            F.when(F.count_if(is_unknown) == 0, F.min(F.when(least >= 0, least))).alias(
                "oldest_ms"
            ),
            F.max(F.when(F.col("max_timestamp_ms") >= 0, F.col("max_timestamp_ms"))).alias(
                "newest_ms"
            ),
        )

    return transform


def total_of_logs(logs: DataFrame) -> DataFrame:
    """Return one row: the number of logs, and the sums over what ``summarize_logs`` gives."""
    sums = [F.coalesce(F.sum(name), F.lit(0)).alias(name) for name in _SUMS]
    return logs.agg(F.count("*").alias("logs"), *sums)


def sum_by_dir(logs: DataFrame) -> DataFrame:
    """Return for each log directory the number of logs, and the sums over ``summarize_logs``."""
    sums = [F.sum(name).alias(name) for name in _SUMS]
    return logs.groupBy(*_DIR_KEYS).agg(F.count("*").alias("logs"), *sums)


def sum_freed_by_dir(*, now_ms: int) -> Transform:
    """Sum up by log directory what retention frees now.

    Needs: rows of ``retention_decisions`` of one run.
    Gives: the key of a log directory; decided, not_known (segments; the latter of which it is not
        known whether they go), freed_bytes.
    """
    is_not_known = F.col("reason_code").isin(*NOT_KNOWN) | (F.col("decision") == Decision.UNKNOWN)
    goes_now = F.when(F.col("frees_disk_at_ms") <= now_ms, F.col("size_bytes")).otherwise(0)

    def transform(decisions: DataFrame) -> DataFrame:
        return decisions.groupBy(*_DIR_KEYS).agg(
            F.count("*").alias("decided"),
            F.count_if(is_not_known).alias("not_known"),
            F.sum(goes_now).alias("freed_bytes"),
        )

    return transform


def sum_by_age(*, now_ms: int) -> Transform:
    """Sum size_bytes by topic and by how long ago a segment's greatest timestamp is.

    Needs: rows of ``segments``.
    Gives: topic, band (int: how many of ``AGES_MS`` it is at least as old as; null: not known, as
        the segment has no timestamp, was not read, or lies in the future), size_bytes.
    """
    newest = F.col("max_timestamp_ms")
    band = sum(((newest <= now_ms - age).cast("int") for age in AGES_MS), F.lit(0))

    def transform(segments: DataFrame) -> DataFrame:
        placed = F.when(newest.between(0, now_ms), band).alias("band")
        return segments.groupBy("topic", placed).agg(F.sum("size_bytes").alias("size_bytes"))

    return transform


def count_by(kind: Column) -> Transform:
    """Count segments and bytes by a column, the most frequent value first.

    Gives: kind, segments, size_bytes.
    """

    def transform(rows: DataFrame) -> DataFrame:
        counted = (
            rows.select(kind.alias("kind"), "size_bytes")
            .groupBy("kind")
            .agg(F.count("*").alias("segments"), F.sum("size_bytes").alias("size_bytes"))
        )
        return counted.orderBy(F.desc("segments"), "kind")

    return transform


def draw_spans(lanes: DataFrame, *, now_ms: int) -> Transform:
    """Return the spans of time that each log's segments cover, neighbours merged.

    1. A log with more segments than its lane has ``spans`` is cut into that many parts, each of
       about as many neighbouring segments. A part has a span for each kind of segment in it.
    2. A segment without timestamps lies at its mtime.
    3. A first look does not tell the least timestamp of a segment; that of its first batch is near
       it.
    4. A time that is on no calendar lies at the calendar's end.

    Needs: rows of ``segments``. ``lanes``: the key of a log, lane (int), spans (int).
    Gives: lane, base_offset, start_ms, end_ms, segments, size_bytes, kind (damaged, in_future,
        by_mtime or sound: the first that holds), ordered by lane and base_offset.
    """

    def transform(segments: DataFrame) -> DataFrame:
        in_log = Window.partitionBy("lane").orderBy("base_offset")
        whole = Window.partitionBy("lane").rowsBetween(
            Window.unboundedPreceding, Window.unboundedFollowing
        )
        place, count = F.row_number().over(in_log) - 1, F.count("*").over(whole)
        end = _on_calendar(F.col("largest_timestamp_ms"))
        least = F.coalesce("min_timestamp_ms", "first_batch_timestamp_ms")
        start = F.least(F.when(least >= 0, _on_calendar(least)).otherwise(end), end)
        return (
            segments.join(F.broadcast(lanes), list(LOG_KEYS), how="inner")
            .withColumn("_span", F.floor(place * F.least(F.col("spans"), count) / count))
            .withColumn("kind", _kind(now_ms))
            .groupBy("lane", "_span", "kind")
            .agg(
                F.min("base_offset").alias("base_offset"),
                F.min(start).alias("start_ms"),
                F.max(end).alias("end_ms"),
                F.count("*").alias("segments"),
                F.sum("size_bytes").alias("size_bytes"),
            )
            .select("lane", "base_offset", "start_ms", "end_ms", "segments", "size_bytes", "kind")
            .orderBy("lane", "base_offset")
        )

    return transform


def _kind(now_ms: int) -> Column:
    return (
        F.when(F.col("damage").isNotNull(), DAMAGED)
        .when(is_in_future(now_ms), IN_FUTURE)
        .when(is_by_mtime(), BY_MTIME)
        .otherwise(SOUND)
    )


def _on_calendar(ms: Column) -> Column:
    return F.greatest(F.least(ms, F.lit(YEAR_10000_MS - 1)), F.lit(0))


def sum_by_bin(column: str, *, from_ms: int, width_ms: int, bins: int) -> Transform:
    """Sum size_bytes by bins of a column of ms; times outside count in the first or last bin.

    Gives: bin (int, 0 to bins - 1), size_bytes.
    """

    def transform(rows: DataFrame) -> DataFrame:
        place = F.floor(minus(column, from_ms) / width_ms)
        within = F.greatest(F.least(place, F.lit(bins - 1)), F.lit(0)).cast("int")
        return (
            rows.where(F.col(column).isNotNull())
            .groupBy(within.alias("bin"))
            .agg(F.sum("size_bytes").alias("size_bytes"))
        )

    return transform


def find_oddities(*, now_ms: int) -> Transform:
    """Return the segments whose timestamps look wrong, with what is odd about them.

    Needs: rows of ``segments``.
    Gives: the key of a segment, size_bytes, largest_timestamp_ms, oddities (array of string).
    """

    def transform(segments: DataFrame) -> DataFrame:
        largest = F.col("largest_timestamp_ms")
        before = F.lag("largest_timestamp_ms").over(
            Window.partitionBy(*LOG_KEYS).orderBy("base_offset")
        )
        odd = {
            "in the future": is_in_future(now_ms),
            "older than Kafka 0.8 (2012)": largest < KAFKA_0_8_MS,
            "before the segment that precedes it": largest < before,
            "no timestamps: mtime": is_by_mtime(),
        }
        found = F.array_compact(F.array(*(F.when(is_odd, name) for name, is_odd in odd.items())))
        return (
            segments.withColumn("oddities", found)
            .where(F.size("oddities") > 0)
            .select(*LOG_KEYS, "base_offset", "size_bytes", "largest_timestamp_ms", "oddities")
        )

    return transform


def count_density(entries: str) -> Transform:
    """Count segments by bytes of log per index entry, in bins of a quarter of a doubling.

    Gives: step (int; the bin begins at 2^(step / 4) bytes), segments.
    """

    def transform(segments: DataFrame) -> DataFrame:
        per_entry = F.col("valid_bytes") / F.col(entries)
        step = F.floor(F.log2(per_entry) * _STEPS_PER_DOUBLING).cast("int")
        return (
            segments.where((F.col(entries) > 0) & (F.col("valid_bytes") > 0))
            .groupBy(step.alias("step"))
            .agg(F.count("*").alias("segments"))
            .orderBy("step")
        )

    return transform


def sum_by_kept_time(segments: DataFrame) -> Transform:
    """Sum the bytes of segments by the time that retention keeps them, the most bytes first.

    Needs: rows of ``retention_decisions`` of one run; ``segments``: rows of ``segments``.
    Gives: kept_ms (from the largest timestamp to the expiry; null: for ever), written (bytes).
    """
    kept_ms = minus("expires_at_ms", "s.largest_timestamp_ms")
    written = segments.select(
        *SEGMENT_KEYS, "largest_timestamp_ms", F.col("size_bytes").alias("written")
    ).alias("s")

    def transform(decisions: DataFrame) -> DataFrame:
        expiries = decisions.select(*SEGMENT_KEYS, "expires_at_ms")
        return (
            written.join(expiries, list(SEGMENT_KEYS), how="inner")
            .groupBy(kept_ms.alias("kept_ms"))
            .agg(F.sum("written").alias("written"))
            .orderBy(F.desc("written"), "kept_ms")
        )

    return transform
