"""Find the first record at or after a timestamp and an offset: by headers, then in one batch.

Source: FileRecords.searchForTimestamp, LogSegment.findOffsetByTimestamp.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kafka_segments.errors import FileChangedError, UnreadableBatchError
from kafka_segments.wire import batches as wire
from kafka_segments.wire import header_layout as layout
from kafka_segments.wire.codecs import DecompressionError
from kafka_segments.wire.ends import describe_end
from kafka_segments.wire.reading import ReadInto
from kafka_segments.wire.record_times import RecordTimesReader

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

    def __init__(self) -> None:
        self._reader = RecordTimesReader(max_batch_bytes=MAX_BATCH_BYTES)
        self._window = np.empty(0, dtype=np.uint8)
        self._window_position = 0
        self._decoded: tuple[int, _Int64s, _Int64s] | None = None
        self._header = np.empty((wire.BATCH_FIELDS, 1), dtype=np.int64)
        self.bytes_read = 0

    def forget(self) -> None:
        """Drop what is kept of the segment that was searched last."""
        self._window, self._decoded = self._window[:0], None

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

    def _first_of(
        self, data: wire.Bytes, data_position: int, least_timestamp_ms: int, least_offset: int
    ) -> FoundRecord | None:
        header = self._header
        position = int(header[wire.BATCH_POSITION, 0])
        if self._decoded is None or self._decoded[0] != position:
            self._decoded = (position, *self._records(data, data_position))
        _, offsets, timestamps = self._decoded
        fits = np.flatnonzero((timestamps >= least_timestamp_ms) & (offsets >= least_offset))
        if not len(fits):
            return None
        epoch = int(header[wire.BATCH_LEADER_EPOCH, 0])
        is_v2 = header[wire.BATCH_MAGIC, 0] >= layout.MAGIC_V2
        return FoundRecord(
            offset=int(offsets[fits[0]]),
            timestamp_ms=int(timestamps[fits[0]]),
            leader_epoch=epoch,
            position=position,
            batch_offset=int(header[wire.BATCH_BASE_OFFSET, 0] if is_v2 else offsets[0]),
        )

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
