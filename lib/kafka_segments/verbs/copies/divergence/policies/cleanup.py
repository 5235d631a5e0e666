"""What is known of topics' cleanup.policy: of configs, and of the history of metadata logs."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

from kafka_segments.engine.derived.metadata_configs import ConfigAtOffset, MetadataConfigs
from kafka_segments.engine.derived.metadata_in_tables import (
    clusters_with_metadata,
    rows_held,
    rows_until,
)
from kafka_segments.engine.derived.topic_configs import ClusterConfigs, TopicConfigs
from kafka_segments.engine.tables.catalog import METADATA_CONFIGS, METADATA_TOPICS
from kafka_segments.kafka.text.names import METADATA_TOPIC
from kafka_segments.settings import Settings

_POLICY, _COMPACT = "cleanup_policy", "compact"
_SETS_POLICY = {"topic": "cleanup.policy", "broker": "log.cleanup.policy"}
POLICIES = tuple(_SETS_POLICY.values())
"""The names of the configs that set policies."""
Topics = Mapping[str, Mapping[str, str]]
Rows = Sequence[Mapping[str, Any]]
_OF_TOPICS = ("topic", "topic_id")
_OF_CONFIGS = ("resource_type", "resource_name", "name", "value")


@dataclass(frozen=True)
class CleanupPolicies:
    """Tells whether a topic's cleanup.policy compacts its logs.

    Attributes:
        configs: the policies of today.
        told: the topics that files of kafka-configs name.
        topics: by cluster the topics that its metadata log has, their names by id.
        once_compact: cluster and topic where the metadata log has had another policy, with compact;
            topic None: so it was for topics without a policy of their own.
    """

    configs: TopicConfigs
    told: frozenset[str] = frozenset()
    topics: Topics = field(default_factory=dict)
    once_compact: frozenset[tuple[str, str | None]] = frozenset()

    @classmethod
    def of_nothing(cls) -> Self:
        """Return what is known without files and tables: of Kafka's own topics."""
        return cls(TopicConfigs.load(Settings()).only((_POLICY,)))

    @classmethod
    def load(cls, configs: TopicConfigs, warehouse: str | None, now_ms: int) -> Self:
        """Return what configs tell, and the history of the metadata logs that they are from.

        Args:
            configs: with the metadata logs of the warehouse as of ``now_ms``.
            warehouse: URI of the tables; None: there are none.
            now_ms: the moment up to which metadata counts, in ms since 1970.

        Raises:
            NoMetadataError: only Spark can read one of the tables.
        """
        told = frozenset(configs.others.topics)
        known = {cluster: own for cluster, own in configs.clusters.items() if cluster}
        policies = cls(replace(configs, clusters=known).only((_POLICY,)), told)
        if warehouse is None or not known:
            return policies
        found = clusters_with_metadata(warehouse, at_ms=now_ms).at_offset
        at_offset = {cluster: found[cluster] for cluster in known.keys() & found.keys()}
        topics = list(rows_held(warehouse, METADATA_TOPICS.name, _OF_TOPICS, at_offset))
        held = rows_until(warehouse, METADATA_CONFIGS.name, _OF_CONFIGS, at_offset)
        return policies._with_history(at_offset, topics, held)

    def with_logs(self, clusters: Iterable[str], topics: Rows, configs: Rows) -> Self:
        """Return the same with what metadata logs at hand tell.

        Args:
            clusters: those whose logs are at hand.
            topics: rows of ``metadata_topics`` that hold still.
            configs: rows of ``metadata_configs``, those that set policies.

        Raises:
            UsageError: a policy that Kafka refuses.
        """
        held: dict[str, list[ConfigAtOffset]] = {cluster: [] for cluster in clusters}
        for row in configs:
            if row["until_offset"] is None:
                config = ConfigAtOffset(**{name: row[name] for name in ConfigAtOffset._fields})
                held[row["cluster"]].append(config)
        logs = [MetadataConfigs(cluster, tuple(own)) for cluster, own in held.items()]
        with_configs = replace(self, configs=self.configs.and_of(logs).only((_POLICY,)))
        return with_configs._with_history(held, topics, configs)

    def _with_history(
        self, clusters: Iterable[str], topics: Rows, configs: Iterable[Mapping[str, Any]]
    ) -> Self:
        """Return the same with topics that are there, and what configs have been."""
        by_id = {cluster: dict(self.topics.get(cluster, {})) for cluster in clusters}
        made_at: dict[tuple[str, str], int] = {}
        for row in topics:
            by_id[row["cluster"]][row["topic_id"]] = row["topic"]
            made_at[row["cluster"], row["topic"]] = row["from_offset"]
        once = {
            (row["cluster"], _topic_of(row))
            for row in configs
            if _sets_policy(row)
            and _COMPACT in (row["value"] or "")
            and not _is_of_earlier_topic(row, made_at)
        }
        return replace(self, topics={**self.topics, **by_id}, once_compact=self.once_compact | once)

    def is_compact(
        self, *, topic: str, topic_id: str | None, cluster: str | None, node_id: int | None
    ) -> bool | None:
        """Tell whether the policy compacts a log, or has done so as far back as metadata tells.

        The metadata log tells of a topic of its cluster by the id, of a log without an id by the
        name. Files tell of the topics that they name, in every cluster. Kafka's own topics are as
        Kafka makes them, if nothing else tells. The metadata log itself is never compacted.

        Args:
            topic: its name.
            topic_id: its id; None: the log has none.
            cluster: the cluster that the log is of, by meta.properties; None: not known.
            node_id: the broker that the log is of; None: not known.

        Returns:
            None: nothing tells.
        """
        if topic == METADATA_TOPIC:
            return False
        configs = self.configs.others if cluster is None else self.configs.of(cluster)
        name = self._told_name(topic, topic_id, cluster, configs)
        if name is None:
            return None
        policy = configs.resolve(name, -1 if node_id is None else node_id)[_POLICY].value
        return _COMPACT in policy or bool({(cluster, name), (cluster, None)} & self.once_compact)

    def _told_name(
        self, topic: str, topic_id: str | None, cluster: str | None, configs: ClusterConfigs
    ) -> str | None:
        """Return the name under which something tells of a log's topic; None: nothing tells."""
        names = {} if cluster is None else self.topics.get(cluster, {})
        if topic_id is not None and topic_id in names:
            return names[topic_id]
        if topic in names.values():
            return topic if topic_id is None else None
        is_told = topic in self.told or topic in configs.internal or _POLICY in configs.given
        return topic if is_told else None


def _sets_policy(row: Mapping[str, Any]) -> bool:
    return bool(row["name"] == _SETS_POLICY.get(row["resource_type"]))


def _topic_of(row: Mapping[str, Any]) -> str | None:
    return row["resource_name"] if row["resource_type"] == "topic" else None


def _is_of_earlier_topic(row: Mapping[str, Any], made_at: Mapping[tuple[str, str], int]) -> bool:
    """Tell whether a config ended before the topic that has its name now was made."""
    made = made_at.get((row["cluster"], row["resource_name"]))
    if row["resource_type"] != "topic" or made is None or row["until_offset"] is None:
        return False
    return bool(row["until_offset"] <= made)
