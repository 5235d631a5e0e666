"""Judge the folders of log directories: which may go, by what is read of them and of metadata."""

import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from kafka_segments.errors import (
    FileChangedError,
    NoFolderError,
    SourceError,
    UnreadableObjectError,
)
from kafka_segments.files.folders.source_folder import entries_of
from kafka_segments.files.node.metadata_log import read_metadata_log
from kafka_segments.files.node.start_reader import read_text
from kafka_segments.files.segments.segment_ends import read_segment_end
from kafka_segments.files.storage.files import Place, first_line, place
from kafka_segments.files.storage.local_folder import FileEntry, as_text, is_text
from kafka_segments.files.storage.uris import join_uri
from kafka_segments.kafka.broker_rules.foreign_files import foreign_file
from kafka_segments.kafka.broker_rules.start.facts import Parsed, StartLog
from kafka_segments.kafka.broker_rules.start.metadata_facts import ServedLog, contradicted_by
from kafka_segments.kafka.broker_rules.start.state import MetadataStart, NodeFacts
from kafka_segments.kafka.text import checkpoints
from kafka_segments.kafka.text.names import METADATA_TOPIC, FolderState, PartitionFolder
from kafka_segments.verbs.find.disk.decide.verdicts import (
    ClusterFacts,
    FolderFacts,
    LogCopy,
    MayGo,
    Reach,
    Verdict,
    judge_folder,
)

_ERRORS = (OSError, SourceError, FileChangedError, UnreadableObjectError)
_NOT_WHOLE = "not all that lies in it could be looked at"
_LOST_AND_FOUND = "lost+found"
_METADATA_FOLDER = f"{METADATA_TOPIC}-0"


class FoundFolder(NamedTuple):
    """A folder in a log directory.

    Attributes:
        log_dir: The log directory.
        name: The folder's name.
        partition: The partition that its name says; None: it is no log.
        used_bytes: All that lies in it.
        first_base: Base offset of its first segment; None: it has none.
        last_base: Of its last one; -1: it has none.
        is_whole: All that lies in it was looked at.
    """

    log_dir: str
    name: str
    partition: PartitionFolder | None
    used_bytes: int
    first_base: int | None
    last_base: int
    is_whole: bool = True

    @property
    def is_served(self) -> bool:
        """Tell whether its name is that of a log that a broker serves."""
        return self.partition is not None and self.partition.state == FolderState.LIVE


class JudgedFolder(NamedTuple):
    """A folder that may have to go, or may not: the verdict and its evidence.

    ``is_unasked``: a log like any that is served, and nothing at hand says which logs are.
    """

    folder: FoundFolder
    verdict: Verdict
    is_unasked: bool = False


class DirFacts(NamedTuple):
    """Whose a log directory is, by its meta.properties; None: that does not say it."""

    cluster: str | None = None
    node_id: int | None = None
    directory_id: str | None = None


class AlreadyRead(NamedTuple):
    """What was read of the same directories for another question, and is not read again.

    Metadata logs by their log directory, logs by log directory and folder.
    """

    metadata: Mapping[str, MetadataStart]
    logs: Mapping[tuple[str, str], StartLog]


NOTHING_READ = AlreadyRead({}, {})


def read_for_starts(nodes: Iterable[NodeFacts]) -> AlreadyRead:
    """Return what was read to decide the starts of nodes."""
    metadata: dict[str, MetadataStart] = {}
    logs: dict[tuple[str, str], StartLog] = {}
    for node in nodes:
        own = next((one.uri for one in node.dirs if one.metadata_folder), None)
        if own is not None:
            metadata[own] = node.metadata
        logs |= {(one.uri, log.folder): log for one in node.dirs for log in one.logs}
    return AlreadyRead(metadata, logs)


