"""Decide which segments a broker's retention deletes now, and say why the rest stays."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kafka_segments.engine.derived.timestamps import guess_unit
from kafka_segments.engine.tables.decisions import Decision
from kafka_segments.engine.tables.findings import hides_rest
from kafka_segments.engine.tables.keys import LOG_KEYS, SEGMENT_KEYS, Transform
from kafka_segments.engine.tables.long_arithmetic import minus
from kafka_segments.engine.tables.windows import older, up_to_current_row, whole_log_in_order
from kafka_segments.verbs.judge.retention.decide import reasons
from kafka_segments.verbs.judge.retention.decide.passes import mark_deleted, with_neighbours
from kafka_segments.verbs.judge.retention.decide.rules import RetentionRules

_NEVER = 2**63 - 1


def with_log_state(logs: DataFrame, remote: DataFrame | None) -> Transform:
    """Keep the segments that are there, and add what is known of their logs.

    1. An active segment counts with its valid bytes: a broker's recovery cuts off what follows.
    2. Of another one of which a damage hides the rest it is not known where it ends, nor up to
       which time its records reach: what was read in front of the damage tells neither.

    Needs: rows of ``segments``; ``logs``: rows of ``logs``; ``remote``: topic, partition,
        highest_remote_offset; None: of no log is it known.
    Gives: the same without damage and truncated_bytes, high_watermark, log_start_offset,
        highest_remote_offset (null: not known).
    """
    is_hidden = ~F.col("is_active") & hides_rest()
    end = F.when(~F.coalesce(is_hidden, F.lit(False)), F.col("next_offset"))
    valid = F.coalesce("valid_bytes", "size_bytes")
    size = F.when(F.col("is_active"), valid).otherwise(F.col("size_bytes"))
    known = logs.select(*LOG_KEYS, "high_watermark", "log_start_offset")

    def transform(segments: DataFrame) -> DataFrame:
        there = (
            segments.where(F.col("vanished_at").isNull())
            .withColumns({"size_bytes": size, "next_offset": end})
            .drop("damage", "truncated_bytes")
            .join(known, list(LOG_KEYS), how="left")
        )
        if remote is None:
            return there.withColumn("highest_remote_offset", F.lit(None).cast("long"))
        return there.join(F.broadcast(remote), ["topic", "partition"], how="left")

    return transform


def decide_retention(*, now_ms: int, rules: RetentionRules) -> Transform:
    """Decide what retention deletes at ``now_ms``, and who is to blame for what stays.

    1. ``mark_deleted`` says what goes, and by which rule.
    2. A segment goes by time when it and every older segment has expired, as the log and its
       settings are now. It is assumed that the high watermark and the upload keep up. A segment
       that is held by anything but time never goes.
    3. The segment to blame is the older one that goes last, if it goes later than the segment
       itself would; of equals the oldest. Otherwise the segment itself is to blame.

    Needs: what ``with_neighbours`` and ``mark_deleted`` need, offset_of_max_timestamp (long),
        largest_timestamp_source (record, last_modified).
    Gives: the key of a segment, decision (delete, keep), rule, reason_code, reason, remedy,
        expires_at_ms, deletes_at_ms, frees_disk_at_ms (null: never), rolls,
        blocked_by_base_offset, pinned_by_offset, pinned_by_timestamp_ms, waiting_bytes,
        timestamp_unit, largest_timestamp_ms, size_bytes, retention_ms, retention_bytes
        (in force), cleanup_policy.
    """

    def transform(segments: DataFrame) -> DataFrame:
        return (
            segments.transform(with_neighbours)
            .transform(mark_deleted(now_ms=now_ms, rules=rules))
            .withColumns(_clock(now_ms, rules) | _moments(now_ms))
            .withColumns(_blame())
            .withColumns(_blocked())
            .withColumn("_why", reasons.why())
            .select(*LOG_KEYS, "base_offset", *_decision(now_ms))
        )

    return transform


def with_known_of_log(segments: DataFrame) -> Transform:
    """Add what an explanation names besides the decision.

    Needs: what ``decide_retention`` gives; ``segments``: what it was given.
    Gives: the same, high_watermark, log_start_offset, largest_timestamp_source.
    """
    known = segments.select(
        *SEGMENT_KEYS, "high_watermark", "log_start_offset", "largest_timestamp_source"
    )

    def transform(decided: DataFrame) -> DataFrame:
        return decided.join(known, list(SEGMENT_KEYS), how="inner")

    return transform


def with_settings(settings: DataFrame) -> Transform:
    """Add the settings of each replica of a log, and sort, oldest segment first.

    Needs: the key of a segment; ``settings``: the key of a log, settings.
    Gives: the same, settings.
    """

    def transform(decided: DataFrame) -> DataFrame:
        joined = decided.join(F.broadcast(settings), list(LOG_KEYS), how="left")
        return joined.select(*decided.columns, "settings").orderBy(*SEGMENT_KEYS)

    return transform


def _clock(now_ms: int, rules: RetentionRules) -> dict[str, Column]:
    """Return a segment's clock, and whether a copy has reset it."""
    record = F.when(F.col("max_timestamp_ms") >= 0, F.col("max_timestamp_ms"))
    beside = F.col("time_beside")
    from_record = F.col("largest_timestamp_source") == "record"
    neighbour = F.coalesce(record, beside) if rules.by_mtime else beside
    return {
        "timestamp_unit": guess_unit(F.col("max_timestamp_ms")),
        "by_record": F.lit(False) if rules.by_mtime else from_record,
        "is_copied": F.coalesce(
            F.try_subtract("last_modified_ms", neighbour) > reasons.DAY_MS, F.lit(False)
        ),
        "is_future": F.col("clock_ms") > now_ms,
    }


