"""What crosses segments, folded over a log in base-offset order; one summary a segment.

Three modes, as a broker may meet a log:

``segment``: every segment is recovered on its own. A segment that is refused or emptied leaves
no trace in the producer state of those after it.

``loader-unclean``: a load after an unclean stop, index files present. Where bytes are cut off,
all later segments are removed and the load ends.

``loader-missing``: a load without index files. Later segments stay; an offset that goes back at
an index entry makes the load fail.

The loads start from no snapshots, no leader epochs and recovery point 0. They write the producer
snapshots and the leader epochs that a broker has after it. Before each segment, and at the end, a
load rebuilds the producer state from the newest snapshot and the batches after it. Where offsets
rise there are none, and what is known of the segments is enough; where they go back some are read
again (``Reread``).

Source: LogLoader.load, recoverSegment; UnifiedLog.rebuildProducerState; ProducerStateManager
truncateAndReload, takeSnapshot, removeStraySnapshots (3.0 and later).
"""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from kafka_segments.errors import InvalidTransactionError, UnreadableBatchError
from kafka_segments.index import leader_epochs
from kafka_segments.index.producer_state import ProducerState
from kafka_segments.index.producer_summary import ProducerSummary, empty_summary
from kafka_segments.index.recovery import Damage, DamageKind, SegmentSummary
from kafka_segments.index.snapshots import encode_snapshot
from kafka_segments.index.transactions import AbortedTransaction
from kafka_segments.wire.checkpoints import EpochStart

DEFAULT_EXPIRATION_MS = 86_400_000  # producer.id.expiration.ms
_REFUSED = (DamageKind.OFFSET_OVERFLOW, DamageKind.INDEX_FULL, DamageKind.INVALID_TRANSACTION)
_UNREAD = (
    DamageKind.TOO_LARGE,
    DamageKind.CHANGED,
    DamageKind.VANISHED,
    DamageKind.UNREADABLE,
)
_WITHOUT_TRACE = (
    *_REFUSED,
    DamageKind.OFFSET_GOES_BACK,
    DamageKind.UNREADABLE_CUT,
    DamageKind.UNREADABLE_END,
    DamageKind.UNREADABLE_FIRST,
)
_REFUSED_BY_LOADS = (*_REFUSED, *_UNREAD, DamageKind.UNREADABLE_CUT)


class RecoveryMode(StrEnum):
    """How much of a log is recovered together."""

    SEGMENT = "segment"
    LOADER_UNCLEAN = "loader-unclean"
    LOADER_MISSING = "loader-missing"


class Verdict(NamedTuple):
    """What the fold says of a segment.

    ``damage`` is what only the log shows: the segment then has no index files. ``snapshot`` is
    the file at the segment's base offset, None: none is there.
    """

    aborted: Sequence[AbortedTransaction] = ()
    damage: Damage | None = None
    snapshot: bytes | None = None


class LogFiles(NamedTuple):
    """The files that a load leaves beside those of its segments; None: the log did not load.

    ``refused``: what makes the load fail after its last segment was taken.
    """

    snapshots: dict[int, bytes]
    leader_epochs: bytes | None
    refused: Damage | None = None


@dataclass(frozen=True)
class LoadOptions:
    """The broker's clock and settings; ``log_start_offset`` as in its checkpoint, 0: none."""

    now_ms: int
    expiration_ms: int = DEFAULT_EXPIRATION_MS
    log_start_offset: int = 0


Reread = Callable[[SegmentSummary, int, int | None], ProducerSummary]
"""Reads producers of a segment again: from an offset on, up to another or, None, to the end."""

Reaches = Callable[[SegmentSummary, int], bool]
"""Looks up an offset in a segment; tells whether a batch reaches it."""


def fold_of(
    mode: RecoveryMode,
    options: LoadOptions,
    reread: Reread | None = None,
    reaches: Reaches | None = None,
) -> "SegmentFold | LogLoad":
    """Start a fold; without ``reread`` segments count as a whole where batches are read again.

    Without ``reaches`` every offset is found.
    """
    if mode == RecoveryMode.SEGMENT:
        return SegmentFold()
    return LogLoad(options, mode == RecoveryMode.LOADER_UNCLEAN, reread, reaches)


