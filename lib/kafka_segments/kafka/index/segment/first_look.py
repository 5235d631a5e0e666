"""What can be known of a segment at a first look: by its index files, and by few of its batches.

Read are the ends of the index files, the first batch, the batches from the last offset entry on,
and one batch that is drawn among the others.

1. The last offset entry must lead to a batch that holds its offset. From there on all batches are
   recovered, checksums and all: the next offset is theirs, and the valid bytes are the file's.
2. The last time entry must lead to a batch that holds its offset and has its timestamp. The
   greatest timestamp is that one, or in an active segment a greater one of the last batches. So it
   is reached in any case; that no other batch has a greater one is the time index's word.
3. The first batch and the drawn one must fit both: none has a greater timestamp, and none before
   the batch of the last time entry has one as great. Where offset entries follow the last time
   entry, the batch is drawn among theirs: there a time entry could be missing.
4. What contradicts that is an error: the segment is then to be read as a whole. So is a segment in
   an older message format, one without index entries, and one with damage in what was read.

What depends on all batches is not known: counts, the least timestamp, codecs, epochs, producers.
Damage in a batch that was not read is not seen.

Source: LogSegment.append, LogSegment.onBecomeInactiveSegment, TimeIndex.maybeAppend.
"""

from dataclasses import dataclass
from typing import NamedTuple
from zlib import crc32

import numpy as np

from kafka_segments.errors import CorruptIndexError
from kafka_segments.kafka.index.segment import index_ends
from kafka_segments.kafka.index.segment.few_batches import Batch, FewBatches
from kafka_segments.kafka.index.segment.index_ends import IndexEnd, IndexFiles, RangedFile
from kafka_segments.kafka.index.segment.recovered_segment import Entries, SegmentRecovery
from kafka_segments.kafka.index.segment.recovery import SegmentRecoverer
from kafka_segments.kafka.index.segment.recovery_options import RecoveryOptions
from kafka_segments.kafka.text.checkpoints import EpochStart
from kafka_segments.kafka.wire import batches as wire
from kafka_segments.kafka.wire.header_layout import MAGIC_V2
from kafka_segments.kafka.wire.reading import ReadInto

MOST_WHOLE_BYTES = 64 * 1024
"""A segment up to this size is read as a whole: a look would read about as much of it."""
_MOST_TAIL_BYTES = 8 * 1024 * 1024  # two batches as large as most brokers take, and more


@dataclass(frozen=True, kw_only=True)
class FirstLook:
    """What is known of a segment at a first look; names and units as in ``SegmentRecovery``.

    ``checked_bytes`` is how many bytes of the log belong to batches whose checksum was verified.
    ``first_epoch`` is that of the first batch, with its first offset, ``last_epoch`` the greatest
    of the last batches, -1 none. ``leader_epochs`` is None where nobody has announced them.
    """

    valid_bytes: int
    next_offset: int
    first_batch_timestamp: int
    max_timestamp: int
    offset_of_max_timestamp: int
    checked_bytes: int
    first_epoch: EpochStart
    last_epoch: int
    leader_epochs: Entries | None = None
    truncated_bytes: int = 0


class _Tail(NamedTuple):
    """The batches from the last offset entry on: where they begin, their bytes, what they say."""

    start: int
    data: wire.Bytes
    found: SegmentRecovery