def judge_folders(
    log_dirs: Sequence[str], folders: Sequence[FoundFolder], read: AlreadyRead = NOTHING_READ
) -> tuple[list[JudgedFolder], list[str]]:
    """Judge folders; those that a broker uses are left out. ``read``: what need not be read again.

    Where no metadata log is at hand, or no node id, that is not known of any. Return also why a
    metadata log that is there does not tell.
    """
    dirs = {log_dir: read_dir_facts(log_dir) for log_dir in log_dirs}
    clusters = _read_clusters(dirs, read.metadata)
    reader = _Reader(dirs, clusters, folders, read.logs)
    reader.refuse_older()
    judged = []
    for folder in folders:
        if folder.partition is None:
            judged.append(JudgedFolder(folder, _strange(folder)))
            continue
        if folder.partition.topic == METADATA_TOPIC:
            continue
        verdict = reader.judge(folder, folder.partition)
        if verdict.may_go == MayGo.IN_USE:
            continue
        is_unknown = folder.is_served and verdict.may_go == MayGo.NOT_KNOWN
        is_unasked = is_unknown and not reader.knows_replicas(folder)
        judged.append(JudgedFolder(folder, verdict, is_unasked))
    judged.sort(key=lambda one: (one.folder.log_dir, -one.folder.used_bytes))
    unknown = [
        f"which folders are of topics that there are, is not known: {facts.unknown}"
        for facts in clusters.values()
        if facts.facts is None
    ]
    return judged, unknown


def _strange(folder: FoundFolder) -> Verdict:
    """Say what a folder is that is no log."""
    known = foreign_file(folder.name, "")
    if folder.name == _LOST_AND_FOUND:
        what = "the file system's own: a broker does not start with it in a log directory"
    elif known is not None:
        what = f"{known.what}: {known.step}"
    else:
        what = "no <topic>-<partition>: a broker does not start with it in a log directory"
    return Verdict(MayGo.NOT_KNOWN, what)


class _Reader:
    """Reads what a verdict needs of folders, and no more of a file than that."""

    def __init__(
        self,
        dirs: dict[str, DirFacts],
        clusters: dict[str | None, ClusterFacts],
        folders: Iterable[FoundFolder],
        logs: Mapping[tuple[str, str], StartLog],
    ) -> None:
        self._dirs, self._clusters, self._logs = dirs, clusters, logs
        self._of_partition: dict[tuple[str, int], list[FoundFolder]] = defaultdict(list)
        for folder in folders:
            if folder.partition is not None:
                self._of_partition[folder.partition[:2]].append(folder)

    def refuse_older(self) -> None:
        """Take back what a metadata log tells that is older than a log of its cluster."""
        for name, cluster in self._clusters.items():
            if cluster.facts is not None:
                why = contradicted_by(cluster.facts, self._served(name))
                if why is not None:
                    told = f"{_METADATA_FOLDER}: {why}"
                    self._clusters[name] = ClusterFacts(None, cluster.end, told)

    def _served(self, cluster: str | None) -> Iterator[ServedLog]:
        for folder in (one for ones in self._of_partition.values() for one in ones):
            own, partition = self._dirs.get(folder.log_dir, DirFacts()), folder.partition
            if own.cluster != cluster or not folder.is_served or partition is None:
                continue
            if partition.topic == METADATA_TOPIC:
                continue
            topic_id, _ = self._topic_id(folder)
            if topic_id is not None:
                epochs = self._epochs(folder).value or ()
                end = partial(self._end, folder)
                yield ServedLog(folder.name, topic_id, partition.partition, epochs, end)

    def knows_replicas(self, folder: FoundFolder) -> bool:
        """Tell whether it is known which replicas the node of a folder's log directory has."""
        own = self._dirs.get(folder.log_dir, DirFacts())
        return own.node_id is not None and self.cluster_of(folder).facts is not None

    def cluster_of(self, folder: FoundFolder) -> ClusterFacts:
        """Return what is known of the cluster that a folder's log directory belongs to."""
        own = self._dirs.get(folder.log_dir, DirFacts())
        return self._clusters.get(own.cluster, ClusterFacts(None))

    def judge(self, folder: FoundFolder, partition: PartitionFolder) -> Verdict:
        """Judge a log's folder."""
        topic_id, no_id = self._topic_id(folder)
        own = self._dirs.get(folder.log_dir, DirFacts())
        facts = FolderFacts(partition, topic_id, no_id, own.node_id, Reach(0, None))
        verdict = judge_folder(facts, self.cluster_of(folder), ())
        if verdict.may_go in (MayGo.IN_USE, MayGo.BY_ITSELF):
            return verdict
        facts = facts._replace(reach=self._reach(folder))
        return judge_folder(facts, self.cluster_of(folder), self._copies(folder, topic_id))

    def _copies(self, folder: FoundFolder, topic_id: str | None) -> list[LogCopy]:
        assert folder.partition is not None  # noqa: S101  for mypy: its caller has looked
        others = self._of_partition[folder.partition[:2]]
        return [
            LogCopy(as_text(join_uri(other.log_dir, other.name)), self._reach(other))
            for other in others
            if other is not folder and topic_id is not None and self._topic_id(other)[0] == topic_id
        ]

    def _topic_id(self, folder: FoundFolder) -> tuple[str | None, str]:
        """Return a log's topic id; without one, why."""
        name = checkpoints.PARTITION_METADATA
        if not is_text(folder.name):
            return None, "its name is no UTF-8, so nothing in it was read"
        known = self._logs.get((folder.log_dir, folder.name))
        if known is None:
            parsed = _read_text(folder, name, checkpoints.parse_partition_metadata)
        else:
            parsed = known.topic_id
        if parsed.value is not None:
            return parsed.value, ""
        if not folder.is_whole:
            return None, _NOT_WHOLE
        if parsed.bad is None or not os.path.lexists(f"{folder.log_dir}/{folder.name}/{name}"):
            return None, f"it has no {name}"
        return None, f"its {name} cannot be read: {parsed.bad.reason}"

    def _epochs(self, folder: FoundFolder) -> Parsed:
        known = self._logs.get((folder.log_dir, folder.name))
        if known is not None:
            return known.epochs
        return _read_text(folder, checkpoints.LEADER_EPOCHS, checkpoints.parse_leader_epochs)

    def _reach(self, folder: FoundFolder) -> Reach:
        """Return a log's offsets, by its first segment's name and the end of its last one."""
        if not folder.is_whole:
            return Reach(folder.first_base or 0, None)
        if folder.first_base is None:
            return Reach(0, 0)
        return Reach(folder.first_base, self._end(folder))

    def _end(self, folder: FoundFolder) -> int | None:
        known = self._logs.get((folder.log_dir, folder.name))
        end = None if known is None or known.swaps else known.ends.get(folder.last_base)
        return _read_end(folder) if end is None else end.next_offset


