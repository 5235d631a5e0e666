"""Index entries as recovery appends them, compiled, with the refusals of a broker's indexes.

Source: LogSegment.recover, OffsetIndex.append, TimeIndex.maybeAppend.
"""

from typing import Any

from kafka_segments.compiling import njit
from kafka_segments.kafka.index.segment.walk import (
    OFFSET_INDEX_FULL,
    OFFSET_INDEX_GOES_BACK,
    TIME_INDEX_FULL,
    TIME_INDEX_GOES_BACK,
    SegmentWalk,
)
from kafka_segments.kafka.wire.ends import SOUND

_SEGMENT_WALK = SegmentWalk.dtype


@njit  # type: ignore[untyped-decorator]
def _append_time_entry(walk: Any, entries: Any, at_close: Any) -> Any:
    """Append (greatest timestamp in ms, its offset) where the greatest grew since the last entry.

    ``at_close``: the segment ends there, and its entry may take the index's last place. Return
    SOUND, or the status where TimeIndex.maybeAppend throws.
    """
    count = walk.time_entry_count
    offset = walk.offset_of_max_timestamp
    if not at_close and count >= walk.max_time_entries - 1:
        return TIME_INDEX_FULL
    if count > 0 and offset < walk.last_time_entry_offset:
        walk.found = offset
        walk.expected = walk.last_time_entry_offset
        return TIME_INDEX_GOES_BACK
    if walk.max_timestamp <= walk.last_time_entry_timestamp:
        return SOUND
    if count >= walk.max_time_entries:
        return TIME_INDEX_FULL
    entries[walk.new_time_entries, 0] = walk.max_timestamp
    entries[walk.new_time_entries, 1] = offset
    walk.new_time_entries += 1
    walk.time_entry_count = count + 1
    walk.last_time_entry_timestamp = walk.max_timestamp
    walk.last_time_entry_offset = offset
    return SOUND


@njit  # type: ignore[untyped-decorator]
def _append_offset_entry(walk: Any, entries: Any, last_offset: Any, position: Any) -> Any:
    """Append (last offset, position); return SOUND, or the status where Kafka throws."""
    count = walk.offset_entry_count
    if count >= walk.max_offset_entries:
        return OFFSET_INDEX_FULL
    if count > 0 and last_offset <= walk.last_indexed_offset:
        walk.found = last_offset
        walk.expected = walk.last_indexed_offset
        return OFFSET_INDEX_GOES_BACK
    entries[walk.new_offset_entries, 0] = last_offset
    entries[walk.new_offset_entries, 1] = position
    walk.new_offset_entries += 1
    walk.offset_entry_count = count + 1
    walk.last_indexed_offset = last_offset
    return SOUND


@njit  # type: ignore[untyped-decorator]
def append_entries(
    walk: Any, offset_entries: Any, time_entries: Any, last_offset: Any, position: Any
) -> Any:
    """Append the entries of the batch at ``position``; return SOUND, or the refusal's status."""
    status = _append_offset_entry(walk, offset_entries, last_offset, position)
    if status == SOUND:
        status = _append_time_entry(walk, time_entries, False)
    if status == SOUND:
        walk.has_wrapper_at_end = 0
    return status


@njit(cache=True)  # type: ignore[untyped-decorator]
def append_last_time_entry(values: Any, entries: Any) -> Any:
    """Append the time entry that the end of a segment gets, at row 0, where it gets one.

    ``values`` are those of a ``SegmentWalk``. Return SOUND, or the status where Kafka throws.
    """
    walk = values.view(_SEGMENT_WALK)[0]
    walk.new_time_entries = 0
    return _append_time_entry(walk, entries, True)