class FirstLooker:
    """Looks at segments one after another, with buffers that are made once."""

    def __init__(self, options: RecoveryOptions) -> None:
        self._recoverer = SegmentRecoverer(options)

    def look(
        self, log: RangedFile, indexes: IndexFiles, *, base_offset: int, is_active: bool
    ) -> FirstLook:
        """Look at one segment.

        Raises:
            CorruptIndexError: the index files do not tell, or not what the log says; the text has
                the reason.
            FileChangedError: the log ended before its size.
            OSError: whatever reading raises.
        """
        offsets = index_ends.offset_index_end(indexes.offset_index, base_offset=base_offset)
        times = index_ends.time_index_end(indexes.time_index, base_offset=base_offset)
        if indexes.offset_index is None or not offsets.entry_count or not times.entry_count:
            which = ".timeindex" if offsets.entry_count else ".index"
            raise CorruptIndexError(f"the {which} has no entries, the log {log.size_bytes} bytes")
        if not is_active and (offsets.has_zeros or times.has_zeros):
            raise CorruptIndexError("zeros follow the entries, as if the segment were active")
        one = _Look(log, indexes.offset_index, offsets, base_offset)
        tail = one.tail(self._recoverer)
        index_ends.check_transaction_index(
            indexes.txn_index, base_offset=base_offset, next_offset=tail.found.next_offset
        )
        timestamp, offset = one.greatest(tail, times, is_active=is_active)
        first = one.batches.at(0)
        drawn = one.drawn(tail, offset)
        for batch in (first, *drawn):
            _check_fits(batch, timestamp, offset)
        return FirstLook(
            valid_bytes=log.size_bytes,
            next_offset=tail.found.next_offset,
            first_batch_timestamp=first.max_timestamp,
            max_timestamp=timestamp,
            offset_of_max_timestamp=offset,
            first_epoch=EpochStart(first.leader_epoch, first.base_offset),
            last_epoch=max([-1, *tail.found.leader_epochs[:, 0].tolist()]),
            checked_bytes=len(tail.data)
            + sum(batch.size_bytes for batch in {first, *drawn} if batch.is_checked),
        )


