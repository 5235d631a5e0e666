"""Judge the files of a partition's folder that belong to no segment that is there.

Source: ProducerStateManager.readSnapshot, LogLoader.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from itertools import pairwise
from typing import NamedTuple

from kafka_segments.errors import CorruptIndexError, CorruptTextError
from kafka_segments.kafka.broker_rules.index_files.judgement import (
    SNAPSHOT,
    IndexKind,
    IndexVerdict,
    Judgement,
)
from kafka_segments.kafka.broker_rules.start.epochs import (
    LogAtStart,
    SnapshotFate,
    epochs_behind,
    snapshot_fate,
)
from kafka_segments.kafka.broker_rules.versions import Version
from kafka_segments.kafka.index.log.snapshots import decode_snapshot
from kafka_segments.kafka.text.checkpoints import LEADER_EPOCHS, EpochStart, parse_leader_epochs
from kafka_segments.verbs.judge.audit.decide.consequences import (
    OFFLINE,
    Consequence,
    Effect,
    orphan_consequence,
)

_INDEX_FILE = re.compile(
    r"([0-9]{20}(?:-[0-9A-Za-z_-]{22,36})?)(\.index|\.timeindex|\.txnindex)", re.ASCII
)
_SNAPSHOT_FILE = re.compile(r"[0-9]{20}\.snapshot", re.ASCII)
_SINCE = (0, 11)
_NOTHING = "nothing"
_FIND_RECORDS = "find out where the records behind the log's end are before the broker starts"
_READ = (SnapshotFate.KEPT, SnapshotFate.MADE_ANEW)


class LogFile(NamedTuple):
    """A file of a partition's folder, judged."""

    name: str
    base_offset: int | None
    judgement: Judgement
    consequence: Consequence


def orphans(names: Collection[str], version: Version) -> list[LogFile]:
    """Return the index files whose segment is not among ``names``."""
    found = []
    for name in sorted(names):
        match = _INDEX_FILE.fullmatch(name)
        if match is None or f"{match[1]}.log" in names:
            continue
        message = f"there is no {match[1]}.log"
        judgement = Judgement(match[2], IndexVerdict.ORPHAN, IndexKind.NO_SEGMENT, message)
        found.append(LogFile(name, int(match[1][:20]), judgement, orphan_consequence(version)))
    return found


def is_judged_whole(name: str) -> bool:
    """Return whether ``judge_log_files`` judges files of this name."""
    return name == LEADER_EPOCHS or _SNAPSHOT_FILE.fullmatch(name) is not None


def _not_known() -> None:
    """Tell nothing of a log's batches."""


def judge_log_files(
    files: Mapping[str, bytes],
    log: LogAtStart,
    version: Version,
    has_epochs: Callable[[], bool | None] = _not_known,
) -> Iterator[LogFile]:
    """Judge a log's producer snapshots and its leader epochs, by name, and what lacks of them.

    ``has_epochs``: tells whether a batch has a leader epoch, None: not known. It is called only
    where no file names one.
    """
    reasons = {
        int(name[:20]): _bad_snapshot(data)
        for name, data in files.items()
        if name.endswith(SNAPSHOT)
    }
    right = [offset for offset, reason in reasons.items() if reason is None]
    newest = max((offset for offset in right if snapshot_fate(offset, log) in _READ), default=-1)
    for name in sorted(files):
        if name == LEADER_EPOCHS:
            yield _judge_epochs(files[name], log, version, has_epochs)
        else:
            yield _judge_snapshot(name, reasons[int(name[:20])], log, newest, version)
    if LEADER_EPOCHS not in files and version >= _SINCE and has_epochs():
        judgement = Judgement(
            LEADER_EPOCHS, IndexVerdict.MISSING, None, "no such file, and batches have epochs"
        )
        yield LogFile(LEADER_EPOCHS, None, judgement, _without_epochs(log))


def _judge_snapshot(
    name: str, reason: str | None, log: LogAtStart, newest_right: int, version: Version
) -> LogFile:
    offset = int(name[:20])
    if version < _SINCE:
        return _ignored(name, offset, SNAPSHOT, reason, version)
    fate = snapshot_fate(offset, log)
    if fate == SnapshotFate.MADE_ANEW:
        text = "deleted at start and made anew: the segment there or before is recovered"
        found = Consequence(Effect.REBUILT, text, _NOTHING)
    elif fate == SnapshotFate.BEYOND_END:
        found = Consequence(Effect.DELETED, f"deleted at start: it lies {fate}", _FIND_RECORDS)
    elif fate != SnapshotFate.KEPT:
        found = Consequence(Effect.DELETED, f"deleted at start: it lies {fate}", _NOTHING)
    elif reason is None:
        found = Consequence(Effect.TRUSTED, "read as it is", _NOTHING)
    elif offset < newest_right:
        text = f"not read: the one at {newest_right} is newer"
        found = Consequence(Effect.NEVER_READ, text, _NOTHING)
    else:
        text = "deleted at start, the one before it is used and the log read from there"
        found = Consequence(Effect.DELETED, text, _NOTHING)
    if reason is not None:
        judgement = Judgement(SNAPSHOT, IndexVerdict.CORRUPT, IndexKind.BAD_CONTENT, reason)
    elif fate == SnapshotFate.BEYOND_END:
        message = f"of offset {offset}, the log ends at offset {log.end_offset}"
        judgement = Judgement(SNAPSHOT, IndexVerdict.STALE, IndexKind.BEYOND_LOG, message)
    else:
        kind = IndexKind.NO_SEGMENT if fate == SnapshotFate.STRAY else None
        message = "its checksum and length are right"
        judgement = Judgement(SNAPSHOT, IndexVerdict.VALID, kind, message)
    return LogFile(name, offset, judgement, found)


