"""Judge the files of a partition's folder that belong to no segment that is there.

A producer ``.snapshot`` is an int16 version (1), a uint32 CRC-32C of all that follows it, an int32
count and 46 bytes a producer. Source: ProducerStateManager.readSnapshot, LogLoader.
"""

import re
import struct
from collections.abc import Collection
from itertools import pairwise
from typing import NamedTuple

from kafka_segments.audit.decide.consequences import Consequence, Effect, orphan_consequence
from kafka_segments.audit.decide.judgement import SNAPSHOT, IndexKind, IndexVerdict, Judgement
from kafka_segments.broker_rules.versions import Version
from kafka_segments.errors import CorruptTextError
from kafka_segments.wire.checkpoints import LEADER_EPOCHS, parse_leader_epochs
from kafka_segments.wire.crc import crc32c

_INDEX_FILE = re.compile(
    r"([0-9]{20}(?:-[0-9A-Za-z_-]{22,36})?)(\.index|\.timeindex|\.txnindex)", re.ASCII
)
_SNAPSHOT_FILE = re.compile(r"[0-9]{20}\.snapshot", re.ASCII)
_HEADER = struct.Struct(">hIi")
_CRC_COVERS_FROM = 6
_PRODUCER_BYTES = 46
_SINCE = (0, 11)
_NOTHING = "nothing"


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
    """Return whether ``judge_log_file`` judges files of this name."""
    return name == LEADER_EPOCHS or _SNAPSHOT_FILE.fullmatch(name) is not None


def judge_log_file(name: str, data: bytes, version: Version) -> LogFile:
    """Judge a producer snapshot or the leader epoch file by its own bytes."""
    if name == LEADER_EPOCHS:
        return _judge_epochs(data, version)
    reason = _bad_snapshot(data)
    base_offset = int(name[:20])
    if version < _SINCE:
        return _ignored(name, base_offset, SNAPSHOT, reason, version)
    if reason is None:
        return _sound(name, base_offset, SNAPSHOT, "its checksum and length are right")
    judgement = Judgement(SNAPSHOT, IndexVerdict.CORRUPT, IndexKind.BAD_CONTENT, reason)
    text = "deleted at start, the one before it is used and the log read from there"
    return LogFile(name, base_offset, judgement, Consequence(Effect.DELETED, text, _NOTHING))


def _bad_snapshot(data: bytes) -> str | None:
    if len(data) < _HEADER.size:
        return f"{len(data)} bytes, at least {_HEADER.size} expected"
    version, crc, count = _HEADER.unpack_from(data)
    expected = _HEADER.size + _PRODUCER_BYTES * count
    if version != 1:
        return f"version {version}, 1 expected"
    found = crc32c(data[_CRC_COVERS_FROM:])
    if found != crc:
        return f"checksum is {found:#010x}, the file says {crc:#010x}"
    if len(data) != expected:
        return f"{len(data)} bytes, {expected} expected for {count} producers"
    return None


def _judge_epochs(data: bytes, version: Version) -> LogFile:
    kind, reason = _bad_epochs(data)
    if version < _SINCE:
        return _ignored(LEADER_EPOCHS, None, LEADER_EPOCHS, reason, version)
    if reason is None:
        return _sound(LEADER_EPOCHS, None, LEADER_EPOCHS, "epochs and offsets ascend")
    judgement = Judgement(LEADER_EPOCHS, IndexVerdict.CORRUPT, kind, reason)
    effect, text = Effect.FAILS, "the broker cannot read it and does not load the log"
    if kind == IndexKind.OUT_OF_ORDER:
        effect, text = Effect.WRONG_LOOKUPS, "entries before one that goes back are dropped:"
        text += " a replica may be truncated at a wrong offset"
    action = "with the broker stopped put a rebuilt or saved one in its place"
    return LogFile(LEADER_EPOCHS, None, judgement, Consequence(effect, text, action))


def _bad_epochs(data: bytes) -> tuple[IndexKind | None, str | None]:
    try:
        entries = parse_leader_epochs(data.decode("utf-8"))
    except (CorruptTextError, UnicodeDecodeError) as error:
        return IndexKind.BAD_CONTENT, str(error)
    for before, after in pairwise(entries):
        if after.epoch <= before.epoch or after.start_offset <= before.start_offset:
            return (
                IndexKind.OUT_OF_ORDER,
                f"epoch {after.epoch} at offset {after.start_offset} follows epoch"
                f" {before.epoch} at {before.start_offset}",
            )
    return None, None


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
