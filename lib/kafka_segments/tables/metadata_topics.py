"""The topic ids and replicas that a cluster's metadata log had at a moment, without Spark."""

from typing import NamedTuple

from kafka_segments.tables.catalog import METADATA_PARTITIONS, METADATA_TOPICS
from kafka_segments.tables.metadata_configs import cluster_with_metadata, rows_held


class MetadataTopics(NamedTuple):
    """What the metadata log of a cluster says of its topics at a moment.

    ``ids`` are by topic, ``replicas`` (the ids of brokers) by topic and partition.
    """

    cluster: str
    ids: dict[str, str]
    replicas: dict[tuple[str, int], tuple[int, ...]]


def read_metadata_topics(warehouse: str, *, at_ms: int) -> MetadataTopics | None:
    """Return the topics that there were at a moment; None: the warehouse has no metadata.

    ``warehouse``: URI of the tables.

    Raises:
        NoMetadataConfigsError: several clusters have metadata there, the history begins later, or
            a table is too large to be read without Spark.
    """
    cluster = cluster_with_metadata(warehouse, at_ms=at_ms)
    if cluster is None:
        return None
    topics = rows_held(warehouse, METADATA_TOPICS.name, ("topic", "topic_id"), at_ms=at_ms)
    ids = {row["topic"]: row["topic_id"] for row in topics}
    columns = ("topic", "partition", "replicas")
    partitions = rows_held(warehouse, METADATA_PARTITIONS.name, columns, at_ms=at_ms)
    replicas = {(row["topic"], row["partition"]): tuple(row["replicas"]) for row in partitions}
    return MetadataTopics(cluster, ids, replicas)
