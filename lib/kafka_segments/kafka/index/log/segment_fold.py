"""Folds the producer state over segments that are recovered each on its own."""

from kafka_segments.errors import InvalidTransactionError
from kafka_segments.kafka.index.log import leader_epochs
from kafka_segments.kafka.index.log.damages import is_marker_read_again, negative_epoch, refused_by
from kafka_segments.kafka.index.log.loading import LogFiles, SegmentVerdict
from kafka_segments.kafka.index.log.producer_state import ProducerState
from kafka_segments.kafka.index.segment.damages import FAILING
from kafka_segments.kafka.index.segment.recovered_segment import Damage, DamageKind, SegmentSummary
from kafka_segments.kafka.text.checkpoints import EpochStart

_WITHOUT_TRACE = (  # kinds of damage whose segments leave the producer state as it was
    *FAILING,
    DamageKind.OFFSET_GOES_BACK,
    DamageKind.UNREADABLE_CUT,
    DamageKind.UNREADABLE_END,
    DamageKind.UNREADABLE_FIRST,
)


def _is_read_again(unread: SegmentSummary, base_offset: int) -> bool:
    """Tell whether the producer state of a segment's start is rebuilt from a marker before it.

    Not if it reaches as far without the marker, or if the marker belongs to it or lies behind it.
    """
    return unread.producer_end_offset < base_offset and unread.next_offset <= base_offset


def _unread_marker(unread: SegmentSummary) -> Damage:
    message = (
        "the producer state cannot be rebuilt: Kafka throws when it reads again the marker at which"
        f" segment {unread.base_offset} ends"
    )
    return Damage(DamageKind.NOT_LOADED, 0, message)


class SegmentFold:
    """Folds segments that are recovered each on its own."""

    def __init__(self) -> None:
        self._state = ProducerState()
        self._epochs: list[EpochStart] = []
        self._unread: SegmentSummary | None = None  # it ends at a marker that cannot be parsed

    def take(self, segment: SegmentSummary) -> SegmentVerdict:
        """Take the next segment."""
        unread = self._unread
        if unread is not None and _is_read_again(unread, segment.base_offset):
            return SegmentVerdict(damage=_unread_marker(unread))
        refused = negative_epoch(self._epochs, segment)
        if refused is not None:
            return SegmentVerdict(damage=refused)
        self._epochs = leader_epochs.fold_epochs(self._epochs, segment.leader_epochs)
        before = self._state.copy()
        try:
            aborted = self._state.apply(segment.producers)
        except InvalidTransactionError as error:
            return SegmentVerdict(damage=refused_by(error))
        if segment.damage_kind in _WITHOUT_TRACE:
            self._state = before
            if segment.damage_kind == DamageKind.OFFSET_GOES_BACK:
                self._unread = None  # the segment stays, and what is before it is not read again
            return SegmentVerdict()
        self._unread = segment if is_marker_read_again(segment) else None
        return SegmentVerdict(aborted)

    def finish(self) -> LogFiles:
        """Return no files: snapshots and leader epochs are of a whole log."""
        return LogFiles({}, None)
