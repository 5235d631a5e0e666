"""What a start does with partitions' folders: served, renamed -stray, deleted, made anew.

Source: LogManager.loadLog, isStrayReplica, getOrCreateLog, recoverAbandonedFutureLogs (4.3.1).
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from kafka_segments.kafka.broker_rules.gaps import COMPACTED_BY_KAFKA
from kafka_segments.kafka.broker_rules.start.effects import Effect
from kafka_segments.kafka.broker_rules.start.facts import Parsed, StartDir, StartLog
from kafka_segments.kafka.broker_rules.start.log_facts import INDEX_BYTES
from kafka_segments.kafka.broker_rules.start.logs import LogDecision
from kafka_segments.kafka.broker_rules.start.metadata_facts import AssignedReplica
from kafka_segments.kafka.broker_rules.start.rules import StartFinding
from kafka_segments.kafka.broker_rules.start.state import Node, served, whole
from kafka_segments.kafka.text.checkpoints import (
    CLEANER_OFFSET,
    HIGH_WATERMARK,
    LOG_START_OFFSET,
    PARTITION_METADATA,
    RECOVERY_POINT,
)
from kafka_segments.kafka.text.names import FolderState


class _Live(NamedTuple):
    """A log that is served, or is to be: not -delete, not -stray, not renamed."""

    one: StartDir
    log: StartLog
    replica: AssignedReplica | None


def decide_logs(node: Node) -> Iterator[StartFinding]:
    """Say what becomes of the logs of all directories that are served."""
    live: list[_Live] = []
    others: set[tuple[str, int]] = set()  # each is told once: strays, and what was not read
    for one in served(node):
        for log in one.logs:
            decision = _decision(node, one, log)
            yield from decision.of_files()
            if log.unreadable is not None or log.topic_id.bad is not None:
                others |= {(log.topic, log.partition)} if log.state == FolderState.LIVE else set()
                continue
            if log.state == FolderState.DELETE:
                yield from _deleted(node, one, log)
                continue
            if log.state == FolderState.STRAY:
                continue
            stray = _stray(node, one, log)
            if stray is not None:
                others.add((log.topic, log.partition))
                yield stray
                continue
            live.append(_Live(one, log, _replica(node, log)))
            yield from decision.of_records()
    yield from _doubles(live)
    yield from _futures(node, live)
    yield from _missing_folders(node, live, others)


def _deleted(node: Node, one: StartDir, log: StartLog) -> Iterator[StartFinding]:
    """Yield a folder marked -delete, unless a deletion or a move asked for that.

    After a move between directories the partition's folder lies in the other one. A folder that
    could not be read, which is told, may be the one.
    """
    found = whole(one, log, "delete-folder", Effect.DELETED, "marked -delete")
    is_known = node.facts.metadata.facts is not None and log.topic_id.value is not None
    unseen = {path for each in node.facts.dirs for path, _ in each.unread}
    is_elsewhere = f"{log.topic}-{log.partition}" in unseen or any(
        (other.topic, other.partition, other.state) == (log.topic, log.partition, FolderState.LIVE)
        for each in node.facts.dirs
        if each.uri != one.uri
        for other in each.logs
    )
    if is_known and (_replica(node, log) is None or is_elsewhere):
        node.notes.append(f"{one.uri}/{log.folder}: marked -delete, it goes as was asked for")
    else:
        yield found


def _decision(node: Node, one: StartDir, log: StartLog) -> LogDecision:
    metadata = node.facts.metadata.facts
    config = {} if metadata is None else metadata.configs.get(log.topic, {})
    tiered = None if metadata is None else config.get("remote.storage.enable") == "true"
    size = config.get("segment.index.bytes", "")
    was_compacted = is_compacted(log.topic, config, log.noted)
    policy = config.get("cleanup.policy", "compact" if was_compacted else "delete")
    is_unknown = metadata is None and one.checkpoints.get(CLEANER_OFFSET, Parsed()).value is None
    return LogDecision(
        one.uri,
        log,
        is_clean=one.is_clean,
        is_needed=node.is_needed(one.uri),
        is_compacted=was_compacted or (None if is_unknown else False),
        is_tiered=tiered,
        index_bytes=int(size) if size.isdecimal() else INDEX_BYTES,
        expires="delete" in policy and config.get("retention.ms") != "-1",
    )


def is_compacted(topic: str, config: Mapping[str, str], noted: Mapping[str, int]) -> bool:
    """Tell whether there is evidence that a log is or was compacted.

    Its topic's policy, a topic that Kafka itself compacts, or a line in the cleaner's checkpoint.
    """
    policy = "compact" in config.get("cleanup.policy", "")
    return policy or topic in COMPACTED_BY_KAFKA or "cleaner_offset" in noted


def _replica(node: Node, log: StartLog) -> AssignedReplica | None:
    metadata = node.facts.metadata.facts
    if metadata is None or node.node_id is None or log.topic_id.value is None:
        return None
    return metadata.replica(log.topic_id.value, log.partition, node.node_id)


def _stray(node: Node, one: StartDir, log: StartLog) -> StartFinding | None:
    """Return why a log is renamed -stray; None: it is not, as far as is known."""
    metadata = node.facts.metadata.facts
    if not log.topic_id.is_there:
        if node.metadata_dir is None:
            return None  # copied logs, or a broker without topic ids, for all that is known
        found = "there is no partition.metadata"
        return whole(one, log, "no-topic-id", Effect.STRAY, found, PARTITION_METADATA)
    if metadata is None or node.node_id is None or log.topic_id.unread is not None:
        return None
    topic_id = log.topic_id.value
    name = metadata.topics.get(topic_id)
    if name != log.topic or (topic_id, log.partition) not in metadata.partitions:
        known = f"which is that of topic {name}" if name else "which no topic has"
        found = f"topic id {topic_id}, {known}"
        return whole(one, log, "stray-id", Effect.STRAY, found, PARTITION_METADATA)
    if metadata.replica(topic_id, log.partition, node.node_id) is None:
        found = f"no replica is assigned to node {node.node_id}"
        return whole(one, log, "stray-replica", Effect.STRAY, found)
    return None


def _doubles(live: Sequence[_Live]) -> Iterator[StartFinding]:
    seen: dict[tuple[str, int, FolderState], _Live] = {}
    for found in live:
        key = (found.log.topic, found.log.partition, found.log.state)
        first = seen.setdefault(key, found)
        if first is not found:
            yield StartFinding(
                "twice",
                Effect.ENDS,
                found.one.uri,
                found.log.folder,
                "",
                f"the partition has folder {first.log.folder} in {first.one.uri}, too",
                None,
                "IllegalStateException",
            )


def _futures(node: Node, live: Sequence[_Live]) -> Iterator[StartFinding]:
    current = {
        (found.log.topic, found.log.partition): found
        for found in live
        if found.log.state == FolderState.LIVE
    }
    for found in live:
        if found.log.state != FolderState.FUTURE or found.replica is None:
            continue
        identity = node.identities.get(found.one.uri)
        is_assigned = identity is not None and found.replica.directory_id == identity.directory_id
        other = current.get((found.log.topic, found.log.partition))
        if is_assigned and other is not None:
            reason = f"{found.log.folder} in {found.one.uri} takes its place"
            yield whole(other.one, other.log, "future-promoted", Effect.DELETED, reason)
        elif not is_assigned and other is None:
            reason = "an empty log is made of the partition, and this one is cut to 0 to equal it"
            yield whole(found.one, found.log, "future-alone", Effect.EMPTY, reason)


def _missing_folders(
    node: Node, live: Sequence[_Live], others: set[tuple[str, int]]
) -> Iterator[StartFinding]:
    """Yield the node's partitions without a folder, of which a checkpoint has noted something.

    ``others``: those whose folder is renamed ``-stray``, or could not be read, which is told.
    """
    metadata, node_id = node.facts.metadata.facts, node.node_id
    if metadata is None or node_id is None:
        return
    there = others | {(found.log.topic, found.log.partition) for found in live}
    unseen = {path for one in node.facts.dirs for path, _ in one.unread}
    dirs = {identity.directory_id: uri for uri, identity in node.identities.items()}
    unread = {directory for ids in metadata.directory_ids.values() for directory in ids} - set(dirs)
    is_whole = len(metadata.directory_ids.get(node_id, ())) <= len(node.facts.dirs)
    for replica in metadata.of_node(node_id):
        place = dirs.get(replica.directory_id)
        is_elsewhere = replica.directory_id in unread and (not is_whole or bool(node.lost_dirs))
        if (replica.topic, replica.partition) in there or place in node.lost_dirs or is_elsewhere:
            continue
        if f"{replica.topic}-{replica.partition}" in unseen:
            continue  # a link that was not followed, which is told
        notes = _notes_of(node.facts.dirs, replica)
        if notes is not None:
            yield _missing_folder(place or node.facts.dirs[0].uri, replica, notes)


def _missing_folder(uri: str, replica: AssignedReplica, notes: Mapping[str, int]) -> StartFinding:
    start = notes.get("log_start_offset", 0)
    end = max(notes.get("recovery_point", 0), notes.get("high_watermark", 0))
    offsets = max(end - start, 0) if notes else None
    alone = "the only replica" if replica.replicas == 1 else f"one of {replica.replicas} replicas"
    return StartFinding(
        "folder-missing",
        Effect.EMPTY,
        uri,
        f"{replica.topic}-{replica.partition}",
        "",
        f"its folder is in no directory, and the checkpoints note offsets up to {end}; {alone}",
        size_bytes=None,
        offsets=offsets,
        records=None,
        files=(f"{replica.topic}-{replica.partition}",),
    )


def _notes_of(dirs: Sequence[StartDir], replica: AssignedReplica) -> dict[str, int] | None:
    """Return what checkpoints note of a partition; None: it is new, for all that they tell."""
    notes: dict[str, int] = {}
    is_whole = True
    for one in dirs:
        for name, column in (
            (RECOVERY_POINT, "recovery_point"),
            (HIGH_WATERMARK, "high_watermark"),
            (LOG_START_OFFSET, "log_start_offset"),
        ):
            parsed = one.checkpoints.get(name, Parsed())
            is_whole &= parsed.value is not None or name == LOG_START_OFFSET
            for topic, partition, offset in parsed.value or ():
                if (topic, partition) == (replica.topic, replica.partition):
                    notes[column] = offset
    return notes if notes or not is_whole else None
