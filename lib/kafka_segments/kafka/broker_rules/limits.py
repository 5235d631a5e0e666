"""How large segments and index files get, and when a full index makes a segment roll.

Source: FileRecords, AbstractIndex, OffsetIndex, TimeIndex, LogSegment.shouldRoll.
"""

from typing import NamedTuple

from kafka_segments.kafka.index.segment.recovered_segment import (
    OFFSET_ENTRY_BYTES,
    TIME_ENTRY_BYTES,
)

MOST_SEGMENT_BYTES = 2**31 - 1
"""No broker opens a larger segment. Source: the constructor of FileRecords."""


class IndexLimits(NamedTuple):
    """Limits that ``segment.index.bytes`` sets.

    ``preallocated_*_bytes``: the size of the file while its segment is active on a running
    broker, zeros after the entries. When the segment rolls, is recovered or closed in order, it
    shrinks to its entries. A full index makes the next append roll the segment. The time index
    counts as full one entry early, so that the entry made at the roll has room.
    """

    max_offset_entries: int
    max_time_entries: int
    preallocated_offset_index_bytes: int
    preallocated_time_index_bytes: int

    def is_offset_index_full(self, entries: int) -> bool:
        """Tell whether the next append rolls the segment for its offset index."""
        return entries >= self.max_offset_entries

    def is_time_index_full(self, entries: int) -> bool:
        """Tell whether the next append rolls the segment for its time index."""
        return entries >= self.max_time_entries - 1


def index_limits(segment_index_bytes: int) -> IndexLimits:
    """Return the limits for a ``segment.index.bytes``; sizes round down to whole entries."""
    offsets = segment_index_bytes // OFFSET_ENTRY_BYTES
    times = segment_index_bytes // TIME_ENTRY_BYTES
    return IndexLimits(offsets, times, offsets * OFFSET_ENTRY_BYTES, times * TIME_ENTRY_BYTES)


def holds_too_much(size_bytes: int, entry_bytes: int, segment_index_bytes: int) -> bool:
    """Tell whether an index file has more entries than a broker maps.

    It does not start on one of an active segment that it does not recover: the file is cut to the
    greatest size, and its end lies behind that. Source: AbstractIndex.resize.
    """
    return size_bytes // entry_bytes > segment_index_bytes // entry_bytes


def most_offset_entries(log_bytes: int, index_interval_bytes: int) -> int:
    """Return how many offset entries a log of that size can have at most.

    Each entry has more than ``index_interval_bytes`` of the log in front of it, and a batch behind.
    """
    return max(log_bytes - 1, 0) // (index_interval_bytes + 1)


def sufficient_index_bytes(log_bytes: int, index_interval_bytes: int) -> int:
    """Return a ``segment.index.bytes`` that no log of that size can fill.

    There are at most as many time entries as offset entries, and one more at the end. An append
    needs one free place besides.
    """
    return TIME_ENTRY_BYTES * (most_offset_entries(log_bytes, index_interval_bytes) + 2)
