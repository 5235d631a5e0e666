"""Judge a segment of Aiven's tiered storage: its manifest, its indexes, and what a broker does.

At the first read from a remote segment a broker copies its indexes into a cache, and runs the
sanity checks there. Brokers find segments, and let them expire, by what was announced in
``__remote_log_metadata``. The manifest repeats that.

Source: RemoteIndexCache, RemoteLogManager, TierStateMachine.
"""

from typing import NamedTuple

from kafka_segments.kafka.broker_rules.index_files.judgement import (
    EVERY_VERSION,
    OFFSET_INDEX,
    SNAPSHOT,
    TIME_INDEX,
    TXN_INDEX,
    V2_3,
    IndexKind,
    IndexVerdict,
    Judgement,
)
from kafka_segments.kafka.broker_rules.versions import Version
from kafka_segments.kafka.index.segment.recovered_segment import SegmentRecovery
from kafka_segments.kafka.text.checkpoints import LEADER_EPOCHS, EpochStart
from kafka_segments.kafka.tier.segment_manifest import RemoteSegment, SegmentManifest
from kafka_segments.kafka.tier.tiered_names import INDEXES, MANIFEST, TieredFolder, TieredName
from kafka_segments.verbs.judge.audit.decide.consequences import (
    KNOWN_SINCE,
    Consequence,
    Effect,
    SegmentState,
    consequence_of,
)
from kafka_segments.verbs.judge.audit.decide.odd_files import ODD_KINDS, odd_index_consequence

PARTS = (OFFSET_INDEX, TIME_INDEX, SNAPSHOT, LEADER_EPOCHS, TXN_INDEX)
_NOTHING = "nothing"
_UPLOAD_AGAIN = (
    "put a rebuilt one in its place (kafka-segments build --index-dir), or upload the segment again"
)
_RESTORE = "restore the object, or upload the segment again from a replica that still has it"
_ASK = "see what __remote_log_metadata says of it; remove it only where nothing names it"


class IndexParts(NamedTuple):
    """Index files cut out of their object, by suffix; ``judged``: those that cannot be cut out."""

    files: dict[str, bytes | None]
    judged: list[Judgement]


def cut_parts(manifest: SegmentManifest, indexes: bytes | None) -> IndexParts:
    """Cut the object of a segment's indexes as its manifest says; ``indexes`` None: no object."""
    files: dict[str, bytes | None] = dict.fromkeys(PARTS)
    judged = []
    if indexes is None:
        return IndexParts(files, [_missing(suffix) for suffix in (SNAPSHOT, LEADER_EPOCHS)])
    end = 0
    for suffix, (position, size) in manifest.parts.items():
        end = max(end, position + size)
        if position + size <= len(indexes):
            files[suffix] = indexes[position : position + size]
            continue
        message = (
            f"the manifest has it at bytes {position} to {position + size} of the {INDEXES}"
            f" object, which has {len(indexes)}"
        )
        judged.append(Judgement(suffix, IndexVerdict.CORRUPT, IndexKind.LENGTH, message))
    if end < len(indexes):
        message = f"{len(indexes)} bytes, {end} expected: what follows is no index of the manifest"
        judged.append(Judgement(INDEXES, IndexVerdict.CORRUPT, IndexKind.LENGTH, message))
    return IndexParts(files, judged)


def _missing(suffix: str) -> Judgement:
    return Judgement(suffix, IndexVerdict.MISSING, None, f"there is no {INDEXES} object")


class _Difference(NamedTuple):
    effect: Effect
    text: str


