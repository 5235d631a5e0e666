"""Why the walk over a segment ended where it did, in words."""

from kafka_segments.kafka.index.segment import walk as walks
from kafka_segments.kafka.index.segment.recovered_segment import Damage, DamageKind
from kafka_segments.kafka.index.segment.walk import SegmentWalk
from kafka_segments.kafka.wire import ends

FAILING = (  # a broker does not start with such a segment, however it stopped
    DamageKind.OFFSET_OVERFLOW,
    DamageKind.INDEX_FULL,
    DamageKind.INVALID_TRANSACTION,
)


def with_also(damage: Damage | None) -> str:
    """Return what a message about another damage says of this one, too."""
    return "" if damage is None else f"; besides, at byte {damage.position}: {damage.message}"


def preallocated_tail(walk: SegmentWalk) -> Damage:
    """Return the damage of a segment that ends in zero bytes."""
    left = walk.end - walk.position
    message = f"{left} zero bytes after the last batch, as preallocation leaves them"
    return Damage(DamageKind.PREALLOCATED_TAIL, walk.position, message)


def has_no_size(walk: SegmentWalk) -> bool:
    """Tell whether a walk ended at a batch whose length is 0: zero bytes may follow to the end."""
    return bool(walk.status == ends.BAD_SIZE and walk.found == 0)


def damage_of(walk: SegmentWalk, marker_message: str) -> Damage | None:
    """Return what the status of a walk that has ended means; None where the file ended with it.

    ``marker_message`` says what is wrong with a marker that ended it.
    """
    if walk.status == ends.AT_END and walk.position == walk.end:
        return None
    if walk.status == walks.BAD_MARKER:
        message = f"{marker_message}: recovery keeps its batch and ends there"
        return Damage(DamageKind.BAD_MARKER, walk.decoded_position, message)
    if walk.status == walks.REFUSED_MARKER:
        message = f"{marker_message}: a broker would not start"
        return Damage(DamageKind.INVALID_TRANSACTION, walk.decoded_position, message)
    return Damage(*_described(walk))


def _described(walk: SegmentWalk) -> tuple[DamageKind, int, str]:
    status, position = walk.status, walk.position
    found, expected = walk.found, walk.expected
    reason = ends.describe_end(status, found=found, expected=expected, left=walk.end - position)
    if reason is not None:
        is_cut = status in (ends.AT_END, ends.PARTIAL_BATCH)
        kind = DamageKind.PARTIAL_BATCH if is_cut else DamageKind.CORRUPT_BATCH
        return kind, position, reason
    if status == walks.OFFSET_OVERFLOW:
        message = (
            f"last offset {found} does not fit base offset {expected}:"
            " it must lie 0 to 2147483647 above; Kafka splits such a segment or fails to load"
        )
        return DamageKind.OFFSET_OVERFLOW, position, message
    which, count, limit = "time", walk.time_entry_count, walk.max_time_entries
    if status == walks.OFFSET_INDEX_FULL:
        which, count, limit = "offset", walk.offset_entry_count, walk.max_offset_entries
    message = (
        f"the {which} index is full ({count} of {limit} entries):"
        " segment.index.bytes is too small for this segment, a broker would not start"
    )
    return DamageKind.INDEX_FULL, position, message


def went_back(walk: SegmentWalk) -> str:
    """Return the message about a walk that ended at an index entry whose offset goes back."""
    which = "offset" if walk.status == walks.OFFSET_INDEX_GOES_BACK else "time"
    return (
        f"offset {walk.found} after offset {walk.expected} in the {which} index:"
        " an unclean start cuts this segment to its base offset, which mostly empties it, a start"
        " without index files fails"
    )
