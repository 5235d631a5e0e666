"""Where a batch stands in a segment, and where the segment ends, as Kafka reads them.

The end is not simply that of the last batch. Kafka searches for the last offset of the offset
index, or for the base offset where the index is empty, from that entry's place on. If it finds a
batch, the segment ends after its last batch; if not, at its base offset. The search compares first
offsets. The first offset of a compressed message v0 or v1 is inside it, so Kafka throws where such
a message cannot be read. Of the batches only the sizes are checked again.

Source: LogSegment.readNextOffset, FileRecords.searchForOffsetFromPosition (as of 4.3).
"""

from collections.abc import Iterator

import numpy as np

from kafka_segments.errors import FileChangedError, UnreadableBatchError
from kafka_segments.kafka.codecs.streams import DecompressionError, ReadPart
from kafka_segments.kafka.wire import batches as wire
from kafka_segments.kafka.wire import header_layout as layout
from kafka_segments.kafka.wire.ends import AT_END, PARTIAL_BATCH, describe_end
from kafka_segments.kafka.wire.reading import ReadInto
from kafka_segments.kafka.wire.wrappers import first_offset

_WINDOW_BYTES = 64 * 1024
_MOST_HELD_BYTES = 1024 * 1024


def wrapped(offset: int) -> int:
    """Return an offset as a Java long holds it: modulo 2**64, signed."""
    return (offset + 2**63) % 2**64 - 2**63


def headers(read_into: ReadInto, start: int, end: int) -> Iterator[wire.Batches]:
    """Yield the batches from a position on, some at a time; an array holds until the next one.

    Raises:
        UnreadableBatchError: a batch has a size that no batch can have.
        FileChangedError: the file ended before ``end``.
    """
    walk = wire.new_walk(size_bytes=end, check_crc=False, needs_body=False)
    walk.next_position = start
    window = np.empty(max(min(_WINDOW_BYTES, end - start), 0), dtype=np.uint8)
    most_batches = len(window) // layout.MIN_BATCH_BYTES + 1
    found = np.empty((wire.BATCH_FIELDS, most_batches), dtype=np.int64)
    while True:
        position = walk.next_position
        length = max(min(len(window), end - position), 0)
        _fill(read_into, position, window[:length], end)
        count = wire.walk_batches(window, length, position, found, 0, walk)
        if count:
            yield found[:, :count]
        if walk.status not in (wire.WANTS_BYTES, wire.ROOM_FULL):
            break
    status, position = walk.status, walk.next_position
    if status not in (AT_END, PARTIAL_BATCH):
        failed, expected = walk.found, walk.expected
        reason = describe_end(status, found=failed, expected=expected, left=end - position)
        raise UnreadableBatchError(position, reason or "cannot be")


class BatchSearch:
    """Searches the bytes of one segment before ``end``."""

    def __init__(self, read_into: ReadInto, *, end: int) -> None:
        self._read_into = read_into
        self._end = end

    def position_of(self, offset: int, *, start: int) -> int | None:
        """Find the first batch that holds an offset or one above it, from a batch's place on.

        A batch that ends at or above the offset counts if the next one begins above it, or if it is
        the last. Return its position, or None where there is no such batch.

        Raises:
            UnreadableBatchError: Kafka throws at the search.
        """
        before: tuple[int, int] | None = None
        for batches in headers(self._read_into, start, self._end):
            firsts = batches[wire.BATCH_BASE_OFFSET]
            is_wrapper = _are_wrappers(batches)
            passes = np.flatnonzero(is_wrapper | (firsts >= offset))
            for at in passes.tolist():
                position = int(batches[wire.BATCH_POSITION, at])
                first = self.first_offset(batches, at)
                if at:
                    before = int(batches[wire.BATCH_POSITION, at - 1]), _last(batches, at - 1)
                if first == offset:
                    return position
                if first > offset:
                    return before[0] if before is not None and before[1] >= offset else position
            before = int(batches[wire.BATCH_POSITION, -1]), _last(batches, -1)
        return before[0] if before is not None and before[1] >= offset else None

    def next_offset(self, base_offset: int, *, target: int, start: int) -> int:
        """Return the segment's next offset; ``target`` and ``start`` are the index's last entry.

        Raises:
            UnreadableBatchError: Kafka throws at the search.
        """
        position = self.position_of(target, start=start)
        if position is None:
            return base_offset
        last = target
        for batches in headers(self._read_into, position, self._end):
            last = _last(batches, -1)
        return wrapped(last + 1)

    def first_offset(self, batches: wire.Batches, at: int) -> int:
        """Return the first offset of a batch; that of a compressed message v0 or v1 is inside it.

        Raises:
            UnreadableBatchError: Kafka throws when it reads the message.
        """
        if not _are_wrappers(batches)[at]:
            return int(batches[wire.BATCH_BASE_OFFSET, at])
        position = int(batches[wire.BATCH_POSITION, at])
        size_bytes = int(batches[wire.BATCH_SIZE_BYTES, at])
        try:
            return first_offset(self._parts_of(position, size_bytes), size_bytes)
        except DecompressionError as error:
            raise UnreadableBatchError(position, str(error)) from None

    def _parts_of(self, position: int, size_bytes: int) -> ReadPart:
        """Return what gives parts of a batch: of a large one they are read one by one."""
        if size_bytes > _MOST_HELD_BYTES:
            return lambda start, length: self._part(position + start, length)
        batch = self._part(position, size_bytes)
        return lambda start, length: batch[start : start + length]

    def _part(self, position: int, length: int) -> memoryview:
        part = np.empty(length, dtype=np.uint8)
        _fill(self._read_into, position, part, self._end)
        return memoryview(part)


def _are_wrappers(batches: wire.Batches) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    is_compressed = batches[wire.BATCH_ATTRIBUTES] & layout.CODEC_MASK != 0
    found: np.ndarray[tuple[int], np.dtype[np.bool_]] = (
        batches[wire.BATCH_MAGIC] < layout.MAGIC_V2
    ) & is_compressed
    return found


def _last(batches: wire.Batches, at: int) -> int:
    return int(batches[wire.BATCH_LAST_OFFSET, at])


def _fill(read_into: ReadInto, position: int, into: wire.Bytes, end: int) -> None:
    if not len(into):
        return
    read = read_into(position, memoryview(into))
    if read < len(into):
        raise FileChangedError(position + read, end)
