"""Decisions about single records of ``__consumer_offsets``: their bytes, what the cleaner keeps.

Rows are of one replica: each broker's cleaner has worked on its own.
"""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from kafka_segments.engine.derived.internal_current import group_of_key, is_control, next_marker
from kafka_segments.engine.tables.keys import LOG_KEYS
from kafka_segments.engine.tables.long_arithmetic import minus
from kafka_segments.kafka.messages import control

LIVE, SUPERSEDED, TOMBSTONE = "live", "superseded", "tombstone"
_FILE = (*LOG_KEYS, "file")


def with_sizes(records: DataFrame) -> DataFrame:
    """Add the bytes that each record takes on the disk: an equal share of its batch's.

    An empty batch, which the cleaner may leave, has no row: its bytes are added to the batch before
    it.

    Needs: rows of ``internal_records`` with size_bytes (``with_file_facts``).
    Gives: the same, and record_bytes (double).
    """
    in_file = Window.partitionBy(*_FILE).orderBy("batch_position")
    end = F.coalesce(F.lead("batch_position").over(in_file), F.col("_size"))
    batches = (
        records.groupBy(*_FILE, "batch_position")
        .agg(F.count("*").alias("_rows"), F.first("size_bytes").alias("_size"))
        .withColumn("record_bytes", minus(end, "batch_position") / F.col("_rows"))
        .select(*_FILE, "batch_position", "record_bytes")
    )
    return records.join(batches, [*_FILE, "batch_position"], how="left")


def with_fates(records: DataFrame) -> DataFrame:
    """Add to each record what the cleaner does with it, and its group.

    1. A record of a transaction that was aborted is *superseded*: the cleaner removes it, and it
       supersedes nothing.
    2. Of the others the last of a key is *live*, or a *tombstone*; those before are *superseded*.

    Needs: rows of ``internal_records``.
    Gives: the same, and fate (null: it is a control record or cannot be read), group_id (null: the
        key names none).
    Source: Cleaner.buildOffsetMap, Cleaner.shouldRetainRecord, CleanedTransactionMetadata.
    """
    is_record = F.coalesce(F.col("kind").isNotNull() & ~is_control(), F.lit(False))
    is_aborted = (F.col("producer_id") >= 0) & (next_marker() == control.ABORT)
    is_aborted = F.coalesce(is_aborted, F.lit(False))
    of_key = Window.partitionBy(*LOG_KEYS, "_key", "_counts").orderBy(F.desc("offset"))
    fate = (
        F.when(~is_record, F.lit(None))
        .when(~F.col("_counts") | (F.row_number().over(of_key) > 1), SUPERSEDED)
        .when(F.col("is_tombstone"), TOMBSTONE)
        .otherwise(LIVE)
    )
    return (
        records.withColumn("_counts", is_record & ~is_aborted)
        .withColumn("_key", F.struct("key_version", F.coalesce("key_json", F.hex("key"))))
        .withColumn("fate", fate)
        .withColumn("group_id", group_of_key())
        .drop("_counts", "_key")
    )
