"""The index settings of each topic, on which the bytes of its index files depend."""

from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

from kafka_segments.engine.derived.topic_configs import TopicConfigs
from kafka_segments.kafka.index.segment.recovery_options import RecoveryOptions

SIZES = ("index_interval_bytes", "segment_index_bytes")


class IndexSizes(NamedTuple):
    """Kafka's index.interval.bytes and segment.index.bytes of a topic."""

    index_interval_bytes: int
    segment_index_bytes: int

    @property
    def text(self) -> str:
        """Return them as a fingerprint has them; `roll` reads them there."""
        return "/".join(map(str, self))


class TopicSizes:
    """Tells the index settings of a topic on a broker; a task gets what is set of them alone.

    A log that is left over from a deleted topic has those of the topic of its name now: so loads
    it a broker, before it looks at its topic id and renames it.

    Source: LogManager.loadLog, fetchTopicConfigOverrides (4.3.1).
    """

    def __init__(self, configs: TopicConfigs) -> None:
        self.configs = configs.only(SIZES)
        self._found: dict[tuple[str, int, str], IndexSizes] = {}

    @property
    def vary(self) -> bool:
        """Whether some topic, broker or cluster has settings of its own."""
        clusters = (self.configs.others, *self.configs.clusters.values())
        of_all = {tuple(cluster.below_brokers()[name] for name in SIZES) for cluster in clusters}
        own = (
            any((*cluster.of_topics().values(), *cluster.brokers.values())) for cluster in clusters
        )
        return len(of_all) > 1 or any(own)

    def of(self, cluster: str, broker_id: int, topic: str) -> IndexSizes:
        """Return the settings that hold for a topic on a broker."""
        key = cluster, broker_id, topic
        if key not in self._found:
            settings = self.configs.of(cluster).resolve(topic, broker_id)
            self._found[key] = IndexSizes(*(settings[name].value for name in SIZES))
        return self._found[key]


def recovery_of(
    recovery: RecoveryOptions, sizes: TopicSizes | None, cluster: str, broker_id: int, topic: str
) -> RecoveryOptions:
    """Return how segments of a topic are recovered: with its index settings, where they count."""
    if sizes is None:
        return recovery
    return replace(recovery, **sizes.of(cluster, broker_id, topic)._asdict())


def unknown_topics(
    configs: TopicConfigs, topics: Iterable[tuple[str, str]]
) -> list[tuple[str, str]]:
    """Return the clusters and topics whose index settings nothing tells.

    A cluster's metadata log tells of all its topics, a file of kafka-configs of those that it
    names, and both settings given for all topics tell of all.
    """
    if set(SIZES) <= configs.others.given.keys():
        return []
    return [
        (cluster, topic)
        for cluster, topic in topics
        if cluster not in configs.clusters and topic not in configs.others.topics
    ]
