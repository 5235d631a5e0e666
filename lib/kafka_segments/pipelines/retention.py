"""Retention: decide over the tables, keep the decisions as a table."""

import uuid

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from kafka_segments.decide.retention import LOG, decide_retention
from kafka_segments.settings import Settings
from kafka_segments.spark.tables import LOGS, RETENTION_DECISIONS, SEGMENTS, Warehouse


def run_retention(
    spark: SparkSession, *, warehouse: str, settings: Settings, now_ms: int, dry_run: bool
) -> DataFrame:
    """Decide for every segment of the warehouse; gives rows of ``retention_decisions``.

    Raises:
        UsageError: the warehouse has no segments.
    """
    tables = Warehouse(spark, warehouse)
    logs = tables.read(LOGS).select(*LOG, "high_watermark", "log_start_offset")
    decided = (
        tables.read(SEGMENTS)
        .where(F.col("vanished_at").isNull())
        .join(logs, list(LOG), how="left")
        .transform(
            decide_retention(
                now_ms=now_ms,
                retention_ms=settings.retention_ms,
                retention_bytes=settings.retention_bytes,
                cleanup_policy=settings.cleanup_policy,
            )
        )
        .withColumn("run_id", F.lit(uuid.uuid4().hex))
        .withColumn("decided_at", F.timestamp_millis(F.lit(now_ms)))
    )
    if not dry_run:
        tables.create(RETENTION_DECISIONS)
        tables.append(RETENTION_DECISIONS, decided)
    return decided
