"""Decide which active segments roll at the next append, why, and when the others will."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kafka_segments.engine.tables.decisions import Decision
from kafka_segments.engine.tables.keys import SEGMENT_KEYS, Transform
from kafka_segments.engine.tables.long_arithmetic import minus
from kafka_segments.verbs.judge.retention.decide.other_rules import roll_words, with_other_rules
from kafka_segments.verbs.judge.roll.decide.rules import (
    CREATED,
    INDEX_FULL,
    LARGEST,
    OVERFLOW,
    SIZE,
    TIME,
    TIME_INDEX_FULL,
    IndexSource,
    RollRules,
)

_MAX_INT, _MAX_LONG = 2**31 - 1, 2**63 - 1
_INDEX_SOURCES = {
    IndexSource.BESIDE: "by the index files beside it",
    IndexSource.BUILT: "by the tables, built with the topic's index.interval.bytes",
    IndexSource.RECOUNTED: "counted anew with the topic's index.interval.bytes",
    IndexSource.BUILT_OTHERWISE: "by the tables, built with another index.interval.bytes: its log"
    " cannot be read",
}
_OFFSET_ENTRY_BYTES, _TIME_ENTRY_BYTES = 8, 12


def decide_rolls(*, now_ms: int, rules: RollRules) -> Transform:
    """Decide for each segment whether the next append at ``now_ms`` rolls it.

    One of the rules is enough; they are asked in Kafka's order:

    1. segment_bytes: with the append the segment would be larger.
    2. segment_ms: it has bytes, and more than segment.ms less the jitter has passed.
    3. offset_index_full, time_index_full: there is room for no more entry (in the time index: for
       the last one alone).
    4. offset_overflow: the append's last offset is out of the indexes' reach.

    A broker draws the jitter when it opens a segment, so a decision that hangs on it is
    ``jitter``. Segments that a broker does not load, that fall under ``OTHER_RULES``, or whose log
    lacks its end, so that another segment may be the active one, are ``unknown``.

    Needs: the key of a segment, size_bytes, next_offset, first_batch_timestamp_ms,
        max_timestamp_ms, created_ms, index_entries, time_index_entries (long), index_source
        (string, one of ``IndexSource``); segment_bytes,
        segment_ms, segment_jitter_ms, segment_index_bytes, max_compaction_lag_ms (long) and
        cleanup_policy (string); of the append append_bytes, append_timestamp_ms (-1: none),
        append_last_offset (long; null: it has none below 2^63); cut_short (string: why the log
        lacks its end; null: it does not).
    Gives: the columns of ``roll_decisions`` but run_id and decided_at.
    Source: UnifiedLog.maybeRoll, LogSegment.shouldRoll, LogConfig.maxSegmentMs and
        randomSegmentJitter.
    """

    def transform(segments: DataFrame) -> DataFrame:
        index_bytes = F.col("segment_index_bytes")
        measures = {
            "_max_ms": _max_segment_ms(rules),
            "_jitter": _largest_jitter(),
            "_clock": _clock(rules),
            "_source": _clock_source(rules),
            "_waited": minus(_until(now_ms, rules), _clock(rules)),
            "_entries": F.floor(index_bytes / _OFFSET_ENTRY_BYTES),
            "_time_entries": F.floor(index_bytes / _TIME_ENTRY_BYTES),
        }
        least_ms = minus("_max_ms", "_jitter")
        none = F.array().cast("array<string>")
        is_loaded = F.col("next_offset").isNotNull() & F.col("index_entries").isNotNull()
        is_known = is_loaded & F.col("other_rules").isNull() & F.col("cut_short").isNull()
        decision = (
            F.when(~is_known, Decision.UNKNOWN)
            .when(F.size("_surely") > 0, Decision.ROLL)
            .when(F.size("_held") > 0, Decision.JITTER)
            .otherwise(Decision.KEEP)
        )
        held = F.when(is_known, _rules_that_hold(rules, least_ms)).otherwise(none)
        outcome = {
            "_held": held,
            "_surely": _rules_that_hold(rules, F.col("_max_ms")),
            "_nearest": _nearest(rules),
            "_from": _moment(least_ms),
            "_by": _moment(F.col("_max_ms")),
        }
        return (
            segments.transform(with_other_rules)
            .withColumns(measures)
            .withColumns(outcome)
            .withColumn("decision", decision)
            .select(*SEGMENT_KEYS, *_outcome())
        )

    return transform


def _max_segment_ms(rules: RollRules) -> Column:
    """Return segment.ms, but at most max.compaction.lag.ms where the topic is compacted."""
    is_compacted = F.array_contains(F.split("cleanup_policy", ","), "compact")
    has_lag = is_compacted & (F.col("max_compaction_lag_ms") > 0) & F.lit(rules.has_compaction_lag)
    bounded = F.least("segment_ms", "max_compaction_lag_ms")
    return F.when(has_lag, bounded).otherwise(F.col("segment_ms")).cast("long")


def _largest_jitter() -> Column:
    bound = F.least(F.col("segment_jitter_ms"), F.col("segment_ms"), F.lit(2**31).cast("long"))
    return F.greatest(bound - 1, F.lit(0)).cast("long")


def _has_timestamp(rules: RollRules) -> Column:
    if rules.time == CREATED:
        return F.lit(False)
    seen = "max_timestamp_ms" if rules.time == LARGEST else "first_batch_timestamp_ms"
    return F.col(seen) >= 0


def _clock(rules: RollRules) -> Column:
    seen = "max_timestamp_ms" if rules.time == LARGEST else "first_batch_timestamp_ms"
    return F.when(_has_timestamp(rules), F.col(seen)).otherwise(F.col("created_ms"))


def _clock_source(rules: RollRules) -> Column:
    return F.when(_has_timestamp(rules), rules.time).otherwise(CREATED)


def _until(now_ms: int, rules: RollRules) -> Column:
    """Return the moment that the time rule compares with: the append's timestamp, or now."""
    by_append = _has_timestamp(rules) & F.lit(rules.time != LARGEST)
    return F.when(by_append, F.col("append_timestamp_ms")).otherwise(F.lit(now_ms))


