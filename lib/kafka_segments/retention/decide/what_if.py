"""What retention would leave under other settings, side by side with today's."""

from collections.abc import Callable

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from kafka_segments.retention.decide.other_rules import words
from kafka_segments.retention.decide.passes import mark_deleted
from kafka_segments.retention.decide.rules import RetentionRules
from kafka_segments.tables.bounded import minus
from kafka_segments.tables.keys import LOG_KEYS

TODAY = "today"
_KEPT = ("segments", "size_bytes", "oldest_offset", "span_ms")
_KEY = ("cluster", "topic")


def compare_retention(
    *, now_ms: int, rules: RetentionRules, changes: DataFrame, keys: tuple[str, ...]
) -> Callable[[DataFrame], DataFrame]:
    """Sum up per topic what retention leaves under each of several settings, in one pass.

    ``changes`` has a column ``setting`` and one, ``_new_<key>``, for each of ``keys``: the
    value that takes the place of the topic's, null: none does. Its row ``today`` has nulls.

    Needs: what ``mark_deleted`` needs, min_timestamp_ms, max_timestamp_ms.
    Gives: cluster, topic, setting, and of what is left segments, size_bytes, oldest_offset
        (least of all partitions), span_ms (from the least to the greatest record timestamp);
        the same of today as today_<name>; not_decided (why nothing goes by these settings where
        all of the topic falls under ``OTHER_RULES``; null: it does).
    """
    log = (*LOG_KEYS, "setting")

    def transform(segments: DataFrame) -> DataFrame:
        crossed = segments.crossJoin(F.broadcast(changes)).withColumns(
            {key: F.coalesce(f"_new_{key}", key) for key in keys}
        )
        marked = crossed.transform(mark_deleted(now_ms=now_ms, rules=rules, log=log))
        sums = marked.groupBy(*_KEY, "setting").agg(*_sums())
        today = Window.partitionBy(*_KEY).rowsBetween(
            Window.unboundedPreceding, Window.unboundedFollowing
        )
        columns = {
            f"today_{name}": F.max(F.when(F.col("setting") == TODAY, F.col(name))).over(today)
            for name in _KEPT
        }
        return sums.withColumns(columns).where(F.col("setting") != TODAY)

    return transform


def _sums() -> list[Column]:
    kept = F.col("rule").isNull()

    def of_kept(value: str) -> Column:
        return F.when(kept, F.col(value))

    has_time = kept & (F.col("min_timestamp_ms") >= 0)
    newest = F.max(F.when(has_time, F.col("max_timestamp_ms")))
    oldest = F.min(F.when(has_time, F.col("min_timestamp_ms")))
    return [
        F.count_if(kept).alias("segments"),
        F.coalesce(F.sum(of_kept("size_bytes")), F.lit(0)).alias("size_bytes"),
        F.min(of_kept("base_offset")).alias("oldest_offset"),
        minus(newest, oldest).alias("span_ms"),
        F.when(F.bool_and(F.col("other_rules").isNotNull()), F.max(words())).alias("not_decided"),
    ]
