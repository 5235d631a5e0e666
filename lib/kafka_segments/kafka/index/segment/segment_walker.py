"""Reads a segment buffer by buffer into the compiled walk, and collects what the walk gives."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kafka_segments.errors import FileChangedError
from kafka_segments.kafka.index.segment import kernel, markers
from kafka_segments.kafka.index.segment import walk as walks
from kafka_segments.kafka.index.segment.appending import append_last_time_entry
from kafka_segments.kafka.index.segment.producer_summary import ProducerSummary
from kafka_segments.kafka.index.segment.range_digests import RangeDigests
from kafka_segments.kafka.index.segment.recovered_segment import Entries, Ranges
from kafka_segments.kafka.index.segment.walk import SegmentWalk
from kafka_segments.kafka.index.segment.walk_rows import WalkRows
from kafka_segments.kafka.wire.reading import FRONT_BYTES, FetchedAt, ReadInto

_BUFFER_BYTES = 1024 * 1024  # fits the second-level cache: reading and checksumming meet there
_HEADERS_BUFFER_BYTES = 64 * 1024
Bytes = npt.NDArray[np.uint8]


class WalkedSegment(NamedTuple):
    """What a walk over a segment gives beside what its record says.

    ``ranges``: None if no digests were asked for, or batches are not in order.
    """

    offset_entries: Entries
    time_entries: Entries
    leader_epochs: Entries
    producers: ProducerSummary
    ranges: Ranges | None = None


class SegmentWalker:
    """Walks over segments one after another, with buffers that are made once.

    ``marker_message`` says what is wrong with the last marker that was decoded outside the kernel.
    """

    def __init__(self, *, check_crc: bool, digest_bits: int = 0) -> None:
        size = _BUFFER_BYTES if check_crc else _HEADERS_BUFFER_BYTES
        self._buffer = np.zeros(kernel.HEADER_ROOM + size, dtype=np.uint8)
        self._bytes = self._buffer[kernel.HEADER_ROOM :]
        self._view = memoryview(self._bytes)
        self._rows = WalkRows(size)
        self._digests = RangeDigests(digest_bits) if digest_bits else None
        self.marker_message = ""

    def walk(
        self, read_into: ReadInto, walk: SegmentWalk, fetched_at: FetchedAt | None = None
    ) -> WalkedSegment:
        """Walk over the file that ``walk`` describes, until its status says how it ended.

        Bytes that ``fetched_at`` gives are not copied.

        Raises:
            FileChangedError: the file ended before ``walk.end``.
            OSError: whatever ``read_into`` raises.
        """
        rows, digests, position, data_end = self._rows, self._digests, 0, 0
        buffer, length = self._buffer, 0
        rows.begin(walk)
        if digests is not None:
            digests.begin(walk.end, walk.base_offset)
        while True:
            joined_on = None
            if fetched_at is not None:
                joined_on = _joined(fetched_at, buffer, length, data_end - position, data_end)
            if joined_on is not None:
                buffer, length = joined_on
            else:
                fetched_at = None  # none begin where this ends
                if buffer is not self._buffer:
                    self._buffer[: kernel.HEADER_ROOM] = buffer[: kernel.HEADER_ROOM]
                buffer, length = self._buffer, min(len(self._bytes), walk.end - position)
                self._fill(read_into, position, length, end=walk.end)
            data_end = position + length
            if digests is not None:
                digests.add(buffer[kernel.HEADER_ROOM :], length, position)
            rows.have_room(length)
            position = kernel.scan_buffer(buffer, length, position, walk.values, *rows.tables)
            status = walk.status
            if status == walks.WANTS_MARKER:
                self._decode_marker(read_into, walk)
            elif status not in (walks.READ_ON, walks.WANTS_EPOCH_SPACE):
                ranges = None if digests is None else digests.ranges()
                return WalkedSegment(*rows.entries(), rows.producers(), ranges)

    def last_time_entry(self, walk: SegmentWalk) -> Entries:
        """Return the time entry that the end of a segment gets: one row, or none.

        Where the time index refuses it, that becomes the status of ``walk``.
        """
        entries = self._rows.tables[1]
        status = append_last_time_entry(walk.values, entries)
        if status != walks.SOUND:
            walk.status = status
        return entries[: walk.new_time_entries].copy()

    def only_zeros(self, read_into: ReadInto, position: int, end: int) -> bool:
        """Tell whether a file has nothing but zero bytes from a position on.

        Raises:
            FileChangedError: the file ended before ``end``.
            OSError: whatever ``read_into`` raises.
        """
        while position < end:
            length = min(len(self._bytes), end - position)
            self._fill(read_into, position, length, end=end)
            if self._bytes[:length].any():
                return False
            position += length
        return True

    def _fill(self, read_into: ReadInto, position: int, length: int, *, end: int) -> None:
        read = read_into(position, self._view[:length]) if length else 0
        if read < length:
            raise FileChangedError(position + read, end)

    def _decode_marker(self, read_into: ReadInto, walk: SegmentWalk) -> None:
        """Decode the marker that the kernel could not, for its next call."""
        position, length = walk.position, walk.found
        walk.decoded_position = position
        batch = np.empty(length, dtype=np.uint8)
        read = read_into(position, memoryview(batch))
        if read < length:
            raise FileChangedError(position + read, walk.end)
        decoded = markers.decode_marker(batch)
        self.marker_message = decoded.message
        walk.decoded_end = decoded.end
        walk.decoded_kind = decoded.kind
        walk.decoded_coordinator_epoch = decoded.coordinator_epoch
        walk.decoded_timestamp = decoded.timestamp


def _joined(
    fetched_at: FetchedAt, before: Bytes, length: int, left: int, position: int
) -> tuple[Bytes, int] | None:
    """Return the chunk at a position as a buffer of the kernel's, and the bytes in it.

    ``before`` is the last buffer, of ``length`` bytes: what it kept of a header, and the bytes that
    are ``left`` in it, go in front of the chunk's. None: there is no chunk, or no room for them.
    """
    room = kernel.HEADER_ROOM
    if left > FRONT_BYTES - room:
        return None
    chunk = fetched_at(position)
    if chunk is None:
        return None
    buffer = chunk.memory[FRONT_BYTES - left - room :]
    buffer[:room] = before[:room]
    buffer[room : room + left] = before[room + length - left : room + length]
    return buffer, left + chunk.length