def _moments(now_ms: int) -> dict[str, Column]:
    by_time = F.col("by_limits") & (F.col("limit_ms") >= 0)
    expires = F.when(by_time, F.try_add(F.try_add("clock_ms", "limit_ms"), F.lit(1).cast("long")))
    may_go = F.col("is_committed") & F.col("is_uploaded")
    could_go = F.col("is_expired") | F.col("is_beyond_size")
    is_held = F.col("is_empty_active") | ~F.col("is_readable") | (could_go & ~may_go)
    own = F.when(F.col("rule").isNotNull(), now_ms).when(~is_held, expires)
    return {
        "expires_at_ms": expires,
        "_goes_at": F.coalesce(own, F.lit(_NEVER)),
        "_waits": F.col("rule").isNull() & could_go & ~is_held,
    }


def _blame() -> dict[str, Column]:
    """Find the older segment that goes last, and the bytes that wait behind each segment.

    They wait if they could go, but for an older segment.
    """
    kept = F.when(
        F.col("rule").isNull(),
        F.struct(
            "_goes_at",
            minus(0, "base_offset").alias("order"),
            _own_offset().alias("offset"),
            F.col("clock_ms").alias("timestamp"),
        ),
    )
    bytes_ = F.when(F.col("_waits"), F.col("size_bytes"))
    so_far = F.sum(bytes_).over(up_to_current_row(LOG_KEYS))
    waiting = F.sum(bytes_).over(whole_log_in_order(LOG_KEYS)) - F.coalesce(so_far, F.lit(0))
    return {
        "_last": F.max(kept).over(older(LOG_KEYS)),
        "_younger_wait": F.coalesce(waiting, F.lit(0)),
    }


def _own_offset() -> Column:
    return F.when(F.col("by_record"), F.col("offset_of_max_timestamp"))


def _blocked() -> dict[str, Column]:
    """Return which older segment a segment waits for, and what holds the one to blame."""
    last = F.col("_last")
    is_later = F.col("_waits") | (last["_goes_at"] > F.col("_goes_at"))
    is_other = F.col("rule").isNull() & F.coalesce(is_later, F.lit(False))
    return {
        "blocked_by_base_offset": F.when(is_other, -last["order"]),
        "pinned_by_offset": F.when(is_other, last["offset"]).otherwise(_own_offset()),
        "pinned_by_timestamp_ms": F.when(is_other, last["timestamp"]).otherwise(F.col("clock_ms")),
        "_blocked_until": F.when(is_other, last["_goes_at"]),
    }


def _decision(now_ms: int) -> list[Column]:
    kept = F.col("rule").isNull()
    moment = F.greatest("_goes_at", "_blocked_until")
    deletes_at = F.when(moment < _NEVER, moment)
    return [
        F.when(kept, Decision.KEEP).otherwise(Decision.DELETE).alias("decision"),
        F.col("rule"),
        F.col("_why.code").alias("reason_code"),
        F.col("_why.words").alias("reason"),
        F.col("_why.remedy").alias("remedy"),
        F.col("expires_at_ms"),
        deletes_at.alias("deletes_at_ms"),
        F.try_add(deletes_at, "file_delete_delay_ms").alias("frees_disk_at_ms"),
        F.col("rolls"),
        F.col("blocked_by_base_offset"),
        F.when(kept, F.col("pinned_by_offset")).alias("pinned_by_offset"),
        F.when(kept, F.col("pinned_by_timestamp_ms")).alias("pinned_by_timestamp_ms"),
        F.when(kept, F.col("_younger_wait")).alias("waiting_bytes"),
        F.col("timestamp_unit"),
        F.col("clock_ms").alias("largest_timestamp_ms"),
        F.col("size_bytes"),
        F.col("limit_ms").alias("retention_ms"),
        F.col("limit_bytes").alias("retention_bytes"),
        F.col("cleanup_policy"),
    ]
