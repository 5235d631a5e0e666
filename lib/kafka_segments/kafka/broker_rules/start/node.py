"""Decide what a node's start does with its log directories, by the rows of ``rules``.

1. ``meta.properties`` of all directories is read first, then ``bootstrap.checkpoint``, then the
   metadata log and its ``quorum-state``; the first that is wrong ends the broker.
2. All logs of all directories are loaded. A log without topic id, or with one that the metadata log
   does not give to this node, is renamed -stray; so it is no second folder of its partition.
3. Partitions that the metadata log gives to the node, and that have no folder, get an empty log.
4. High watermarks and cleaner offsets are read last, when the broker is up.

Source: KafkaRaftServer.initializeLogDirs, KafkaRaftLog, BrokerMetadataPublisher.initializeManagers,
LogManager (4.3.1).
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from kafka_segments.kafka.broker_rules.start.effects import IO_EXCEPTIONS, Effect, effect_at
from kafka_segments.kafka.broker_rules.start.facts import Parsed, StartDir
from kafka_segments.kafka.broker_rules.start.folders import decide_logs
from kafka_segments.kafka.broker_rules.start.identity import decide_bootstrap, decide_metas
from kafka_segments.kafka.broker_rules.start.logs import LogDecision
from kafka_segments.kafka.broker_rules.start.metadata import decide_metadata, decide_unread
from kafka_segments.kafka.broker_rules.start.rules import RULES, StartFinding
from kafka_segments.kafka.broker_rules.start.state import (
    Node,
    NodeFacts,
    is_noted_compacted,
    of_dir,
    served,
)
from kafka_segments.kafka.text.checkpoints import (
    CLEANER_OFFSET,
    HIGH_WATERMARK,
    LOG_START_OFFSET,
    RECOVERY_POINT,
)
from kafka_segments.kafka.text.names import FolderState

_CHECKPOINT_RULES = {
    RECOVERY_POINT: "recovery-point",
    LOG_START_OFFSET: "log-start",
    HIGH_WATERMARK: "high-watermark",
    CLEANER_OFFSET: "cleaner-offset",
}
_OF_RECORDS = "gap"
"""The rule that asks whether records are missing, which stops no start."""
_READ_FIRST = (RECOVERY_POINT, LOG_START_OFFSET)
_READ_LAST = (HIGH_WATERMARK, CLEANER_OFFSET)


@dataclass(frozen=True)
class NodeStart:
    """What the start of a node does.

    Attributes:
        starts: The broker serves; None: not known, see the findings of effect ``not known``.
        problem: The first thing that ends it.
        without: The directories that it goes on without; none if it ends.
        findings: All that was found, in the order of the start.
        notes: What was not looked at, without a sign that anything is wrong with it, and what goes
            because it was asked for.
    """

    starts: bool | None
    problem: StartFinding | None
    without: tuple[str, ...]
    findings: tuple[StartFinding, ...]
    notes: tuple[str, ...] = ()


def decide_node(facts: NodeFacts) -> NodeStart:
    """Say what the start of a node does with its log directories."""
    node = Node(facts)
    findings: list[StartFinding] = []
    for step in _STEPS:
        for finding in map(_as_unread, step(node)):
            if finding.effect == Effect.WITHOUT:
                node.lost_dirs.add(finding.log_dir)
            findings.append(finding)
    if node.lost_dirs and not {one.uri for one in facts.dirs} - node.lost_dirs:
        findings = [_as_end(finding) for finding in findings]
        node.lost_dirs.clear()
    findings = [_with_costs(facts, finding) for finding in findings]
    ends = [finding for finding in findings if finding.effect == Effect.ENDS]
    is_unknown = not node.is_formatted or any(
        finding.effect == Effect.NOT_KNOWN and finding.rule != _OF_RECORDS for finding in findings
    )
    return NodeStart(
        False if ends else None if is_unknown else True,
        ends[0] if ends else None,
        () if ends else tuple(sorted(node.lost_dirs)),
        tuple(findings),
        tuple(node.notes),
    )


def _as_unread(finding: StartFinding) -> StartFinding:
    """Return what is found of a file that this process may not read: its broker may."""
    if finding.exception != "AccessDeniedException":
        return finding
    return finding._replace(
        rule="unreadable", effect=Effect.NOT_KNOWN, size_bytes=None, offsets=None, records=None
    )


def _as_end(finding: StartFinding) -> StartFinding:
    """Return the finding of a directory that turned out to be the last one left."""
    is_last = finding.effect == Effect.WITHOUT
    return finding._replace(effect=Effect.ENDS) if is_last else finding


def _with_costs(facts: NodeFacts, finding: StartFinding) -> StartFinding:
    """Add what a directory's logs hold to the finding that costs the directory."""
    if finding.effect != Effect.WITHOUT:
        return finding
    logs = [
        LogDecision(
            one.uri, log, is_clean=True, is_needed=False, is_compacted=is_noted_compacted(log)
        )
        for one in facts.dirs
        if one.uri == finding.log_dir
        for log in one.logs
        if log.state == FolderState.LIVE
    ]
    costs = [log.lost() for log in logs]
    return finding._replace(
        size_bytes=sum(size for size, _, _ in costs),
        offsets=sum_or_none(offsets for _, offsets, _ in costs),
        records=sum_or_none(records for _, _, records in costs),
    )


def sum_or_none(counts: Iterable[int | None]) -> int | None:
    """Return the sum of counts; None: one of them is not known."""
    found = 0
    for count in counts:
        if count is None:
            return None
        found += count
    return found


def _first_files(node: Node) -> Iterator[StartFinding]:
    """Check folders' names and the checkpoints that are read before the logs."""
    for one in served(node):
        for name in one.odd_folders:
            found = "its name is no partition's"
            yield StartFinding(
                "folder-name", Effect.ENDS, one.uri, name, "", found, None, "KafkaException"
            )
        yield from _checkpoints(node, one, _READ_FIRST)


def _last_files(node: Node) -> Iterator[StartFinding]:
    for one in served(node):
        yield from _checkpoints(node, one, _READ_LAST)


def _checkpoints(node: Node, one: StartDir, names: Iterable[str]) -> Iterator[StartFinding]:
    for name in names:
        bad = one.checkpoints.get(name, Parsed()).bad
        if bad is None:
            continue
        if name in _READ_FIRST and bad.exception not in (*IO_EXCEPTIONS, "OutOfMemoryError"):
            continue  # as if the file were missing
        rule = _CHECKPOINT_RULES[name]
        if bad.exception == "NumberFormatException":
            rule += "-number"
        effect = RULES[rule].effect or effect_at(bad.exception, is_needed=node.is_needed(one.uri))
        yield of_dir(rule, effect, one.uri, name, bad)


_STEPS: tuple[Callable[[Node], Iterator[StartFinding]], ...] = (
    decide_metas,
    decide_bootstrap,
    decide_metadata,
    decide_unread,
    _first_files,
    decide_logs,
    _last_files,
)
"""In the order of a start."""
