"""Where the transactions end that a log has open: what read_committed consumers cannot pass."""

from collections.abc import Callable

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from kafka_segments.tables.keys import LOG_KEYS

_BEGIN, _COMMIT = 1, 2  # kinds of ``transaction_steps``; later kinds are markers too
_TAKEN_BACK = (
    *("offset_overflow", "index_full", "invalid_transaction"),
    *("offset_goes_back", "unreadable_cut"),
)


def first_unstable_offsets() -> Callable[[DataFrame], DataFrame]:
    """Tell of each log where its oldest open transaction begins.

    1. A producer's transaction is open from its first BEGIN after its last marker on.
    2. Segments that a recovery refuses or empties change no producer's state.

    Needs: rows of ``segments``, all of a log.
    Gives: the key of a log, first_unstable_offset; no row for a log without an open transaction.
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
            .groupBy(*LOG_KEYS)
            .agg(F.min("_step.offset").alias("first_unstable_offset"))
        )

    return transform
