"""What has expired by a run of retention, and is kept because of an older segment."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kafka_segments.engine.tables.decisions import Decision
from kafka_segments.engine.tables.keys import LOG_KEYS, SEGMENT_KEYS, Transform


def still_there(segments: DataFrame) -> Transform:
    """Keep the decisions about segments that are there, by the key of a segment."""
    return lambda decisions: decisions.join(
        segments.select(*SEGMENT_KEYS), list(SEGMENT_KEYS), how="left_semi"
    )


def find_blocked(*, now_ms: int) -> Transform:
    """Sum up by log what has expired, but is kept because of an older segment.

    Needs: rows of ``retention_decisions`` of one run.
    Gives: the key of a log, blocked_by_base_offset, segments, size_bytes.
    """

    def transform(decisions: DataFrame) -> DataFrame:
        is_kept = F.col("decision") == Decision.KEEP
        is_blocked = is_kept & F.col("blocked_by_base_offset").isNotNull()
        return (
            decisions.where(is_blocked & (F.col("expires_at_ms") <= now_ms))
            .groupBy(*LOG_KEYS, "blocked_by_base_offset")
            .agg(F.count("*").alias("segments"), F.sum("size_bytes").alias("size_bytes"))
        )

    return transform
