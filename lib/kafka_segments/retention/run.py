"""Retention: decide over the tables, keep the decisions as a table."""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from kafka_segments.retention.decide.deletion import decide_retention
from kafka_segments.retention.decide.rules import RetentionRules
from kafka_segments.retention.decide.what_if import TODAY, compare_retention
from kafka_segments.tables.catalog import LOGS, RETENTION_DECISIONS, SEGMENTS
from kafka_segments.tables.configs import KEYS, with_topic_configs
from kafka_segments.tables.delta import Warehouse
from kafka_segments.tables.keys import LOG_KEYS
from kafka_segments.topic_configs import TopicConfigs
from kafka_segments.wire.checkpoints import PartitionOffset


@dataclass(frozen=True)
class RetentionOptions:
    """What a decision depends on besides the tables; ``now_ms`` is the run's clock."""

    warehouse: str
    configs: TopicConfigs
    rules: RetentionRules
    now_ms: int
    remote_offsets: tuple[PartitionOffset, ...] = ()


def run_retention(spark: SparkSession, options: RetentionOptions, *, dry_run: bool) -> DataFrame:
    """Decide for every segment of the warehouse; gives rows of ``retention_decisions``.

    Raises:
        UsageError: the warehouse has no segments.
    """
    decided = (
        segments_to_decide(spark, options)
        .transform(decide_retention(now_ms=options.now_ms, rules=options.rules))
        .withColumn("run_id", F.lit(uuid.uuid4().hex))
        .withColumn("decided_at", F.timestamp_millis(F.lit(options.now_ms)))
    )
    if not dry_run:
        tables = Warehouse(spark, options.warehouse)
        tables.create(RETENTION_DECISIONS)
        tables.append(RETENTION_DECISIONS, decided)
    return decided


def segments_to_decide(spark: SparkSession, options: RetentionOptions) -> DataFrame:
    """Give the segments that are there, with all that retention asks of them.

    A broker's recovery cuts the end off that is no batch, so an active segment counts with
    its valid bytes.

    Raises:
        UsageError: the warehouse has no segments.
    """
    tables = Warehouse(spark, options.warehouse)
    logs = tables.read(LOGS).select(*LOG_KEYS, "high_watermark", "log_start_offset")
    remote = spark.createDataFrame(
        [tuple(found) for found in options.remote_offsets],
        "topic string, partition int, highest_remote_offset long",
    )
    valid = F.coalesce("valid_bytes", "size_bytes")
    return (
        tables.read(SEGMENTS)
        .where(F.col("vanished_at").isNull())
        .withColumn("size_bytes", F.when(F.col("is_active"), valid).otherwise(F.col("size_bytes")))
        .join(logs, list(LOG_KEYS), how="left")
        .join(F.broadcast(remote), ["topic", "partition"], how="left")
        .transform(with_topic_configs(spark, options.configs))
    )


def compare_settings(
    spark: SparkSession, options: RetentionOptions, grid: Sequence[Mapping[str, Any]]
) -> DataFrame:
    """Give one row a topic and combination of settings: what is left, and what today's leave.

    Raises:
        UsageError: the warehouse has no segments.
    """
    keys = tuple(grid[0])
    names = [" ".join(f"{key}={row[key]}" for key in keys) for row in grid]
    values = [(name, *(row[key] for key in keys)) for name, row in zip(names, grid, strict=True)]
    fields = [T.StructField("setting", T.StringType())]
    fields += [T.StructField(f"_new_{key}", KEYS[key]) for key in keys]
    changes = spark.createDataFrame([(TODAY, *(None for _ in keys)), *values], T.StructType(fields))
    compare = compare_retention(
        now_ms=options.now_ms, rules=options.rules, changes=changes, keys=keys
    )
    return segments_to_decide(spark, options).transform(compare)


def explain_log(
    spark: SparkSession, options: RetentionOptions, *, topic: str, partition: int
) -> DataFrame:
    """Decide for the segments of one log, on all brokers that have it, oldest first.

    Adds high_watermark, log_start_offset and largest_timestamp_source to the decisions.

    Raises:
        UsageError: the warehouse has no segments.
    """
    of_log = segments_to_decide(spark, options).where(
        (F.col("topic") == topic) & (F.col("partition") == partition)
    )
    known = ("high_watermark", "log_start_offset", "largest_timestamp_source")
    return (
        of_log.transform(decide_retention(now_ms=options.now_ms, rules=options.rules))
        .join(
            of_log.select(*LOG_KEYS, "base_offset", *known), [*LOG_KEYS, "base_offset"], how="inner"
        )
        .orderBy(*LOG_KEYS, "base_offset")
    )