def judge_manifest(
    manifest: SegmentManifest,
    *,
    folder: TieredFolder,
    name: TieredName,
    stored_bytes: int,
    log: SegmentRecovery | str,
) -> tuple[Judgement, Consequence]:
    """Judge a manifest by names, sizes and the log; ``log``: its recovery, or why not."""
    found = [_Difference(Effect.READS_FAIL, text) for text in _sizes(manifest, stored_bytes)]
    remote = manifest.segment
    if remote is not None:
        found += [_Difference(Effect.READS_FAIL, text) for text in _names(remote, folder, name)]
        if not isinstance(log, str):
            found += _held_against(remote, log)
    if found:
        message = "; ".join(difference.text for difference in found)
        judgement = Judgement(MANIFEST, IndexVerdict.CORRUPT, IndexKind.DISAGREES, message)
        effect = found[0].effect
        return judgement, Consequence(effect, _DISAGREES[effect], _ASK_METADATA)
    if isinstance(log, str):
        judgement = Judgement(MANIFEST, IndexVerdict.UNJUDGED, IndexKind.UNREADABLE, log)
        return judgement, tiered_consequence(judgement)
    message = "names, sizes, offsets, timestamp and leader epochs are those of the log"
    if remote is None:
        message = "sizes are those of the log; it says nothing of offsets and timestamps"
    judgement = Judgement(MANIFEST, IndexVerdict.VALID, None, message)
    return judgement, tiered_consequence(judgement)


_ASK_METADATA = (
    "compare with __remote_log_metadata (kafka-dump-log --remote-log-metadata-decoder);"
    " upload the segment again where that is wrong too"
)
_DISAGREES = {
    Effect.READS_FAIL: "reads of this segment fail, or give another's records",
    Effect.EXPIRES_EARLY: "if announced so too: retention.ms deletes the segment too early",
    Effect.WRONG_LOOKUPS: "if announced so too: searches by offset or time or retention go wrong",
}


def _sizes(manifest: SegmentManifest, stored_bytes: int) -> list[str]:
    chunks = manifest.chunks
    if chunks.stored_bytes != stored_bytes:
        return [f"the .log object has {stored_bytes} bytes, {chunks.stored_bytes} expected"]
    is_plain = not manifest.is_compressed and not manifest.is_encrypted
    if is_plain and chunks.log_bytes != stored_bytes:
        return [f"a log of {chunks.log_bytes} bytes, stored as it is in {stored_bytes}"]
    return []


def _names(remote: RemoteSegment, folder: TieredFolder, name: TieredName) -> list[str]:
    pairs = {
        "segment id": (remote.segment_id, name.segment_id),
        "topic id": (remote.topic_id, folder.topic_id),
        "partition": (remote.partition, folder.partition),
        "startOffset": (remote.start_offset, name.base_offset),
    }
    found = [f"{key} {a}, its name says {b}" for key, (a, b) in pairs.items() if a != b]
    if not folder.topic.endswith(remote.topic):
        found.append(f"topic {remote.topic}, its folder's name says {folder.topic}")
    return found


def _held_against(remote: RemoteSegment, log: SegmentRecovery) -> list[_Difference]:
    found = []
    last_offset = log.next_offset - 1
    if remote.end_offset != last_offset:
        what = "the log ends" if log.damage is None else "the log can be read up to, and ends,"
        text = f"endOffset {remote.end_offset}, {what} at {last_offset}"
        found.append(_Difference(Effect.WRONG_LOOKUPS, text))
    if 0 <= log.max_timestamp != remote.max_timestamp_ms:
        early = remote.max_timestamp_ms < log.max_timestamp
        effect = Effect.EXPIRES_EARLY if early else Effect.WRONG_LOOKUPS
        text = f"maxTimestampMs {remote.max_timestamp_ms}, the log's is {log.max_timestamp}"
        found.append(_Difference(effect, text))
    for epoch, start_offset in log.leader_epochs.tolist():
        told = _epoch_at(remote.leader_epochs, start_offset)
        if told != epoch:
            text = f"leader epoch {told} at offset {start_offset}, the log's is {epoch}"
            found.append(_Difference(Effect.WRONG_LOOKUPS, text))
            break
    return found


def _epoch_at(epochs: list[EpochStart], offset: int) -> int | None:
    return max((found.epoch for found in epochs if found.start_offset <= offset), default=None)


