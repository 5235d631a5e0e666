"""Up to where consumers can read logs, and which transactions are open in them."""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from kafka_segments.engine.tables.keys import LOG_KEYS, Transform

_BEGIN, _COMMIT = 1, 2  # kinds of ``transaction_steps``; later kinds are markers too
_TAKEN_BACK = (
    *("offset_overflow", "index_full", "invalid_transaction"),
    *("offset_goes_back", "unreadable_cut"),
)


def open_transactions() -> Transform:
    """Find the transactions that are open at the end of each log.

    1. A producer's transaction is open from its first BEGIN after its last marker on.
    2. Segments that recovery refuses or empties do not change the state of any producer.

    Needs: rows of ``segments``, all of a log.
    Gives: the key of a log, producer_id, first_offset, base_offset (of the segment in which the
        transaction begins), first_position (byte of it at which its first batch begins).
    Source: ProducerStateManager.firstUnstableOffset, ProducerAppendInfo.
    """
    order = F.struct("base_offset", "_place")
    is_marker = F.col("_step.kind") >= _COMMIT
    of_producer = Window.partitionBy(*LOG_KEYS, "_step.producer_id")
    ended = F.max(F.when(is_marker, order)).over(of_producer)
    is_open = (F.col("_step.kind") == _BEGIN) & (
        F.col("_ended").isNull() | (order > F.col("_ended"))
    )

    def transform(segments: DataFrame) -> DataFrame:
        is_taken_back = F.coalesce(F.col("damage.kind").isin(*_TAKEN_BACK), F.lit(False))
        steps = segments.where(~is_taken_back).select(
            *LOG_KEYS, "base_offset", F.posexplode("transaction_steps").alias("_place", "_step")
        )
        return (
            steps.withColumn("_ended", ended)
            .where(is_open)
            .groupBy(*LOG_KEYS, F.col("_step.producer_id").alias("producer_id"))
            .agg(F.min(F.struct("_step.offset", "base_offset", "_step.position")).alias("_first"))
            .select(
                *LOG_KEYS,
                "producer_id",
                F.col("_first.offset").alias("first_offset"),
                F.col("_first.base_offset").alias("base_offset"),
                F.col("_first.position").alias("first_position"),
            )
        )

    return transform


def first_unstable_offsets() -> Transform:
    """Find the offset at which the oldest open transaction of each log begins.

    Needs: rows of ``segments``, all of a log.
    Gives: the key of a log, first_unstable_offset; no row for a log without an open transaction.
    """

    def transform(segments: DataFrame) -> DataFrame:
        opened = segments.transform(open_transactions()).groupBy(*LOG_KEYS)
        return opened.agg(F.min("first_offset").alias("first_unstable_offset"))

    return transform


def with_visible_end(unstable: DataFrame | None, *, has_checkpointed_end: bool) -> Transform:
    """Add the offset from which on consumers cannot read.

    1. With ``unstable``, rows of ``first_unstable_offsets``: the last stable offset. It is the
       beginning of the oldest open transaction, but not below the log start offset; the log's end
       where no transaction is open.
    2. With ``has_checkpointed_end``: the high watermark, where it is known and below the end.
    3. Otherwise: the log's end.

    Needs: the key of a log, log_start_offset, log_end_offset, high_watermark (long).
    Gives: the same and last_visible_offset (exclusive).
    Source: UnifiedLog.lastStableOffset, Partition.fetchOffsetForTimestamp.
    """
    start, end = F.col("log_start_offset"), F.col("log_end_offset")
    first_unstable = F.col("first_unstable_offset")

    def transform(logs: DataFrame) -> DataFrame:
        if unstable is not None:
            stable = F.when(first_unstable.isNotNull(), F.greatest(first_unstable, start))
            joined = logs.join(unstable, list(LOG_KEYS), how="left")
            return joined.withColumn("last_visible_offset", F.least(end, stable)).drop(
                "first_unstable_offset"
            )
        visible: Column = end
        if has_checkpointed_end:
            visible = F.least(end, F.coalesce(F.col("high_watermark"), end))
        return logs.withColumn("last_visible_offset", visible)

    return transform
