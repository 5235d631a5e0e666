"""What the metadata log tells a starting broker: its topics, where their replicas lie, settings."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from kafka_segments.kafka.index.log.leader_epochs import are_rising
from kafka_segments.kafka.text.checkpoints import EpochStart

_CHECKPOINT = re.compile(r"([0-9]{20})-([0-9]{10})\.checkpoint", re.ASCII)
_NO_DIRECTORY = ("AAAAAAAAAAAAAAAAAAAAAA", "AAAAAAAAAAAAAAAAAAAAAQ", "AAAAAAAAAAAAAAAAAAAAAg")


class CheckpointId(NamedTuple):
    """A ``.checkpoint`` of the metadata log: the first offset behind it, its last record's epoch.

    Source: Snapshots.parse.
    """

    offset: int
    epoch: int


class AssignedReplica(NamedTuple):
    """A replica that the metadata log gives to a node.

    ``directory_id`` None: to no directory that is named. ``replicas``: of the partition in all.
    """

    topic: str
    partition: int
    topic_id: str
    directory_id: str | None
    replicas: int


@dataclass(frozen=True)
class MetadataFacts:
    """The state that the metadata log has once a start has loaded it.

    Attributes:
        partitions: Replicas' node ids and their directory ids, by topic id and partition.
        topics: Names of topics by their ids.
        configs: Settings of topics, by their names.
        broker_configs: Settings of brokers, by their ids; by an empty text those of all.
        directory_ids: The log directories that each node registered.
        config_set_at: When a setting of a topic was set last, or removed, in ms, by the topic's
            name and the key; what a checkpoint has is not there.
        leader_epochs: Leader epochs of partitions, by topic id and partition.
        ever: Ids of all topics that there ever were; None: not known, as a checkpoint has only
            those that are left.
    """

    partitions: Mapping[tuple[str, int], tuple[tuple[int, ...], tuple[str, ...]]] = field(
        default_factory=dict
    )
    topics: Mapping[str, str] = field(default_factory=dict)
    configs: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    directory_ids: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    broker_configs: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    config_set_at: Mapping[tuple[str, str], int] = field(default_factory=dict)
    leader_epochs: Mapping[tuple[str, int], int] = field(default_factory=dict)
    ever: Set[str] | None = None

    def replica(self, topic_id: str, partition: int, node_id: int) -> AssignedReplica | None:
        """Return the replica of a partition on a node; None: it has none there."""
        found = self.partitions.get((topic_id, partition))
        if found is None or node_id not in found[0]:
            return None
        replicas, directories = found
        own = dict(zip(replicas, directories, strict=False)).get(node_id)
        directory = None if own in _NO_DIRECTORY else own
        return AssignedReplica(self.topics[topic_id], partition, topic_id, directory, len(replicas))

    def of_node(self, node_id: int) -> list[AssignedReplica]:
        """Return all replicas on a node."""
        found = (self.replica(topic_id, number, node_id) for topic_id, number in self.partitions)
        return [replica for replica in found if replica is not None]


class ServedLog(NamedTuple):
    """The log of a partition in a log directory.

    ``epochs``: its ``leader-epoch-checkpoint``. ``read_end`` returns its end offset; None: not
    known.
    """

    folder: str
    topic_id: str
    partition: int
    epochs: Sequence[EpochStart]
    read_end: Callable[[], int | None]

    def later_epoch(self, epoch: int) -> int | None:
        """Return the last leader epoch of the log that is later than one; None: none is.

        Entries that do not rise, or that begin behind the log's end, no broker left: they tell
        nothing.
        """
        later = [entry for entry in self.epochs if entry.epoch > epoch]
        if not later or not are_rising(self.epochs):
            return None
        end = self.read_end()
        there = (one.epoch for one in later if end is None or one.start_offset <= end)
        return max(there, default=None)


def contradicted_by(facts: MetadataFacts, logs: Iterable[ServedLog]) -> str | None:
    """Return which log shows that the metadata log lacks its last records; None: none does.

    A broker writes to a log in a leader epoch once it has read of it in its metadata log.

    Source: ReplicaManager.applyDelta, Partition.makeLeader; a follower with another epoch than its
    leader's is refused (FENCED_LEADER_EPOCH).
    """
    for log in logs:
        known = facts.leader_epochs.get((log.topic_id, log.partition))
        later = None if known is None else log.later_epoch(known)
        if later is not None:
            return (
                f"{log.folder} has leader epoch {later}, and the metadata log gives the"
                f" partition {known}: its last records are missing"
            )
    return None


def voter_ids(voters: Any) -> tuple[int, ...] | None:
    """Return the ids in a list of voters as Kafka's JSON has it; None: it has none."""
    if not isinstance(voters, list):
        return None
    ids = [voter.get("voterId") for voter in voters if isinstance(voter, dict)]
    return tuple(one for one in ids if isinstance(one, int)) or None


def checkpoint_id(name: str) -> CheckpointId | None:
    """Return what a file's name says of a ``.checkpoint``; None: it is none."""
    match = _CHECKPOINT.fullmatch(name)
    return None if match is None else CheckpointId(int(match[1]), int(match[2]))


def begins_anew(newest: CheckpointId | None, *, end: CheckpointId) -> bool:
    """Tell whether a metadata log is deleted, to begin at its newest checkpoint.

    ``end``: the log's end offset and the epoch of its last batch.
    Source: KafkaRaftLog.truncateToLatestSnapshot.
    """
    if newest is None:
        return False
    return newest.epoch > end.epoch or (newest.epoch == end.epoch and newest.offset > end.offset)
