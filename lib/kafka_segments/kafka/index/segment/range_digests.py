"""Digests of a segment's offset ranges, from batches or from the buffers of another walk."""

import numpy as np

from kafka_segments.kafka.index.segment import offset_ranges as ranges
from kafka_segments.kafka.index.segment.recovered_segment import Ranges
from kafka_segments.kafka.wire import batches as wire
from kafka_segments.kafka.wire import header_layout as layout

_MOST_RANGES = 1024
_MOST_BATCHES = 4096


class RangeFold:
    """Folds batches into ranges, one segment after another; its room is made once."""

    def __init__(self, range_bits: int = ranges.RANGE_BITS) -> None:
        self._bits = range_bits
        self._columns = np.empty((ranges.RANGE_FIELDS, _MOST_RANGES), dtype=np.int64)
        self._full: list[Ranges] = []
        self._count = 0

    def begin(self) -> None:
        """Begin another segment."""
        self._full, self._count = [], 0

    def add(self, batches: wire.Batches, next_offset: int) -> None:
        """Fold some batches; ``next_offset`` is as in ``offset_ranges.fold_ranges``."""
        at = 0
        while True:
            at, self._count = ranges.fold_ranges(
                batches, at, next_offset, self._columns, self._count, self._bits
            )
            if at == batches.shape[1]:
                return
            next_offset = int(batches[wire.BATCH_LAST_OFFSET, at - 1]) + 1 if at else next_offset
            self._full.append(self._columns[:, : self._count].copy())
            self._count = 0

    def columns(self) -> Ranges:
        """Return the ranges so far; two columns can be of one range."""
        return np.concatenate([*self._full, self._columns[:, : self._count]], axis=1)


class RangeDigests:
    """Digests a segment while another walk reads it: no byte is read twice.

    Whether the batches are sound is what the other walk finds out.
    """

    def __init__(self, range_bits: int = ranges.RANGE_BITS) -> None:
        self._fold = RangeFold(range_bits)
        self._batches = np.empty((wire.BATCH_FIELDS, _MOST_BATCHES), dtype=np.int64)
        self.begin(0, 0)

    def begin(self, size_bytes: int, base_offset: int) -> None:
        """Begin a segment."""
        self._walk = wire.new_walk(size_bytes=size_bytes, check_crc=False, needs_body=False)
        self._next_offset = base_offset
        self._is_whole = True
        self._fold.begin()

    def add(self, data: wire.Bytes, length: int, position: int) -> None:
        """Take the headers that begin in ``data[:length]``, the file from ``position`` on."""
        walk = self._walk
        self._is_whole &= walk.next_position >= position
        while self._is_whole and walk.next_position < position + length:
            before = walk.next_position
            count = wire.walk_batches(data, length, position, self._batches, 0, walk)
            self._take(self._batches[:, :count])
            if walk.next_position == before:
                return

    def ranges(self) -> Ranges | None:
        """Return the ranges of a segment; None if its batches are not all in order to its end."""
        is_at_end = self._walk.next_position == self._walk.end
        return self._fold.columns() if self._is_whole and is_at_end else None

    def _take(self, batches: wire.Batches) -> None:
        if not batches.shape[1]:
            return
        bases, lasts, magics = batches[
            [wire.BATCH_BASE_OFFSET, wire.BATCH_LAST_OFFSET, wire.BATCH_MAGIC]
        ]
        in_order = bases[0] >= self._next_offset and (bases[1:] > lasts[:-1]).all()
        has_sense = (lasts >= bases).all() and (magics >= 0).all()
        self._is_whole &= bool(in_order and has_sense and (magics <= layout.MAGIC_V2).all())
        if self._is_whole:
            self._fold.add(batches, self._next_offset)
            self._next_offset = int(lasts[-1]) + 1
