"""Makes the producer summary of a segment from its batches, compiled, buffer after buffer.

Source: ProducerAppendInfo.append, ProducerStateManager.update, lastStableOffset, completeTxn.
"""

from typing import Any

import numpy as np

from kafka_segments.compiling import njit
from kafka_segments.kafka.index.segment import producer_batches as batch
from kafka_segments.kafka.index.segment.producer_batches import (
    ABORT,
    COMMIT,
    DATA,
    EMPTY_CONTROL,
    TRANSACTIONAL_DATA,
)
from kafka_segments.kafka.index.segment.producer_summary import (
    BEGIN,
    CHECK,
    COORDINATOR_EPOCH,
    EPOCH,
    HAS_BATCH,
    HAS_EPOCH,
    HAS_MARKER,
    KEEPS_BATCH,
    LAST_OFFSET,
    LAST_SEQUENCE,
    OFFSET_DELTA,
    PRODUCER_ID,
    STEP_KIND,
    STEP_OFFSET,
    STEP_POSITION,
    STEP_PRODUCER_ID,
    TIMESTAMP,
    ProducerSummary,
    Table,
    empty_summary,
)

# Columns of ``open``: transactions, by the row of their producer.
_IS_OPEN = 0
_FIRST_OFFSET = 1
_POSITION = 2
_IS_KEPT = 3
_PLACE = 4  # in ``open_rows``
_OPEN_COLUMNS = 5

# Slots of ``counts``.
_PRODUCERS = 0
_STEPS = 1
_OPEN = 2
_GREATEST_BEGIN = 3
_KEEPS_ALL = 4
_IS_REFUSED = 5
_COUNT_SLOTS = 6

_HASH = np.uint64(0x9E3779B97F4A7C15)
_NO_OFFSET = np.iinfo(np.int64).min


class Summarizer:
    """Takes the producer batches of one segment, buffer after buffer."""

    def __init__(self, *, keeps_all: bool = False) -> None:
        """Start; ``keeps_all``: transactions that begin and end here are steps, too."""
        self._counts = np.zeros(_COUNT_SLOTS, dtype=np.int64)
        self._counts[_KEEPS_ALL] = keeps_all
        self._counts[_GREATEST_BEGIN] = _NO_OFFSET
        self._producers, self._steps = empty_summary()
        self._open = np.empty((0, _OPEN_COLUMNS), dtype=np.int64)
        self._open_rows = np.empty(0, dtype=np.int64)
        self._slots = np.empty(0, dtype=np.int64)

    def add(self, batches: Table) -> None:
        """Take the next batches; columns as in ``producer_batches``."""
        self._make_room(len(batches))
        _summarize(
            batches,
            self._producers,
            self._steps,
            self._open,
            self._open_rows,
            self._slots,
            self._counts,
        )

    def _make_room(self, batches: int) -> None:
        """Make room for the most that ``batches`` batches can add."""
        producers = int(self._counts[_PRODUCERS]) + batches
        if producers > len(self._producers):
            self._producers = _grown(self._producers, 2 * producers)
            self._open = _grown(self._open, 2 * producers)
            self._open_rows = _grown(self._open_rows, 2 * producers)
            self._slots = np.full(1 << (4 * producers).bit_length(), -1, dtype=np.int64)
            _hash_all(self._producers, self._counts[_PRODUCERS], self._slots)
        steps = int(self._counts[_STEPS]) + 3 * batches + producers
        if steps > len(self._steps):
            self._steps = _grown(self._steps, 2 * steps)

    def summary(self) -> ProducerSummary:
        """Return the summary of all batches taken."""
        _keep_open(self._steps, self._open, self._open_rows, self._producers, self._counts)
        return ProducerSummary(
            self._producers[: self._counts[_PRODUCERS]].copy(),
            self._steps[: self._counts[_STEPS]].copy(),
        )


def _grown(table: Table, length: int) -> Table:
    larger = np.zeros((length, *table.shape[1:]), dtype=np.int64)
    larger[: len(table)] = table
    return larger


@njit(forceinline=True, cache=True)  # type: ignore[untyped-decorator]
def _slot(slots: Any, producers: Any, producer_id: Any) -> Any:
    """Find the slot that holds the producer's row or is free for it (open addressing)."""
    mask = len(slots) - 1
    slot = np.int64((np.uint64(producer_id) * _HASH) >> np.uint64(32)) & mask
    while slots[slot] != -1 and producers[slots[slot], PRODUCER_ID] != producer_id:
        slot = (slot + 1) & mask
    return slot


