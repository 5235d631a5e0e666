"""Prepare segments for a decision of retention: what is there, and the state of its log."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kafka_segments.tables.keys import LOG_KEYS, Transform


def with_log_state(logs: DataFrame, remote: DataFrame) -> Transform:
    """Keep the segments that are there, and add what is known of their logs.

    An active segment counts with its valid bytes: a broker's recovery cuts off what follows them.

    Needs: rows of ``segments``; ``logs``: rows of ``logs``; ``remote``: topic, partition,
        highest_remote_offset.
    Gives: the same, high_watermark, log_start_offset, highest_remote_offset (null: not known).
    """
    valid = F.coalesce("valid_bytes", "size_bytes")
    size = F.when(F.col("is_active"), valid).otherwise(F.col("size_bytes"))
    known = logs.select(*LOG_KEYS, "high_watermark", "log_start_offset")

    def transform(segments: DataFrame) -> DataFrame:
        return (
            segments.where(F.col("vanished_at").isNull())
            .withColumn("size_bytes", size)
            .join(known, list(LOG_KEYS), how="left")
            .join(F.broadcast(remote), ["topic", "partition"], how="left")
        )

    return transform
