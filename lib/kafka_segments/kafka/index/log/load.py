"""Folds the segments of a log as a broker loads it: producer state, snapshots, leader epochs.

Source: LogLoader.load, recoverSegment; UnifiedLog.rebuildProducerState; ProducerStateManager
truncateAndReload, takeSnapshot, removeStraySnapshots (3.0 and later).
"""

from bisect import bisect_right
from dataclasses import dataclass, field
from typing import NamedTuple

from kafka_segments.errors import InvalidTransactionError, UnreadableBatchError
from kafka_segments.kafka.index.log import leader_epochs
from kafka_segments.kafka.index.log.damages import (
    UNREAD,
    is_marker_read_again,
    negative_epoch,
    not_loaded,
    refused_by,
    unreadable_again,
)
from kafka_segments.kafka.index.log.loading import (
    LoadOptions,
    LogFiles,
    Reaches,
    Reread,
    SegmentVerdict,
)
from kafka_segments.kafka.index.log.producer_state import ProducerState
from kafka_segments.kafka.index.log.snapshots import encode_snapshot
from kafka_segments.kafka.index.segment.damages import FAILING
from kafka_segments.kafka.index.segment.producer_summary import ProducerSummary, empty_summary
from kafka_segments.kafka.index.segment.recovered_segment import Damage, DamageKind, SegmentSummary
from kafka_segments.kafka.text.checkpoints import EpochStart

_REFUSED_BY_LOADS = (*FAILING, *UNREAD, DamageKind.UNREADABLE_CUT)


class _Snapshot(NamedTuple):
    offset: int
    state: ProducerState


