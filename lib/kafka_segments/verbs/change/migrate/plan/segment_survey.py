"""Look at one segment before its migration: its log, and the index files beside it."""

from collections.abc import Iterator
from typing import Any

from kafka_segments.errors import FileChangedError
from kafka_segments.files.changes.index_files import MOST_INDEX_BYTES
from kafka_segments.files.segments.chunks import ChunkOptions, ChunkReader
from kafka_segments.files.segments.converter import SegmentConverter
from kafka_segments.files.storage.files import (
    OpenSegment,
    first_line,
    open_segment,
    place,
    read_if_there,
)
from kafka_segments.kafka.broker_rules.index_files.judgement import LogFacts
from kafka_segments.kafka.broker_rules.index_files.segment import judge_segment
from kafka_segments.kafka.index.segment.recovered_segment import DamageKind, SegmentRecovery
from kafka_segments.kafka.index.segment.recovery import SegmentRecoverer
from kafka_segments.kafka.text.names import OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX, TXN_INDEX_SUFFIX
from kafka_segments.kafka.wire.batches import Batches
from kafka_segments.kafka.wire.header_layout import MAGIC_V2
from kafka_segments.verbs.change.migrate.migrated_indexes import MigratedIndexes
from kafka_segments.verbs.change.migrate.planned_segment import MigrationRules, PlannedSegment

_SUFFIXES = (OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX)
_QUORUM_STATE = "quorum-state"
# A load without index files fails at these; `--damaged cut` takes such a load as its rule.
_NOT_LOADED = (
    DamageKind.BAD_MARKER,
    DamageKind.OFFSET_GOES_BACK,
    DamageKind.UNREADABLE_CUT,
)
Facts = dict[str, Any]


class SegmentSurveyor:
    """Looks at segments one after another, with buffers that are made once."""

    def __init__(self, rules: MigrationRules) -> None:
        self._rules = rules
        self._recoverer = SegmentRecoverer(rules.recovery)
        self._indexes = MigratedIndexes(rules.without_timestamps)
        self._headers = ChunkReader(ChunkOptions(needs_body=False, check_crc=False))
        self._converter = SegmentConverter(rules.conversion)

    def survey(self, segment: PlannedSegment) -> Facts:
        """Return the facts for a plan; ``problem`` says why a segment cannot be migrated.

        ``index_findings`` says how the index files beside the segment differ from those that it
        gets.
        """
        facts: Facts = {"index_findings": [], "conversion_hazards": []}
        try:
            with open_segment(place(str(segment.path))) as opened:
                recovery = self._recoverer.recover(
                    opened.read_into,
                    size_bytes=opened.size_bytes,
                    base_offset=segment.base_offset,
                    written_bytes=opened.written_bytes,
                )
                facts |= self._log_facts(recovery)
                facts["unmodelled"] = _unmodelled(segment)
                if facts["problem"] is None:
                    facts["index_findings"] = self._index_findings(segment, opened, recovery)
                    facts |= self._conversion(segment, opened, recovery)
        except (OSError, FileChangedError) as error:
            facts["problem"] = f"it cannot be read: {first_line(error)}"
        return facts

    def _log_facts(self, recovery: SegmentRecovery) -> Facts:
        damage = recovery.damage
        message = None if damage is None else f"{damage.message}, byte {damage.position}"
        problem = None
        is_loaded = recovery.offset_entries is not None and recovery.time_entries is not None
        if not is_loaded or (damage is not None and damage.kind in _NOT_LOADED):
            problem = f"a broker would not load it: {message}"
        elif recovery.truncated_bytes and not self._rules.cut_damaged:
            problem = (
                f"a broker's recovery would cut off {recovery.truncated_bytes} bytes from byte"
                f" {recovery.valid_bytes} on ({message}): take its log from another replica, or"
                " plan with --damaged cut"
            )
        return {
            "magics": list(recovery.magics),
            "batch_count": recovery.batch_count,
            "max_timestamp_ms": recovery.max_timestamp,
            "damage": message,
            "problem": problem,
            "cut_bytes": recovery.truncated_bytes if problem is None else None,
        }

    def _conversion(
        self, segment: PlannedSegment, opened: OpenSegment, recovery: SegmentRecovery
    ) -> Facts:
        """Convert without writing; return nothing if no conversion is asked for, or all is v2."""
        if not self._rules.convert or not _is_legacy(recovery):
            return {}
        made = self._converter.convert(
            opened.read_into,
            lambda _: None,
            size_bytes=opened.size_bytes,
            timestamp_ms=segment.timestamp_ms(self._rules),
        )
        if made.refusal is not None:
            where = f"byte {made.refusal.position}"
            return {"conversion_refusal": f"{made.refusal.message}, {where}"}
        return {
            "converted_bytes": made.converted_bytes,
            "largest_batch_bytes": made.largest_batch_bytes,
            "conversion_hazards": [
                f"{hazard.message} ({hazard.count} batches)" for hazard in made.hazards
            ],
        }

    def _index_findings(
        self, segment: PlannedSegment, opened: OpenSegment, recovery: SegmentRecovery
    ) -> list[str]:
        wanted = self._indexes.make(
            recovery, opened.read_into, base_offset=segment.base_offset, around=segment.around
        )
        found = {
            suffix: read_if_there(
                place(str(segment.path.with_suffix(suffix))), most_bytes=MOST_INDEX_BYTES
            )
            for suffix in _SUFFIXES
        }
        different = [suffix for suffix in _SUFFIXES if found[suffix] != wanted[suffix]]
        if not different:
            return []
        judged = self._judged(found, segment, opened, recovery)
        return [f"{suffix} {judged[suffix]}" for suffix in different]

    def _judged(
        self,
        found: dict[str, bytes | None],
        segment: PlannedSegment,
        opened: OpenSegment,
        recovery: SegmentRecovery,
    ) -> dict[str, str]:
        """Return, by suffix, how the index files differ from those of recovery."""
        offsets, times = recovery.offset_entries, recovery.time_entries
        if offsets is None or times is None:
            return {}
        log = LogFacts(
            base_offset=segment.base_offset,
            next_offset=recovery.next_offset,
            valid_bytes=recovery.valid_bytes,
            max_timestamp=recovery.max_timestamp,
            index_interval_bytes=self._rules.index_interval_bytes,
            offset_entries=offsets,
            time_entries=times,
        )

        def walk() -> Iterator[Batches]:
            for chunk in self._headers.read(opened.read_into, size_bytes=recovery.valid_bytes):
                yield chunk.batches

        files = {**found, TXN_INDEX_SUFFIX: None}
        return {
            judgement.suffix: f"{judgement.verdict}: {judgement.message}"
            for judgement in judge_segment(files, log, walk)
        }


def _is_legacy(recovery: SegmentRecovery) -> bool:
    return any(magic < MAGIC_V2 for magic in recovery.magics)


def _unmodelled(segment: PlannedSegment) -> str | None:
    """Return why a log has other rules than a topic's; None: it has the same."""
    if (segment.path.parent / _QUORUM_STATE).exists():
        return f"it has {_QUORUM_STATE}: the log of a Raft quorum, which has rules of its own"
    return None