def _rules_that_hold(rules: RollRules, limit_ms: Column) -> Column:
    has_waited = (F.col("size_bytes") > 0) & (F.col("_waited") > limit_ms)
    reach = minus("append_last_offset", "base_offset")
    is_within_reach = F.coalesce(reach.between(0, _MAX_INT), F.lit(False))
    holds = {
        SIZE: F.col("size_bytes") > minus("segment_bytes", "append_bytes"),
        TIME: has_waited,
        INDEX_FULL: F.col("index_entries") >= F.col("_entries"),
        TIME_INDEX_FULL: F.lit(rules.has_time_index)
        & (F.col("time_index_entries") >= F.col("_time_entries") - 1),
        OVERFLOW: F.lit(rules.has_overflow) & ~is_within_reach,
    }
    return F.array_compact(F.array(*(F.when(hit, name) for name, hit in holds.items())))


def _moment(limit_ms: Column) -> Column:
    """Return the first timestamp or moment past the limit of the time rule; null: never."""
    moment = F.try_add(F.col("_clock"), F.try_add(limit_ms, F.lit(1)))
    return F.when((F.col("size_bytes") > 0) & (F.col("_max_ms") < _MAX_LONG), moment)


def _nearest(rules: RollRules) -> Column:
    """Return the rule whose limit is used up most, and the share of it that is used."""

    def share(name: str, used: Column, limit: Column) -> Column:
        part = F.try_divide(used.cast("double"), limit.cast("double"))
        return F.struct(F.coalesce(part, F.lit(0.0)).alias("share"), F.lit(name).alias("rule"))

    reach = minus("next_offset", "base_offset")
    waited = F.when(F.col("size_bytes") > 0, F.greatest(F.col("_waited"), F.lit(0))).otherwise(0)
    shares = [
        share(SIZE, F.col("size_bytes"), F.col("segment_bytes")),
        share(TIME, waited, F.col("_max_ms")),
        share(INDEX_FULL, F.col("index_entries"), F.col("_entries")),
    ]
    if rules.has_time_index:
        shares.append(
            share(TIME_INDEX_FULL, F.col("time_index_entries"), F.col("_time_entries") - 1)
        )
    if rules.has_overflow:
        shares.append(share(OVERFLOW, reach, F.lit(_MAX_INT)))
    return F.greatest(*shares)