def read_dir_facts(log_dir: str) -> DirFacts:
    """Read whose a log directory is."""
    there = {checkpoints.META_PROPERTIES: FileEntry(checkpoints.META_PROPERTIES, False, 0, 0)}
    try:
        found = read_text(
            place(log_dir),
            there,
            checkpoints.META_PROPERTIES,
            checkpoints.parse_meta_properties,
            "latin-1",
        ).value
    except _ERRORS:
        found = None
    if found is None:
        return DirFacts()
    return DirFacts(found.cluster_id, found.node_id, found.directory_id)


def _read_clusters(
    dirs: dict[str, DirFacts], read: Mapping[str, MetadataStart]
) -> dict[str | None, ClusterFacts]:
    """Read the metadata logs among log directories; of a cluster's several the furthest counts."""
    found: dict[str | None, ClusterFacts] = {}
    for log_dir, own in dirs.items():
        facts = _told_by(read[log_dir]) if log_dir in read else _read_metadata(log_dir)
        known = found.get(own.cluster)
        if facts is not None and (known is None or known.facts is None or facts.end > known.end):
            found[own.cluster] = facts
    return found


def _read_metadata(log_dir: str) -> ClusterFacts | None:
    """Read the metadata log of a log directory; None: it has none."""
    try:
        entries = entries_of(log_dir, _METADATA_FOLDER)
    except NoFolderError:
        return None
    except SourceError as error:
        return _told_by(MetadataStart(unknown=error.reason))
    try:
        found = read_metadata_log(place(log_dir).child(_METADATA_FOLDER), entries)
    except _ERRORS as error:
        return _told_by(MetadataStart(unknown=first_line(error)))
    return _told_by(found)


def _told_by(found: MetadataStart) -> ClusterFacts:
    if found.state is None:
        return ClusterFacts(None, found.end.offset, f"{_METADATA_FOLDER}: {found.why_no_state}")
    return ClusterFacts(found.state, found.end.offset)


def _read_text(folder: FoundFolder, name: str, parse: Callable[[str], Any]) -> Parsed:
    here = place(folder.log_dir).child(folder.name)
    return read_text(here, {name: FileEntry(name, False, 0, 0)}, name, parse)


def _read_end(folder: FoundFolder) -> int | None:
    """Return where a log ends, by its last segment; None: not known."""
    here = place(folder.log_dir).child(folder.name)
    try:
        return read_segment_end(here, folder.last_base, _sizes(here)).next_offset
    except _ERRORS:
        return None


def _sizes(folder: Place) -> dict[str, int]:
    entries = entries_of(folder.path, "")
    return {entry.name: entry.size_bytes for entry in entries if not entry.is_folder}
