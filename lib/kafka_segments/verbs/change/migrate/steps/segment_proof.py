"""Prove that one staged segment holds the records of the first one, and fits its index files."""

from pathlib import Path
from typing import Any, NamedTuple

from kafka_segments.errors import CorruptIndexError, FileChangedError, SetAsideError
from kafka_segments.files.changes.backups import FileState, state_of
from kafka_segments.files.segments.digest import RecordDigest, RecordDigester
from kafka_segments.files.storage.files import first_line, open_segment, place
from kafka_segments.kafka.index.segment.offset_index import check_offset_index
from kafka_segments.kafka.index.segment.recovery import SegmentRecoverer
from kafka_segments.kafka.index.segment.time_index import check_time_index
from kafka_segments.kafka.text.moments import mtime_text
from kafka_segments.kafka.text.names import OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX, file_name
from kafka_segments.verbs.change.migrate.migrated_indexes import MigratedIndexes
from kafka_segments.verbs.change.migrate.planned_segment import MigrationRules, PlannedSegment
from kafka_segments.verbs.change.migrate.staged_log import (
    Side,
    StagedLog,
    log_state,
    manifest_of,
)

_CHECKS = {OFFSET_INDEX_SUFFIX: check_offset_index, TIME_INDEX_SUFFIX: check_time_index}
Proof = dict[str, Any]


class _Folders(NamedTuple):
    before: Path
    after: Path
    first_files: dict[str, FileState]
    migrated_files: dict[str, FileState]


class SegmentProver:
    """Proves segments one after another, with buffers that are made once."""

    def __init__(self, rules: MigrationRules) -> None:
        self._recoverer = SegmentRecoverer(rules.recovery)
        self._indexes = MigratedIndexes(rules.without_timestamps)
        self._digester = RecordDigester()
        self._logs: dict[StagedLog, _Folders] = {}

    def prove(self, segment: PlannedSegment) -> Proof:
        """Compare a segment before and after; return the proof, whose ``problem`` says what fails.

        1. Both logs, and the staged index files, have the bytes of the manifest.
        2. The records of both, without their timestamps, have the same digest.
        3. Recovery of the migrated log reaches its last byte and the same offset, and makes its
           index files.
        4. The index files pass Kafka's sanity checks.
        """
        proof: Proof = {"problem": None}
        try:
            self._prove(segment, proof)
        except (SetAsideError, CorruptIndexError, OSError, FileChangedError) as error:
            proof["problem"] = first_line(error)
        return proof

    def _prove(self, segment: PlannedSegment, proof: Proof) -> None:
        if segment.log not in self._logs:
            self._logs = {segment.log: _folders(segment.log)}
        before, after, first_files, migrated_files = self._logs[segment.log]
        name = segment.path.name
        first = _checked(before / name, first_files)
        migrated = _checked(after / name, migrated_files)
        proof["migrated_size_bytes"] = migrated.size_bytes
        self._compare_records(before / name, after / name, first.sha256 == migrated.sha256, proof)
        if first.mtime_ns != migrated.mtime_ns:
            raise SetAsideError(
                after / name,
                f"its mtime is {mtime_text(migrated.mtime_ns)}, that of the first log"
                f" {mtime_text(first.mtime_ns)}: plan again",
            )
        recoveries = [
            self._indexes.make_of_log(self._recoverer, segment, folder / name)
            for folder in (before, after)
        ]
        behind = recoveries[1][0].truncated_bytes
        if behind:
            raise SetAsideError(after / name, f"recovery would cut off its last {behind} bytes")
        ends = [recovery.next_offset for recovery, _ in recoveries]
        if ends[0] != ends[1]:
            raise SetAsideError(after / name, f"it ends at offset {ends[1]}, before at {ends[0]}")
        for suffix, data in recoveries[1][1].items():
            index = after / file_name(segment.base_offset, suffix)
            _checked(index, migrated_files)
            found = index.read_bytes()
            if found != data:
                raise SetAsideError(index, "it is not what recovery of its log writes: plan again")
            _CHECKS[suffix](found, base_offset=segment.base_offset)

    def _compare_records(self, before: Path, after: Path, is_same: bool, proof: Proof) -> None:
        """Compare the records' digests; read one log alone where both have the same bytes."""
        first = self._digest(before)
        migrated = first if is_same else self._digest(after)
        proof |= {
            "record_count": first.record_count,
            "digest": first.sha256,
            "migrated_record_count": migrated.record_count,
            "migrated_digest": migrated.sha256,
        }
        if is_same:
            return
        if first.undecodable or migrated.undecodable:
            reason = first.undecodable or migrated.undecodable
            raise SetAsideError(after, f"its records cannot all be compared: {reason}")
        if first != migrated:
            raise SetAsideError(
                after,
                f"its {migrated.record_count} records are not the {first.record_count} of {before}",
            )

    def _digest(self, log: Path) -> RecordDigest:
        with open_segment(place(str(log))) as opened:
            return self._digester.digest(opened.read_into, size_bytes=opened.size_bytes)


def _folders(log: StagedLog) -> _Folders:
    state = log_state(log)
    if not state.is_staged or state.side is None:
        raise SetAsideError(log.folder, state.message)
    manifest = manifest_of(log)
    before, after = log.folder, log.other
    if state.side is Side.AFTER:
        before, after = after, before
    sides = manifest.before, manifest.after
    known = ({file.name: file for file in side.files} for side in sides)
    return _Folders(before, after, *known)


def _checked(path: Path, known: dict[str, FileState]) -> FileState:
    """Return the state of a file; refuse one that is not as in the manifest."""
    found = state_of(path)
    if found != known.get(path.name):
        raise SetAsideError(path, "it is not as the manifest says: plan again")
    return found
