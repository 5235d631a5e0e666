"""What the tables of a warehouse know of replicas, by which one of each partition is chosen."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kafka_segments.engine.tables.catalog import LOGS, METADATA_PARTITIONS
from kafka_segments.engine.tables.delta import Warehouse
from kafka_segments.engine.tables.keys import LOG_KEYS, Transform
from kafka_segments.engine.tables.replicas import PARTITION, KnownReplicas, with_left_over


def known_replicas(tables: Warehouse) -> KnownReplicas:
    """Return what the tables of a warehouse know of replicas."""
    logs = None
    if tables.version(LOGS) is not None:
        logs = tables.read(LOGS, (*LOG_KEYS, "topic_id", "leader_epochs"))
    return KnownReplicas(logs, named_partitions(tables))


def named_partitions(tables: Warehouse) -> DataFrame | None:
    """Return the partitions that the metadata names last, see ``KnownReplicas.named``."""
    if tables.version(METADATA_PARTITIONS) is None:
        return None
    columns = (*PARTITION, "topic_id", "isr", "elr", "until_offset")
    held = tables.read(METADATA_PARTITIONS, columns).where(F.col("until_offset").isNull())
    return held.select(*PARTITION, "topic_id", F.array_union("isr", "elr").alias("in_sync"))


def telling_left_over(tables: Warehouse) -> Transform:
    """Return what adds ``is_left_over`` to rows with the key of a log, see ``with_left_over``."""
    return with_left_over(tables.read(LOGS, (*LOG_KEYS, "topic_id")), named_partitions(tables))


def without_log(named: DataFrame, logs: DataFrame) -> dict[str, list[str]]:
    """Name the partitions of each cluster that the metadata names, and of which there is no log.

    Needs: ``named``: rows of ``named_partitions``; ``logs``: the key of a log.
    """
    lacking = named.select(*PARTITION).join(logs.select(*PARTITION), list(PARTITION), "left_anti")
    found: dict[str, list[str]] = {}
    for cluster, topic, partition in lacking.distinct().orderBy(*PARTITION).collect():
        found.setdefault(cluster, []).append(f"{topic}-{partition}")
    return found
