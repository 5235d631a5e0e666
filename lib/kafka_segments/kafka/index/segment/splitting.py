"""Split a segment whose offsets do not fit its base offset, as a broker's load does.

1. The batches are copied in order, each piece named by the first offset of its first batch.
2. A piece ends before the first batch whose last offset lies below its name or more than
   2^31 - 1 above it.
3. Only sizes and magics are checked; other damage is copied with its batch, and ends the piece when
   that is recovered.
4. A segment is not split, and its log not loaded, where the log's end (``log_end``) fits the base
   offset, so that the overflow lies in the middle; where a piece's first batch ends below its own
   first offset; where an index entry of a piece goes back; where two pieces have one name; where
   bytes that are no batch stand behind the last one; where a batch has a magic other than 0, 1, 2,
   or the first offset of a compressed message cannot be read.

Each piece is then recovered like any segment.

Source: LocalLog.splitOverflowedSegment, LogSegment.hasOverflow, appendFromFile, append (as of 4.3).
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from kafka_segments.errors import UnreadableBatchError
from kafka_segments.kafka.index.segment.batch_reading import BatchSearch, headers, wrapped
from kafka_segments.kafka.index.segment.recovered_segment import SegmentRecovery
from kafka_segments.kafka.index.segment.recovery import SegmentRecoverer
from kafka_segments.kafka.index.segment.relative import MAX_RELATIVE_OFFSET
from kafka_segments.kafka.wire import batches as wire
from kafka_segments.kafka.wire import header_layout as layout
from kafka_segments.kafka.wire.header_layout import NO_TIMESTAMP
from kafka_segments.kafka.wire.reading import ReadInto


class Piece(NamedTuple):
    """A segment that a split makes: its base offset, what recovery makes of it, its place."""

    base_offset: int
    recovery: SegmentRecovery
    position: int = 0


class _Span(NamedTuple):
    base_offset: int
    start: int
    end: int


class _NotSplitError(Exception):
    """A broker does not split the segment."""


def split_overflowed(
    recoverer: SegmentRecoverer, read_into: ReadInto, *, size_bytes: int, base_offset: int
) -> list[Piece] | None:
    """Split a segment and recover the pieces; return None where a broker does not load the log.

    Raises:
        FileChangedError: the file ended before ``size_bytes``.
        OSError: whatever ``read_into`` raises.
    """
    found = recoverer.recover(read_into, size_bytes=size_bytes, base_offset=base_offset)
    entries = recoverer.recover(
        read_into, size_bytes=found.valid_bytes, base_offset=base_offset
    ).offset_entries
    target, start = base_offset, 0
    if entries is not None and len(entries):
        target, start = entries[-1].tolist()
    search = BatchSearch(read_into, end=size_bytes)
    try:
        end = search.next_offset(base_offset, target=target, start=start)
        if end <= base_offset or _fits(wrapped(end - 1), base_offset):
            return None
        spans = list(_spans(read_into, search, size_bytes, recoverer.index_interval_bytes))
    except (UnreadableBatchError, _NotSplitError):
        return None
    if len({span.base_offset for span in spans}) < len(spans):
        return None
    return [
        Piece(
            span.base_offset,
            recoverer.recover(
                shifted(read_into, span.start),
                size_bytes=span.end - span.start,
                base_offset=span.base_offset,
            ),
            span.start,
        )
        for span in spans
    ]


def shifted(read_into: ReadInto, start: int) -> ReadInto:
    """Read a part of a file as if it were one."""
    return lambda position, view: read_into(start + position, view)


def _fits(offset: int, base_offset: int) -> bool:
    return 0 <= wrapped(offset - base_offset) <= MAX_RELATIVE_OFFSET


def _spans(
    read_into: ReadInto, search: BatchSearch, size_bytes: int, interval_bytes: int
) -> Iterator[_Span]:
    """Return the pieces' places, in file order."""
    base_offset, start, end = 0, 0, 0
    index: _AppendedIndex | None = None
    for batches in headers(read_into, 0, size_bytes):
        if not (
            (batches[wire.BATCH_MAGIC] >= 0) & (batches[wire.BATCH_MAGIC] <= layout.MAGIC_V2)
        ).all():
            raise _NotSplitError
        at = 0
        while at < batches.shape[1]:
            if index is None:
                base_offset = search.first_offset(batches, at)
                start = int(batches[wire.BATCH_POSITION, at])
                index = _AppendedIndex(interval_bytes, start)
                if base_offset < 0 or not _fits(
                    int(batches[wire.BATCH_LAST_OFFSET, at]), base_offset
                ):
                    raise _NotSplitError
            relative = batches[wire.BATCH_LAST_OFFSET, at:] - np.int64(base_offset)
            beyond = np.flatnonzero((relative < 0) | (relative > MAX_RELATIVE_OFFSET))
            stop = at + int(beyond[0]) if len(beyond) else batches.shape[1]
            index.append(batches[:, at:stop])
            if len(beyond):
                index.close()
                yield _Span(base_offset, start, int(batches[wire.BATCH_POSITION, stop]))
                index = None
            at = stop
        end = int(batches[wire.BATCH_POSITION, -1] + batches[wire.BATCH_SIZE_BYTES, -1])
    if index is None or end < size_bytes:
        raise _NotSplitError
    index.close()
    yield _Span(base_offset, start, end)


class _AppendedIndex:
    """The index entries that appending makes, as far as they tell whether one goes back."""

    def __init__(self, interval_bytes: int, start: int) -> None:
        self._interval_bytes = interval_bytes
        self._indexed_position = start
        self._last_offset: int | None = None
        self._time = (NO_TIMESTAMP, 0)  # the greatest so far, and its offset
        self._last_time = self._time  # that of the last time entry

    def append(self, batches: wire.Batches) -> None:
        positions, offsets = batches[wire.BATCH_POSITION], batches[wire.BATCH_LAST_OFFSET]
        at = 0
        while at < len(positions):
            beyond = self._indexed_position + self._interval_bytes
            entry = int(np.searchsorted(positions, beyond, side="right"))
            until = min(entry + 1, len(positions))
            self._take_times(batches[wire.BATCH_MAX_TIMESTAMP, at:until], offsets[at:until])
            if entry < len(positions):
                self._add(int(offsets[entry]))
                self._indexed_position = int(positions[entry])
            at = until

    def close(self) -> None:
        self._add_time()

    def _take_times(self, timestamps: wire.Batches, offsets: wire.Batches) -> None:
        greatest = int(np.argmax(timestamps))
        if timestamps[greatest] > self._time[0]:
            self._time = int(timestamps[greatest]), int(offsets[greatest])

    def _add(self, offset: int) -> None:
        if self._last_offset is not None and offset <= self._last_offset:
            raise _NotSplitError
        self._last_offset = offset
        self._add_time()

    def _add_time(self) -> None:
        if self._time[1] < self._last_time[1]:
            raise _NotSplitError
        self._last_time = self._time
