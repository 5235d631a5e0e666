"""What the tables of a warehouse know of replicas, by which one of each partition is chosen."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kafka_segments.engine.derived.described_logs import describe_logs
from kafka_segments.engine.derived.lost_records import (
    READ_OF_LOGS,
    READ_OF_SEGMENTS,
    lost_records,
)
from kafka_segments.engine.derived.replicas import PARTITION, KnownReplicas, with_left_over
from kafka_segments.engine.derived.replicas_at_hand import named_last
from kafka_segments.engine.tables.catalog import LOGS, METADATA_PARTITIONS, SEGMENTS
from kafka_segments.engine.tables.delta import Warehouse
from kafka_segments.engine.tables.keys import LOG_KEYS, Transform
from kafka_segments.kafka.broker_rules.gaps import COMPACTED_BY_KAFKA, NEVER_COMPACTED

_OF_LOGS = ("topic_id", "leader_epochs", "high_watermark")


def known_replicas(tables: Warehouse) -> KnownReplicas:
    """Return what the tables of a warehouse know of replicas."""
    named = named_partitions(tables)
    if tables.version(LOGS) is None:
        return KnownReplicas(named=named)
    logs = tables.read(LOGS, tuple(dict.fromkeys((*LOG_KEYS, *_OF_LOGS, *READ_OF_LOGS))))
    if tables.version(SEGMENTS) is None:
        return KnownReplicas(logs, named)
    columns = (*READ_OF_SEGMENTS, "leader_epochs", "vanished_at")
    is_kafkas = F.col("topic").isin(*COMPACTED_BY_KAFKA, *NEVER_COMPACTED)
    segments = tables.read(SEGMENTS, columns).where(is_kafkas & F.col("vanished_at").isNull())
    lost, built = (segments.transform(rule(logs)) for rule in (lost_records, describe_logs))
    return KnownReplicas(logs, named, lost, built)


def named_partitions(tables: Warehouse) -> DataFrame | None:
    """Return rows of ``named_last``; None: the tables have no metadata."""
    if tables.version(METADATA_PARTITIONS) is None:
        return None
    columns = (*PARTITION, "topic_id", "replicas", "isr", "elr", "until_offset")
    return named_last(tables.read(METADATA_PARTITIONS, columns))


def without_left_over(tables: Warehouse) -> Transform:
    """Return what leaves out the rows of logs that are left over, see ``left_over``.

    Needs: the key of a log.
    """
    if tables.version(LOGS) is None:
        return lambda rows: rows
    telling = telling_left_over(tables)
    return lambda rows: rows.transform(telling).where("NOT is_left_over").drop("is_left_over")


def telling_left_over(tables: Warehouse) -> Transform:
    """Return what adds ``is_left_over`` to rows with the key of a log, see ``with_left_over``."""
    return with_left_over(tables.read(LOGS, (*LOG_KEYS, "topic_id")), named_partitions(tables))
