"""Read a segment into digests of its offset ranges."""

from typing import NamedTuple

from kafka_segments.kafka.index.segment import offset_ranges as ranges
from kafka_segments.kafka.index.segment.range_digests import RangeFold
from kafka_segments.kafka.index.segment.recovered_segment import Ranges
from kafka_segments.kafka.wire.reading import ReadInto
from kafka_segments.verbs.copies.divergence.decide.copies import CopyDamage
from kafka_segments.verbs.copies.divergence.log_reading.sound_batches import SoundBatches, Stretch


class SegmentRanges(NamedTuple):
    """What a segment holds: a column for each range (``index.offset_ranges``), and its damage.

    One range can have two columns.
    """

    columns: Ranges
    damages: tuple[CopyDamage, ...]


class SegmentRangeReader:
    """Reads segments one after another, with buffers that are made once."""

    def __init__(self, *, check_crc: bool = True, range_bits: int = ranges.RANGE_BITS) -> None:
        self._sound = SoundBatches(check_crc=check_crc)
        self._fold = RangeFold(range_bits)

    def read(self, read_into: ReadInto, stretch: Stretch) -> SegmentRanges:
        """Read a whole segment.

        Raises:
            FileChangedError: the file ended before the stretch does.
            OSError: whatever ``read_into`` raises.
        """
        self._fold.begin()
        for sound in self._sound.read(read_into, stretch):
            self._fold.add(sound.batches, sound.next_offset)
        return SegmentRanges(self._fold.columns(), tuple(self._sound.damages))