class SegmentFold:
    """Folds segments that are recovered each on its own."""

    def __init__(self) -> None:
        self._state = ProducerState()
        self._epochs: list[EpochStart] = []
        self._stopped: Damage | None = None

    def take(self, segment: SegmentSummary) -> Verdict:
        """Take the next segment."""
        if self._stopped is not None:
            return Verdict(damage=self._stopped)
        refused = _negative_epoch(self._epochs, segment)
        if refused is not None:
            return Verdict(damage=refused)
        self._epochs = leader_epochs.fold_epochs(self._epochs, segment.leader_epochs)
        before = self._state.copy()
        try:
            aborted = self._state.apply(segment.producers)
        except InvalidTransactionError as error:
            return Verdict(damage=_refused(error))
        if segment.damage_kind in _WITHOUT_TRACE:
            self._state = before
            return Verdict()
        if _is_marker_read_again(segment):
            self._stopped = Damage(
                DamageKind.NOT_LOADED,
                0,
                "the producer state cannot be rebuilt: Kafka throws when it reads again the marker"
                f" at which segment {segment.base_offset} ends",
            )
        return Verdict(aborted)

    def finish(self) -> LogFiles:
        """Give no files: snapshots and leader epochs are of a whole log."""
        return LogFiles({}, None)


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
    _last: SegmentSummary | None = None
    _stopped: Damage | None = None
    _is_refused: bool = False

    def take(self, segment: SegmentSummary, *, is_piece: bool = False) -> Verdict:
        """Take the next segment; a piece of a split one has index files whatever the mode."""
        if self._stopped is not None:
            return Verdict(damage=self._stopped)
        is_unclean = self.is_unclean or is_piece
        refused = _negative_epoch(self._epochs, segment)
        if refused is not None:
            return self._refuse(segment, refused)
        if self._fails_again(segment.base_offset):
            return self._refuse(segment, _not_loaded(DamageKind.UNREADABLE_AGAIN))
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
            return self._refuse(segment, _refused(error))
        except UnreadableBatchError as error:
            return self._refuse(segment, _unreadable(error))
        is_emptied = segment.damage_kind == DamageKind.OFFSET_GOES_BACK
        is_cut = is_unclean and segment.truncated_bytes > 0
        is_unread = segment.damage_kind == DamageKind.UNREADABLE_END and is_cut
        is_below_start = segment.next_offset <= self.options.log_start_offset  # none is read again
        is_unread |= _is_marker_read_again(segment) and not is_below_start
        if is_unread or segment.damage_kind in _REFUSED_BY_LOADS or (is_emptied and not is_unclean):
            return self._refuse(segment, None)
        if len(segment.producers.producers) or segment.has_wrappers:
            self._taken.append(segment)
        self._epochs = leader_epochs.fold_epochs(self._epochs, segment.leader_epochs)
        if is_cut:
            self._remove_later(segment)
        if is_emptied:
            return Verdict(snapshot=snapshot)
        if segment.producer_end_offset > max(last_snapshot, segment.base_offset):
            self._snapshots.append(_Snapshot(segment.producer_end_offset, state))
        return Verdict(aborted, snapshot=snapshot)

    def _fails_again(self, end: int) -> bool:
        """Tell whether a load throws at the last segment taken, to rebuild what reaches ``end``.

        Without index files each segment is recovered before the log has it: the end of the one
        before is looked up.
        """
        last = self._last
        if last is None or last.producer_end_offset >= end or self._is_looked_up(last):
            return False
        looks_at_end = not self.is_unclean or last.producer_end_offset >= last.next_offset
        is_at_end = last.damage_kind == DamageKind.UNREADABLE_END and looks_at_end
        return is_at_end or last.damage_kind == DamageKind.UNREADABLE_AGAIN

    def _is_looked_up(self, segment: SegmentSummary) -> bool:
        """Tell whether what its recovery looked up may not be what the load looks up in it.

        A compressed message that cannot be read makes a search throw, if it comes by.
        """
        is_cut_off = segment.base_offset < self.options.log_start_offset
        has_moved = segment.producers.goes_back() or is_cut_off
        return segment.has_wrappers and has_moved and self.reread is not None

    def take_first_try(self, segment: SegmentSummary) -> None:
        """Take what stays of the recovery of a segment that is then split: its leader epochs."""
        if self._stopped is None:
            self._epochs = leader_epochs.fold_epochs(self._epochs, segment.leader_epochs)

    def _rebuilt(self, offset: int, start: int | None = None) -> tuple[ProducerState, int]:
        """Rebuild the producer state up to an offset; gives also the newest snapshot's offset.

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
        """Give the batches of a segment from an offset on; where offsets rise, mostly none."""
        has_moved = segment.producers.goes_back() or segment.damage_kind == (
            DamageKind.OFFSET_GOES_BACK
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
        return max(self.options.log_start_offset, self._bases[0] if self._bases else 0)

    def _refuse(self, segment: SegmentSummary, damage: Damage | None) -> Verdict:
        self._is_refused = True
        message = f"a broker does not load the log: see segment {segment.base_offset}"
        self._stopped = Damage(DamageKind.NOT_LOADED, 0, message)
        if damage is None and segment.damage_kind in (
            DamageKind.BAD_MARKER,
            DamageKind.OFFSET_GOES_BACK,
            DamageKind.UNREADABLE_CUT,
            DamageKind.UNREADABLE_END,
        ):
            damage = _not_loaded(segment.damage_kind)
        return Verdict(damage=damage)

    def _remove_later(self, segment: SegmentSummary) -> None:
        message = f"bytes of segment {segment.base_offset} are cut off: all later segments go"
        self._stopped = Damage(DamageKind.REMOVED, 0, message)

    def finish(self) -> LogFiles:
        """Give the files of the loaded log."""
        last = self._last
        if self._is_refused or last is None:
            return LogFiles({}, None)
        kind = last.damage_kind
        fails = kind == DamageKind.UNREADABLE_END or self._fails_again(last.next_offset)
        if fails and kind is not None:
            return LogFiles({}, None, _not_loaded(kind))
        end = last.next_offset
        try:
            state, last_snapshot = self._rebuilt(end, self._start_offset())
            self._look_up_unstable(state, end)
        except InvalidTransactionError as error:
            return LogFiles({}, None, _refused(error))
        except UnreadableBatchError as error:
            return LogFiles({}, None, _unreadable(error))
        if end > last_snapshot:
            self._snapshots.append(_Snapshot(end, state))
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


def _is_marker_read_again(segment: SegmentSummary) -> bool:
    """Tell whether a marker that cannot be parsed lies where the producer state ends."""
    is_bad = segment.damage_kind == DamageKind.BAD_MARKER
    return is_bad and segment.producer_end_offset < segment.next_offset


def _unreadable(error: UnreadableBatchError) -> Damage:
    message = f"a broker does not load the log: it throws when it reads on: {error.reason}"
    return Damage(DamageKind.UNREADABLE_AGAIN, error.position, message)


def _not_loaded(kind: DamageKind) -> Damage:
    return Damage(DamageKind.NOT_LOADED, 0, f"{kind}: a broker does not load the log")


def _negative_epoch(known: Sequence[EpochStart], segment: SegmentSummary) -> Damage | None:
    latest = known[-1].epoch if known else -1
    for epoch, start_offset in segment.leader_epochs:
        if epoch > latest and start_offset < 0:
            message = (
                f"leader epoch {epoch} begins at offset {start_offset}, below 0: a broker would"
                " not start"
            )
            return Damage(DamageKind.NEGATIVE_EPOCH_START, 0, message)
        latest = max(latest, epoch)
    return None


def _refused(error: InvalidTransactionError) -> Damage:
    message = f"{error.reason}: a broker would not start"
    return Damage(DamageKind.INVALID_TRANSACTION, error.position, message)