@njit(cache=True)  # type: ignore[untyped-decorator]
def _hash_all(producers: Any, count: Any, slots: Any) -> None:
    for row in range(count):
        slots[_slot(slots, producers, producers[row, PRODUCER_ID])] = row


@njit  # type: ignore[untyped-decorator]
def _push(steps: Any, counts: Any, kind: Any, producer_id: Any, offset: Any, position: Any) -> None:
    row = counts[_STEPS]
    steps[row, STEP_KIND] = kind
    steps[row, STEP_PRODUCER_ID] = producer_id
    steps[row, STEP_OFFSET] = offset
    steps[row, STEP_POSITION] = position
    counts[_STEPS] = row + 1


@njit  # type: ignore[untyped-decorator]
def _keep_begin(steps: Any, counts: Any, opened: Any, producers: Any, row: Any) -> None:
    """Make a step of the begin of the producer's transaction, unless it is one already."""
    if opened[row, _IS_KEPT] == 0:
        opened[row, _IS_KEPT] = 1
        producer_id = producers[row, PRODUCER_ID]
        first_offset, position = opened[row, _FIRST_OFFSET], opened[row, _POSITION]
        _push(steps, counts, BEGIN, producer_id, first_offset, position)


@njit(cache=True)  # type: ignore[untyped-decorator]
def _keep_open(steps: Any, opened: Any, open_rows: Any, producers: Any, counts: Any) -> None:
    for i in range(counts[_OPEN]):
        _keep_begin(steps, counts, opened, producers, open_rows[i])


@njit  # type: ignore[untyped-decorator]
def _keep_oldest_other(
    steps: Any, opened: Any, open_rows: Any, producers: Any, counts: Any
) -> None:
    """Make a step of the begin of the oldest open transaction: an abort's last stable offset.

    Transactions that are kept already are steps anyway.
    """
    oldest = np.int64(-1)
    for i in range(counts[_OPEN]):
        other = open_rows[i]
        if opened[other, _IS_KEPT] != 0:
            continue
        if oldest < 0 or opened[other, _FIRST_OFFSET] < opened[oldest, _FIRST_OFFSET]:
            oldest = other
    if oldest >= 0:
        _keep_begin(steps, counts, opened, producers, oldest)


@njit  # type: ignore[untyped-decorator]
def _begin(
    steps: Any,
    opened: Any,
    open_rows: Any,
    producers: Any,
    counts: Any,
    row: Any,
    first_offset: Any,
    position: Any,
    is_first: Any,
) -> None:
    if first_offset <= counts[_GREATEST_BEGIN] and counts[_KEEPS_ALL] == 0:
        counts[_KEEPS_ALL] = 1
        _keep_open(steps, opened, open_rows, producers, counts)
    counts[_GREATEST_BEGIN] = max(counts[_GREATEST_BEGIN], first_offset)
    opened[row, _IS_OPEN] = 1
    opened[row, _FIRST_OFFSET] = first_offset
    opened[row, _POSITION] = position
    opened[row, _IS_KEPT] = 0
    opened[row, _PLACE] = counts[_OPEN]
    open_rows[counts[_OPEN]] = row
    counts[_OPEN] += 1
    if is_first or counts[_KEEPS_ALL] != 0:
        _keep_begin(steps, counts, opened, producers, row)


@njit  # type: ignore[untyped-decorator]
def _end(opened: Any, open_rows: Any, counts: Any, row: Any) -> None:
    opened[row, _IS_OPEN] = 0
    counts[_OPEN] -= 1
    moved = open_rows[counts[_OPEN]]
    open_rows[opened[row, _PLACE]] = moved
    opened[moved, _PLACE] = opened[row, _PLACE]


@njit(forceinline=True)  # type: ignore[untyped-decorator]
def _goes_on(producers: Any, opened: Any, row: Any, epoch: Any, kind: Any) -> Any:
    """Tell whether a batch is data of an epoch that the producer has, and begins nothing."""
    is_open = opened[row, _IS_OPEN]
    is_data = (kind == DATA and is_open == 0) or (kind == TRANSACTIONAL_DATA and is_open != 0)
    return is_data and producers[row, HAS_EPOCH] != 0 and epoch == producers[row, EPOCH]


