"""What the tables of a warehouse know of replicas, by which one of each partition is chosen."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

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


def known_replicas(tables: Warehouse) -> KnownReplicas:
    """Return what the tables of a warehouse know of replicas."""
    logs = lost = None
    if tables.version(LOGS) is not None:
        logs = tables.read(LOGS, (*LOG_KEYS, "topic_id", "leader_epochs"))
        if tables.version(SEGMENTS) is not None:
            lost = _lost_records(tables)
    return KnownReplicas(logs, named_partitions(tables), lost)


def _lost_records(tables: Warehouse) -> DataFrame:
    is_kafkas = F.col("topic").isin(*COMPACTED_BY_KAFKA, *NEVER_COMPACTED)
    segments = tables.read(SEGMENTS, (*READ_OF_SEGMENTS, "vanished_at")).where(is_kafkas)
    logs = tables.read(LOGS, READ_OF_LOGS)
    return segments.where("vanished_at IS NULL").transform(lost_records(logs))


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
