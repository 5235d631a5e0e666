"""Look at log directories as their brokers' start would, and decide what it does."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from kafka_segments.files.node.log_dirs import FoundLogDir
from kafka_segments.files.node.nodes import (
    empty_folders_beside,
    group_nodes,
    of_other_clusters,
)
from kafka_segments.files.node.start_reader import (
    offsets_of,
    read_metadata,
    read_start_dir,
    read_start_log,
)
from kafka_segments.files.storage.threads import map_in_threads
from kafka_segments.kafka.broker_rules.start.facts import StartDir, StartLog
from kafka_segments.kafka.broker_rules.start.node import NodeStart, decide_node
from kafka_segments.kafka.broker_rules.start.state import NodeFacts
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
        others = tuple(of_other_clusters(group, dirs))
        facts = NodeFacts(group, metadata, empty_folders_beside(group, sources), others)
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
