"""Say of each compacted log of a node where it stands with the cleaner, from its directories."""

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from kafka_segments.console.local_folders import nearest_names
from kafka_segments.errors import (
    FileChangedError,
    SourceError,
    UnreadableObjectError,
    UsageError,
)
from kafka_segments.files.folders.source_folder import entries_of
from kafka_segments.files.node.log_dirs import find_log_dirs
from kafka_segments.files.node.nodes import group_nodes
from kafka_segments.files.node.start_reader import (
    offsets_of,
    read_metadata,
    read_start_dir,
)
from kafka_segments.files.storage.files import first_line, place
from kafka_segments.files.storage.threads import map_in_threads
from kafka_segments.kafka.broker_rules.cleaner.log_cleaner import cleanable
from kafka_segments.kafka.broker_rules.cleaner.outcome import LogPass
from kafka_segments.kafka.broker_rules.gaps import COMPACTED_BY_KAFKA
from kafka_segments.kafka.broker_rules.start.facts import Parsed, StartDir
from kafka_segments.kafka.broker_rules.start.files import Identity, check_meta
from kafka_segments.kafka.broker_rules.start.metadata_facts import MetadataFacts
from kafka_segments.kafka.text.checkpoints import (
    CLEANER_OFFSET,
    HIGH_WATERMARK,
    LOG_START_OFFSET,
    META_PROPERTIES,
)
from kafka_segments.kafka.text.names import METADATA_TOPIC, FolderState, parse_partition_folder
from kafka_segments.verbs.find.cleaner.configs import (
    POLICY,
    Levels,
    NodeConfig,
    Values,
    cleaner_config,
    node_config,
    policy_of,
    rolls_before_ms,
)
from kafka_segments.verbs.find.cleaner.decide import (
    Check,
    LogFacts,
    LogKey,
    LogStand,
    decide_stands,
)
from kafka_segments.verbs.find.cleaner.log_facts import NotKnownError, read_log
from kafka_segments.verbs.find.cleaner.pass_reading import read_pass

if TYPE_CHECKING:
    from kafka_segments.console.bar import ReadProgress

_READERS = 8
_Asked = tuple[StartDir, str, dict[str, int], LogFacts]
_ERRORS = (OSError, SourceError, FileChangedError, UnreadableObjectError, NotKnownError)


@dataclass(frozen=True)
class CleanerOptions:
    """What is looked at: URIs of log directories, the moment in ms since 1970, and settings.

    ``properties``: those of server.properties. ``what_if``: over all others, by Kafka's keys.
    ``logs``: only these are told, as topic and partition; none: all.
    """

    sources: tuple[str, ...]
    now_ms: int
    properties: Values = field(default_factory=dict)
    what_if: Values = field(default_factory=dict)
    check: Check = Check.HEADERS
    logs: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True)
class NodeStands:
    """A node: where its compacted logs stand.

    Attributes:
        cluster: Cluster id; empty: not known.
        node_id: Node id; -1: not known.
        log_dirs: Its log directories.
        stopped: Why its cleaner does not run; None: it does, for all that files tell.
        stands: Of each compacted log.
        not_known: What is not known besides, in lines.
        unsure: Folders of logs of which it is not known whether they are compacted.
    """

    cluster: str
    node_id: int
    log_dirs: tuple[str, ...]
    stopped: str | None
    stands: Mapping[LogKey, LogStand]
    not_known: tuple[str, ...]
    unsure: tuple[str, ...] = ()


def run_cleaner(options: CleanerOptions, *, work: "ReadProgress | None" = None) -> list[NodeStands]:
    """Say where the compacted logs of nodes stand; nothing is written.

    ``work`` is told what is read of logs whose passes are foretold.

    Raises:
        SourceError: a source has no log directory below, or cannot be listed.
        UsageError: a setting is no number, or a log that is asked for is no compacted one.
    """
    found = find_log_dirs(options.sources)
    unread = [f"{one.uri}: {problem}" for one in found for problem in one.problems]
    dirs = [read_start_dir(one.uri, one.entries, is_clean=one.is_clean) for one in found]
    folders = {one.uri: [entry.name for entry in one.entries if entry.is_folder] for one in found}
    nodes = []
    for group in group_nodes(dirs):
        uris = tuple(f"{one.uri}:" for one in group)
        own = tuple(line for line in unread if line.startswith(uris))
        nodes.append(_node(group, folders, options, own, work))
    if not options.logs:
        return nodes
    names = [f"{topic}-{partition}" for topic, partition in options.logs]
    _require(names, nodes, unread)
    return [_of_logs(node, names) for node in nodes]


