"""Make index files in the format asked for from a recovered segment, or from its records."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from kafka_segments.errors import OffsetGoesBackError, OffsetOverflowError
from kafka_segments.index.every_n_index import EveryNIndexBuilder, encode_every_n_index
from kafka_segments.index.formats import FormatOptions, IndexFormat
from kafka_segments.index.kip33_index import (
    SegmentPlace,
    WithoutTimestamps,
    encode_kip33_index,
    kip33_entries,
)
from kafka_segments.index.minute_index import (
    MINUTE_INDEX_SUFFIX,
    FirstOfEach,
    MinuteVariant,
    derived_minute_entries,
    encode_minute_index,
)
from kafka_segments.index.offset_index import encode_offset_index
from kafka_segments.index.segment import Damage, DamageKind, Entries, SegmentRecovery
from kafka_segments.index.time_index import encode_time_index
from kafka_segments.segments.chunks import ChunkOptions, ChunkReader
from kafka_segments.wire import batches as wire
from kafka_segments.wire.reading import ReadInto
from kafka_segments.wire.record_times import RecordTimes, RecordTimesReader, Undecodable

OFFSET_SUFFIX, TIME_SUFFIX = ".index", ".timeindex"
Files = dict[str, bytes | None]


class Around(NamedTuple):
    """What index files depend on outside of a segment; ``next_base_offset`` None: it is active."""

    next_base_offset: int | None = None
    last_modified_ms: int = 0


class Made(NamedTuple):
    """Index files by suffix, None for one that must not exist, and the damage of the segment."""

    files: Files
    damage: Damage | None


class FormatFiles:
    """Makes the index files of one segment after another."""

    def __init__(self, options: FormatOptions) -> None:
        self._options = options
        chunk_options = ChunkOptions(needs_body=True, check_crc=False)
        self._bodies = ChunkReader(chunk_options)
        self._headers = ChunkReader(ChunkOptions(needs_body=False, check_crc=False))
        self._records = RecordTimesReader(max_batch_bytes=chunk_options.max_batch_bytes)

    def make(
        self, recovery: SegmentRecovery, read_into: ReadInto, *, base_offset: int, around: Around
    ) -> Made:
        """Make the files of a segment; only the bytes that recovery kept are read again.

        1. Where Kafka leaves no indexes there are none in any format.
        2. Where an entry has no room in the format, or offsets go back, the format's own file is
           left out.
        3. A batch whose records cannot be decoded counts as one record, at its base offset.

        2 and 3 are damage of the segment, unless it has other damage already.

        Raises:
            FileChangedError: the file ended before its valid bytes.
            OSError: whatever ``read_into`` raises.
        """
        offsets, times = recovery.offset_entries, recovery.time_entries
        if offsets is None or times is None:
            return Made(self._absent(), recovery.damage)
        files = self._absent()
        files[OFFSET_SUFFIX] = encode_offset_index(offsets, base_offset=base_offset)
        if self._options.name in (IndexFormat.KAFKA, IndexFormat.EVERY_N):
            files[TIME_SUFFIX] = encode_time_index(times, base_offset=base_offset)
        suffix, damage = self._own_suffix(), None
        segment = _Segment(recovery, read_into, base_offset, around)
        try:
            if suffix is not None:
                files[suffix], damage = self._own(segment, offsets, times)
        except (OffsetOverflowError, OffsetGoesBackError) as error:
            files[suffix or ""] = None
            message = f"no {suffix} in format {self._options.name}: {error}"
            damage = Damage(DamageKind.NOT_INDEXABLE, 0, message)
        return Made(files, recovery.damage or damage)

    def _absent(self) -> Files:
        files: Files = {OFFSET_SUFFIX: None, TIME_SUFFIX: None}
        return files | ({MINUTE_INDEX_SUFFIX: None} if self._options.name == "minute" else {})

    def _own_suffix(self) -> str | None:
        return {
            IndexFormat.KIP33: TIME_SUFFIX,
            IndexFormat.MINUTE: MINUTE_INDEX_SUFFIX,
            IndexFormat.EVERY_N: OFFSET_SUFFIX,
        }.get(self._options.name)

    def _own(
        self, segment: "_Segment", offsets: Entries, times: Entries
    ) -> tuple[bytes, Damage | None]:
        base_offset = segment.base_offset
        if self._options.name is IndexFormat.KIP33:
            entries = self._kip33(segment, offsets, times)
            return encode_kip33_index(entries, base_offset=base_offset), None
        if self._options.name is IndexFormat.EVERY_N:
            entries, undecodable = self._every_n(segment)
            return encode_every_n_index(entries, base_offset=base_offset), _damage(undecodable)
        if self._options.minute_variant is MinuteVariant.DERIVED:
            entries = self._derived_minutes(segment, offsets)
            return encode_minute_index(entries, base_offset=base_offset), None
        entries, undecodable = self._minutes(segment)
        return encode_minute_index(entries, base_offset=base_offset), _damage(undecodable)

    def _kip33(self, segment: "_Segment", offsets: Entries, times: Entries) -> Entries:
        rule, first_offset = self._options.without_timestamps, None
        if rule is WithoutTimestamps.MTIME_FIRST and not len(times):
            first = next(self._read(segment), None)
            first_offset = None if first is None else int(first.offset[0])
        place = SegmentPlace(
            base_offset=segment.base_offset,
            next_base_offset=segment.around.next_base_offset,
            log_end_offset=segment.recovery.next_offset,
            last_modified_ms=segment.around.last_modified_ms,
            first_offset=first_offset,
        )
        return kip33_entries(offsets, times, place, without_timestamps=rule)

    def _minutes(self, segment: "_Segment") -> tuple[Entries, Undecodable | None]:
        index = FirstOfEach()
        for records in self._read(segment):
            index.add(records.offset, records.timestamp)
        return index.entries(), self._records.undecodable

    def _derived_minutes(self, segment: "_Segment", offsets: Entries) -> Entries:
        parts = []
        size_bytes = segment.recovery.valid_bytes
        for chunk in self._headers.read(segment.read_into, size_bytes=size_bytes):
            batches = chunk.batches
            indexed = np.isin(batches[wire.POSITION], offsets[:, 1])
            parts.append(batches[:, indexed][[wire.LAST_OFFSET, wire.MAX_TIMESTAMP]])
        found = np.concatenate([np.empty((2, 0), dtype=np.int64), *parts], axis=1)
        return derived_minute_entries(found[0], found[1])

    def _every_n(self, segment: "_Segment") -> tuple[Entries, Undecodable | None]:
        index = EveryNIndexBuilder(self._options.every_n, self._options.every_n_rule)
        for records in self._read(segment):
            index.add(records.offset, records.position)
        return index.entries(), self._records.undecodable

    def _read(self, segment: "_Segment") -> Iterator[RecordTimes]:
        self._records.undecodable = None
        size_bytes = segment.recovery.valid_bytes
        for chunk in self._bodies.read(segment.read_into, size_bytes=size_bytes):
            yield from self._records.read(chunk.batches, chunk.data, chunk.data_position)


class _Segment(NamedTuple):
    recovery: SegmentRecovery
    read_into: ReadInto
    base_offset: int
    around: Around


def _damage(undecodable: Undecodable | None) -> Damage | None:
    if undecodable is None:
        return None
    message = f"records cannot be decoded, the batch counts as one: {undecodable.reason}"
    return Damage(DamageKind.UNDECODABLE, undecodable.position, message)
