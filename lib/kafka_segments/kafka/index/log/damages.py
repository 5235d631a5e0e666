"""Why a broker does not load a log: what only shows when its segments are put together."""

from collections.abc import Sequence

from kafka_segments.errors import InvalidTransactionError, UnreadableBatchError
from kafka_segments.kafka.index.segment.recovered_segment import Damage, DamageKind, SegmentSummary
from kafka_segments.kafka.text.checkpoints import EpochStart

UNREAD = (
    DamageKind.TOO_LARGE,
    DamageKind.CHANGED,
    DamageKind.VANISHED,
    DamageKind.UNREADABLE,
    DamageKind.NOT_PERMITTED,
)
"""What a segment has that could not be read to its end."""


def is_marker_read_again(segment: SegmentSummary) -> bool:
    """Tell whether a marker that cannot be parsed lies where the producer state ends."""
    is_bad = segment.damage_kind == DamageKind.BAD_MARKER
    return is_bad and segment.producer_end_offset < segment.next_offset


def unreadable_again(error: UnreadableBatchError) -> Damage:
    """Return the damage where Kafka throws at a batch when it rebuilds the producer state."""
    message = f"a broker does not load the log: it throws when it reads on: {error.reason}"
    return Damage(DamageKind.UNREADABLE_AGAIN, error.position, message)


def not_loaded(kind: DamageKind) -> Damage:
    """Return the damage of a segment at whose own damage the load of its log fails."""
    return Damage(DamageKind.NOT_LOADED, 0, f"{kind}: a broker does not load the log")


def ends_below(log_start: int) -> Damage:
    """Return the damage of the segments of a log that ends below its log start offset."""
    message = (
        f"the log ends below its log start offset {log_start}: a broker removes all segments and"
        " begins an empty one there"
    )
    return Damage(DamageKind.REMOVED, 0, message)


def negative_epoch(known: Sequence[EpochStart], segment: SegmentSummary) -> Damage | None:
    """Return the damage where a leader epoch above all ``known`` ones begins below offset 0.

    Source: LeaderEpochFileCache.assign.
    """
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


def refused_by(error: InvalidTransactionError) -> Damage:
    """Return the damage where the producer state refuses a batch or a marker."""
    message = f"{error.reason}: a broker would not start"
    return Damage(DamageKind.INVALID_TRANSACTION, error.position, message)
