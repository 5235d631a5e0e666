"""Find where a search begins to read a segment, by its index files, and check them by the log.

A broker believes its index files. Here the entries that a search goes by are held against their
batches first, which costs a read of each.
"""

import numpy as np

from kafka_segments.errors import CorruptIndexError
from kafka_segments.kafka.broker_rules.lookups import lookup_timestamp
from kafka_segments.kafka.index.segment.few_batches import FewBatches
from kafka_segments.kafka.index.segment.index_ends import (
    IndexFiles,
    RangedFile,
    whole_offset_index,
    whole_time_index,
)
from kafka_segments.kafka.index.segment.offset_index import OffsetPosition, lookup_offset
from kafka_segments.kafka.index.segment.time_index import TimestampOffset


class CheckedLookup:
    """Looks up one segment after another question; an entry is checked once.

    The segment's batches are v2.
    """

    def __init__(self, log: RangedFile, indexes: IndexFiles, *, base_offset: int) -> None:
        """Read both index files.

        Raises:
            CorruptIndexError: one of them is missing, or not as a broker writes it.
        """
        self._offsets = whole_offset_index(indexes.offset_index, base_offset=base_offset)
        self._times = whole_time_index(indexes.time_index, base_offset=base_offset)
        self._log = log
        self._base_offset = base_offset
        self._batches = FewBatches(log)
        self._checked: set[TimestampOffset | OffsetPosition] = set()

    def start(self, *, least_timestamp_ms: int, least_offset: int) -> int:
        """Return the byte from which a broker reads for the first record at or after both.

        1. The time entry at or below the timestamp leads to an offset, and the offset entry at or
           below that one, or below ``least_offset`` if it is greater, to a byte.
        2. The offset entry must lead to a batch that holds its offset, the time entry to one that
           has its timestamp. That no batch before that has a greater one is the index's word.

        Raises:
            CorruptIndexError: an entry is not as its batch says, or leads to none.
            FileChangedError: the log ended before its size.
            OSError: whatever reading raises.

        Source: LogSegment.findOffsetByTimestamp.
        """
        time = lookup_timestamp(self._times, least_timestamp_ms, base_offset=self._base_offset)
        if time.timestamp >= 0 and time.offset > least_offset:
            self._check_time(time)
        entry = self._entry_at(max(time.offset, least_offset))
        self._check_offset(entry)
        return entry.position

    def _entry_at(self, offset: int) -> OffsetPosition:
        return lookup_offset(self._offsets, offset, base_offset=self._base_offset)

    def _check_offset(self, entry: OffsetPosition) -> None:
        if not entry.position or entry in self._checked:
            return
        if entry.position >= self._log.size_bytes:
            raise CorruptIndexError(f"an entry of the .index leads to byte {entry.position}")
        if not self._batches.at(entry.position).holds(entry.offset):
            raise CorruptIndexError(
                f"the .index has offset {entry.offset} at byte {entry.position}, the batch there"
                " does not"
            )
        self._checked.add(entry)

    def _check_time(self, time: TimestampOffset) -> None:
        if time in self._checked:
            return
        entry = self._entry_at(time.offset)
        self._check_offset(entry)
        row = int(np.searchsorted(self._offsets[:, 0], time.offset, side="right"))
        end = int(self._offsets[row, 1]) if row < len(self._offsets) else self._log.size_bytes
        batch = self._batches.first_between(entry.position, end, low_offset=time.offset)
        if batch is None or not batch.holds(time.offset) or batch.max_timestamp != time.timestamp:
            raise CorruptIndexError(
                f"the .timeindex has timestamp {time.timestamp} at offset {time.offset}, the log"
                " does not"
            )
        self._checked.add(time)
