"""What the tables of a warehouse know of replicas, by which one of each partition is chosen."""

from pyspark.sql import DataFrame

from kafka_segments.engine.tables.catalog import LOGS, METADATA_PARTITIONS
from kafka_segments.engine.tables.delta import Warehouse
from kafka_segments.engine.tables.keys import LOG_KEYS, Transform
from kafka_segments.engine.tables.replicas import PARTITION, KnownReplicas, with_left_over
from kafka_segments.engine.tables.replicas_at_hand import named_last


def known_replicas(tables: Warehouse) -> KnownReplicas:
    """Return what the tables of a warehouse know of replicas."""
    logs = None
    if tables.version(LOGS) is not None:
        logs = tables.read(LOGS, (*LOG_KEYS, "topic_id", "leader_epochs"))
    return KnownReplicas(logs, named_partitions(tables))


def named_partitions(tables: Warehouse) -> DataFrame | None:
    """Return rows of ``named_last``; None: the tables have no metadata."""
    if tables.version(METADATA_PARTITIONS) is None:
        return None
    columns = (*PARTITION, "topic_id", "replicas", "isr", "elr", "until_offset")
    return named_last(tables.read(METADATA_PARTITIONS, columns))


def telling_left_over(tables: Warehouse) -> Transform:
    """Return what adds ``is_left_over`` to rows with the key of a log, see ``with_left_over``."""
    return with_left_over(tables.read(LOGS, (*LOG_KEYS, "topic_id")), named_partitions(tables))
