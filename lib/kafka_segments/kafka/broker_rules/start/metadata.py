"""What a start does with the metadata log, and which directories it tells of.

Source: KafkaRaftLog, FileQuorumStateStore, UnifiedLog.initializeTopicId (4.3.1).
"""

from collections.abc import Iterator

from kafka_segments.kafka.broker_rules.start.effects import Effect
from kafka_segments.kafka.broker_rules.start.facts import Bad, StartDir
from kafka_segments.kafka.broker_rules.start.metadata_facts import CheckpointId
from kafka_segments.kafka.broker_rules.start.rules import StartFinding
from kafka_segments.kafka.broker_rules.start.state import Node, of_dir, whole
from kafka_segments.kafka.text.checkpoints import LEADER_EPOCHS, META_PROPERTIES, PARTITION_METADATA
from kafka_segments.kafka.text.names import METADATA_TOPIC, QUORUM_STATE, FolderState

METADATA_FOLDER = f"{METADATA_TOPIC}-0"
METADATA_TOPIC_ID = "AAAAAAAAAAAAAAAAAAAAAQ"


def decide_metadata(node: Node) -> Iterator[StartFinding]:
    """Check the metadata log; only KRaft's directories have a ``bootstrap.checkpoint``."""
    metadata = node.facts.metadata
    own = next((one for one in node.facts.dirs if one.metadata_folder), None)
    if own is None:
        yield from _without_metadata(node)
        return
    yield from _metadata_files(own)
    found = f"it starts at offset {metadata.start}, "
    has_no_state = metadata.start > 0 and metadata.newest is None
    if has_no_state:
        yield _of_metadata(
            "metadata-no-checkpoint",
            own,
            "",
            found + "there is no .checkpoint",
            "IllegalStateException",
        )
    if metadata.bad_checkpoint is not None and metadata.newest is not None:
        yield _of_metadata(
            "metadata-checkpoint",
            own,
            _checkpoint_name(metadata.newest),
            metadata.bad_checkpoint,
            "CorruptRecordException",
        )
    if metadata.is_anew and metadata.newest is not None:
        name = _checkpoint_name(metadata.newest)
        found = (
            f"the log ends at {metadata.end.offset}, its newest .checkpoint at"
            f" {metadata.newest.offset}: the log is deleted and begins at {metadata.newest.offset};"
            " later topics are unknown"
        )
        yield StartFinding(
            "metadata-anew",
            Effect.DELETED,
            own.uri,
            METADATA_FOLDER,
            name,
            found,
            files=(f"{0:020d}.log", *metadata.gone_checkpoints),
            offsets=None,
            records=None,
            size_bytes=None,
        )
    is_told = has_no_state or metadata.bad_checkpoint is not None or metadata.is_anew
    if metadata.facts is None and metadata.unknown is not None and not is_told:
        yield _of_metadata("metadata-state", own, "", metadata.unknown, "", Effect.NOT_KNOWN)
    if metadata.facts is not None and metadata.lacks is not None and not metadata.is_anew:
        yield _of_metadata("metadata-older", own, "", metadata.lacks, "", Effect.FORGOTTEN)


def _metadata_files(own: StartDir) -> Iterator[StartFinding]:
    of_log = {
        LEADER_EPOCHS: own.metadata_epochs,
        PARTITION_METADATA: own.metadata_id,
        QUORUM_STATE: own.quorum_state,
    }
    for name, parsed in of_log.items():
        if parsed.unread is not None:
            yield _of_metadata("not-read", own, name, parsed.unread, "", Effect.NOT_KNOWN)
    if own.metadata_epochs.bad is not None:
        bad = own.metadata_epochs.bad
        yield _of_metadata("epochs", own, LEADER_EPOCHS, bad.reason, bad.exception)
    for name in own.metadata_odd:
        found = "there is no number before its first dot"
        yield _of_metadata("file-name", own, name, found, "NumberFormatException")
    of_topic = own.metadata_id
    if of_topic.bad is not None:
        bad = of_topic.bad
        yield _of_metadata("partition-metadata", own, PARTITION_METADATA, bad.reason, bad.exception)
    elif of_topic.value not in (None, METADATA_TOPIC_ID):
        found = f"topic_id is {of_topic.value}, {METADATA_TOPIC_ID} expected"
        exception = "InconsistentTopicIdException"
        yield _of_metadata("metadata-id", own, PARTITION_METADATA, found, exception)
    if own.quorum_state.bad is not None:
        bad = own.quorum_state.bad
        yield _of_metadata("quorum-state", own, QUORUM_STATE, bad.reason, bad.exception)


def _without_metadata(node: Node) -> Iterator[StartFinding]:
    formatted = [one for one in node.facts.dirs if one.bootstrap.is_there]
    if not formatted:
        node.notes.append(
            "not looked at: the metadata log is in none of the sources, topics are not known"
        )
        return
    found = (
        "the metadata log is in none of the directories: a broker without another"
        " metadata.log.dir starts an empty cluster, and renames every log -stray"
    )
    one = formatted[0]
    yield StartFinding("metadata-gone", Effect.STRAY, one.uri, METADATA_FOLDER, "", found)
    for each in node.facts.dirs:
        for log in each.logs:
            if log.state == FolderState.LIVE:
                yield whole(each, log, "metadata-gone", Effect.STRAY, "no topic is known")


def decide_unread(node: Node) -> Iterator[StartFinding]:
    """Yield links that were not followed, and directories that were registered and not given."""
    for one in node.facts.dirs:
        for path, why in one.unread:
            yield StartFinding(
                *("not-read", Effect.NOT_KNOWN, one.uri, path, "", why),
                size_bytes=None,
                offsets=None,
                records=None,
            )
    metadata = node.facts.metadata.facts
    if metadata is None or node.node_id is None:
        node.notes.extend(
            f"{path}: empty, and no meta.properties: a broker that has it in log.dirs ends at that"
            for path in node.facts.beside
        )
        return
    registered = metadata.directory_ids.get(node.node_id, ())
    missing = len(registered) - len(node.facts.dirs)
    if missing <= 0:
        return
    known = {identity.directory_id for identity in node.identities.values()}
    unseen = ", ".join(sorted(set(registered) - known))
    found = f"{missing} of the node's {len(registered)} directories were not read (id {unseen})"
    if len(node.facts.beside) == missing:
        for path in node.facts.beside:
            bad = Bad("RuntimeException", f"there is no meta.properties; {found}")
            yield of_dir("meta-missing", Effect.ENDS, path, META_PROPERTIES, bad)
        return
    yield StartFinding(
        *("not-read", Effect.NOT_KNOWN, node.facts.dirs[0].uri, "", "", found),
        size_bytes=None,
        offsets=None,
        records=None,
    )


def _of_metadata(
    rule: str,
    own: StartDir,
    name: str,
    found: str,
    exception: str,
    effect: Effect = Effect.ENDS,
) -> StartFinding:
    return StartFinding(rule, effect, own.uri, METADATA_FOLDER, name, found, None, exception)


def _checkpoint_name(newest: CheckpointId) -> str:
    return f"{newest.offset:020d}-{newest.epoch:010d}.checkpoint"