def _bad_snapshot(data: bytes) -> str | None:
    try:
        decode_snapshot(data)
    except CorruptIndexError as error:
        return str(error)
    return None


def _judge_epochs(
    data: bytes, log: LogAtStart, version: Version, has_epochs: Callable[[], bool | None]
) -> LogFile:
    epochs, kind, reason = _read_epochs(data)
    if version < _SINCE:
        return _ignored(LEADER_EPOCHS, None, LEADER_EPOCHS, reason, version)
    verdict = IndexVerdict.CORRUPT
    action = "with the broker stopped put a rebuilt or saved one in its place"
    behind = epochs_behind(epochs, log)
    if reason is not None and kind == IndexKind.OUT_OF_ORDER:
        text = "entries before one that goes back are dropped, the epochs that they began are lost"
        found = Consequence(Effect.LOSES_EPOCHS, text, action)
    elif reason is not None:
        found = Consequence(Effect.FAILS, f"it cannot be read at start: {OFFLINE}", action)
    elif behind:
        first, verdict, kind = behind[0], IndexVerdict.STALE, IndexKind.BEYOND_LOG
        reason = (
            f"epoch {first.epoch} begins at offset {first.start_offset}, the log ends at offset"
            f" {log.end_offset}"
        )
        text = f"dropped at start: the epochs from {first.epoch} on"
        found = Consequence(Effect.LOSES_EPOCHS, text, _FIND_RECORDS)
    elif not epochs and has_epochs():
        verdict, kind = IndexVerdict.NEVER_WRITTEN, IndexKind.EMPTY
        reason, found = "no entries, and batches have epochs", _without_epochs(log)
    else:
        return _sound(LEADER_EPOCHS, None, LEADER_EPOCHS, _right_epochs(log))
    return LogFile(LEADER_EPOCHS, None, Judgement(LEADER_EPOCHS, verdict, kind, reason), found)


def _right_epochs(log: LogAtStart) -> str:
    text = "epochs and offsets ascend"
    return text if log.end_offset is not None else f"{text}; the log's end is not known"


def _without_epochs(log: LogAtStart) -> Consequence:
    """Return what a start makes of a log whose epochs are gone."""
    action = (
        "with the broker stopped put a rebuilt one in its place (build --recovery loader-missing)"
    )
    text = "the epochs so far are lost, and the file goes on with the next leader's alone"
    if log.recovered_from is None:
        return Consequence(Effect.LOSES_EPOCHS, text, action)
    if log.recovered_from <= log.bases[0]:
        return Consequence(
            Effect.REBUILT, "made anew: all segments are recovered at start", _NOTHING
        )
    text = f"those below offset {log.recovered_from} are lost: later segments are recovered"
    return Consequence(Effect.LOSES_EPOCHS, text, action)


def _read_epochs(data: bytes) -> tuple[list[EpochStart], IndexKind | None, str | None]:
    try:
        entries = parse_leader_epochs(data.decode("utf-8"))
    except (CorruptTextError, UnicodeDecodeError) as error:
        return [], IndexKind.BAD_CONTENT, str(error)
    for before, after in pairwise(entries):
        if after.epoch <= before.epoch or after.start_offset <= before.start_offset:
            return (
                entries,
                IndexKind.OUT_OF_ORDER,
                f"epoch {after.epoch} at offset {after.start_offset} follows epoch"
                f" {before.epoch} at {before.start_offset}",
            )
    return entries, None, None


def _sound(name: str, base_offset: int | None, suffix: str, message: str) -> LogFile:
    judgement = Judgement(suffix, IndexVerdict.VALID, None, message)
    return LogFile(
        name, base_offset, judgement, Consequence(Effect.TRUSTED, "read as it is", _NOTHING)
    )


def _ignored(
    name: str, base_offset: int | None, suffix: str, reason: str | None, version: Version
) -> LogFile:
    verdict = IndexVerdict.VALID if reason is None else IndexVerdict.CORRUPT
    judgement = Judgement(suffix, verdict, None, reason or "sound")
    text = f"Kafka {'.'.join(map(str, version))} knows no such files"
    return LogFile(name, base_offset, judgement, Consequence(Effect.IGNORED, text, _NOTHING))
