"""What retention would leave under other settings, side by side with today's."""

from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql import types as T

from kafka_segments.engine.tables.keys import LOG_KEYS, Transform
from kafka_segments.engine.tables.long_arithmetic import minus
from kafka_segments.verbs.judge.retention.decide.other_rules import words_over_all
from kafka_segments.verbs.judge.retention.decide.passes import mark_deleted, with_neighbours
from kafka_segments.verbs.judge.retention.decide.rules import RetentionRules

TODAY = "today"
_KEPT = ("segments", "size_bytes", "oldest_offset", "span_ms")
_KEY = ("cluster", "topic")


def settings_table(
    grid: Sequence[Mapping[str, Any]], types: Mapping[str, T.DataType]
) -> tuple[list[tuple[Any, ...]], T.StructType]:
    """Return the rows and columns of ``changes`` for ``compare_retention``.

    ``grid`` has one mapping of settings to values a row, all of the keys of ``types``.
    """
    names = [" ".join(f"{key}={row[key]}" for key in types) for row in grid]
    values = [(name, *(row[key] for key in types)) for name, row in zip(names, grid, strict=True)]
    columns = [T.StructField("setting", T.StringType())]
    columns += [T.StructField(f"_new_{key}", kind) for key, kind in types.items()]
    return [(TODAY, *(None for _ in types)), *values], T.StructType(columns)


def compare_retention(
    *, now_ms: int, rules: RetentionRules, changes: DataFrame, keys: tuple[str, ...]
) -> Transform:
    """Sum up per topic what retention leaves under each of several settings, in one pass.

    ``changes`` has a column ``setting``, and for each of ``keys`` a column ``_new_<key>``: the
    value that takes the place of the topic's own; null: the topic's own holds. Its row ``today``
    has nulls alone.

    Logs that are left over from a topic that was deleted have rows of their own beside those of
    the topic that has its name now.

    Needs: what ``with_neighbours`` and ``mark_deleted`` need, min_timestamp_ms, is_left_over.
    Gives: cluster, topic, setting, and of what is left segments, size_bytes, oldest_offset
        (least of all partitions), span_ms (from the least to the greatest record timestamp; null:
        a first look at some segment does not tell its least);
        the same of today as today_<name>; not_decided (for a topic that falls under
        ``OTHER_RULES`` as a whole, why nothing goes by these settings; else null).
    """
    log = ("setting", *LOG_KEYS)

    def transform(segments: DataFrame) -> DataFrame:
        under_each = segments.transform(with_neighbours).crossJoin(F.broadcast(changes))
        crossed = under_each.withColumns({key: F.coalesce(f"_new_{key}", key) for key in keys})
        marked = crossed.transform(mark_deleted(now_ms=now_ms, rules=rules, log=log))
        sums = marked.groupBy(*_KEY, "is_left_over", "setting").agg(*_sums())
        today = Window.partitionBy(*_KEY, "is_left_over").rowsBetween(
            Window.unboundedPreceding, Window.unboundedFollowing
        )
        columns = {
            f"today_{name}": F.max(F.when(F.col("setting") == TODAY, F.col(name))).over(today)
            for name in _KEPT
        }
        compared = sums.withColumns(columns).where(F.col("setting") != TODAY)
        return compared.drop("is_left_over")

    return transform


def _sums() -> list[Column]:
    kept = F.col("rule").isNull()

    def of_kept(value: str) -> Column:
        return F.when(kept, F.col(value))

    has_time = kept & (F.col("min_timestamp_ms") >= 0)
    is_open = kept & (F.col("max_timestamp_ms") >= 0) & F.col("min_timestamp_ms").isNull()
    newest = F.max(F.when(has_time, F.col("max_timestamp_ms")))
    oldest = F.min(F.when(has_time, F.col("min_timestamp_ms")))
    return [
        F.count_if(kept).alias("segments"),
        F.coalesce(F.sum(of_kept("size_bytes")), F.lit(0)).alias("size_bytes"),
        F.min(of_kept("base_offset")).alias("oldest_offset"),
        F.when(~F.bool_or(F.coalesce(is_open, F.lit(False))), minus(newest, oldest)).alias(
            "span_ms"
        ),
        F.when(F.bool_and(F.col("other_rules").isNotNull()), words_over_all()).alias("not_decided"),
    ]
