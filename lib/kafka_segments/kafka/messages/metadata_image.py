"""The state of a cluster as records of ``__cluster_metadata`` make it, one record after another.

Records are given by kind and value, named as in Kafka's message JSON; fields that Kafka's converter
leaves out have their default. Secrets of brokers are not shown, only that they are set. Source:
MetadataDelta, TopicsDelta, TopicDelta, ConfigurationDelta, ClusterDelta, FeaturesDelta,
PartitionRegistration.merge, BrokerRegistration.cloneWith (4.3.1).
"""

import json
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from kafka_segments.kafka.messages.layout import ZERO_UUID
from kafka_segments.kafka.messages.metadata_entries import ACL, Entry, entry_of
from kafka_segments.kafka.text.broker_configs import HIDDEN, is_sensitive

TOPICS, PARTITIONS, CONFIGS = "metadata_topics", "metadata_partitions", "metadata_configs"
BROKERS, FEATURES = "metadata_brokers", "metadata_features"
ENTRIES = "metadata_entries"
TOPIC, BROKER = "topic", "broker"
_RESOURCE_TYPES = {
    2: TOPIC,
    4: BROKER,
    8: "broker_logger",
    16: "client_metrics",
    32: "group",
}
_NO_LEADER_CHANGE = -2
_NO_RECOVERY_CHANGE = -1
_RECOVERY_STATES = {0: "recovered", 1: "recovering"}
_MIGRATING = ZERO_UUID  # DirectoryId.MIGRATING
_KRAFT_VERSION = "kraft.version"  # the quorum keeps it in control records

Key = tuple[Any, ...]
Values = dict[str, Any]


class ImageChange(NamedTuple):
    """What a record does to one row of a table: ``values`` hold from now on; None: the row ends.

    ``is_new``: the values have changed, even if they look the same because a secret is hidden.
    """

    table: str
    key: Key
    values: Values | None
    is_new: bool = False


class MetadataReplayError(Exception):
    """A record that does not fit the state before it; Kafka throws at it."""


