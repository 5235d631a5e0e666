"""The rows that the compiled walk puts out: they stay in its arrays until these are nearly full."""

import numpy as np

from kafka_segments.kafka.index.segment import walk as walks
from kafka_segments.kafka.index.segment.batch_runs import NO_EPOCH, RECENT_COLUMNS, RECENT_SLOTS
from kafka_segments.kafka.index.segment.producer_batches import BATCH_COLUMNS
from kafka_segments.kafka.index.segment.producer_summary import ProducerSummary, empty_summary
from kafka_segments.kafka.index.segment.recovered_segment import Entries, joined
from kafka_segments.kafka.index.segment.summarizer import Summarizer
from kafka_segments.kafka.index.segment.walk import SegmentWalk
from kafka_segments.kafka.wire.header_layout import HEADER_BYTES, MIN_BATCH_BYTES
from kafka_segments.kafka.wire.reading import FRONT_BYTES

_EPOCHS = 1024
_BUFFERS = 2  # whose rows have room

Tables = tuple[Entries, Entries, Entries, Entries, Entries]


class WalkRows:
    """Takes the rows of one walk after another, by arrays that are made once.

    ``tables`` are what the kernel gets: offset entries, time entries, leader epochs, batches with a
    producer id, and the slots of recent producers.
    """

    def __init__(self, buffer_bytes: int) -> None:
        """Make room for the rows of buffers of so many bytes."""
        self._recent_producers = np.full((RECENT_SLOTS, RECENT_COLUMNS), NO_EPOCH, dtype=np.int64)
        self._make_room(buffer_bytes)

    def begin(self, walk: SegmentWalk) -> None:
        """Take the rows of this walk from now on; it has put out none yet."""
        self._walk = walk
        self._entries: tuple[list[Entries], list[Entries], list[Entries]] = ([], [], [])
        self._summarizer: Summarizer | None = None

    def have_room(self, buffer_bytes: int) -> None:
        """Take rows out where the kernel could find no room for those of its next buffer."""
        walk = self._walk
        if buffer_bytes > self._buffer_bytes:
            self._take()
            self._make_room(buffer_bytes + FRONT_BYTES)  # others may have more in front
        elif (
            walk.new_offset_entries > self._entries_before
            or walk.new_producer_batches > self._batches_before
            or walk.status == walks.WANTS_EPOCH_SPACE
        ):
            self._take()

    def entries(self) -> tuple[Entries, Entries, Entries]:
        """Return all index entries and leader epochs of the walk, which has ended."""
        self._take()
        offsets, times, epochs = map(joined, self._entries)
        return offsets, times, epochs

    def producers(self) -> ProducerSummary:
        """Return what ``entries`` has taken of batches with a producer id."""
        found = empty_summary() if self._summarizer is None else self._summarizer.summary()
        if self._walk.went_back_position < 0:
            return found
        return found.gone_back(self._walk.went_back_position, self._walk.went_back_offset)

    def _take(self) -> None:
        walk = self._walk
        counts = (walk.new_offset_entries, walk.new_time_entries, walk.new_epochs)
        for part, table, count in zip(self._entries, self.tables[:3], counts, strict=True):
            if count:
                part.append(table[:count].copy())
        if walk.new_producer_batches:
            if self._summarizer is None:
                self._summarizer = Summarizer(keeps_all=bool(walk.takes_any_offset))
            self._summarizer.add(self.tables[3][: walk.new_producer_batches])
        walk.new_offset_entries = walk.new_time_entries = 0
        walk.new_epochs = walk.new_producer_batches = 0

    def _make_room(self, buffer_bytes: int) -> None:
        self._buffer_bytes = buffer_bytes
        most_entries = buffer_bytes // MIN_BATCH_BYTES + 2
        most_batches = buffer_bytes // HEADER_BYTES + 2
        self._entries_before = (_BUFFERS - 1) * most_entries
        self._batches_before = (_BUFFERS - 1) * most_batches
        self.tables: Tables = (
            np.empty((_BUFFERS * most_entries, 2), dtype=np.int64),
            np.empty((_BUFFERS * most_entries, 2), dtype=np.int64),
            np.empty((_EPOCHS, 2), dtype=np.int64),
            np.empty((_BUFFERS * most_batches, BATCH_COLUMNS), dtype=np.int64),
            self._recent_producers,
        )
