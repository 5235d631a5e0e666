"""What crosses segments, folded over a log in base-offset order; one summary a segment.

Three modes, as a broker may meet a log:

``segment``: every segment is recovered on its own. A segment that is refused or emptied leaves
no trace in the producer state of those after it.

``loader-unclean``: a load after an unclean stop, index files present. Where bytes are cut off,
all later segments are removed and the load ends.

``loader-missing``: a load without index files. Later segments stay; an offset that goes back at
an index entry makes the load fail.

The loads start from no snapshots, no leader epochs and recovery point 0. They write the producer
snapshots and the leader epochs that a broker has after it.

Source: LogLoader.load, recoverSegment; UnifiedLog.rebuildProducerState; ProducerStateManager
truncateAndReload, takeSnapshot, removeStraySnapshots (3.0 and later).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from kafka_segments.errors import InvalidTransactionError
from kafka_segments.index import leader_epochs
from kafka_segments.index.producer_state import ProducerState
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
    """The files that a load leaves beside those of its segments; None: the log did not load."""

    snapshots: dict[int, bytes]
    leader_epochs: bytes | None


@dataclass(frozen=True)
class LoadOptions:
    """The broker's clock and settings; ``log_start_offset`` as in its checkpoint, 0: none."""

    now_ms: int
    expiration_ms: int = DEFAULT_EXPIRATION_MS
    log_start_offset: int = 0


def fold_of(mode: RecoveryMode, options: LoadOptions) -> "SegmentFold | LogLoad":
    """Start a fold."""
    if mode == RecoveryMode.SEGMENT:
        return SegmentFold()
    return LogLoad(options, is_unclean=mode == RecoveryMode.LOADER_UNCLEAN)


class SegmentFold:
    """Folds segments that are recovered each on its own."""

    def __init__(self) -> None:
        self._state = ProducerState()

    def take(self, segment: SegmentSummary) -> Verdict:
        """Take the next segment."""
        before = self._state.copy()
        try:
            aborted = self._state.apply(segment.producers)
        except InvalidTransactionError as error:
            return Verdict(damage=_refused(error))
        if segment.damage_kind in (*_REFUSED, DamageKind.OFFSET_GOES_BACK):
            self._state = before
            return Verdict()
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
    _snapshots: list[_Snapshot] = field(default_factory=list)  # the last few, ascending
    _taken: list[SegmentSummary] = field(default_factory=list)  # that a snapshot kept may lack
    _epochs: list[EpochStart] = field(default_factory=list)
    _first_base: int | None = None
    _last_base: int = 0
    _end_offset: int = 0
    _stopped: Damage | None = None
    _is_refused: bool = False

    def take(self, segment: SegmentSummary) -> Verdict:
        """Take the next segment."""
        if self._stopped is not None:
            return Verdict(damage=self._stopped)
        if self._first_base is None:
            self._first_base = segment.base_offset
        state, last_snapshot = self._reload(segment.base_offset)
        self._last_base, self._end_offset = segment.base_offset, segment.next_offset
        try:
            if segment.base_offset > last_snapshot:
                self._read_again(state, last_snapshot)
                self._snapshots.append(_Snapshot(segment.base_offset, state.copy()))
            snapshot = self._snapshot_at(segment.base_offset)
            aborted = state.apply(segment.producers)
        except InvalidTransactionError as error:
            return self._refuse(segment, _refused(error))
        if segment.damage_kind in (*_REFUSED, *_UNREAD, DamageKind.BAD_MARKER):
            return self._refuse(segment, None)
        if len(segment.producers.producers):
            self._taken.append(segment)
        self._epochs = leader_epochs.fold_epochs(self._epochs, segment.leader_epochs)
        if segment.damage_kind == DamageKind.OFFSET_GOES_BACK:
            if not self.is_unclean:
                return self._refuse(segment, None)
            self._remove_later(segment)
            return Verdict(snapshot=snapshot)
        if segment.producer_end_offset > max(last_snapshot, segment.base_offset):
            self._snapshots.append(_Snapshot(segment.producer_end_offset, state))
        if self.is_unclean and segment.truncated_bytes > 0:
            self._remove_later(segment)
        return Verdict(aborted, snapshot=snapshot)

    def _reload(self, base_offset: int) -> tuple[ProducerState, int]:
        """Read the newest snapshot up to the base offset, as every recovery of a segment does."""
        options = self.options
        self._snapshots = [
            snapshot
            for snapshot in self._snapshots
            if options.log_start_offset < snapshot.offset <= base_offset
        ][-2:]
        oldest = self._snapshots[0].offset if self._snapshots else options.log_start_offset
        self._taken = [segment for segment in self._taken if segment.base_offset >= oldest]
        if not self._snapshots:
            return ProducerState(), options.log_start_offset
        newest = self._snapshots[-1]
        state = newest.state.without_expired(
            now_ms=options.now_ms, expiration_ms=options.expiration_ms
        )
        return state.copy(), newest.offset

    def _read_again(self, state: ProducerState, last_snapshot: int) -> None:
        """Take what no snapshot holds: offsets went back below the newer ones, which went."""
        for segment in self._taken:
            if segment.base_offset >= last_snapshot:
                state.apply(segment.producers)

    def _snapshot_at(self, base_offset: int) -> bytes | None:
        if base_offset <= self._start_offset() or self._snapshots[-1].offset != base_offset:
            return None
        return encode_snapshot(self._snapshots[-1].state)

    def _start_offset(self) -> int:
        return max(self.options.log_start_offset, self._first_base or 0)

    def _refuse(self, segment: SegmentSummary, damage: Damage | None) -> Verdict:
        self._is_refused = True
        message = f"a broker does not load the log: see segment {segment.base_offset}"
        self._stopped = Damage(DamageKind.NOT_LOADED, 0, message)
        if damage is None and segment.damage_kind in (
            DamageKind.BAD_MARKER,
            DamageKind.OFFSET_GOES_BACK,
        ):
            message = f"{segment.damage_kind}: a broker does not load the log"
            damage = Damage(DamageKind.NOT_LOADED, 0, message)
        return Verdict(damage=damage)

    def _remove_later(self, segment: SegmentSummary) -> None:
        message = f"bytes of segment {segment.base_offset} are cut off: all later segments go"
        self._stopped = Damage(DamageKind.REMOVED, 0, message)

    def finish(self) -> LogFiles:
        """Give the files of the loaded log."""
        if self._is_refused or self._first_base is None:
            return LogFiles({}, None)
        start, end = self.options.log_start_offset, self._end_offset
        state, last_snapshot = self._reload(end)
        if end > max(last_snapshot, self._start_offset()):
            self._snapshots.append(_Snapshot(end, state))
        epochs = leader_epochs.truncate_epochs_from_end(self._epochs, end)
        epochs = leader_epochs.truncate_epochs_from_start(epochs, start)
        has_epochs = bool(self._epochs)  # else the file stays as it was made, empty
        return LogFiles(
            {
                snapshot.offset: encode_snapshot(snapshot.state)
                for snapshot in self._snapshots
                if snapshot.offset > max(self._last_base, self._start_offset())
            },
            leader_epochs.encode_leader_epochs(epochs) if has_epochs else b"",
        )


def _refused(error: InvalidTransactionError) -> Damage:
    message = f"{error.reason}: a broker would not start"
    return Damage(DamageKind.INVALID_TRANSACTION, error.position, message)