@dataclass
class LogLoad:
    """Folds the segments of a log as a broker loads it."""

    options: LoadOptions
    is_unclean: bool
    reread: Reread | None = None
    reaches: Reaches | None = None
    _snapshots: list[_Snapshot] = field(default_factory=list)  # the last few, ascending
    _taken: list[SegmentSummary] = field(default_factory=list)  # that a snapshot kept may lack
    _bases: list[int] = field(default_factory=list)
    _segments: list[SegmentSummary] = field(default_factory=list)  # of ``_bases``, without tables
    _epochs: list[EpochStart] = field(default_factory=list)
    _opened: list[EpochStart] = field(default_factory=list)  # of those without index files ...
    _again: list[EpochStart] = field(default_factory=list)  # ... and of all, after that
    _have_indexes: bool = False  # some of those that a load without index files takes
    _last: SegmentSummary | None = None
    _stopped: Damage | None = None
    _is_refused: bool = False
    _first_base: int | None = None

    def resume(
        self,
        *,
        first_base: int,
        snapshot: tuple[int, ProducerState] | None,
        epochs: list[EpochStart],
    ) -> None:
        """Go on where earlier starts left the log; to be called before its first segment is taken.

        Args:
            first_base: the base offset of the log's first segment, which is not taken again.
            snapshot: the offset and the state of the newest snapshot that the load reads; None:
                there is none, and the first segment that is taken is the log's own.
            epochs: the leader epochs of the log's file.
        """
        self._first_base = first_base
        self._epochs = list(epochs)
        if snapshot is not None:
            self._snapshots.append(_Snapshot(*snapshot))

    def take(self, segment: SegmentSummary, *, has_indexes: bool = False) -> SegmentVerdict:
        """Take the next segment, in base-offset order, and return what the load makes of it.

        ``has_indexes``: it has index files in every mode: a piece of a split segment, a ``.swap``.
        """
        if not has_indexes:
            self._open(segment)
        if self._stopped is not None:
            return SegmentVerdict(damage=self._stopped)
        self._have_indexes |= has_indexes
        is_unclean = self.is_unclean or has_indexes
        refused = negative_epoch(self._epochs, segment)
        if refused is not None:
            return self._refuse(segment, refused)
        if self._fails_again(segment.base_offset):
            return self._refuse(segment, not_loaded(DamageKind.UNREADABLE_AGAIN))
        self._bases.append(segment.base_offset)
        self._segments.append(segment._replace(leader_epochs=(), producers=empty_summary()))
        self._last = segment
        try:
            state, last_snapshot = self._rebuilt(segment.base_offset)
            if segment.base_offset > last_snapshot:
                self._snapshots.append(_Snapshot(segment.base_offset, state.copy()))
            snapshot = self._snapshot_at(segment.base_offset)
            aborted = state.apply(segment.producers)
        except InvalidTransactionError as error:
            return self._refuse(segment, refused_by(error))
        except UnreadableBatchError as error:
            return self._refuse(segment, unreadable_again(error))
        is_emptied = segment.damage_kind == DamageKind.OFFSET_GOES_BACK
        is_cut = is_unclean and segment.truncated_bytes > 0
        is_unread = segment.damage_kind == DamageKind.UNREADABLE_END and is_cut
        if is_unread or segment.damage_kind in _REFUSED_BY_LOADS or (is_emptied and not is_unclean):
            return self._refuse(segment, None)
        is_bad_marker = segment.damage_kind == DamageKind.BAD_MARKER
        if len(segment.producers.producers) or segment.has_wrappers or is_bad_marker:
            self._taken.append(segment)
        self._epochs = leader_epochs.fold_epochs(self._epochs, segment.leader_epochs)
        self._again += segment.leader_epochs
        if is_cut:
            self._remove_later(segment)
        if is_emptied:
            return SegmentVerdict(snapshot=snapshot)
        if segment.producer_end_offset > max(last_snapshot, segment.base_offset):
            self._snapshots.append(_Snapshot(segment.producer_end_offset, state))
        return SegmentVerdict(aborted, snapshot=snapshot)

    def _fails_again(self, end: int) -> bool:
        """Tell whether a load throws at the last segment taken, to rebuild what reaches ``end``.

        In a load without index files the log gets a segment only after its recovery, so the end of
        the segment before is looked up. Below the log start nothing is read.
        """
        last = self._last
        if last is None or end <= self.options.log_start_offset:
            return False
        if last.producer_end_offset >= end or self._is_looked_up(last):
            return False
        looks_at_end = not self.is_unclean and end >= last.next_offset
        looks_at_end |= last.producer_end_offset >= last.next_offset
        is_at_end = last.damage_kind == DamageKind.UNREADABLE_END and looks_at_end
        is_beyond_start = last.next_offset > self.options.log_start_offset
        is_marker_read = is_beyond_start and is_marker_read_again(last)
        return is_at_end or is_marker_read or last.damage_kind == DamageKind.UNREADABLE_AGAIN

    def _is_looked_up(self, segment: SegmentSummary) -> bool:
        """Tell whether the load may look up other offsets in a segment than its recovery did.

        A search throws at a compressed message that it passes and cannot read.
        """
        is_cut_off = segment.base_offset < self.options.log_start_offset
        has_moved = segment.producers.goes_back() or is_cut_off
        return segment.has_wrappers and has_moved and self.reread is not None

    def has_stopped(self) -> bool:
        """Tell whether the load has failed, or removes all segments that come."""
        return self._stopped is not None

    def take_first_try(self, segment: SegmentSummary) -> None:
        """Take the leader epochs of a segment that is then split: they stay of its recovery."""
        self._open(segment)
        if self._stopped is None:
            self._epochs = leader_epochs.fold_epochs(self._epochs, segment.leader_epochs)

    def _open(self, segment: SegmentSummary) -> None:
        """Take the leader epochs of a segment without index files: it is recovered when opened."""
        self._opened = leader_epochs.fold_epochs(self._opened, segment.leader_epochs)

    def _rebuilt(self, offset: int, start: int | None = None) -> tuple[ProducerState, int]:
        """Rebuild the producer state up to an offset; return it, and the newest snapshot's offset.

        Source: UnifiedLog.rebuildProducerState.
        """
        state, last_snapshot = self._reload(offset, start)
        if last_snapshot >= offset:
            return state, last_snapshot
        reached = last_snapshot
        first = bisect_right(self._bases, reached)
        floor = self._bases[first - 1] if first else None
        beyond = bisect_right(self._bases, offset)
        holder = self._bases[beyond - 1] if beyond else None
        for segment in self._taken:
            base_offset = segment.base_offset
            if base_offset >= offset or (floor is not None and base_offset < floor):
                continue
            reached = max(base_offset, reached)
            limit = offset if base_offset == holder else None
            is_odd = self._is_looked_up(segment) or offset < segment.next_offset
            is_limited = is_odd and not self.is_unclean and self._is_last(base_offset)
            if is_limited and segment.has_wrappers and self.reread is not None:
                self.reread(segment, reached, offset)
            state.apply(self._read_again(segment, reached, limit), is_reread=True)
        return state, last_snapshot

    def _is_last(self, base_offset: int) -> bool:
        """Tell whether a segment was the last that the log had while the next one was recovered."""
        return base_offset == self._bases[-2:][0]

    def _reload(self, offset: int, start: int | None) -> tuple[ProducerState, int]:
        """Read the newest snapshot up to an offset, as every recovery of a segment does."""
        options = self.options
        start = options.log_start_offset if start is None else start
        self._snapshots = [
            snapshot for snapshot in self._snapshots if start < snapshot.offset <= offset
        ][-2:]
        oldest = self._snapshots[0].offset if self._snapshots else start
        first = bisect_right(self._bases, oldest)
        floor = self._bases[first - 1] if first else oldest
        self._taken = [segment for segment in self._taken if segment.base_offset >= floor]
        if not self._snapshots:
            return ProducerState(), start
        newest = self._snapshots[-1]
        state = newest.state.without_expired(
            now_ms=options.now_ms, expiration_ms=options.expiration_ms
        )
        return state.copy(), newest.offset

    def _read_again(self, segment: SegmentSummary, start: int, end: int | None) -> ProducerSummary:
        """Return the producers of a segment's batches from an offset on.

        Where offsets rise, there are mostly none.
        """
        has_moved = segment.producers.goes_back() or segment.damage_kind in (
            DamageKind.OFFSET_GOES_BACK,
            DamageKind.BAD_MARKER,
        )
        is_before = segment.has_wrappers and start < segment.producer_end_offset
        if self.reread is not None and (is_before or self._is_looked_up(segment)):
            return self.reread(segment, start, end)
        if not has_moved and segment.producer_end_offset <= start:
            return empty_summary()
        is_whole = start <= segment.base_offset and (end is None or end >= segment.next_offset)
        if self.reread is None or (is_whole and not has_moved):
            return segment.producers
        return self.reread(segment, start, end)

    def _snapshot_at(self, base_offset: int) -> bytes | None:
        if base_offset <= self._start_offset() or self._snapshots[-1].offset != base_offset:
            return None
        return encode_snapshot(self._snapshots[-1].state)

    def _start_offset(self) -> int:
        taken = self._bases[0] if self._bases else 0
        first = taken if self._first_base is None else self._first_base
        return max(self.options.log_start_offset, first)

    def _refuse(self, segment: SegmentSummary, damage: Damage | None) -> SegmentVerdict:
        self._is_refused = True
        message = f"a broker does not load the log: see segment {segment.base_offset}"
        self._stopped = Damage(DamageKind.NOT_LOADED, 0, message)
        if damage is None and segment.damage_kind in (
            DamageKind.BAD_MARKER,
            DamageKind.OFFSET_GOES_BACK,
            DamageKind.UNREADABLE_CUT,
            DamageKind.UNREADABLE_END,
        ):
            damage = not_loaded(segment.damage_kind)
        return SegmentVerdict(damage=damage)

    def _remove_later(self, segment: SegmentSummary) -> None:
        message = f"bytes of segment {segment.base_offset} are cut off: all later segments go"
        self._stopped = Damage(DamageKind.REMOVED, 0, message)

    def finish(self) -> LogFiles:
        """Return the files of the loaded log."""
        last = self._last
        if self._is_refused or last is None:
            return LogFiles({}, None)
        kind, end, log_start = last.damage_kind, last.next_offset, self.options.log_start_offset
        if kind is not None and self._fails_at_end(last):
            return LogFiles({}, None, not_loaded(kind))
        if end < log_start:
            return LogFiles({}, leader_epochs.encode_leader_epochs([]), begins_at=log_start)
        try:
            state, last_snapshot = self._rebuilt(end, self._start_offset())
            self._look_up_unstable(state, end)
        except InvalidTransactionError as error:
            return LogFiles({}, None, refused_by(error))
        except UnreadableBatchError as error:
            return LogFiles({}, None, unreadable_again(error))
        if end > last_snapshot:
            self._snapshots.append(_Snapshot(end, state))
        if self._have_indexes and not self.is_unclean:
            self._epochs = leader_epochs.fold_epochs(self._opened, self._again)
        epochs = leader_epochs.truncate_epochs_from_end(self._epochs, end)
        epochs = leader_epochs.truncate_epochs_from_start(epochs, self.options.log_start_offset)
        has_epochs = bool(self._epochs)  # else the file stays as it was made, empty
        return LogFiles(
            {
                snapshot.offset: encode_snapshot(snapshot.state)
                for snapshot in self._snapshots
                if snapshot.offset > max(last.base_offset, self._start_offset())
            },
            leader_epochs.encode_leader_epochs(epochs) if has_epochs else b"",
        )

    def _fails_at_end(self, last: SegmentSummary) -> bool:
        """Tell whether Kafka throws when it looks for the log's end, or when it reads on to there.

        Nothing is read on if the log does not reach beyond its start.
        Source: LogLoader.deleteSegmentsIfLogStartGreaterThanLogEnd.
        """
        kind = last.damage_kind
        if last.next_offset > self.options.log_start_offset:
            return kind == DamageKind.UNREADABLE_END or self._fails_again(last.next_offset)
        if kind not in (DamageKind.UNREADABLE_END, DamageKind.UNREADABLE_AGAIN):
            return False
        try:
            return self.reaches is None or not self.reaches(last, None)
        except UnreadableBatchError:
            return True

    def _look_up_unstable(self, state: ProducerState, end: int) -> None:
        """Look up the first offset that a transaction leaves unstable, as a loaded log does.

        Only a compressed message v0 or v1 makes that throw: without one nothing is read.
        Source: UnifiedLog.maybeIncrementFirstUnstableOffset, LocalLog.read.
        """
        unstable = state.first_unstable_offset()
        if unstable is None or self.reaches is None:
            return
        offset = max(unstable, self._start_offset())
        floor = bisect_right(self._bases, offset)
        if offset >= end or not floor:
            return
        beyond = self._segments[floor - 1 :]
        while any(segment.has_wrappers for segment in beyond):
            if self.reaches(beyond.pop(0), offset):
                return