def _require(names: Iterable[str], nodes: Sequence[NodeStands], unread: Sequence[str]) -> None:
    """Refuse a log that is known to be no compacted one."""
    there = {name for node in nodes for _, name in node.stands}
    unsure = {name for node in nodes for name in node.unsure}
    for name in names:
        if name not in there | unsure:
            near = nearest_names(name, there, unread=unread)
            raise UsageError(f"{name} is no compacted log here; {near}")


def _of_logs(node: NodeStands, names: Sequence[str]) -> NodeStands:
    unsure = [f"whether {name} is compacted" for name in names if name in node.unsure]
    return replace(
        node,
        stands={key: one for key, one in node.stands.items() if key[1] in names},
        not_known=(*node.not_known, *unsure),
    )


def _node(
    dirs: Sequence[StartDir],
    folders: Mapping[str, Sequence[str]],
    options: CleanerOptions,
    unread: tuple[str, ...],
    work: "ReadProgress | None",
) -> NodeStands:
    identities = [check_meta(one.meta.value) for one in dirs if one.meta.value]
    known = next((one for one in identities if isinstance(one, Identity)), None)
    metadata = read_metadata(dirs)
    node_id = None if known is None else known.node_id
    levels = _levels(options, metadata.state, node_id)
    node = node_config(levels)
    stopped = None if node.is_enabled else "log.cleaner.enable is false"
    stopped = stopped or _stopped_by_checkpoints(dirs)
    rolls_before = rolls_before_ms(options.what_if, now_ms=options.now_ms)
    facts, unsure = _facts(dirs, folders, levels, metadata.state, rolls_before)
    if options.check != Check.HEADERS:
        facts = _with_passes(facts, node, options, work)
    not_known = list(unread)
    if metadata.state is None:
        why = (
            metadata.why_no_state
            or "no metadata log, __cluster_metadata-0, is among the folders given"
        )
        not_known.append(f"topics' settings are not known: {why}; those of server.properties hold")
    elif node_id is None and any(metadata.state.broker_configs):
        meta = "; ".join(f"{one.uri}/{META_PROPERTIES}" for one in dirs)
        not_known.append(f"which settings of one broker alone hold: no node id is in {meta}")
    if unsure:
        not_known.append(f"whether {len(unsure)} logs are compacted is not known")
    return NodeStands(
        (known.cluster_id if known else None) or "",
        -1 if node_id is None else node_id,
        tuple(one.uri for one in dirs),
        stopped,
        decide_stands(
            facts, now_ms=options.now_ms, stopped=stopped, keys_of_a_pass=node.keys_of_a_pass
        ),
        tuple(not_known),
        tuple(unsure),
    )


def _levels(options: CleanerOptions, facts: MetadataFacts | None, node_id: int | None) -> Levels:
    of_brokers = {} if facts is None else facts.broker_configs
    own = {} if node_id is None else of_brokers.get(str(node_id), {})
    return Levels(options.what_if, (own, of_brokers.get("", {}), options.properties))


def _stopped_by_checkpoints(dirs: Iterable[StartDir]) -> str | None:
    """Return why the cleaner's thread ends at its checkpoints; None: it does not."""
    times: Counter[tuple[str, int]] = Counter()
    for one in dirs:
        parsed = one.checkpoints.get(CLEANER_OFFSET, Parsed())
        if parsed.bad is not None and parsed.bad.exception == "NumberFormatException":
            return f"{one.uri}/{CLEANER_OFFSET}: {parsed.bad.reason}: the cleaner ends"
        times.update({(topic, partition) for topic, partition, _ in parsed.value or ()})
    twice = [f"{topic}-{partition}" for (topic, partition), count in times.items() if count > 1]
    if not twice:
        return None
    return f"{twice[0]} is in the {CLEANER_OFFSET} of two directories: the cleaner ends"


