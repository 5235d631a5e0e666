"""What Kafka looks up in a segment once it is recovered, and what it can throw at there.

Recovery reads the segment's next offset back from the log. A load looks up two offsets more where
the segment has compressed messages v0 or v1: a search has to decompress those.

Source: LogSegment.readNextOffset, UnifiedLog.rebuildProducerState.
"""

from dataclasses import replace

from kafka_segments.errors import UnreadableBatchError
from kafka_segments.kafka.index.segment.batch_reading import BatchSearch
from kafka_segments.kafka.index.segment.damages import FAILING, with_also
from kafka_segments.kafka.index.segment.recovered_segment import Damage, DamageKind, Entries
from kafka_segments.kafka.index.segment.walk import SegmentWalk
from kafka_segments.kafka.wire.reading import ReadInto

_BAD_FIRST_MAGIC = (
    "the first batch has a negative magic: a load keeps it, and Kafka throws when it reads the"
    " timestamp of the segment's first batch"
)


def damage_at_end(
    read_into: ReadInto,
    walk: SegmentWalk,
    damage: Damage | None,
    offset_entries: Entries,
    *,
    is_load: bool,
) -> Damage | None:
    """Read the next offset back into ``walk``; return the segment's damage after that.

    That is ``damage``, which the walk found, or what Kafka throws at when it reads the log again.
    ``is_load``: the segment is recovered as part of its log's load.
    """
    found = _next_offset_damage(read_into, walk, damage)
    is_known = found is not None and found.kind in (*FAILING, DamageKind.BAD_MARKER)
    if is_known or walk.uncounted_batch_count == 0 or not is_load:
        return found
    is_reached = walk.producer_end_offset >= walk.next_offset
    if is_reached and found is not None and found.kind == DamageKind.UNREADABLE_END:
        return found  # it fails where it is the last segment, though nothing is read again
    again = _read_again_damage(read_into, walk, offset_entries)
    if again is None or damage is None:
        return again or found
    return replace(again, message=f"{again.message}{with_also(damage)}")


def _next_offset_damage(
    read_into: ReadInto, walk: SegmentWalk, damage: Damage | None
) -> Damage | None:
    """Read the next offset back into ``walk``. Source: LogSegment.readNextOffset."""
    if damage is not None and damage.kind in FAILING:
        return damage
    also = with_also(damage)
    if walk.has_bad_first_magic:
        damage = Damage(DamageKind.UNREADABLE_FIRST, 0, f"{_BAD_FIRST_MAGIC}{also}")
    base_offset = walk.base_offset
    target, start = base_offset, 0
    if walk.offset_entry_count:
        target, start = walk.last_indexed_offset, walk.last_indexed_position
    if not walk.has_wrapper_at_end and target < walk.next_offset:
        return damage  # the search finds the batches that the walk has seen
    search = BatchSearch(read_into, end=walk.position)
    try:
        walk.next_offset = search.next_offset(base_offset, target=target, start=start)
    except UnreadableBatchError as error:
        message = f"Kafka throws when it reads the end of the log: {error.reason}{also}"
        return Damage(DamageKind.UNREADABLE_END, error.position, message)
    return damage


def _read_again_damage(
    read_into: ReadInto, walk: SegmentWalk, offset_entries: Entries
) -> Damage | None:
    """Look up the two offsets that a load looks up to rebuild the producer state.

    They are the offset from which on it reads the segment and, in the log's last segment, the
    log's end. Where the producer state reaches as far it looks up neither.

    Source: UnifiedLog.rebuildProducerState.
    """
    search = BatchSearch(read_into, end=walk.position)
    producer_end, end = walk.producer_end_offset, walk.next_offset
    lookups = [(DamageKind.UNREADABLE_AGAIN, max(producer_end, walk.base_offset))]
    if producer_end < end:
        lookups.append((DamageKind.UNREADABLE_END, end))
    for kind, offset in lookups:
        below = offset_entries[offset_entries[:, 0] <= offset]
        try:
            search.position_of(offset, start=int(below[-1, 1]) if len(below) else 0)
        except UnreadableBatchError as error:
            return Damage(kind, error.position, f"Kafka throws when it reads on: {error.reason}")
    return None
