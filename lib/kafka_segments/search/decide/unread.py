"""Take back answers that may lie where the tables end before the segment does."""

from pyspark.sql import Column, DataFrame

from kafka_segments.tables import columns as F
from kafka_segments.tables.keys import LOG_KEYS, Transform
from kafka_segments.wire.moments import EARLIEST, EARLIEST_LOCAL

_UNREAD = (
    *("offset_overflow", "index_full", "too_large"),
    *("changed_while_read", "vanished_while_read", "unreadable"),
)
_ANSWERS = (
    *("kafka_timestamp_ms", "kafka_offset", "kafka_leader_epoch"),
    *("true_timestamp_ms", "true_offset", "difference", "path", "position"),
)


def say_unread(segments: DataFrame) -> Transform:
    """Take back the answers that records missing from the tables could change, and say why.

    An answer below the first such record stays: no missing record can come before it.

    Needs: ``answers.ANSWER``; ``segments``: rows of ``segments``.
    Gives: the same.
    """
    unread = F.broadcast(_first_unread(segments))
    told = {name: F.when(~F.col("_is_taken_back"), F.col(name)) for name in _ANSWERS}
    told["problem"] = F.when(F.col("_is_taken_back"), F.col("_unread.why")).otherwise(
        F.col("problem")
    )
    named = {name: column.alias(name) for name, column in told.items()}

    def transform(answers: DataFrame) -> DataFrame:
        return (
            answers.join(unread, list(LOG_KEYS), how="left")
            .withColumn("_is_taken_back", _is_taken_back())
            .select(*(named.get(name, name) for name in answers.columns))
        )

    return transform


def _first_unread(segments: DataFrame) -> DataFrame:
    """Return of each log the first offset that the tables may lack, and why, as ``_unread``."""
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
    place = F.struct(F.coalesce("next_offset", "base_offset").alias("offset"), why.alias("why"))
    damaged = segments.where(F.col("damage.kind").isin(*_UNREAD))
    return damaged.groupBy(*LOG_KEYS).agg(F.min(place).alias("_unread"))


def _is_taken_back() -> Column:
    is_start = F.col("target_ms").isin(EARLIEST, EARLIEST_LOCAL)
    is_named = (F.col("target_ms") < 0) & ~is_start
    is_behind = F.col("true_offset").isNull() | (F.col("true_offset") >= F.col("_unread.offset"))
    is_known = F.col("_unread").isNull() | F.col("problem").isNotNull()
    return ~is_known & (is_named | (~is_start & is_behind))