def _facts(
    dirs: Sequence[StartDir],
    folders: Mapping[str, Sequence[str]],
    levels: Levels,
    metadata: MetadataFacts | None,
    rolls_before: int | None,
) -> tuple[dict[LogKey, LogFacts], list[str]]:
    """Read the compacted logs; return also those of which it is not known whether they are."""
    asked: list[_Asked] = []
    unsure: list[str] = []
    named = set() if metadata is None else set(metadata.topics.values())
    for one in dirs:
        noted = offsets_of(one)
        for name in folders[one.uri]:
            folder = parse_partition_folder(name)
            if folder is None or folder.state != FolderState.LIVE or folder.topic == METADATA_TOPIC:
                continue
            own = noted.get((folder.topic, folder.partition), {})
            topic = {} if metadata is None else metadata.configs.get(folder.topic, {})
            set_at = {} if metadata is None else metadata.config_set_at
            policy = policy_of(levels, topic, set_at.get((folder.topic, POLICY)))
            compacts = policy is not None and policy.compacts
            if policy is None and folder.topic not in named:
                compacts = folder.topic in COMPACTED_BY_KAFKA or "cleaner_offset" in own
                unsure += [] if compacts else [name]
            if compacts:
                asked.append(
                    (one, name, own, LogFacts(None, cleaner_config(levels, topic), policy=policy))
                )
    read = partial(_read, rolls_before=rolls_before)
    found = list(map_in_threads(read, asked, threads=_READERS))
    return {
        (one.uri, name): facts for (one, name, _, _), facts in zip(asked, found, strict=True)
    }, unsure


def _read(asked: _Asked, *, rolls_before: int | None) -> LogFacts:
    one, name, noted, facts = asked
    for file in (CLEANER_OFFSET, HIGH_WATERMARK, LOG_START_OFFSET):
        problem = one.checkpoints.get(file, Parsed()).problem
        if problem is not None:
            return facts._replace(unknown=f"{file} cannot be read: {problem}")
    try:
        entries = entries_of(one.uri, name)
        log = read_log(one.uri, name, entries, noted, facts.config, rolls_before_ms=rolls_before)
        if "high_watermark" not in noted and log.start < log.end:
            return facts._replace(unknown=f"{HIGH_WATERMARK} has no entry of it")
        return facts._replace(log=log)
    except _ERRORS as error:
        return facts._replace(unknown=first_line(error))


def _with_passes(
    facts: Mapping[LogKey, LogFacts],
    node: NodeConfig,
    options: CleanerOptions,
    work: "ReadProgress | None",
) -> dict[LogKey, LogFacts]:
    """Read what a pass would read of each log that can be cleaned, and say what it makes of it."""

    def read(key: LogKey) -> LogFacts:
        log, config = facts[key].log, facts[key].config
        if log is None:
            return facts[key]
        found = cleanable(log, config, now_ms=options.now_ms)
        if not found.cleanable_bytes:
            return facts[key]
        uri, folder = key
        try:
            here, entries = place(uri).child(folder), entries_of(uri, folder)
            foretold = read_pass(
                here,
                entries,
                log,
                found,
                config,
                node,
                now_ms=options.now_ms,
                samples=options.check == Check.SAMPLE,
            )
        except _ERRORS as error:
            foretold = LogPass(unknown=first_line(error))
        if work is not None:
            work.has_read(found.clean_bytes + found.cleanable_bytes)
        return facts[key]._replace(foretold=foretold)

    if work is not None:
        logs = [one.log for one in facts.values() if one.log is not None]
        work.reads_in_driver(sum(segment.size_bytes for log in logs for segment in log.segments))
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        return dict(zip(facts, pool.map(read, facts), strict=True))
