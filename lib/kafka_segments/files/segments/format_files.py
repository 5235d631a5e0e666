"""Index files in the format asked for, from a recovered segment and, if need be, its records."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from kafka_segments.errors import OffsetGoesBackError, OffsetOverflowError
from kafka_segments.files.segments.chunks import ChunkOptions, ChunkReader
from kafka_segments.kafka.index.formats.by_name import KAFKAS_OWN
from kafka_segments.kafka.index.formats.index_format import BatchTimes, IndexFormat
from kafka_segments.kafka.index.segment.offset_index import encode_offset_index
from kafka_segments.kafka.index.segment.recovered_segment import (
    Damage,
    DamageKind,
    Entries,
    SegmentRecovery,
)
from kafka_segments.kafka.index.segment.time_index import encode_time_index
from kafka_segments.kafka.text.names import OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX
from kafka_segments.kafka.wire import batches as wire
from kafka_segments.kafka.wire.reading import ReadInto
from kafka_segments.kafka.wire.record_times import RecordTimes, RecordTimesReader, Undecodable

Files = dict[str, bytes | None]


class Around(NamedTuple):
    """What is known of a segment from outside of it.

    ``next_base_offset`` is None for the active segment. ``last_modified_ms`` is the mtime of the
    .log in ms.
    """

    next_base_offset: int | None = None
    last_modified_ms: int = 0


class Made(NamedTuple):
    """Index files by suffix, None for a file that must not be there, and the damage found."""

    files: Files
    damage: Damage | None


class FormatFiles:
    """Makes the index files of one segment after another."""

    def __init__(self, index_format: IndexFormat = KAFKAS_OWN) -> None:
        self._format = index_format
        self._readers = _Readers()

    def make(
        self, recovery: SegmentRecovery, read_into: ReadInto, *, base_offset: int, around: Around
    ) -> Made:
        """Make the files of a segment; only the bytes that recovery kept are read again.

        1. Where Kafka leaves no indexes no format has any.
        2. The format's own file is left out if an entry has no room for an offset, or if offsets
           go back.
        3. A batch whose records cannot be decoded counts as one record, at its base offset.

        2 and 3 are damage of the segment, unless it has other damage already.

        Raises:
            FileChangedError: the file ended before its valid bytes.
            OSError: whatever ``read_into`` raises.
        """
        own, offsets, times = self._format, recovery.offset_entries, recovery.time_entries
        files: Files = dict.fromkeys((OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX, own.suffix))
        if offsets is None or times is None:
            return Made(files, recovery.damage)
        if own.replaces != OFFSET_INDEX_SUFFIX:
            files[OFFSET_INDEX_SUFFIX] = encode_offset_index(offsets, base_offset=base_offset)
        if own.replaces != TIME_INDEX_SUFFIX:
            files[TIME_INDEX_SUFFIX] = encode_time_index(times, base_offset=base_offset)
        segment = _Segment(
            base_offset=base_offset,
            offset_entries=offsets,
            time_entries=times,
            next_offset=recovery.next_offset,
            next_base_offset=around.next_base_offset,
            last_modified_ms=around.last_modified_ms,
            valid_bytes=recovery.valid_bytes,
            read_into=read_into,
            readers=self._readers,
        )
        try:
            files[own.suffix] = own.encode(segment)
            damage = segment.damage()
        except (OffsetOverflowError, OffsetGoesBackError) as error:
            message = f"no {own.suffix} in format {own.name}: {error}"
            damage = Damage(DamageKind.NOT_INDEXABLE, 0, message)
        return Made(files, recovery.damage or damage)


class _Readers:
    """What reads segments again, with buffers that are made once."""

    def __init__(self) -> None:
        with_bodies = ChunkOptions(needs_body=True, check_crc=False)
        self.bodies = ChunkReader(with_bodies)
        self.headers = ChunkReader(ChunkOptions(needs_body=False, check_crc=False))
        self.records = RecordTimesReader(max_batch_bytes=with_bodies.max_batch_bytes)


@dataclass
class _Segment:
    """A ``SegmentToIndex`` that is read with ``read_into``."""

    base_offset: int
    offset_entries: Entries
    time_entries: Entries
    next_offset: int
    next_base_offset: int | None
    last_modified_ms: int
    valid_bytes: int
    read_into: ReadInto
    readers: _Readers
    undecodable: Undecodable | None = field(default=None, init=False)

    def records(self) -> Iterator[RecordTimes]:
        yield from self._read()
        self.undecodable = self.readers.records.undecodable

    def batches(self) -> Iterator[BatchTimes]:
        for chunk in self.readers.headers.read(self.read_into, size_bytes=self.valid_bytes):
            found = chunk.batches
            yield BatchTimes(
                found[wire.BATCH_POSITION],
                found[wire.BATCH_LAST_OFFSET],
                found[wire.BATCH_MAX_TIMESTAMP],
            )

    def first_offset(self) -> int | None:
        first = next(self._read(), None)
        return None if first is None else int(first.offset[0])

    def damage(self) -> Damage | None:
        if self.undecodable is None:
            return None
        message = f"records cannot be decoded, the batch counts as one: {self.undecodable.reason}"
        return Damage(DamageKind.UNDECODABLE, self.undecodable.position, message)

    def _read(self) -> Iterator[RecordTimes]:
        records = self.readers.records
        records.undecodable = None
        for chunk in self.readers.bodies.read(self.read_into, size_bytes=self.valid_bytes):
            yield from records.read(chunk.batches, chunk.data, chunk.data_position)
