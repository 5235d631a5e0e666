"""Fold the segments that were read of a log as a broker loads it; write the files of the log.

What comes out is what the broker has after an unclean start with the same files: producer
snapshots, aborted transactions, leader epochs, the end of the log. Then the log is rolled: an empty
segment begins at its end. A broker reads the segment that holds the recovery point again, so
without the empty one it would read the last segment of each log.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from kafka_segments.files.storage.files import open_segment, place
from kafka_segments.kafka.broker_rules.start.cuts import TORN
from kafka_segments.kafka.index.log.load import LogLoad
from kafka_segments.kafka.index.log.loading import LoadOptions, LogFiles
from kafka_segments.kafka.index.log.producer_state import ProducerState
from kafka_segments.kafka.index.log.rereading import producers_between, reaches
from kafka_segments.kafka.index.log.snapshots import decode_snapshot
from kafka_segments.kafka.index.segment.producer_summary import ProducerSummary
from kafka_segments.kafka.index.segment.recovered_segment import DamageKind, SegmentSummary
from kafka_segments.kafka.index.segment.recovery import SegmentRecoverer
from kafka_segments.kafka.index.segment.recovery_options import RecoveryOptions
from kafka_segments.kafka.index.segment.transaction_index import encode_transaction_index
from kafka_segments.kafka.text.checkpoints import LEADER_EPOCHS
from kafka_segments.kafka.text.names import (
    LOG_SUFFIX,
    OFFSET_INDEX_SUFFIX,
    SNAPSHOT_SUFFIX,
    TIME_INDEX_SUFFIX,
    TXN_INDEX_SUFFIX,
    file_name,
)
from kafka_segments.kafka.wire.reading import ReadInto
from kafka_segments.verbs.change.recovery.kit.plan import LogPlan
from kafka_segments.verbs.change.recovery.kit.scan import ScannedSegment, put_into
from kafka_segments.verbs.change.recovery.kit_manifest import Cut, KitState, LogKit, NewFile

_OF_AN_EMPTY_SEGMENT = (OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX, LOG_SUFFIX)  # in this order


class FoldSettings(NamedTuple):
    """The broker's settings and clock; they cross to the executors."""

    recovery: RecoveryOptions
    now_ms: int
    expiration_ms: int


def fold_log(
    plan: LogPlan, segments: Sequence[ScannedSegment], into: Path, settings: FoldSettings
) -> LogKit:
    """Return what the kit says of a log; its files lie in ``into``.

    ``segments`` are all that were planned, in the order of their base offsets.

    Raises:
        OSError: a file cannot be read or written.
    """
    refused = _why_refused(segments)
    if refused is not None:
        return plan.kit(KitState.REFUSED, refused)
    return _FoldedLog(plan, segments, into, settings).kit()


def _why_refused(segments: Sequence[ScannedSegment]) -> str | None:
    """Return why the segments are left to the broker; None: they have a torn tail at most."""
    for segment in segments:
        damage, base = segment.damage, segment.seen.base_offset
        if segment.summary.producers.goes_back():
            return f"segment {base}: offsets go back"
        if damage is None:
            continue
        said = f"segment {base}, byte {damage.position}: {damage.message}"
        if damage.kind not in TORN:
            return said
        if segment is not segments[-1]:
            return f"{said}; later segments follow, which the broker would remove"
        tail = segment.tail
        if tail is not None and tail.sound_at is not None:
            return f"{said}; sound batches follow at byte {tail.sound_at}, which it would cut off"
        if segment.has_old_messages and damage.kind != DamageKind.PREALLOCATED_TAIL:
            return f"{said}; it has messages v0 or v1, whose torn tails are not told from damage"
    return None


