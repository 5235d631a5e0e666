"""Read a segment into digests of its offset ranges."""

from typing import NamedTuple

import numpy as np

from kafka_segments.divergence.decide.copies import Damage
from kafka_segments.divergence.sound_batches import Sound, SoundBatches, Stretch
from kafka_segments.index import offset_ranges as ranges
from kafka_segments.wire import batches as wire
from kafka_segments.wire.reading import ReadInto

_MOST_RANGES = 1024


class SegmentRanges(NamedTuple):
    """What a segment holds: a column for each range (``index.offset_ranges``), and its damage.

    Two columns can be of one range.
    """

    columns: ranges.Ranges
    damages: tuple[Damage, ...]


class SegmentRangeReader:
    """Reads segments one after another, with buffers that are made once."""

    def __init__(self, *, check_crc: bool = True, range_bits: int = ranges.RANGE_BITS) -> None:
        self._bits = range_bits
        self._sound = SoundBatches(check_crc=check_crc)
        self._columns = np.empty((ranges.RANGE_FIELDS, _MOST_RANGES), dtype=np.int64)

    def read(self, read_into: ReadInto, stretch: Stretch) -> SegmentRanges:
        """Read a segment, all of it.

        Raises:
            FileChangedError: the file ended before the stretch does.
            OSError: whatever ``read_into`` raises.
        """
        full: list[ranges.Ranges] = []
        count = 0
        for sound in self._sound.read(read_into, stretch):
            count = self._fold(sound, count, full)
        full.append(self._columns[:, :count].copy())
        return SegmentRanges(np.concatenate(full, axis=1), tuple(self._sound.damages))

    def _fold(self, sound: Sound, count: int, full: list[ranges.Ranges]) -> int:
        batches, next_offset = sound
        at = 0
        while True:
            at, count = ranges.fold_ranges(
                batches, at, next_offset, self._columns, count, self._bits
            )
            if at == batches.shape[1]:
                return count
            next_offset = int(batches[wire.LAST_OFFSET, at - 1]) + 1 if at else next_offset
            full.append(self._columns[:, :count].copy())
            count = 0
