"""The topic ids and replicas that clusters' metadata logs had at a moment, without Spark."""

from collections.abc import Mapping
from typing import NamedTuple

from kafka_segments.engine.derived.metadata_in_tables import rows_held
from kafka_segments.engine.tables.catalog import METADATA_PARTITIONS, METADATA_TOPICS


class MetadataTopics(NamedTuple):
    """What the metadata log of a cluster says of its topics at a moment.

    ``ids`` are by topic, ``replicas`` (the ids of brokers) by topic and partition.
    """

    cluster: str
    ids: dict[str, str]
    replicas: dict[tuple[str, int], tuple[int, ...]]


def read_metadata_topics(
    warehouse: str, at_offset: Mapping[str, int]
) -> tuple[MetadataTopics, ...]:
    """Return the topics of each cluster that there were at an offset of its metadata log.

    ``warehouse``: URI of the tables; ``at_offset``: as ``clusters_with_metadata`` gives it.

    Raises:
        NoMetadataError: only Spark can read one of the tables.
    """
    found = {cluster: MetadataTopics(cluster, {}, {}) for cluster in sorted(at_offset)}
    of_topics = ("topic", "topic_id")
    for row in rows_held(warehouse, METADATA_TOPICS.name, of_topics, at_offset):
        found[row["cluster"]].ids[row["topic"]] = row["topic_id"]
    of_partitions = ("topic", "partition", "replicas")
    for row in rows_held(warehouse, METADATA_PARTITIONS.name, of_partitions, at_offset):
        partition = row["topic"], row["partition"]
        found[row["cluster"]].replicas[partition] = tuple(row["replicas"])
    return tuple(found.values())