class _FoldedLog:
    def __init__(
        self,
        plan: LogPlan,
        segments: Sequence[ScannedSegment],
        into: Path,
        settings: FoldSettings,
    ) -> None:
        self._plan = plan
        self._segments = segments
        self._into = into
        self._recoverer = SegmentRecoverer(settings.recovery)
        options = LoadOptions(
            now_ms=settings.now_ms,
            expiration_ms=settings.expiration_ms,
            log_start_offset=plan.log_start,
        )
        self._load = LogLoad(options, True, self._read_again, self._reaches)
        self._files: list[NewFile] = []

    def kit(self) -> LogKit:
        plan, last = self._plan, self._segments[-1]
        self._load.resume(
            first_base=plan.first_base, snapshot=self._snapshot(), epochs=list(plan.epochs)
        )
        for segment in self._segments:
            refused = self._take(segment)
            if refused is not None:
                return plan.kit(KitState.REFUSED, refused)
        end = last.summary.next_offset
        found = self._load.finish()
        if found.leader_epochs is None:
            said = "" if found.refused is None else f": {found.refused.message}"
            return plan.kit(KitState.REFUSED, f"a broker does not load the log{said}")
        if end < plan.log_start:
            reason = f"it ends at {end}, below its log start offset {plan.log_start}"
            return plan.kit(KitState.REFUSED, f"{reason}: a broker removes all of its segments")
        if end < plan.recovery_point:
            reason = f"it ends at {end}, its recovery point is {plan.recovery_point}"
            return plan.kit(KitState.REFUSED, f"{reason}: what its broker had synced is lost")
        self._put_files_of_log(found, end, is_empty=not last.summary.valid_bytes)
        return LogKit(
            log=plan.log,
            topic=plan.topic,
            partition=plan.partition,
            state=KitState.READY,
            segments=tuple(segment.seen for segment in self._segments),
            files=tuple(self._files),
            cut=_cut(last),
            recovery_point=plan.recovery_point,
            next_recovery_point=end,
        )

    def _snapshot(self) -> tuple[int, ProducerState] | None:
        offset = self._plan.snapshot
        if offset is None:
            return None
        data = Path(self._plan.folder, file_name(offset, SNAPSHOT_SUFFIX)).read_bytes()
        return offset, decode_snapshot(data)

    def _take(self, segment: ScannedSegment) -> str | None:
        """Take the next segment; return why a broker would not load the log, None: it would."""
        base = segment.seen.base_offset
        verdict = self._load.take(segment.summary)
        if verdict.damage is not None:
            return f"segment {base}: {verdict.damage.message}"
        self._files += segment.files
        name = file_name(base, TXN_INDEX_SUFFIX)
        aborted = encode_transaction_index(verdict.aborted)
        is_made = aborted is not None or name in self._plan.txn_indexes
        if is_made and base in self._plan.recovered:
            self._put(name, aborted or b"")  # as recovery, which empties a file but removes none
        if verdict.snapshot is not None and base != self._plan.snapshot:
            self._put(file_name(base, SNAPSHOT_SUFFIX), verdict.snapshot)
        return None

    def _put_files_of_log(self, found: LogFiles, end: int, *, is_empty: bool) -> None:
        for offset, data in found.snapshots.items():
            self._put(file_name(offset, SNAPSHOT_SUFFIX), data)
        if found.leader_epochs:  # else the broker's file stays as it is
            self._put(LEADER_EPOCHS, found.leader_epochs)
        for suffix in () if is_empty else _OF_AN_EMPTY_SEGMENT:
            self._put(file_name(end, suffix), b"")

    def _put(self, name: str, data: bytes) -> None:
        self._files.append(put_into(self._into, name, data))

    @contextmanager
    def _opened(self, segment: SegmentSummary) -> Iterator[ReadInto]:
        path = f"{self._plan.folder}/{file_name(segment.base_offset, LOG_SUFFIX)}"
        with open_segment(place(path)) as opened:
            yield opened.read_into

    def _read_again(
        self, segment: SegmentSummary, start_offset: int, end_offset: int | None
    ) -> ProducerSummary:
        with self._opened(segment) as read_into:
            return producers_between(
                self._recoverer,
                read_into,
                size_bytes=segment.valid_bytes,
                base_offset=segment.base_offset,
                start_offset=start_offset,
                end_offset=end_offset,
            )

    def _reaches(self, segment: SegmentSummary, offset: int | None) -> bool:
        with self._opened(segment) as read_into:
            return reaches(
                self._recoverer,
                read_into,
                size_bytes=segment.valid_bytes,
                base_offset=segment.base_offset,
                offset=offset,
            )


def _cut(last: ScannedSegment) -> Cut | None:
    if last.damage is None or not last.summary.truncated_bytes:
        return None
    records = 0 if last.tail is None else last.tail.records
    return Cut(
        base_offset=last.seen.base_offset,
        position=last.summary.valid_bytes,
        size_bytes=last.summary.truncated_bytes,
        records=records,
        reason=last.damage.message,
    )
