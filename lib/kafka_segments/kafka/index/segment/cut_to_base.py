"""What a broker leaves of a segment when recovery finds an index entry whose offset goes back.

The broker truncates the segment to its base offset. That mostly empties it: the first batch ends at
or above the base offset, so the cut is at byte 0. Where an index entry is at the base offset or
below it, the cut is at that entry's place, and the bytes before it stay.

Source: LogLoader.recoverLog, LogSegment.truncateTo, AbstractIndex.largestLowerBoundSlotFor.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kafka_segments.kafka.index.segment.batch_reading import BatchSearch, headers
from kafka_segments.kafka.wire import batches as wire
from kafka_segments.kafka.wire.header_layout import NO_TIMESTAMP
from kafka_segments.kafka.wire.reading import ReadInto

Entries = npt.NDArray[np.int64]

_WARM_BYTES = 8192


class Left(NamedTuple):
    """What is left of a segment.

    The log's end is searched for from byte ``end_start`` on, at offset ``end_target``.
    """

    log_bytes: int
    offset_entries: Entries
    time_entries: Entries
    max_timestamp: int
    offset_of_max_timestamp: int
    end_target: int
    end_start: int


def truncated_to_base(
    read_into: ReadInto,
    *,
    size_bytes: int,
    base_offset: int,
    offset_entries: Entries,
    time_entries: Entries,
    max_timestamp: int,
) -> Left:
    """Truncate a segment to its base offset; ``max_timestamp`` is that of the batches read.

    Raises:
        UnreadableBatchError: Kafka throws when it looks for the cut.
    """
    slot = _slot(offset_entries[:, 0], base_offset, entry_bytes=8)
    start = 0 if slot < 0 else int(offset_entries[slot, 1])
    cut = BatchSearch(read_into, end=size_bytes).position_of(base_offset, start=start)
    log_bytes = size_bytes if cut is None else cut
    offsets = _truncated(offset_entries, slot, 0, base_offset)
    times = _truncated(
        time_entries, _slot(time_entries[:, 1], base_offset, entry_bytes=12), 1, base_offset
    )
    timestamp, at = times[-1].tolist() if len(times) else (NO_TIMESTAMP, base_offset)
    if max_timestamp >= 0:
        slot = _slot(offsets[:, 0], at, entry_bytes=8)
        start = 0 if slot < 0 else int(offsets[slot, 1])
        timestamp, at = _largest_after(read_into, start, log_bytes, timestamp, at)
    else:
        timestamp, at = max_timestamp, base_offset
    end_target, end_start = offsets[-1].tolist() if len(offsets) else (base_offset, 0)
    return Left(log_bytes, offsets, times, timestamp, at, end_target, end_start)


def _largest_after(
    read_into: ReadInto, start: int, end: int, timestamp: int, at: int
) -> tuple[int, int]:
    for batches in headers(read_into, start, end):
        batch = int(np.argmax(batches[wire.BATCH_MAX_TIMESTAMP]))
        if batches[wire.BATCH_MAX_TIMESTAMP, batch] > timestamp:
            timestamp = int(batches[wire.BATCH_MAX_TIMESTAMP, batch])
            at = int(batches[wire.BATCH_LAST_OFFSET, batch])
    return timestamp, at


def _truncated(entries: Entries, slot: int, column: int, base_offset: int) -> Entries:
    if slot < 0:
        return entries[:0]
    return entries[: slot if entries[slot, column] == base_offset else slot + 1]


def _slot(values: Entries, target: int, *, entry_bytes: int) -> int:
    """Return the row of the greatest value not above the target, or -1 where there is none.

    The steps are Kafka's own: they matter where the values do not rise.
    """
    if not len(values):
        return -1
    first_warm = max(0, len(values) - 1 - _WARM_BYTES // entry_bytes)
    low, high = 0, first_warm
    if values[first_warm] < target:
        low, high = first_warm, len(values) - 1
    elif values[0] > target:
        return -1
    while low < high:
        middle = (low + high + 1) // 2
        if values[middle] == target:
            return middle
        if values[middle] > target:
            high = middle - 1
        else:
            low = middle
    return low
