"""Look at log directories as their brokers' start would, and decide what it does."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from kafka_segments.errors import SourceError
from kafka_segments.files.folders.source_folder import entries_of
from kafka_segments.files.storage.threads import map_in_threads
from kafka_segments.kafka.broker_rules.start.facts import StartDir, StartLog
from kafka_segments.kafka.broker_rules.start.files import Identity, check_meta
from kafka_segments.kafka.broker_rules.start.node import NodeStart, decide_node
from kafka_segments.kafka.broker_rules.start.state import NodeFacts
from kafka_segments.verbs.change.recovery.folders import FoundLogDir
from kafka_segments.verbs.change.recovery.forecast.start_reader import (
    offsets_of,
    read_metadata,
    read_start_dir,
    read_start_log,
)
from kafka_segments.verbs.change.recovery.forecast.survey import Surveyed

_READERS = 8


class NodeOfDirs(NamedTuple):
    """A node's log directories, by their URIs, what its start does with them, and why."""

    uris: tuple[str, ...]
    start: NodeStart
    facts: NodeFacts = NodeFacts(())


def decide_starts(
    found: Sequence[FoundLogDir],
    logs: Sequence[Sequence[Surveyed]],
    sources: Sequence[str],
) -> list[NodeOfDirs]:
    """Decide what the starts of the nodes do that have these log directories.

    Args:
        found: log directories.
        logs: what a start does with their logs, in the same order.
        sources: URIs below which the directories lie.
    """
    dirs = [_read(one, surveyed) for one, surveyed in zip(found, logs, strict=True) if one.entries]
    nodes = []
    for group in group_nodes(dirs):
        metadata = read_metadata(group)
        others = tuple(_of_other_clusters(group, dirs))
        facts = NodeFacts(group, metadata, _beside(group, sources), others)
        nodes.append(NodeOfDirs(tuple(one.uri for one in group), decide_node(facts), facts))
    return nodes


def _read(one: FoundLogDir, surveyed: Sequence[Surveyed]) -> StartDir:
    own = read_start_dir(one.uri, one.entries, is_clean=one.is_clean)
    own = replace(own, unread=(*own.unread, *_unread_logs(one)))
    noted = offsets_of(own)

    def read(each: Surveyed) -> StartLog:
        log = each.start.log
        noted_of_log = noted.get((log.topic, log.partition), {})
        return read_start_log(each.start, noted_of_log, each.findings)

    own_logs = [each for each in surveyed if not each.start.log.is_metadata]
    return replace(own, logs=tuple(map_in_threads(read, own_logs, threads=_READERS)))


def _unread_logs(one: FoundLogDir) -> Iterator[tuple[str, str]]:
    """Yield the folders of logs that could not be read, and why: what is in them is not known."""
    names = {entry.name for entry in one.entries}
    for problem in one.problems:
        name, _, why = problem.partition(": ")
        if name in names:
            yield name, why


def group_nodes(dirs: Iterable[StartDir]) -> list[list[StartDir]]:
    """Put the directories of a node together.

    1. Those with the same cluster id and node id are of one node, if they lie in one folder or
       only one of them has the metadata log.
    2. A directory whose identity is broken, or that of no directory with a metadata log, belongs to
       the node whose metadata log lies in the same folder as it does: each node has one.
    """
    dirs = list(dirs)
    groups = [[one] for one in dirs if one.metadata_folder]
    joined: list[list[StartDir]] = []
    for group in groups:
        same = [other for other in joined if _is_same(other[0], group[0])]
        if same:
            same[0].extend(group)
        else:
            joined.append(group)
    for one in dirs:
        if not one.metadata_folder:
            _join(joined, one)
    return [sorted(group, key=lambda one: one.uri) for group in joined]


def _is_same(one: StartDir, other: StartDir) -> bool:
    return _identity(one) == _identity(other) and _parent(one) == _parent(other)


def _join(groups: list[list[StartDir]], one: StartDir) -> None:
    identity = _identity(one)
    alike = [group for group in groups if identity and _identity(group[0]) == identity]
    here = [group for group in groups if _parent(group[0]) == _parent(one)]
    near = [group for group in alike if group in here]
    with_metadata = [group for group in here if any(each.metadata_folder for each in group)]
    if near or alike:
        (near or alike)[0].append(one)
    elif len(with_metadata) == 1:
        with_metadata[0].append(one)
    elif identity is None and len(here) == 1 and _identity(here[0][0]) is not None:
        here[0].append(one)
    else:
        groups.append([one])


def _identity(one: StartDir) -> tuple[str | None, int] | None:
    found = check_meta(one.meta.value) if one.meta.value else None
    if not isinstance(found, Identity) or found.node_id is None:
        return None
    return found.cluster_id, found.node_id


def _parent(one: StartDir) -> str:
    return one.uri.rpartition("/")[0]


def _beside(group: Sequence[StartDir], sources: Sequence[str]) -> tuple[str, ...]:
    """Return empty folders beside a node's log directories, which may be unformatted ones."""
    parent = _parent(group[0])
    if not any(parent == source or parent.startswith(f"{source}/") for source in sources):
        return ()
    taken = {one.uri for one in group}
    try:
        folders = [entry.name for entry in entries_of(parent, "") if entry.is_folder]
        return tuple(
            f"{parent}/{name}"
            for name in folders
            if f"{parent}/{name}" not in taken and _is_empty(parent, name)
        )
    except SourceError:
        return ()


def _of_other_clusters(group: Sequence[StartDir], dirs: Sequence[StartDir]) -> Iterator[str]:
    """Yield the directories beside a node's own that have its id and another cluster's."""
    own = _identity(group[0])
    for one in dirs:
        other = _identity(one)
        if own is None or other is None or one in group or _parent(one) != _parent(group[0]):
            continue
        if other[1] == own[1] and None not in (own[0], other[0]):
            yield one.uri


def _is_empty(parent: str, name: str) -> bool:
    return all(entry.name == "lost+found" for entry in entries_of(parent, name))