def consequence_anywhere(
    judgement: Judgement, state: SegmentState, version: Version, recovered: str | None
) -> Consequence:
    """Return what a broker does with a file, on its disk or in tiered storage."""
    if state.is_tiered:
        return tiered_consequence(judgement)
    if judgement.kind in ODD_KINDS and version >= KNOWN_SINCE.get(judgement.suffix, (0,)):
        return odd_index_consequence(judgement, state, version, recovered)
    return consequence_of(judgement, state, version, recovered)


def tiered_consequence(judgement: Judgement) -> Consequence:
    """Return what a broker does with an object, or with an index that is cut out of one."""
    by_kind = _BY_KIND.get(judgement.kind) if judgement.kind is not None else None
    if by_kind is not None:
        return by_kind
    if judgement.verdict == IndexVerdict.UNJUDGED:
        text = f"nothing is known of it: {judgement.message}"
        return Consequence(Effect.UNKNOWN, text, "mend or restore what is named first")
    if judgement.verdict in (IndexVerdict.IDENTICAL, IndexVerdict.VALID):
        return Consequence(Effect.TRUSTED, "taken as it is, and right", _NOTHING)
    if judgement.refused_below in (V2_3, EVERY_VERSION):
        text = "fails the sanity check of the broker's cache: reads of this segment fail"
        return Consequence(Effect.READS_FAIL, text, _UPLOAD_AGAIN)
    return _of_a_part(judgement)


def _of_a_part(judgement: Judgement) -> Consequence:
    suffix, verdict, kind = judgement.suffix, judgement.verdict, judgement.kind
    if suffix in (SNAPSHOT, LEADER_EPOCHS):
        text = "a replica whose log begins behind this segment is built from it, and cannot be"
        return Consequence(Effect.REPLICA_FAILS, text, _RESTORE)
    if suffix == TXN_INDEX:
        text = "readers of committed records get aborted ones, or miss committed ones"
        return Consequence(Effect.WRONG_LOOKUPS, text, _RESTORE)
    if suffix == INDEXES:
        return Consequence(Effect.NEVER_READ, "what follows the indexes is not read", _ASK)
    if suffix == MANIFEST or verdict == IndexVerdict.MISSING or kind == IndexKind.LENGTH:
        text = "it cannot be had: reads of this segment fail"
        return Consequence(Effect.READS_FAIL, text, _RESTORE)
    if kind == IndexKind.EMPTY:
        text = "right, but lookups read from the segment's beginning"
        return Consequence(Effect.SLOW, text, _UPLOAD_AGAIN)
    if suffix == TIME_INDEX:
        text = "searches by time in this segment go astray; retention does not look at it"
        return Consequence(Effect.WRONG_TIMES, text, _UPLOAD_AGAIN)
    text = "fetches start at wrong bytes: records are missed, or errors"
    return Consequence(Effect.WRONG_LOOKUPS, text, _UPLOAD_AGAIN)


GAP = Consequence(
    Effect.READS_FAIL,
    "fetches of these offsets find no remote segment, unless a replica has them on its disks",
    "look for the segment on the replicas' disks, in backups, and among incomplete uploads",
)
OVERLAP = Consequence(
    Effect.STORED_TWICE,
    "normal after a change of the leader: brokers read what their leader epochs lead to",
    "`internals tier` tells whether both are announced: if so nothing, as retention deletes both;"
    " one that is not costs its space until it is removed",
)
_BY_KIND = {
    IndexKind.NO_MANIFEST: Consequence(
        Effect.NEVER_READ,
        "an upload under way, or one that failed: no broker reads it",
        "if it is older than any upload takes: " + _ASK,
    ),
    IndexKind.NO_LOG: Consequence(Effect.READS_FAIL, "reads of this segment fail", _RESTORE),
    IndexKind.SECOND_COPY: OVERLAP,
    IndexKind.NO_SEGMENT: Consequence(Effect.NEVER_READ, "no broker reads it", _ASK),
}
