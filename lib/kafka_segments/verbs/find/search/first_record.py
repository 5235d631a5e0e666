"""Find the first record at or after a timestamp and an offset: by headers, then in one batch.

Source: FileRecords.searchForTimestamp, LogSegment.findOffsetByTimestamp.
"""

from contextlib import suppress
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kafka_segments.errors import FileChangedError, UnreadableBatchError
from kafka_segments.kafka.broker_rules.record_lookups import RecordLookup
from kafka_segments.kafka.codecs.streams import DecompressionError
from kafka_segments.kafka.wire import batches as wire
from kafka_segments.kafka.wire import header_layout as layout
from kafka_segments.kafka.wire.ends import describe_end
from kafka_segments.kafka.wire.first_fitting import first_fitting, refuse_large_messages
from kafka_segments.kafka.wire.reading import ReadInto
from kafka_segments.kafka.wire.record_times import RecordTimesReader
from kafka_segments.kafka.wire.sections import record_sections

MAX_BATCH_BYTES = 256 * 1024 * 1024
_WINDOW_BYTES = 8 * 1024
_MOST_KEPT_BYTES = 256 * 1024


class FoundRecord(NamedTuple):
    """A record, and the leader epoch (-1: none), position and first offset of its batch."""

    offset: int
    timestamp_ms: int
    leader_epoch: int
    position: int
    batch_offset: int


_Int64s = npt.NDArray[np.int64]
_NONE: _Int64s = np.empty(0, np.int64)