@njit(forceinline=True)  # type: ignore[untyped-decorator]
def _remember(producers: Any, row: Any, batches: Any, i: Any) -> None:
    """Make a batch of data the newest that the producer's row remembers."""
    last_offset = batches[i, batch.LAST_OFFSET]
    producers[row, TIMESTAMP] = batches[i, batch.TIMESTAMP]
    producers[row, HAS_BATCH] = 1
    producers[row, LAST_SEQUENCE] = batches[i, batch.LAST_SEQUENCE]
    producers[row, LAST_OFFSET] = last_offset
    producers[row, OFFSET_DELTA] = last_offset - batches[i, batch.FIRST_OFFSET]


@njit  # type: ignore[untyped-decorator]
def _update_entry(producers: Any, row: Any, batches: Any, i: Any) -> None:
    """Bring the producer's row up to one batch more. Source: ProducerStateEntry.update."""
    epoch, kind = batches[i, batch.EPOCH], batches[i, batch.KIND]
    if producers[row, HAS_EPOCH] == 0:
        producers[row, HAS_EPOCH] = 1
        producers[row, KEEPS_BATCH] = 1
    elif epoch != producers[row, EPOCH]:
        producers[row, KEEPS_BATCH] = 0
        producers[row, HAS_BATCH] = 0
    producers[row, EPOCH] = epoch
    if kind in (COMMIT, ABORT):
        producers[row, TIMESTAMP] = batches[i, batch.TIMESTAMP]
        producers[row, HAS_MARKER] = 1
        producers[row, COORDINATOR_EPOCH] = batches[i, batch.COORDINATOR_EPOCH]
    else:
        _remember(producers, row, batches, i)


@njit  # type: ignore[untyped-decorator]
def _add_producer(
    producers: Any, opened: Any, slots: Any, counts: Any, slot: Any, producer_id: Any
) -> Any:
    """Make the row of a producer at its first batch; ``slot`` is free for it."""
    row = counts[_PRODUCERS]
    slots[slot] = row
    producers[row] = 0
    producers[row, PRODUCER_ID] = producer_id
    producers[row, EPOCH] = -1
    producers[row, COORDINATOR_EPOCH] = -1
    opened[row] = 0
    counts[_PRODUCERS] = row + 1
    return row


@njit  # type: ignore[untyped-decorator]
def _take_marker(
    steps: Any, opened: Any, open_rows: Any, producers: Any, counts: Any, row: Any, is_abort: Any
) -> Any:
    """End the producer's transaction, if one is open; return whether its begin is a step."""
    if opened[row, _IS_OPEN] != 0 and is_abort:
        _keep_begin(steps, counts, opened, producers, row)
    is_kept = opened[row, _IS_OPEN] != 0 and opened[row, _IS_KEPT] != 0
    if opened[row, _IS_OPEN] != 0:
        _end(opened, open_rows, counts, row)
    return is_kept


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _summarize(
    batches: Any,
    producers: Any,
    steps: Any,
    opened: Any,
    open_rows: Any,
    slots: Any,
    counts: Any,
) -> None:
    row = np.int64(-1)
    for i in range(len(batches)):
        if counts[_IS_REFUSED] != 0:
            return
        producer_id, kind = batches[i, batch.PRODUCER_ID], batches[i, batch.KIND]
        if row < 0 or producers[row, PRODUCER_ID] != producer_id:
            slot = _slot(slots, producers, producer_id)
            row = slots[slot]
            if row < 0:
                row = _add_producer(producers, opened, slots, counts, slot, producer_id)
        if _goes_on(producers, opened, row, batches[i, batch.EPOCH], kind):
            _remember(producers, row, batches, i)
            continue
        if kind == EMPTY_CONTROL:
            continue
        position, offset = batches[i, batch.AT_POSITION], batches[i, batch.FIRST_OFFSET]
        is_first = producers[row, HAS_EPOCH] == 0  # an earlier segment may have left one open
        is_open = opened[row, _IS_OPEN] != 0
        _update_entry(producers, row, batches, i)
        if kind == TRANSACTIONAL_DATA and not is_open:
            _begin(steps, opened, open_rows, producers, counts, row, offset, position, is_first)
        elif kind == DATA and (is_open or is_first):
            if is_open:
                _keep_begin(steps, counts, opened, producers, row)
                counts[_IS_REFUSED] = 1
            _push(steps, counts, CHECK, producer_id, offset, position)
        elif kind in (COMMIT, ABORT):
            is_abort = kind == ABORT
            is_kept = _take_marker(steps, opened, open_rows, producers, counts, row, is_abort)
            if (is_kept or is_first) and is_abort:
                _keep_oldest_other(steps, opened, open_rows, producers, counts)
            if is_kept or is_first:
                _push(steps, counts, kind, producer_id, offset, position)
