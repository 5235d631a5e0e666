"""Decide which segments a broker's retention deletes now, and say why the rest stays."""

from collections.abc import Callable

from pyspark.sql import Column, DataFrame, Window, WindowSpec
from pyspark.sql import functions as F

LOG = ("cluster", "broker_id", "log_dir", "topic", "partition")
LOG_START_OFFSET, SIZE, TIME = "log_start_offset", "retention_bytes", "retention_ms"


def _log() -> WindowSpec:
    return Window.partitionBy(*LOG).rowsBetween(
        Window.unboundedPreceding, Window.unboundedFollowing
    )


def _up_to_here() -> WindowSpec:
    return (
        Window.partitionBy(*LOG)
        .orderBy("base_offset")
        .rowsBetween(Window.unboundedPreceding, Window.currentRow)
    )


def _prefix(deletable: Column) -> Column:
    """Tell whether this and every older segment may go: deletion stops at the first that stays."""
    return F.min(deletable.cast("int")).over(_up_to_here()) == 1


def decide_retention(
    *, now_ms: int, retention_ms: int, retention_bytes: int, cleanup_policy: str
) -> Callable[[DataFrame], DataFrame]:
    """Mark the segments that retention deletes at ``now_ms``.

    Three passes, oldest segment first; each ends at the first segment that stays, and acts on
    what the pass before it left:

    1. Log start offset: the next segment begins at or below it.
    2. Size: without this segment the log still holds ``retention_bytes``.
    3. Time: ``now_ms - largest_timestamp_ms > retention_ms``.

    A segment that reaches above the high watermark stays, as does an empty active one. A
    negative limit switches its pass off; so does a policy without ``delete``, but for pass 1.

    Needs: the key of a segment, size_bytes, next_offset, largest_timestamp_ms (long),
        is_active (boolean), high_watermark and log_start_offset (long, null: not known).
    Gives: the key of a segment, decision (delete, keep), rule, expires_at_ms (null: never),
        blocked_by_base_offset (of the segment that keeps this one), size_bytes, reason.
    Source: UnifiedLog.deleteOldSegments, deletableSegments (3.0 and later).
    """
    deletes = "delete" in cleanup_policy.split(",")
    by_size, by_time = deletes and retention_bytes >= 0, deletes and retention_ms >= 0

    def transform(segments: DataFrame) -> DataFrame:
        order = Window.partitionBy(*LOG).orderBy("base_offset")
        next_base = F.lead("base_offset").over(order)
        upper = F.coalesce(next_base, F.col("next_offset"))
        is_committed = F.coalesce(F.col("high_watermark") >= upper, F.lit(True))
        may_go = is_committed & ~(next_base.isNull() & (F.col("size_bytes") == 0))
        started = F.coalesce(next_base <= F.col("log_start_offset"), F.lit(False))
        left = F.when(F.col("_by_start"), 0).otherwise(F.col("size_bytes"))
        excess = F.sum(left).over(_log()) - F.lit(retention_bytes)
        is_beyond = F.lit(by_size) & (excess - F.sum(left).over(_up_to_here()) >= 0)
        expired = F.lit(by_time) & (
            F.lit(now_ms) - F.col("largest_timestamp_ms") > F.lit(retention_ms)
        )
        decided = (
            segments.withColumn("_may_go", may_go)
            .withColumn("_by_start", _prefix(started & F.col("_may_go")))
            .withColumn("_by_size", _prefix(F.col("_by_start") | (is_beyond & F.col("_may_go"))))
            .withColumn("_expired", expired)
            .withColumn("_by_time", _prefix(F.col("_by_size") | (expired & F.col("_may_go"))))
        )
        stays = F.when(~F.col("_by_time"), F.col("base_offset"))
        expires = F.col("largest_timestamp_ms") + F.lit(retention_ms + 1)
        return (
            decided.withColumn("_first_kept", F.min(stays).over(_log()))
            .withColumn("expires_at_ms", expires if by_time else F.lit(None).cast("long"))
            .select(
                *LOG,
                "base_offset",
                F.when(F.col("_by_time"), "delete").otherwise("keep").alias("decision"),
                _rule().alias("rule"),
                "expires_at_ms",
                F.when(F.col("_first_kept") < F.col("base_offset"), F.col("_first_kept")).alias(
                    "blocked_by_base_offset"
                ),
                "size_bytes",
                _reason(by_time=by_time).alias("reason"),
            )
        )

    return transform


def _rule() -> Column:
    return (
        F.when(F.col("_by_start"), LOG_START_OFFSET)
        .when(F.col("_by_size"), SIZE)
        .when(F.col("_by_time"), TIME)
    )


def _reason(*, by_time: bool) -> Column:
    is_blocked = F.col("_first_kept") < F.col("base_offset")
    own = (
        F.when(~F.col("_may_go"), "it reaches above the high watermark or is empty and active")
        .when(F.lit(by_time), "younger than retention.ms, and the log is not too large")
        .otherwise("no limit by time; the log is not too large")
    )
    return (
        F.when(F.col("_by_start"), "below the log start offset")
        .when(F.col("_by_size"), "the log holds retention.bytes without it")
        .when(F.col("_by_time") & F.col("is_active"), "expired; rolled first, being active")
        .when(F.col("_by_time"), "older than retention.ms")
        .when(
            is_blocked & F.col("_expired"),
            F.concat(
                F.lit("expired, but the older segment "), F.col("_first_kept"), F.lit(" stays")
            ),
        )
        .otherwise(own)
    )