class FirstRecordFinder:
    """Searches one segment after another; ``bytes_read`` counts the bytes that it read.

    It keeps what it read and decoded last for the next search. Call ``forget`` before a search in
    another segment.
    """

    def __init__(self, lookup: RecordLookup | None = None) -> None:
        """Search as brokers of a release do; by default of one that reads batches as a whole."""
        self._lookup = lookup or RecordLookup()
        self._reader = RecordTimesReader(max_batch_bytes=MAX_BATCH_BYTES)
        self._window = np.empty(0, dtype=np.uint8)
        self._window_position = 0
        self._decoded: tuple[int, _Int64s, _Int64s] | None = None
        self._header = np.empty((wire.BATCH_FIELDS, 1), dtype=np.int64)
        self.bytes_read = 0

    def forget(self, lookup: RecordLookup | None = None) -> None:
        """Drop what is kept of the segment that was searched last; search on as ``lookup`` says."""
        self._window, self._decoded = self._window[:0], None
        self._lookup = lookup or self._lookup

    def find(
        self,
        read_into: ReadInto,
        *,
        start: int,
        end: int,
        least_timestamp_ms: int,
        least_offset: int,
    ) -> FoundRecord | None:
        """Find the first record at or after both, from the batch at byte ``start`` on.

        1. Batches whose greatest timestamp or last offset lies below are passed over. Their headers
           are trusted, as Kafka trusts them.
        2. The first of the other batches that holds such a record has the answer.
        3. The search ends at byte ``end``.

        Raises:
            DecompressionError: a batch that may hold the record cannot be decoded.
            FileChangedError: the file ends before ``end``.
            UnreadableBatchError: no batch can begin where one ends before ``end``. Kafka throws
                there, or takes it for the end of the segment.
            OSError: whatever ``read_into`` raises.

        Source: FileRecords.searchForTimestamp.
        """
        walk = wire.new_walk(size_bytes=end, check_crc=False, needs_body=True)
        walk.next_position = start
        walk.low_timestamp, walk.low_offset = least_timestamp_ms, least_offset
        wanted = 1
        while True:
            position = walk.next_position
            data = self._bytes_from(read_into, position, wanted, end)
            while wire.walk_batches(data, len(data), position, self._header, 0, walk):
                found = self._first_of(data, position, least_timestamp_ms, least_offset)
                if found is not None:
                    return found
            if walk.status != wire.WANTS_BYTES:
                _refuse_damage(walk, end)
                return None
            wanted = walk.found

    @property
    def found_batch(self) -> wire.Batches:
        """The batch of the record that was found last, in a column."""
        return self._header

    def first_batch(self, read_into: ReadInto, *, position: int, end: int) -> wire.Batches:
        """Return the batch at a byte, in a column; none where none can begin there.

        What is read for it is kept for the search.

        Raises:
            FileChangedError: the file ends before the batch's header does.
            OSError: whatever ``read_into`` raises.
        """
        walk = wire.new_walk(size_bytes=end, check_crc=False, needs_body=False)
        walk.next_position = position
        data = self._bytes_from(read_into, position, layout.HEADER_BYTES, end)
        count = wire.walk_batches(data, len(data), position, self._header, 0, walk)
        return self._header[:, :count]

    def _first_of(
        self, data: wire.Bytes, data_position: int, least_timestamp_ms: int, least_offset: int
    ) -> FoundRecord | None:
        header = self._header[:, 0]
        fitting = self._fitting(data, data_position, least_timestamp_ms, least_offset)
        if fitting is None:
            return None
        is_v2 = header[wire.BATCH_MAGIC] >= layout.MAGIC_V2
        first = header[wire.BATCH_BASE_OFFSET] if is_v2 else self._all(data, data_position)[0][0]
        return FoundRecord(
            *fitting,
            leader_epoch=int(header[wire.BATCH_LEADER_EPOCH]),
            position=int(header[wire.BATCH_POSITION]),
            batch_offset=int(first),
        )

    def _fitting(
        self, data: wire.Bytes, data_position: int, least_timestamp_ms: int, least_offset: int
    ) -> tuple[int, int] | None:
        """Return offset and timestamp of the first record of the batch that fits.

        All are decoded in one pass where nothing speaks against it, which is fast. What that meets
        behind the record does not count where brokers do not read so far.
        """
        header = self._header[:, 0]
        is_v2 = header[wire.BATCH_MAGIC] >= layout.MAGIC_V2
        is_compressed = bool(header[wire.BATCH_ATTRIBUTES] & layout.CODEC_MASK)
        (start,), (end,) = record_sections(self._header, data_position)
        limit = self._lookup.limit(is_compressed=is_compressed)
        searched = data[start:end], header, least_timestamp_ms, least_offset, limit
        if limit.is_set and not is_v2:
            refuse_large_messages(data[start:end], header, limit)
        if not limit.is_set or not is_v2:
            try:
                offsets, timestamps = self._all(data, data_position)
            except DecompressionError:
                if is_v2 and (self._lookup.streams or not is_compressed):
                    with suppress(DecompressionError):
                        return first_fitting(*searched)
                raise
            else:
                fits = (timestamps >= least_timestamp_ms) & (offsets >= least_offset)
                first = int(fits.argmax()) if fits.any() else None
                return None if first is None else (int(offsets[first]), int(timestamps[first]))
        return first_fitting(*searched)

    def _all(self, data: wire.Bytes, data_position: int) -> tuple[_Int64s, _Int64s]:
        """Return the offsets and timestamps of the batch's records, kept for the next search."""
        position = int(self._header[wire.BATCH_POSITION, 0])
        if self._decoded is None or self._decoded[0] != position:
            self._decoded = (position, *self._records(data, data_position))
        return self._decoded[1], self._decoded[2]

    def _records(self, data: wire.Bytes, data_position: int) -> tuple[_Int64s, _Int64s]:
        """Return the offsets and timestamps of the batch's records."""
        self._reader.undecodable = None
        parts = list(self._reader.read(self._header, data, data_position))
        if self._reader.undecodable is not None:
            raise DecompressionError(self._reader.undecodable.reason)
        return (
            np.concatenate([_NONE, *(part.offset for part in parts)]),
            np.concatenate([_NONE, *(part.timestamp for part in parts)]),
        )

    def _bytes_from(self, read_into: ReadInto, position: int, wanted: int, end: int) -> wire.Bytes:
        """Return ``wanted`` bytes or more from a position on; fewer where the segment ends.

        The bytes before them are kept for the next search, up to a limit.
        """
        window, first = self._window, self._window_position
        wanted = max(min(wanted, end - position), 0)
        if not first <= position <= first + len(window):
            window, first = window[:0], position
        missing = position + wanted - first - len(window)
        if missing > 0:
            if position - first > _MOST_KEPT_BYTES:
                window, first = window[position - first :], position
            read_from = first + len(window)
            data = np.empty(min(max(missing, _WINDOW_BYTES), end - read_from), np.uint8)
            read = read_into(read_from, memoryview(data))
            self.bytes_read += read
            if read < len(data):
                raise FileChangedError(read_from + read, end)
            window = np.concatenate((window, data)) if len(window) else data
        self._window, self._window_position = window, first
        return window[position - first : max(end - first, 0)]


def _refuse_damage(walk: wire.BatchWalk, end: int) -> None:
    """Refuse a walk that ended before its end: what lies behind was not searched."""
    position = walk.next_position
    left = max(end - position, 0)
    reason = describe_end(walk.status, found=walk.found, expected=walk.expected, left=left)
    if reason is not None:
        raise UnreadableBatchError(position, reason)
