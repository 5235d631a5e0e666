"""What a start does with the logs of a warehouse, as its last build found them."""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from kafka_segments.tables.keys import LOG_KEYS, Transform
from kafka_segments.wire.names import METADATA_TOPIC


def decide_logs(logs: DataFrame, log_dirs: DataFrame) -> Transform:
    """Return a row for each log: what a start recovers of it.

    The rules are those of ``decide.starts``. Index files and snapshots are taken to be in their
    places, as the tables do not tell of them.

    Needs: rows of ``segments`` that are there; ``logs`` and ``log_dirs``: rows of these tables.
    Gives: the keys of a log, folder_state, recovery_point, is_clean, problem, segments,
        first_recovered_offset, and of what is recovered segments, bytes and batches
        (``recovered_…``; ``kit_recovered_…`` with the recovery point in the last segment).
    """
    whole_log = Window.partitionBy(*LOG_KEYS).rowsBetween(
        Window.unboundedPreceding, Window.unboundedFollowing
    )
    dirs = log_dirs.select(
        *LOG_KEYS[:3], F.col("was_clean_shutdown").alias("is_clean"), F.col("problem")
    )
    noted = logs.select(*LOG_KEYS, "folder_state", "recovery_point")

    def transform(segments: DataFrame) -> DataFrame:
        base, is_metadata = F.col("base_offset"), F.col("topic") == METADATA_TOPIC
        point = F.when(is_metadata, 0).otherwise(F.coalesce("recovery_point", F.lit(0)))
        floor = F.coalesce(F.max(F.when(base <= point, base)).over(whole_log), point)
        is_hard = is_metadata | ~F.col("is_clean")
        last = F.when(is_metadata, floor).otherwise(F.max(base).over(whole_log))
        read = (
            segments.join(noted, list(LOG_KEYS), how="left")
            .join(F.broadcast(dirs), list(LOG_KEYS[:3]), how="left")
            .withColumn("is_clean", F.coalesce("is_clean", F.lit(False)))
            .withColumns({"_read": is_hard & (base >= floor), "_kit": is_hard & (base >= last)})
        )
        return read.groupBy(*LOG_KEYS).agg(
            F.first("folder_state").alias("folder_state"),
            F.first("recovery_point").alias("recovery_point"),
            F.first("is_clean").alias("is_clean"),
            F.first("problem").alias("problem"),
            F.count("*").alias("segments"),
            F.min(F.when(F.col("_read"), base)).alias("first_recovered_offset"),
            *_sums("_read", ""),
            *_sums("_kit", "kit_"),
        )

    return transform


def _sums(is_read: str, prefix: str) -> list[Column]:
    def total(column: str) -> Column:
        return F.coalesce(F.sum(F.when(F.col(is_read), F.col(column))), F.lit(0))

    return [
        F.count_if(is_read).alias(f"{prefix}recovered_segments"),
        total("size_bytes").alias(f"{prefix}recovered_bytes"),
        total("batch_count").alias(f"{prefix}recovered_batches"),
    ]
