"""Whether a log's folder may go: what speaks for it, never more than was looked at.

1. The metadata log says whose the folder is, by its topic id: of a topic that is served, of one
   that is deleted, of a partition that has moved away. Without either it is not known.
2. Another copy among the folders given has all of it, where it begins no later and ends no
   earlier. That is of offsets alone: `divergence` holds the records against each other.

Source: LogManager.isStrayReplica, BrokerMetadataPublisher (4.3.1).
"""

from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple

from kafka_segments.kafka.broker_rules.start.metadata_facts import MetadataFacts
from kafka_segments.kafka.text.names import FolderState, PartitionFolder

_LACKS_END = "its last records may be missing"


class MayGo(StrEnum):
    """What is known of a folder that somebody would remove."""

    IN_USE = "in use"
    BY_ITSELF = "goes by itself"
    NO_TOPIC = "no topic of its id"
    MOVED = "no replica any more"
    NOT_KNOWN = "not known"


class ClusterFacts(NamedTuple):
    """What the metadata log of a cluster says at its end.

    ``facts`` None: not known, ``unknown`` says why. ``end``: the offset that it was read up to.
    """

    facts: MetadataFacts | None
    end: int = 0
    unknown: str = "no metadata log, __cluster_metadata-0, is among the folders given"


class Reach(NamedTuple):
    """The offsets of a log: the first one, and the one behind the last; None: not known."""

    first: int
    end: int | None


class LogCopy(NamedTuple):
    """Another folder of the same partition: where, and its offsets."""

    path: str
    reach: Reach


class FolderFacts(NamedTuple):
    """A log's folder. ``topic_id`` None: not known, ``no_id`` says why."""

    partition: PartitionFolder
    topic_id: str | None
    no_id: str
    node_id: int | None
    reach: Reach


class Verdict(NamedTuple):
    """What is known of a folder, and the evidence in words."""

    may_go: MayGo
    why: str


def judge_folder(folder: FolderFacts, cluster: ClusterFacts, copies: Iterable[LogCopy]) -> Verdict:
    """Say what speaks for or against the removal of a log's folder."""
    if folder.partition.state == FolderState.DELETE:
        return Verdict(MayGo.BY_ITSELF, "marked -delete: its broker removes it")
    verdict = _by_metadata(folder, cluster)
    if verdict.may_go == MayGo.IN_USE:
        return verdict
    return verdict._replace(why=f"{verdict.why}; {_of_copies(folder.reach, copies)}")


def _by_metadata(folder: FolderFacts, cluster: ClusterFacts) -> Verdict:
    if folder.topic_id is None:
        return Verdict(MayGo.NOT_KNOWN, folder.no_id)
    if cluster.facts is None:
        return Verdict(MayGo.NOT_KNOWN, cluster.unknown)
    partition, facts = folder.partition, cluster.facts
    name = facts.topics.get(folder.topic_id)
    as_of = f"in the metadata log, up to offset {cluster.end}"
    if name is not None and (folder.topic_id, partition.partition) not in facts.partitions:
        return Verdict(MayGo.NOT_KNOWN, f"topic {name} has no such partition {as_of}: {_LACKS_END}")
    is_new = facts.ever is not None and folder.topic_id not in facts.ever
    if is_new and partition.state != FolderState.STRAY:
        why = f"topic id {folder.topic_id} was never {as_of}: {_LACKS_END}"
        return Verdict(MayGo.NOT_KNOWN, f"{why}, or the folder is another cluster's")
    if name is None:
        return Verdict(MayGo.NO_TOPIC, f"no topic has id {folder.topic_id} {as_of}")
    if name != partition.topic:
        return Verdict(MayGo.NOT_KNOWN, f"topic id {folder.topic_id} is that of {name} {as_of}")
    if folder.node_id is None:
        return Verdict(MayGo.NOT_KNOWN, "no meta.properties says which node's it is")
    if facts.replica(folder.topic_id, partition.partition, folder.node_id) is None:
        return Verdict(MayGo.MOVED, f"node {folder.node_id} has no replica of it {as_of}")
    if partition.state == FolderState.STRAY:
        why = f"marked -stray, and node {folder.node_id} is to have a replica {as_of}"
        return Verdict(MayGo.NOT_KNOWN, why)
    return Verdict(MayGo.IN_USE, f"a replica of node {folder.node_id} {as_of}")


def _of_copies(reach: Reach, copies: Iterable[LogCopy]) -> str:
    """Say which other copy has all offsets of a log."""
    if reach.end is None:
        return "where it ends is not known"
    if reach.first == reach.end:
        return "it has no offsets"
    offsets = f"offsets {reach.first} to {reach.end - 1}"
    for copy in copies:
        if copy.reach.end is None or copy.reach.first > reach.first or copy.reach.end < reach.end:
            continue
        return f"{copy.path} has its {offsets}, too, by both ends (`divergence` compares records)"
    return f"no other folder given has all of its {offsets}"
