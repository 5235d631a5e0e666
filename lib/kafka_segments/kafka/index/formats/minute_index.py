"""The minute index of KIP-33's first design: ``<base offset>.time.index``; no release wrote it.

12-byte entries, no header, big-endian, laid out as in ``.timeindex``: ``timestamp`` int64 (the
minute, in ms), ``relativeOffset`` int32. Records without a timestamp have no part in it.

Source: KIP-33, first design, "timestamp -> log offset at minute granularity"; worked example in
docs/index-formats.md.
"""

from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np
import numpy.typing as npt

from kafka_segments.kafka.index.formats.index_format import IndexFormat, SegmentToIndex
from kafka_segments.kafka.index.segment.recovered_segment import Entries
from kafka_segments.kafka.index.segment.relative import check_relative_offsets
from kafka_segments.kafka.index.segment.time_index import encode_time_index
from kafka_segments.kafka.text.names import TIME_INDEX_SUFFIX

MINUTE_MS = 60_000

Int64s = npt.NDArray[np.int64]


class MinuteVariant(StrEnum):
    """How entries are made.

    ``MAP``, for CreateTime: (minute -> its first message), in the order in which the minutes
    first appear. ``DERIVED``, for LogAppendTime: only messages that get an offset entry count,
    one in a later minute than the last entry's gets an entry.
    """

    MAP = "map"
    DERIVED = "derived"


class FirstOfEach:
    """Finds the first record of each minute, or of each other span of time, as records come."""

    def __init__(self, span_ms: int = MINUTE_MS) -> None:
        self._span_ms = span_ms
        self._seen: set[int] = set()
        self._parts: list[Entries] = []

    def add(self, offsets: Int64s, timestamps: Int64s) -> None:
        """Go on with the next records."""
        dated = timestamps >= 0
        starts = timestamps[dated] - timestamps[dated] % self._span_ms
        if not len(starts):
            return
        changes = np.flatnonzero(np.concatenate(([True], starts[1:] != starts[:-1])))
        found, first = np.unique(starts[changes], return_index=True)
        is_new = [start not in self._seen for start in found.tolist()]
        self._seen.update(found.tolist())
        rows = changes[np.sort(first[is_new])]
        if len(rows):
            self._parts.append(np.column_stack((starts[rows], offsets[dated][rows])))

    def entries(self) -> Entries:
        """Return (start of the span in ms, offset of its first record), in order of appearance."""
        return np.concatenate(self._parts) if self._parts else np.empty((0, 2), dtype=np.int64)


def derived_minute_entries(offsets: Int64s, timestamps: Int64s) -> Entries:
    """Make the derived variant's entries of the batches that have an offset entry.

    ``offsets`` are their last offsets, ``timestamps`` their greatest timestamps (ms): with
    LogAppendTime every record of a batch has it.
    """
    minutes = timestamps - timestamps % MINUTE_MS
    before = np.maximum.accumulate(np.concatenate(([np.int64(-1)], minutes)))[:-1]
    later = (timestamps >= 0) & (minutes > before)
    return np.column_stack((minutes[later], offsets[later]))


def encode_minute_index(entries: Entries, *, base_offset: int) -> bytes:
    """Write entries (minute in ms, offset) as the bytes of a file; order is kept.

    Raises:
        OffsetOverflowError: an offset is not 0 to 2147483647 above ``base_offset``.
    """
    check_relative_offsets(entries[:, 1], base_offset=base_offset)
    return encode_time_index(entries, base_offset=base_offset)


@dataclass(frozen=True)
class MinuteFormat(IndexFormat):
    """A ``.time.index`` in the place of the ``.timeindex``, beside Kafka's ``.index``."""

    name = "minute"
    suffix = ".time.index"
    replaces = TIME_INDEX_SUFFIX
    note = "timestamps rounded down to the minute"

    minute_variant: MinuteVariant = field(
        default=MinuteVariant.MAP,
        metadata={"help": "of every message (CreateTime), or of the indexed ones (LogAppendTime)."},
    )

    def encode(self, segment: SegmentToIndex) -> bytes:
        """Return the bytes of the minute index."""
        is_derived = self.minute_variant is MinuteVariant.DERIVED
        entries = _derived_entries(segment) if is_derived else _map_entries(segment)
        return encode_minute_index(entries, base_offset=segment.base_offset)


def _map_entries(segment: SegmentToIndex) -> Entries:
    index = FirstOfEach()
    for records in segment.records():
        index.add(records.offset, records.timestamp)
    return index.entries()


def _derived_entries(segment: SegmentToIndex) -> Entries:
    offsets, timestamps = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int64)]
    for batches in segment.batches():
        is_indexed = np.isin(batches.position, segment.offset_entries[:, 1])
        offsets.append(batches.last_offset[is_indexed])
        timestamps.append(batches.max_timestamp[is_indexed])
    return derived_minute_entries(np.concatenate(offsets), np.concatenate(timestamps))