class MetadataImage:
    """Topics, partitions, configs, brokers, features, other entries; records change them."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._partitions: dict[str, dict[int, Values]] = {}
        self._configs: dict[tuple[str, str], dict[str, str]] = {}
        self._brokers: dict[int, Values] = {}
        self._acls: set[str] = set()
        self._rules: dict[str, Callable[[Values], Iterator[ImageChange]]] = {
            "TopicRecord": self._topic,
            "RemoveTopicRecord": self._remove_topic,
            "PartitionRecord": self._partition,
            "PartitionChangeRecord": self._change_partition,
            "ClearElrRecord": self._clear_elr,
            "ConfigRecord": self._config,
            "RegisterBrokerRecord": self._register,
            "UnregisterBrokerRecord": self._unregister,
            "FenceBrokerRecord": self._fence,
            "UnfenceBrokerRecord": self._unfence,
            "BrokerRegistrationChangeRecord": self._change_broker,
            "FeatureLevelRecord": _feature,
        }

    def replay(self, kind: str, value: Values) -> Iterator[ImageChange]:
        """Apply a record; yield what it changes. Records of other kinds change nothing here.

        Raises:
            MetadataReplayError: it names a topic, partition, broker or ACL that does not exist.
        """
        rule = self._rules.get(kind)
        if rule is not None:
            yield from rule(value)
        elif (entry := entry_of(kind, value)) is not None:
            yield self._entry(entry)

    def _topic(self, record: Values) -> Iterator[ImageChange]:
        topic_id, name = record["topicId"], record["name"]
        self._names[topic_id] = name
        self._partitions[topic_id] = {}
        yield ImageChange(TOPICS, (topic_id,), {"topic": name, "topic_id": topic_id})

    def _remove_topic(self, record: Values) -> Iterator[ImageChange]:
        topic_id = record["topicId"]
        if topic_id not in self._names:
            raise MetadataReplayError(f"topic {topic_id} is removed, and there is none")
        name = self._names.pop(topic_id)
        for partition in self._partitions.pop(topic_id):
            yield ImageChange(PARTITIONS, (topic_id, partition), None)
        for config in self._configs.pop((TOPIC, name), {}):
            yield ImageChange(CONFIGS, (TOPIC, name, config), None)
        yield ImageChange(TOPICS, (topic_id,), None)

    def _partition(self, record: Values) -> Iterator[ImageChange]:
        topic_id, partition, replicas = record["topicId"], record["partitionId"], record["replicas"]
        if topic_id not in self._names:
            raise MetadataReplayError(f"partition {partition} of topic {topic_id}: no such topic")
        values = {
            "topic": self._names[topic_id],
            "topic_id": topic_id,
            "partition": partition,
            "replicas": replicas,
            "isr": record["isr"],
            "removing_replicas": record["removingReplicas"],
            "adding_replicas": record["addingReplicas"],
            "elr": record.get("eligibleLeaderReplicas") or [],
            "last_known_elr": record.get("lastKnownElr") or [],
            "leader": record["leader"],
            "leader_epoch": record["leaderEpoch"],
            "partition_epoch": record["partitionEpoch"],
            "leader_recovery_state": _RECOVERY_STATES[record.get("leaderRecoveryState", 0)],
            "directories": record.get("directories") or [_MIGRATING] * len(replicas),
        }
        yield self._put_partition(topic_id, partition, values)

    def _change_partition(self, record: Values) -> Iterator[ImageChange]:
        topic_id, partition = record["topicId"], record["partitionId"]
        before = self._partitions.get(topic_id, {}).get(partition)
        if before is None:
            raise MetadataReplayError(
                f"partition {partition} of topic {topic_id} changes, and there is none"
            )
        yield self._put_partition(topic_id, partition, _merged(before, record))

    def _clear_elr(self, record: Values) -> Iterator[ImageChange]:
        name = record.get("topicName", "")
        topic_ids = [known for known, topic in self._names.items() if name in ("", topic)]
        if not topic_ids and name:
            raise MetadataReplayError(f"the ELRs of topic {name} are cleared, and there is none")
        nobody: Values = {"eligibleLeaderReplicas": [], "lastKnownElr": []}
        for topic_id in topic_ids:
            for partition, before in list(self._partitions[topic_id].items()):
                if before["elr"] or before["last_known_elr"]:
                    yield self._put_partition(topic_id, partition, _merged(before, nobody))

    def _put_partition(self, topic_id: str, partition: int, values: Values) -> ImageChange:
        self._partitions[topic_id][partition] = values
        return ImageChange(PARTITIONS, (topic_id, partition), values)

    def _config(self, record: Values) -> Iterator[ImageChange]:
        kind = record["resourceType"]
        resource_type = _RESOURCE_TYPES.get(kind, str(kind))
        resource, name, value = record["resourceName"], record["name"], record["value"]
        configs = self._configs.setdefault((resource_type, resource), {})
        key = (resource_type, resource, name)
        if value is None:
            configs.pop(name, None)
            yield ImageChange(CONFIGS, key, None)
            return
        is_new = configs.get(name) != value
        configs[name] = value
        shown = HIDDEN if resource_type == BROKER and is_sensitive(name) else value
        names = ("resource_type", "resource_name", "name", "value")
        yield ImageChange(CONFIGS, key, dict(zip(names, (*key, shown), strict=True)), is_new)

    def _register(self, record: Values) -> Iterator[ImageChange]:
        yield self._put_broker(
            {
                "node_id": record["brokerId"],
                "broker_epoch": record["brokerEpoch"],
                "incarnation_id": record["incarnationId"],
                "rack": record.get("rack"),
                "endpoints": [_endpoint(endpoint) for endpoint in record["endPoints"]],
                "features": [_range(feature) for feature in record["features"]],
                "log_dirs": record.get("logDirs") or [],
                "cordoned_log_dirs": record.get("cordonedLogDirs") or [],
                "is_fenced": record.get("fenced", True),
                "in_controlled_shutdown": record.get("inControlledShutdown", False),
            }
        )

    def _unregister(self, record: Values) -> Iterator[ImageChange]:
        self._brokers.pop(record["brokerId"], None)
        yield ImageChange(BROKERS, (record["brokerId"],), None)

    def _fence(self, record: Values) -> Iterator[ImageChange]:
        broker = self._broker(record["id"], record["epoch"])
        yield self._put_broker(broker | {"is_fenced": True})

    def _unfence(self, record: Values) -> Iterator[ImageChange]:
        broker = self._broker(record["id"], record["epoch"])
        yield self._put_broker(broker | {"is_fenced": False})

    def _change_broker(self, record: Values) -> Iterator[ImageChange]:
        after = dict(self._broker(record["brokerId"], record["brokerEpoch"]))
        if record.get("fenced", 0) != 0:
            after["is_fenced"] = record["fenced"] == 1
        if record.get("inControlledShutdown", 0) == 1:
            after["in_controlled_shutdown"] = True
        if record.get("logDirs"):
            after["log_dirs"] = record["logDirs"]
        if record.get("cordonedLogDirs") is not None:
            after["cordoned_log_dirs"] = record["cordonedLogDirs"]
        yield self._put_broker(after)

    def _entry(self, entry: Entry) -> ImageChange:
        kind, name, values = entry
        if kind == ACL:
            if values is None and name not in self._acls:
                raise MetadataReplayError(f"ACL {name} is removed, and there is none")
            (self._acls.discard if values is None else self._acls.add)(name)
        if values is None:
            return ImageChange(ENTRIES, (kind, name), None)
        text = json.dumps(values, sort_keys=True)
        return ImageChange(ENTRIES, (kind, name), {"kind": kind, "name": name, "value": text})

    def _broker(self, broker_id: int, epoch: int) -> Values:
        broker = self._brokers.get(broker_id)
        if broker is None:
            raise MetadataReplayError(f"broker {broker_id} changes, and none is registered")
        if broker["broker_epoch"] != epoch:
            raise MetadataReplayError(
                f"broker {broker_id} of epoch {epoch} changes, and it is registered with epoch"
                f" {broker['broker_epoch']}"
            )
        return broker

    def _put_broker(self, values: Values) -> ImageChange:
        self._brokers[values["node_id"]] = values
        return ImageChange(BROKERS, (values["node_id"],), values)


def _merged(before: Values, record: Values) -> Values:
    """Return a partition after a PartitionChangeRecord; fields that the record lacks stay.

    Source: PartitionRegistration.merge.
    """

    def new(field: str, column: str) -> Any:
        value = record.get(field)
        return before[column] if value is None else value

    replicas = new("replicas", "replicas")
    leader = record.get("leader", _NO_LEADER_CHANGE)
    has_leader = leader != _NO_LEADER_CHANGE
    recovery = record.get("leaderRecoveryState", _NO_RECOVERY_CHANGE)
    return before | {
        "replicas": replicas,
        "isr": new("isr", "isr"),
        "removing_replicas": new("removingReplicas", "removing_replicas"),
        "adding_replicas": new("addingReplicas", "adding_replicas"),
        "elr": new("eligibleLeaderReplicas", "elr"),
        "last_known_elr": new("lastKnownElr", "last_known_elr"),
        "leader": leader if has_leader else before["leader"],
        "leader_epoch": _int32(before["leader_epoch"] + has_leader),
        "partition_epoch": _int32(before["partition_epoch"] + 1),
        "leader_recovery_state": before["leader_recovery_state"]
        if recovery == _NO_RECOVERY_CHANGE
        else _RECOVERY_STATES[recovery],
        "directories": new("directories", "directories") or [_MIGRATING] * len(replicas),
    }


def _int32(number: int) -> int:
    """Wrap a number as Java's int does."""
    return (number + 2**31) % 2**32 - 2**31


def _feature(record: Values) -> Iterator[ImageChange]:
    name, level = record["name"], record["featureLevel"]
    if name != _KRAFT_VERSION:
        yield ImageChange(FEATURES, (name,), {"name": name, "level": level} if level else None)


def _endpoint(endpoint: Values) -> Values:
    return {
        "name": endpoint["name"],
        "host": endpoint["host"],
        "port": endpoint["port"],
        "security_protocol": endpoint["securityProtocol"],
    }


def _range(feature: Values) -> Values:
    return {
        "name": feature["name"],
        "min_level": feature["minSupportedVersion"],
        "max_level": feature["maxSupportedVersion"],
    }
