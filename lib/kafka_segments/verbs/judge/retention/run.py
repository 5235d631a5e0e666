"""Retention: decide over the tables, and keep the decisions as a table."""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, IntegerType, LongType, StringType, StructType

from kafka_segments.engine.derived.configs import KEYS, with_topic_configs
from kafka_segments.engine.derived.known_replicas import telling_left_over
from kafka_segments.engine.derived.logs_in_tables import logs_known
from kafka_segments.engine.derived.topic_configs import (
    ClusterConfigs,
    TopicConfigs,
    kafka_key,
    settings_that_count,
)
from kafka_segments.engine.frames.engines import collected_if_few
from kafka_segments.engine.frames.local_rows import local_rows
from kafka_segments.engine.tables.catalog import LOGS, RETENTION_DECISIONS, SEGMENTS
from kafka_segments.engine.tables.delta import Warehouse
from kafka_segments.engine.tables.keys import LOG_KEYS, SEGMENT_KEYS
from kafka_segments.engine.tables.missing import require_names, require_values
from kafka_segments.engine.tables.run_columns import stamp_of
from kafka_segments.kafka.text.checkpoints import PartitionOffset
from kafka_segments.kafka.text.names import METADATA_TOPIC
from kafka_segments.verbs.judge.retention.decide.decisions import (
    decide_retention,
    with_known_of_log,
    with_log_state,
    with_settings,
)
from kafka_segments.verbs.judge.retention.decide.rules import RetentionRules
from kafka_segments.verbs.judge.retention.decide.what_if import compare_retention, settings_table

_OF_SEGMENTS = (
    *SEGMENT_KEYS,
    *("path", "size_bytes", "valid_bytes", "is_active", "vanished_at", "last_modified_ms"),
    *("next_offset", "min_timestamp_ms", "max_timestamp_ms", "offset_of_max_timestamp"),
    *("largest_timestamp_ms", "largest_timestamp_source", "batch_count"),
    *("damage", "truncated_bytes"),
)
"""What is asked of a segment: each step of a decision costs time for each column there is."""
_OF_LOGS = (*LOG_KEYS, "high_watermark", "log_start_offset")
_REMOTE = (
    StructType()
    .add("topic", StringType())
    .add("partition", IntegerType())
    .add("highest_remote_offset", LongType())
)
_SETTINGS = (
    StructType()
    .add("cluster", StringType())
    .add("broker_id", IntegerType())
    .add("log_dir", StringType())
    .add("topic", StringType())
    .add("partition", IntegerType())
    .add(
        "settings",
        ArrayType(
            StructType()
            .add("name", StringType())
            .add("value", StringType())
            .add("source", StringType())
        ),
    )
)


@dataclass(frozen=True)
class RetentionOptions:
    """What a decision depends on besides the tables. ``now_ms`` is the run's clock.

    Attributes:
        configs: the settings of topics and brokers.
        rules: the rules of a release.
        remote_offsets: the last offset in remote storage, of tiered partitions.
        topics: of these alone; empty: of all.
    """

    configs: TopicConfigs
    rules: RetentionRules
    now_ms: int
    remote_offsets: tuple[PartitionOffset, ...] = ()
    topics: tuple[str, ...] = ()


def run_retention(warehouse: Warehouse, options: RetentionOptions, *, dry_run: bool) -> DataFrame:
    """Decide for every segment of a warehouse; return rows of ``retention_decisions``.

    Raises:
        UsageError: the warehouse has no segments.
    """
    run_id = uuid.uuid4().hex
    decided = (
        segments_to_decide(warehouse, options)
        .transform(decide_retention(now_ms=options.now_ms, rules=options.rules))
        .withColumns(stamp_of(run_id, options.now_ms))
    )
    if dry_run:
        return decided
    return warehouse.keep_run(RETENTION_DECISIONS, decided, run_id)


def run_what_if(
    warehouse: Warehouse, options: RetentionOptions, grid: Sequence[Mapping[str, Any]]
) -> DataFrame:
    """Say what other settings keep; return a row for each topic and combination of settings.

    Raises:
        UsageError: the warehouse has no segments.
    """
    keys = tuple(grid[0])
    rows, columns = settings_table(grid, {key: KEYS[key] for key in keys})
    compare = compare_retention(
        now_ms=options.now_ms,
        rules=options.rules,
        changes=local_rows(warehouse.spark, rows, columns),
        keys=keys,
    )
    return segments_to_decide(warehouse, options).transform(compare)


def run_explain(
    warehouse: Warehouse, options: RetentionOptions, *, topic: str, partition: int
) -> DataFrame:
    """Decide for the segments of one log, on all brokers that have it, oldest first.

    The rows have high_watermark, log_start_offset, largest_timestamp_source, and settings (array of
    name, value, source) besides the columns of ``decide_retention``.

    Raises:
        UsageError: the warehouse has no segments.
    """
    of_log = segments_to_decide(warehouse, options).where(
        (F.col("topic") == topic) & (F.col("partition") == partition)
    )
    of_log = collected_if_few(of_log)
    decide = decide_retention(now_ms=options.now_ms, rules=options.rules)
    replicas = of_log.select(*LOG_KEYS, "is_left_over").distinct().collect()
    settings = [
        (*(row[key] for key in LOG_KEYS), _settings_of(options.configs.of(row["cluster"]), row))
        for row in replicas
    ]
    return (
        of_log.transform(decide)
        .transform(with_known_of_log(of_log))
        .transform(with_settings(local_rows(warehouse.spark, settings, _SETTINGS)))
    )


def _settings_of(configs: ClusterConfigs, log: Row) -> list[dict[str, str]]:
    if log["topic"] == METADATA_TOPIC or log["is_left_over"]:  # the topic's do not hold for it
        return []
    return [
        {"name": kafka_key(key), "value": setting.text, "source": setting.origin}
        for key, setting in settings_that_count(
            configs.resolve(log["topic"], log["broker_id"])
        ).items()
    ]


def segments_to_decide(warehouse: Warehouse, options: RetentionOptions) -> DataFrame:
    """Return the segments that are there, with all columns that ``decide_retention`` needs.

    Raises:
        UsageError: the warehouse has no segments, or none of a topic that is named.
    """
    offsets = options.remote_offsets
    remote = local_rows(warehouse.spark, offsets, _REMOTE) if offsets else None
    segments = warehouse.read(SEGMENTS, _OF_SEGMENTS)
    if options.topics:
        _require_topics(warehouse.root, segments, options.topics)
        segments = segments.where(F.col("topic").isin(*options.topics))
    return (
        segments.transform(with_log_state(warehouse.read(LOGS, _OF_LOGS), remote))
        .transform(telling_left_over(warehouse))
        .transform(with_topic_configs(warehouse.spark, options.configs))
    )


def _require_topics(warehouse: str, segments: DataFrame, topics: Sequence[str]) -> None:
    known, what = logs_known(warehouse), "segments of topic"
    if known is None:
        there = segments.where(F.col("vanished_at").isNull()).select("topic")
        require_values(warehouse, what, topics, there)
    else:
        require_names(warehouse, what, topics, (log.topic for log in known))