def _outcome() -> list[Column]:
    is_known = F.col("decision") != Decision.UNKNOWN
    last = minus(minus("next_offset", 1), "base_offset")
    left = {
        "bytes_left": minus("segment_bytes", "size_bytes"),
        "index_entries_left": F.col("_entries") - F.col("index_entries"),
        "time_index_entries_left": F.col("_time_entries") - 1 - F.col("time_index_entries"),
        "offsets_left": minus(_MAX_INT, last),
    }
    nearest = {"nearest_rule": F.col("_nearest.rule"), "nearest_share": F.col("_nearest.share")}
    moments = {"rolls_from_ms": F.col("_from"), "rolls_by_ms": F.col("_by")}
    return [
        F.col("decision"),
        F.try_element_at("_held", F.lit(1)).alias("rule"),
        F.col("_held").alias("rules"),
        F.col("size_bytes"),
        F.col("_clock").alias("clock_ms"),
        F.col("_source").alias("clock_source"),
        *(F.when(is_known, value).alias(name) for name, value in moments.items()),
        F.when(is_known, _projected_full()).alias("projected_full_ms"),
        *(F.when(is_known, value).cast("long").alias(name) for name, value in left.items()),
        *(F.when(is_known, value).alias(name) for name, value in nearest.items()),
        _reason().alias("reason"),
        F.when(is_known, F.col("index_source")).alias("index_source"),
    ]


def _projected_full() -> Column:
    """Return when segment.bytes is reached at the segment's own rate so far; null: no rate."""
    span = minus("max_timestamp_ms", "first_batch_timestamp_ms")
    left = F.greatest(minus("segment_bytes", "size_bytes"), F.lit(0))
    still_ms = F.try_divide(left.cast("double") * span, F.col("size_bytes"))
    has_rate = (F.col("first_batch_timestamp_ms") >= 0) & (span > 0)
    moment = F.col("max_timestamp_ms") + still_ms
    return F.when(has_rate & (moment < 2.0**63), F.floor(moment).cast("long"))


def _by_which_index() -> Column:
    """Return in words where the entries of its indexes were counted."""
    words = F.lit(None).cast("string")
    for source, text in _INDEX_SOURCES.items():
        words = F.when(F.col("index_source") == source, text).otherwise(words)
    return words


def _reason() -> Column:
    texts = {
        SIZE: "larger than segment.bytes with the append",
        TIME: "older than segment.ms",
        INDEX_FULL: F.concat(F.lit("its offset index is full, "), _by_which_index()),
        TIME_INDEX_FULL: F.concat(F.lit("its time index is full, "), _by_which_index()),
        OVERFLOW: "the append's offset is out of its indexes' reach",
    }
    first = F.try_element_at("_held", F.lit(1))
    kept = F.concat(F.lit("no limit is reached; the nearest is "), F.col("_nearest.rule"))
    is_index = F.col("_nearest.rule").isin(INDEX_FULL, TIME_INDEX_FULL)
    is_guess = F.col("index_source") == IndexSource.BUILT_OTHERWISE
    by_index = F.concat(kept, F.lit(", "), _by_which_index())
    kept = F.when(is_index | is_guess, by_index).otherwise(kept)
    not_loaded = "a broker does not load it; see segments.damage"
    chosen = F.when(F.col("other_rules").isNotNull(), roll_words())
    chosen = chosen.when(F.col("cut_short").isNotNull(), F.col("cut_short"))
    is_unread = F.col("index_entries").isNull() & (
        F.col("index_source") == IndexSource.BUILT_OTHERWISE
    )
    unread = "its index files and its log cannot be read; a first look did not count its entries"
    chosen = chosen.when(is_unread, unread)
    chosen = chosen.when(F.col("decision") == Decision.UNKNOWN, not_loaded)
    some_jitters = "older than segment.ms with some jitters"
    chosen = chosen.when(F.col("decision") == Decision.JITTER, some_jitters)
    for name, text in texts.items():
        chosen = chosen.when(first == name, text)
    return chosen.otherwise(kept)
