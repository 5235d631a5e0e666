"""Decide why a segment goes or stays, and what would free it: a code, and words for it."""

from typing import NamedTuple

from pyspark.sql import Column
from pyspark.sql import functions as F

from kafka_segments.verbs.judge.retention.decide import remedies
from kafka_segments.verbs.judge.retention.decide.other_rules import OTHER_RULES
from kafka_segments.verbs.judge.retention.decide.passes import INHERITED
from kafka_segments.verbs.judge.retention.decide.rules import LOG_START_OFFSET, SIZE, TIME

BLOCKED, NOT_EXPIRED, NO_LIMIT = "blocked", "not_expired", "no_limit"
WITHIN_SIZE, POLICY, NO_CLEANER = "within_size", "cleanup_policy", "log_cleaner_disabled"
HIGH_WATERMARK, NO_HIGH_WATERMARK = "high_watermark", "high_watermark_unknown"
EMPTY_ACTIVE, UNREADABLE = "active_empty", "unreadable"
NOT_UPLOADED, UPLOAD_UNKNOWN = "not_uploaded", "upload_unknown"
FUTURE, WRONG_UNIT = "future_timestamp", "wrong_unit"
NO_TIMESTAMP, COPIED = "no_timestamp", "mtime_reset"
NOT_KNOWN = (UNREADABLE, NO_HIGH_WATERMARK, UPLOAD_UNKNOWN)
"""Why a segment stays where what would let it go is not known."""
DAY_MS = 86_400_000
UNIT_NAMES = {"s": "seconds", "us": "microseconds", "ns": "nanoseconds"}


class Reason(NamedTuple):
    """A reason: when it holds, its words, and what would free the segment. The first one counts."""

    code: str
    holds: Column
    words: Column
    remedy: Column


def _text(template: str, *columns: str) -> Column:
    return F.format_string(template, *(F.col(column) for column in columns))


def _decided_by(name: str) -> Column:
    """Return which of two settings is in force: retention.* or, of what is uploaded, local.*."""
    is_local = F.col("uploads") & (F.col(f"local_retention_{name}") != INHERITED)
    return F.when(is_local, f"local.retention.{name}").otherwise(f"retention.{name}")


def _unit() -> Column:
    name = F.lit(None).cast("string")
    for unit, words in UNIT_NAMES.items():
        name = F.when(F.col("timestamp_unit") == unit, words).otherwise(name)
    return name


def why() -> Column:
    """Return code, words and remedy of the first reason that holds; the remedy of deletion is null.

    The remedy: the setting or action that would free the segment.
    """
    return F.coalesce(
        *(
            F.when(
                reason.holds,
                F.struct(
                    F.lit(reason.code).alias("code"),
                    reason.words.alias("words"),
                    reason.remedy.alias("remedy"),
                ),
            )
            for reason in _reasons()
        )
    )


def _reasons() -> list[Reason]:
    return [*_of_deleted(), *_of_held(), *_of_young()]


def _of_held() -> list[Reason]:
    """Return the reasons that hold a segment whatever its age, then those of one past a limit."""
    return [*_of_other_rules(), *_of_any_age(), *_of_uncommitted(), *_of_unsent(), _blocked()]


def _of_young() -> list[Reason]:
    """Return the reasons of a segment that no limit has reached."""
    return [*_of_unlimited(), *_of_clock()]


def _of_deleted() -> list[Reason]:
    nothing = F.lit(None).cast("string")
    by_time = F.concat(
        F.lit("older than "),
        _decided_by("ms"),
        F.when(
            F.col("timestamp_unit") == "s", " by a timestamp that looks like seconds, not ms"
        ).otherwise(""),
    )
    return [
        Reason(
            LOG_START_OFFSET,
            F.col("rule") == LOG_START_OFFSET,
            F.lit("below the log start offset"),
            nothing,
        ),
        Reason(
            SIZE,
            F.col("rule") == SIZE,
            F.concat(F.lit("the log holds "), _decided_by("bytes"), F.lit(" without it")),
            nothing,
        ),
        Reason(
            TIME,
            F.col("rule") == TIME,
            F.concat(by_time, F.when(F.col("rolls"), "; rolled first, being active").otherwise("")),
            nothing,
        ),
    ]


def _of_other_rules() -> list[Reason]:
    return [
        Reason(
            rules.code,
            F.col("other_rules") == rules.code,
            F.lit(rules.words),
            F.lit(rules.remedy),
        )
        for rules in OTHER_RULES
    ]


