"""Find what a log has at the places that index entries name, in one walk over its batches."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kafka_segments.kafka.wire import batches as wire
from kafka_segments.kafka.wire import header_layout as layout

Int64s = npt.NDArray[np.int64]
NOT_THERE = -1


class BatchFacts(NamedTuple):
    """One value for each entry, int64; ``positions`` is -1 where the log has no such batch.

    ``offsets_before``: the greatest last offset of all batches before (-1: none).
    ``timestamps_before``: their greatest timestamp. ``positions_before``: the position of the batch
    before. ``is_wrapper``: 1 for a compressed message v0 or v1, whose header holds nothing but its
    last offset.
    """

    positions: Int64s
    positions_before: Int64s
    base_offsets: Int64s
    last_offsets: Int64s
    offsets_before: Int64s
    max_timestamps: Int64s
    timestamps_before: Int64s
    is_wrapper: Int64s

    @classmethod
    def unknown(cls, count: int) -> "BatchFacts":
        """Return facts of ``count`` entries of which nothing is known yet."""
        return cls(*(np.full(count, NOT_THERE, dtype=np.int64) for _ in cls._fields))

    @property
    def are_there(self) -> npt.NDArray[np.bool_]:
        """Return for each entry whether the log has a batch for it."""
        return np.not_equal(self.positions, NOT_THERE)

    def holds(self, offsets: Int64s) -> npt.NDArray[np.bool_]:
        """Return for each offset whether the batch holds it."""
        first = np.where(self.is_wrapper != 0, self.offsets_before + 1, self.base_offsets)
        return (first <= offsets) & (offsets <= self.last_offsets)


class LogProbe:
    """Looks up batches by position and by offset while it is fed a log's batches, in order.

    ``at_positions`` holds the batches that begin at ``positions``; ``by_offsets`` holds for each of
    ``offsets`` the first batch whose last offset is at or above it. Both must be sorted.
    """

    def __init__(self, positions: Int64s, offsets: Int64s) -> None:
        self._positions, self._offsets = positions, offsets
        self.at_positions = BatchFacts.unknown(len(positions))
        self.by_offsets = BatchFacts.unknown(len(offsets))
        self.last_position = 0
        self._last_offset = self._max_timestamp = NOT_THERE

    def feed(self, batches: wire.Batches) -> None:
        """Take the next batches, in the columns of ``wire.batches``."""
        if not batches.shape[1]:
            return
        positions, last_offsets = batches[wire.BATCH_POSITION], batches[wire.BATCH_LAST_OFFSET]
        offsets = np.maximum.accumulate(np.concatenate(([self._last_offset], last_offsets)))
        times = np.concatenate(([self._max_timestamp], batches[wire.BATCH_MAX_TIMESTAMP]))
        times = np.maximum.accumulate(times)
        is_legacy = batches[wire.BATCH_MAGIC] < layout.MAGIC_V2
        is_compressed = batches[wire.BATCH_ATTRIBUTES] & layout.CODEC_MASK != 0
        facts = BatchFacts(
            positions,
            np.concatenate(([self.last_position], positions[:-1])),
            batches[wire.BATCH_BASE_OFFSET],
            last_offsets,
            offsets[:-1],
            batches[wire.BATCH_MAX_TIMESTAMP],
            times[:-1],
            (is_legacy & is_compressed).astype(np.int64),
        )
        rows = np.searchsorted(positions, self._positions)
        rows[rows == len(positions)] = 0
        _fill(self.at_positions, facts, rows, positions[rows] == self._positions)
        rows = np.searchsorted(offsets[1:], self._offsets)
        is_here = (self._offsets > self._last_offset) & (rows < len(positions))
        _fill(self.by_offsets, facts, np.where(is_here, rows, 0), is_here)
        self.last_position = int(positions[-1])
        self._last_offset, self._max_timestamp = int(offsets[-1]), int(times[-1])


def _fill(
    found: BatchFacts, facts: BatchFacts, rows: Int64s, is_here: npt.NDArray[np.bool_]
) -> None:
    for target, column in zip(found, facts, strict=True):
        target[is_here] = column[rows[is_here]]
