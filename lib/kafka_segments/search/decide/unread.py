"""Answers that may lie where the tables end before the segment does."""

from collections.abc import Callable

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kafka_segments.tables.keys import LOG_KEYS
from kafka_segments.wire.moments import EARLIEST, EARLIEST_LOCAL

_UNREAD = (
    *("offset_overflow", "index_full", "too_large"),
    *("changed_while_read", "vanished_while_read", "unreadable"),
)
_ANSWERS = (
    *("kafka_timestamp_ms", "kafka_offset", "kafka_leader_epoch"),
    *("true_timestamp_ms", "true_offset", "difference", "path", "position"),
)


def say_unread(segments: DataFrame) -> Callable[[DataFrame], DataFrame]:
    """Take back answers that records not in the tables could change, and say why.

    What lies below the first such record stays: nothing behind it can come before it.

    Needs: ``decide.search.ANSWER``; ``segments``: rows of ``segments``.
    Gives: the same.
    """
    why = F.concat_ws(
        "",
        F.col("path"),
        F.lit(": the tables have "),
        F.coalesce(
            F.concat(F.lit("its first "), "valid_bytes", F.lit(" bytes alone")),
            F.lit("nothing of it"),
        ),
        F.lit(": "),
        F.col("damage.message"),
    )
    unread = (
        segments.where(F.col("damage.kind").isin(*_UNREAD))
        .groupBy(*LOG_KEYS)
        .agg(
            F.min(
                F.struct(F.coalesce("next_offset", "base_offset").alias("offset"), why.alias("why"))
            ).alias("_unread")
        )
    )
    is_start = F.col("target_ms").isin(EARLIEST, EARLIEST_LOCAL)
    is_named = (F.col("target_ms") < 0) & ~is_start
    is_behind = F.col("true_offset").isNull() | (F.col("true_offset") >= F.col("_unread.offset"))
    is_taken_back = (
        F.col("_unread").isNotNull()
        & F.col("problem").isNull()
        & (is_named | (~is_start & is_behind))
    )

    def transform(answers: DataFrame) -> DataFrame:
        return (
            answers.join(F.broadcast(unread), list(LOG_KEYS), how="left")
            .withColumn("_is_taken_back", is_taken_back)
            .withColumns(
                {name: F.when(~F.col("_is_taken_back"), F.col(name)) for name in _ANSWERS}
                | {
                    "problem": F.when(F.col("_is_taken_back"), F.col("_unread.why")).otherwise(
                        F.col("problem")
                    )
                }
            )
            .select(*answers.columns)
        )

    return transform