class _Look:
    """A look at one segment: its log, its offset index, and the last entries of that."""

    def __init__(
        self, log: RangedFile, offset_index: RangedFile, offsets: IndexEnd, base_offset: int
    ) -> None:
        self._log = log
        self._offset_index = offset_index
        self._offsets = offsets
        self._base_offset = base_offset
        self._last_entry, self._start = map(int, offsets.entries[-1])
        self.batches = FewBatches(log)

    def tail(self, recoverer: SegmentRecoverer) -> _Tail:
        """Recover the batches from the last offset entry on."""
        start, length = self._start, self._log.size_bytes - self._start
        if not 0 < length <= _MOST_TAIL_BYTES:
            raise CorruptIndexError(
                f"the last entry of the .index leads to byte {start} of {self._log.size_bytes}"
            )
        data = self.batches.bytes(start, length)
        found = recoverer.recover(_reader(data), size_bytes=length, base_offset=self._base_offset)
        if found.damage is not None or found.truncated_bytes:
            what = "no batch begins" if found.damage is None else found.damage.message
            at = found.valid_bytes if found.damage is None else found.damage.position
            raise CorruptIndexError(f"{what}, byte {start + at} of the log")
        if found.magics != (MAGIC_V2,):
            raise CorruptIndexError(f"messages in the format of v{min(found.magics)}")
        first = self.batches.first_in(data, start)
        if first is None or not first.holds(self._last_entry):
            raise CorruptIndexError(_misled("last entry", ".index", self._last_entry, first))
        return _Tail(start, data, found)

    def greatest(self, tail: _Tail, times: IndexEnd, *, is_active: bool) -> tuple[int, int]:
        """Return the greatest timestamp, and the last offset of the first batch that has it."""
        timestamp, offset = map(int, times.entries[-1])
        batch = self._batch_of(tail, offset)
        if batch is None or not batch.holds(offset):
            raise CorruptIndexError(_misled("last entry", ".timeindex", offset, batch))
        if batch.max_timestamp != timestamp:
            raise CorruptIndexError(
                f"the last timestamp of the .timeindex is {timestamp}, that of the batch with"
                f" offset {offset} is {batch.max_timestamp}"
            )
        found = tail.found
        if found.max_timestamp > timestamp:
            if not is_active:
                raise CorruptIndexError(
                    f"the last timestamp of the .timeindex is {timestamp}, a later batch has"
                    f" {found.max_timestamp}"
                )
            return found.max_timestamp, found.offset_of_max_timestamp
        is_in_tail = batch.position >= tail.start
        is_first = found.offset_of_max_timestamp == batch.last_offset
        if is_in_tail and found.max_timestamp == timestamp and not is_first:
            raise CorruptIndexError(
                f"the .timeindex has timestamp {timestamp} at offset {offset}, a batch before it"
                f" ends at {found.offset_of_max_timestamp} and has it, too"
            )
        return timestamp, batch.last_offset

    def drawn(self, tail: _Tail, offset_of_max: int) -> list[Batch]:
        """Return one batch before the tail that an entry leads to, drawn by the segment's size.

        It lies behind ``offset_of_max`` if known entries do, and at any other entry if not.
        """
        offsets, others = self._offsets, self._offsets.entry_count - 1
        if not others:
            return []
        is_behind = offsets.entries[:-1, 0] > offset_of_max
        is_some = is_behind.any() and not (is_behind.all() and offsets.first)
        least = offsets.first + int(np.argmax(is_behind)) if is_some else 0
        number = least + draw(self._base_offset, self._log.size_bytes, others - least)
        offset, position = index_ends.offset_entry(
            self._offset_index, offsets, number, base_offset=self._base_offset
        )
        if not 0 < position < tail.start:
            raise CorruptIndexError(f"entry {number} of the .index leads to byte {position}")
        batch = self.batches.at(position)
        if not batch.holds(offset) or batch.last_offset >= tail.found.next_offset:
            raise CorruptIndexError(_misled(f"entry {number}", ".index", offset, batch))
        return [batch]

    def _batch_of(self, tail: _Tail, offset: int) -> Batch | None:
        """Return the first batch that reaches an offset, found by the offset entries around it."""
        if offset > tail.found.next_offset - 1:
            return None
        batch = self.batches.first_in(tail.data, tail.start, low_offset=offset)
        if batch is not None and (batch.position > tail.start or batch.holds(offset)):
            return batch
        start, end = self._around(offset)
        return self.batches.first_between(start, end, low_offset=offset)

    def _around(self, offset: int) -> tuple[int, int]:
        """Return the positions of the offset entries around an offset; 0 where none is before."""
        entries = self._offsets.entries
        if self._offsets.first and offset < entries[0, 0]:
            entries = index_ends.whole_offset_index(
                self._offset_index, base_offset=self._base_offset
            )
        row = int(np.searchsorted(entries[:, 0], offset, side="right"))
        start = int(entries[row - 1, 1]) if row else 0
        return start, int(entries[min(row, len(entries) - 1), 1])


def draw(base_offset: int, size_bytes: int, count: int) -> int:
    """Draw a number below ``count``, the same one whenever a segment of this size is looked at."""
    return crc32(b"%d %d" % (base_offset, size_bytes)) % count


def _check_fits(batch: Batch, timestamp: int, offset: int) -> None:
    """Check a batch by the greatest timestamp, and by the first offset that has it."""
    is_before = batch.last_offset < offset
    if batch.max_timestamp > timestamp or (is_before and batch.max_timestamp == timestamp):
        raise CorruptIndexError(
            f"the .timeindex has {timestamp} as the greatest timestamp, first at offset {offset};"
            f" the batch at byte {batch.position} has {batch.max_timestamp} at offset"
            f" {batch.last_offset}"
        )


def _misled(which: str, file: str, offset: int, found: Batch | None) -> str:
    there = "no batch"
    if found is not None:
        there = f"a batch of offsets {found.base_offset} to {found.last_offset}"
    return f"the {which} of the {file} has offset {offset}, and leads to {there}"


def _reader(data: wire.Bytes) -> ReadInto:
    def read_into(position: int, view: memoryview) -> int:
        part = data[position : position + len(view)]
        view[: len(part)] = part.tobytes()
        return len(part)

    return read_into
