"""Plans made of searches: where to go on in another cluster, where to cut for a restore."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kafka_segments.search.decide.locate import TRUE
from kafka_segments.tables.bounded import minus
from kafka_segments.tables.keys import LOG_KEYS, Transform
from kafka_segments.wire.names import METADATA_TOPIC

PARTITION = ("topic", "partition")
_KRAFTS_OWN = "KRaft's own log: kept whole, a cluster's metadata is not cut by time"


def aim_failover(*, max_latency_ms: int) -> Transform:
    """Tell the timestamps to search in the other cluster.

    1. The search goes back from the timestamp of the last message consumed by the greatest
       latency between the clusters: within it, their order may differ.
    2. Where an unread message is older still, it goes back to that one. So every unread message
       of this cluster stands, in the other, at or after the offset found.
    3. With no message consumed or left, it goes to the oldest unread one.

    Needs: last_timestamp_ms (of the last message consumed; null: none), least_unread_timestamp_ms
        (null: none); any other columns.
    Gives: these, target_ms (null: nothing is known), is_margin_enough.
    Source: KIP-33, use cases.
    """
    last, unread = F.col("last_timestamp_ms"), F.col("least_unread_timestamp_ms")
    by_margin = F.greatest(F.when(last >= 0, minus(last, max_latency_ms)), F.lit(0))
    with_margin = F.when(last >= 0, by_margin)

    def transform(groups: DataFrame) -> DataFrame:
        return groups.withColumn("target_ms", F.least(with_margin, unread)).withColumn(
            "is_margin_enough", F.coalesce(unread >= with_margin, F.lit(True))
        )

    return transform


def plan_restore(segments: DataFrame, logs: DataFrame) -> Transform:
    """Cut each log before its first record later than a moment.

    1. The cut is at the start of that record's batch, as Kafka cuts: records of the batch before it
       go too, ``early_records`` counts their offsets.
    2. A log without such a record is kept whole, and so is KRaft's own: ``problem`` says so.
    3. Needed are the segments up to the cut, and their bytes up to it.

    Needs: rows of ``find_first_records`` for the moment + 1; ``segments``: rows of ``segments``;
        ``logs``: log_start_offset, log_end_offset.
    Gives: the key of a log, last_offset_kept (null: nothing is left), file, cut_position
        (bytes; null: kept whole), early_records, segments_needed, bytes_needed, problem.
    Source: LogSegment.truncateTo.
    """
    is_krafts = F.col("topic") == METADATA_TOPIC
    is_true = (F.col("role") == TRUE) & F.col("found_offset").isNotNull() & ~is_krafts
    record = F.struct(
        F.col("found_offset").alias("offset"),
        F.col("base_offset").alias("segment"),
        F.col("found_batch_offset").alias("batch_offset"),
        "path",
        F.col("found_position").alias("position"),
    )

    def transform(found: DataFrame) -> DataFrame:
        cuts = found.groupBy(*LOG_KEYS).agg(
            F.min(F.when(is_true, record)).alias("_cut"), F.max("problem").alias("problem")
        )
        is_needed = F.col("_cut").isNull() | (F.col("base_offset") <= F.col("_cut.segment"))
        is_cut = F.coalesce(F.col("base_offset") == F.col("_cut.segment"), F.lit(False))
        kept = F.when(is_cut, F.col("_cut.position")).otherwise(F.col("valid_bytes"))
        needed = is_needed & (kept > 0)
        bounds = logs.select(*LOG_KEYS, "log_start_offset", "log_end_offset")
        planned = (
            segments.join(cuts, list(LOG_KEYS), how="left")
            .groupBy(*LOG_KEYS)
            .agg(
                F.first("_cut").alias("_cut"),
                F.first("problem").alias("problem"),
                F.count_if(needed).alias("segments_needed"),
                F.coalesce(F.sum(F.when(needed, kept)), F.lit(0)).alias("bytes_needed"),
                F.max_by(F.when(needed, F.col("path")), F.when(needed, F.col("base_offset"))).alias(
                    "file"
                ),
            )
            .join(bounds, list(LOG_KEYS), how="inner")
        )
        end = F.coalesce("_cut.batch_offset", "log_end_offset")
        return planned.select(
            *LOG_KEYS,
            F.when(end > F.col("log_start_offset"), minus(end, 1)).alias("last_offset_kept"),
            "file",
            F.col("_cut.position").alias("cut_position"),
            F.coalesce(minus("_cut.offset", "_cut.batch_offset"), F.lit(0))
            .cast("long")
            .alias("early_records"),
            "segments_needed",
            "bytes_needed",
            F.when(is_krafts, F.lit(_KRAFTS_OWN)).otherwise(F.col("problem")).alias("problem"),
        )

    return transform
