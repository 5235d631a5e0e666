"""Decide which segments the passes of retention delete."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kafka_segments.engine.tables.keys import LOG_KEYS, Transform
from kafka_segments.engine.tables.long_arithmetic import minus
from kafka_segments.engine.tables.windows import (
    in_order,
    older,
    up_to_current_row,
    whole_log_in_order,
)
from kafka_segments.verbs.judge.retention.decide.other_rules import with_other_rules
from kafka_segments.verbs.judge.retention.decide.rules import (
    LOG_START_OFFSET,
    SIZE,
    TIME,
    RetentionRules,
)

INHERITED = -2  # of local.retention.*: the value of retention.* holds


def with_neighbours(segments: DataFrame) -> DataFrame:
    """Add what a segment must know of the others of its log, at once.

    Needs: ``LOG_KEYS``, base_offset, size_bytes, max_timestamp_ms (long).
    Gives: the same, next_base (null: it is the last one), younger_bytes (the sizes of all younger
        segments), time_beside (the greatest record timestamp of the next segment that there is,
        else of the one before, else of the log; null: none).
    """
    so_far, whole = up_to_current_row(LOG_KEYS), whole_log_in_order(LOG_KEYS)
    size = F.col("size_bytes")
    record = F.when(F.col("max_timestamp_ms") >= 0, F.col("max_timestamp_ms"))
    return segments.withColumns(
        {
            "next_base": F.lead("base_offset").over(in_order(LOG_KEYS)),
            "younger_bytes": F.sum(size).over(whole) - F.sum(size).over(so_far),
            "time_beside": F.coalesce(
                F.lead(record).over(in_order(LOG_KEYS)),
                F.lag(record).over(in_order(LOG_KEYS)),
                F.max(record).over(whole),
            ),
        }
    )


def mark_deleted(
    *, now_ms: int, rules: RetentionRules, log: tuple[str, ...] = LOG_KEYS
) -> Transform:
    """Mark the segments that retention deletes at ``now_ms``.

    1. The passes run in the release's order, each from the oldest segment on. A pass ends at the
       first segment that stays, and works on what the pass before it left.
    2. The pass by log start offset deletes a segment if the next one begins at or below it.
    3. The pass by size deletes a segment if the log still holds ``retention_bytes`` without it and
       all older ones: those are gone by then, whichever pass took them.
    4. The pass by time deletes a segment if ``now_ms - clock_ms > retention_ms``.
    5. A segment stays if it reaches above the high watermark, if it could not be read, if it is
       the active one and empty, or if it is not yet in the remote storage of a tiered topic.
    6. An active segment that goes, or that waits for nothing but its upload, is rolled first. The
       passes after that see a next segment, which begins at the log's end.
    7. A segment that falls under ``OTHER_RULES`` stays, whatever its age.
    8. Where ``log_cleaner_enable`` is false, nothing of a compacted log goes: it is the cleaner's
       threads that delete there.

    ``log`` names the columns that make up the key of a log.

    Needs: the columns of ``log``, base_offset, size_bytes, next_offset, largest_timestamp_ms,
        last_modified_ms (long; next_offset null: not read), what ``with_neighbours`` gives,
        high_watermark, log_start_offset, highest_remote_offset (long, null: not known), path
        (string; see ``with_other_rules``), and the columns of ``TopicConfig``.
    Gives: the same, other_rules, clock_ms, limit_ms, limit_bytes (in force), by_limits,
        is_empty_active, is_readable, is_committed, is_tiered (its log has remote storage), uploads
        (its segments are copied there), is_uploaded, is_without_cleaner, is_expired,
        is_beyond_size, rule (null: it stays), rolls.
    Source: UnifiedLog.deleteOldSegments, deletableSegments, isSegmentEligibleForDeletion,
        LogManager.cleanupLogs (which logs it passes over without a cleaner).
    """

    def transform(segments: DataFrame) -> DataFrame:
        frame = (
            segments.transform(with_other_rules)
            .withColumns(_limits(rules))
            .withColumns(_bounds(rules))
            .withColumns(_conditions(rules, now_ms))
        )
        gone, rule = F.lit(False), F.lit(None).cast("string")
        rolled = F.lit(False)  # of the active segment: then a next one begins at the log's end
        for number, name in enumerate(rules.passes):
            breached = _is_past(name) & F.col("_may_go")
            is_uploaded = F.col("is_uploaded") | (rolled & F.col("_starts_at_end"))
            goes = gone | (breached & is_uploaded)
            all_go = F.min(goes.cast("int")).over(older(log)) == 1
            frame = frame.withColumns(
                {f"_goes_{number}": goes, f"_older_{number}": F.coalesce(all_go, F.lit(True))}
            )
            all_older = F.col(f"_older_{number}")
            gone = all_older & F.col(f"_goes_{number}")
            waits = F.col("is_tiered") & breached & all_older
            rolled = rolled | (F.col("next_base").isNull() & (gone | waits))
            rule = F.coalesce(rule, F.when(gone, name))
        outcome = {"rule": rule, "rolls": rolled, "is_beyond_size": _is_past(SIZE)}
        return frame.withColumns(outcome).drop(*_inner_columns(rules))

    return transform


def _inner_columns(rules: RetentionRules) -> list[str]:
    """Return the names of the columns that ``mark_deleted`` adds for itself."""
    by_pass = [
        f"_{name}_{number}" for number in range(len(rules.passes)) for name in ("goes", "older")
    ]
    return ["_deletes", "_starts_at_end", "_may_go", *by_pass]


def _limits(rules: RetentionRules) -> dict[str, Column]:
    policy = F.split("cleanup_policy", ",")
    deletes, compacts = F.array_contains(policy, "delete"), F.array_contains(policy, "compact")
    tiered = F.lit(rules.is_tiered) & F.col("remote_storage_enable") & ~compacts
    copies = tiered & ~F.col("remote_log_copy_disable")
    no_cleaner = compacts & ~F.col("log_cleaner_enable")

    def in_force(name: str) -> Column:
        local = F.col(f"local_{name}")
        return F.when(copies & (local != INHERITED), local).otherwise(F.col(name))

    empty_runs_all = F.lit(rules.empty_policy_is_tiered) & (F.col("cleanup_policy") == "") & copies
    return {
        "limit_ms": in_force("retention_ms"),
        "limit_bytes": in_force("retention_bytes"),
        "clock_ms": F.col("last_modified_ms" if rules.by_mtime else "largest_timestamp_ms"),
        "by_limits": (deletes | empty_runs_all) & ~no_cleaner & F.col("other_rules").isNull(),
        "is_without_cleaner": no_cleaner,
        "_deletes": (deletes | F.lit(rules.starts_without_delete)) & ~no_cleaner,
        "is_tiered": tiered,
        "uploads": copies,
    }


def _bounds(rules: RetentionRules) -> dict[str, Column]:
    next_base = F.col("next_base")
    upper = F.coalesce(next_base, F.col("next_offset"))
    log_start = F.coalesce("log_start_offset", F.lit(0))
    committed = F.lit(True)
    if rules.heeds_high_watermark:
        above_start = F.greatest(F.col("high_watermark"), log_start)
        known = F.when(F.col("high_watermark").isNotNull(), above_start >= upper)
        committed = F.coalesce(known, F.lit(not rules.needs_high_watermark))
    is_remote = (upper > 0) & (minus(upper, 1) <= F.col("highest_remote_offset"))
    starts_later = next_base <= log_start
    return {
        "is_readable": F.col("next_offset").isNotNull(),
        "is_committed": committed,
        "is_empty_active": next_base.isNull() & (F.col("size_bytes") == 0),
        "_starts_at_end": F.coalesce(F.col("next_offset") <= log_start, F.lit(False)),
        "is_uploaded": ~F.col("uploads")
        | F.coalesce(is_remote, F.lit(False))
        | F.coalesce(starts_later, F.lit(False)),
    }


def _conditions(rules: RetentionRules, now_ms: int) -> dict[str, Column]:
    limited = F.lit(True) if not rules.negative_is_unlimited else F.col("limit_ms") >= 0
    age = minus(now_ms, "clock_ms")
    may_go = F.col("is_committed") & F.col("is_readable") & ~F.col("is_empty_active")
    return {
        "is_expired": F.col("by_limits") & limited & (age > F.col("limit_ms")),
        "_may_go": may_go & F.col("other_rules").isNull(),
    }


def _is_past(name: str) -> Column:
    """Return whether a segment meets the condition of a pass."""
    if name == LOG_START_OFFSET:
        starts_later = F.col("next_base") <= F.coalesce("log_start_offset", F.lit(0))
        return F.col("_deletes") & F.coalesce(starts_later, F.lit(False))
    if name == TIME:
        return F.col("is_expired")
    fits = F.col("younger_bytes") >= F.col("limit_bytes")
    return F.col("by_limits") & (F.col("limit_bytes") >= 0) & fits