def _of_any_age() -> list[Reason]:
    policy = F.when(F.col("cleanup_policy") == "", "cleanup.policy is empty").otherwise(
        F.concat(F.lit("cleanup.policy is "), F.col("cleanup_policy"))
    )
    return [
        Reason(
            UNREADABLE,
            ~F.col("is_readable"),
            F.lit("it could not be read to its end: which times it has is not known"),
            F.lit("see column damage of table segments, then build again"),
        ),
        Reason(
            EMPTY_ACTIVE,
            F.col("is_empty_active"),
            F.lit("an empty active segment never goes"),
            F.lit("none needed: it holds nothing"),
        ),
        Reason(
            NO_CLEANER,
            F.col("is_without_cleaner"),
            F.concat(policy, F.lit(" and log.cleaner.enable is false: nothing goes")),
            F.lit(remedies.WITH_CLEANER),
        ),
        Reason(
            POLICY,
            ~F.col("by_limits"),
            F.concat(policy, F.lit(": nothing goes by time or size")),
            F.lit(remedies.WITH_DELETE),
        ),
    ]


def _is_past_a_limit() -> Column:
    return F.col("is_expired") | F.col("is_beyond_size")


def _of_uncommitted() -> list[Reason]:
    uncommitted = _is_past_a_limit() & ~F.col("is_committed")
    return [
        Reason(
            NO_HIGH_WATERMARK,
            uncommitted & F.col("high_watermark").isNull(),
            F.lit("the high watermark is not known"),
            F.lit("take replication-offset-checkpoint along in the copy"),
        ),
        Reason(
            HIGH_WATERMARK,
            uncommitted,
            _text("past its limits, but it reaches above the high watermark %d", "high_watermark"),
            F.lit("let the followers of the partition catch up"),
        ),
    ]


def _of_unsent() -> list[Reason]:
    unsent = _is_past_a_limit() & ~F.col("is_uploaded")
    return [
        Reason(
            UPLOAD_UNKNOWN,
            unsent & F.col("highest_remote_offset").isNull(),
            F.lit("past its local limits, but what the remote storage holds is not known"),
            F.lit("--remote-offsets: what kafka-get-offsets --time latest-tiered prints"),
        ),
        Reason(
            NOT_UPLOADED,
            unsent,
            F.concat(
                _text(
                    "past its local limits, but the remote storage holds only up to offset %d",
                    "highest_remote_offset",
                ),
                F.when(F.col("rolls"), "; rolled now, being active").otherwise(""),
            ),
            F.lit("let the upload catch up: see RemoteCopyLagBytes and its errors"),
        ),
    ]


def _blocked() -> Reason:
    return Reason(
        BLOCKED,
        _is_past_a_limit(),
        _text("expired, but the older segment %d stays", "blocked_by_base_offset"),
        _text("free segment %d first", "blocked_by_base_offset"),
    )


def _of_unlimited() -> list[Reason]:
    unlimited = F.col("limit_ms") < 0
    return [
        Reason(
            NO_LIMIT,
            unlimited & (F.col("limit_bytes") < 0),
            F.lit("no limit by time or size"),
            F.concat(F.lit("set "), remedies.lowered("ms", "bytes")),
        ),
        Reason(
            WITHIN_SIZE,
            unlimited,
            F.concat(
                F.lit("no limit by time; without it the log is smaller than "),
                _decided_by("bytes"),
            ),
            F.concat(F.lit("lower or set "), remedies.lowered("bytes", "ms")),
        ),
    ]


def _of_clock() -> list[Reason]:
    """Return the reasons that lie in the timestamp or mtime that a segment goes by."""
    timeless, is_future = ~F.col("by_record"), F.col("is_future")
    return [
        Reason(
            COPIED,
            timeless & F.col("is_copied"),
            F.lit("no timestamp to go by but its mtime, which a copy has reset"),
            F.lit("set the .log's mtime back: touch -d, or copy with cp -p or rsync -t"),
        ),
        Reason(
            WRONG_UNIT,
            is_future & _unit().isNotNull(),
            F.format_string("its timestamp looks like %s, not ms: it lies in the future", _unit()),
            F.concat(remedies.by_size(), F.lit("; have the producer send ms")),
        ),
        Reason(
            FUTURE,
            is_future,
            F.lit("its greatest timestamp lies in the future"),
            F.concat(
                remedies.by_size(), F.lit("; message.timestamp.after.max.ms refuses such records")
            ),
        ),
        Reason(
            NO_TIMESTAMP,
            timeless,
            F.concat(
                F.lit("no timestamp to go by but its mtime, which is younger than "),
                _decided_by("ms"),
            ),
            F.concat(F.lit("wait, or lower "), remedies.lowered("ms")),
        ),
        Reason(
            NOT_EXPIRED,
            F.lit(True),
            F.concat(
                F.lit("younger than "), _decided_by("ms"), F.lit(", and the log is not too large")
            ),
            F.concat(F.lit("wait, or lower "), remedies.lowered("ms", "bytes")),
        ),
    ]
