"""What a broker leaves of a segment, and of a log, when it truncates them to an offset.

Source: LogSegment.truncateTo, UnifiedLog.truncateTo, LocalLog.truncateTo.
"""

from typing import NamedTuple

import numpy as np

from kafka_segments.kafka.index.segment.offset_index import lookup_offset
from kafka_segments.kafka.index.segment.recovered_segment import Entries
from kafka_segments.kafka.wire import batches as wire
from kafka_segments.kafka.wire.header_layout import NO_TIMESTAMP


def truncate_offset_index(entries: Entries, offset: int) -> Entries:
    """Drop every entry at or above ``offset``. Source: OffsetIndex.truncateTo."""
    return entries[: int(np.searchsorted(entries[:, 0], offset, side="left"))]


def truncate_time_index(entries: Entries, offset: int) -> Entries:
    """Drop every entry whose offset is at or above ``offset``. Source: TimeIndex.truncateTo."""
    return entries[: int(np.searchsorted(entries[:, 1], offset, side="left"))]


def truncate_kip33(entries: Entries, offset: int) -> Entries:
    """Drop every entry that speaks of records at or above ``offset``.

    An entry's next offset may be ``offset`` itself: what it speaks of lies below. The KIP then
    reads on from the last entry left to find the greatest timestamp of what remains.
    """
    return entries[: int(np.searchsorted(entries[:, 1], offset, side="right"))]


class TruncatedSegment(NamedTuple):
    """A segment after truncation.

    ``max_timestamp`` (ms) and its offset are what the broker then holds in memory. The time
    index gets an entry for it at the next index point, roll or close, not before. Until then
    both index files have full size, zeros after their entries.
    """

    log_bytes: int
    offset_entries: Entries
    time_entries: Entries
    max_timestamp: int
    offset_of_max_timestamp: int


def truncate_segment(
    batches: wire.Batches,
    offset_entries: Entries,
    time_entries: Entries,
    offset: int,
    *,
    base_offset: int,
) -> TruncatedSegment:
    """Truncate a segment, given by its batches in order (see ``wire.batches``), to ``offset``.

    1. The log is cut at the start of the first batch whose last offset is at or above it: a
       batch that holds the offset goes as a whole.
    2. Entries at or above the offset go from both indexes.
    3. The greatest timestamp is reloaded: the last time entry left, or -1 at the base offset;
       a greater one of a batch from that entry's place on replaces it, with that batch's last
       offset.

    The log ends at ``offset`` itself, even where the last batch left ends before it.
    """
    log_bytes = _cut(batches, offset_entries, offset, base_offset=base_offset)
    offsets = truncate_offset_index(offset_entries, offset)
    times = truncate_time_index(time_entries, offset)
    timestamp, at = times[-1].tolist() if len(times) else (NO_TIMESTAMP, base_offset)
    start = lookup_offset(offsets, at, base_offset=base_offset).position
    positions = batches[wire.BATCH_POSITION]
    left = batches[:, (positions >= start) & (positions < log_bytes)]
    if left.shape[1]:
        batch = int(np.argmax(left[wire.BATCH_MAX_TIMESTAMP]))
        if left[wire.BATCH_MAX_TIMESTAMP, batch] > timestamp:
            timestamp = int(left[wire.BATCH_MAX_TIMESTAMP, batch])
            at = int(left[wire.BATCH_LAST_OFFSET, batch])
    return TruncatedSegment(log_bytes, offsets, times, timestamp, at)


def _cut(batches: wire.Batches, offset_entries: Entries, offset: int, *, base_offset: int) -> int:
    """Return the position of the first batch that goes, the end of the log where none does."""
    start = lookup_offset(offset_entries, offset, base_offset=base_offset).position
    goes = (batches[wire.BATCH_POSITION] >= start) & (batches[wire.BATCH_LAST_OFFSET] >= offset)
    if goes.any():
        return int(batches[wire.BATCH_POSITION, int(np.argmax(goes))])
    if not batches.shape[1]:
        return 0
    return int(batches[wire.BATCH_POSITION, -1] + batches[wire.BATCH_SIZE_BYTES, -1])


class TruncatedLog(NamedTuple):
    """A log after truncation: base offsets of its segments, in order.

    ``cut`` is the one to be truncated itself; it becomes the active one. ``created`` is a new
    empty segment's where none is left.
    """

    kept: tuple[int, ...]
    deleted: tuple[int, ...]
    cut: int | None
    created: int | None
    log_end_offset: int


def truncate_log(
    base_offsets: tuple[int, ...], offset: int, *, log_end_offset: int
) -> TruncatedLog:
    """Truncate a log of segments, given by their base offsets in order, to ``offset``.

    1. At or past the log end offset nothing happens.
    2. Below the first segment everything is deleted; an empty segment begins at the offset.
    3. Else segments whose base offset lies above the offset are deleted, and the last one left
       is truncated.

    Raises:
        ValueError: the offset is negative.
    """
    if offset < 0:
        raise ValueError(f"cannot truncate to offset {offset}, the least is 0")
    if offset >= log_end_offset:
        return TruncatedLog(base_offsets, (), None, None, log_end_offset)
    if not base_offsets or offset < base_offsets[0]:
        return TruncatedLog((), base_offsets, None, offset, offset)
    kept = tuple(base for base in base_offsets if base <= offset)
    return TruncatedLog(kept, base_offsets[len(kept) :], kept[-1], None, offset)
