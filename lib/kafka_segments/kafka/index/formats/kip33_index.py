"""The time index of KIP-33's text; no release wrote it.

The file is ``.timeindex``, laid out as Kafka's; an entry means something else: ``timestamp`` is
the greatest up to here, ``relativeOffset`` the *next* offset when the entry was made. Every
record with a greater timestamp lies at or after that offset. Of records with the same timestamp
it says nothing, so a search for "timestamp >= T" takes an entry strictly below T.

Source: KIP-33, "Build the time index"; worked example in docs/index-formats.md.
"""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

import numpy as np

from kafka_segments.kafka.index.formats.index_format import IndexFormat, SegmentToIndex
from kafka_segments.kafka.index.segment.recovered_segment import Entries
from kafka_segments.kafka.index.segment.relative import check_relative_offsets
from kafka_segments.kafka.index.segment.time_index import encode_time_index
from kafka_segments.kafka.text.names import TIME_INDEX_SUFFIX


class WithoutTimestamps(StrEnum):
    """What a closed segment gets where no record has a timestamp; an active one gets nothing.

    ``NEXT``, of the text on startup and of an older one on closing: (mtime -> base offset of the
    next segment). ``FIRST``, of the text on migration: (mtime -> offset of the first message).
    """

    EMPTY = "empty"
    MTIME_NEXT = "mtime-next"
    MTIME_FIRST = "mtime-first"


class SegmentPlace(NamedTuple):
    """What must be known about a segment, beside its index entries, to make the KIP's entries.

    ``next_base_offset`` is None for the last segment of a log, which is the active one;
    ``first_offset`` is that of the first record, None in a segment without records.
    """

    base_offset: int
    next_base_offset: int | None
    log_end_offset: int
    last_modified_ms: int
    first_offset: int | None = None


def kip33_entries(
    offset_entries: Entries,
    time_entries: Entries,
    place: SegmentPlace,
    *,
    without_timestamps: WithoutTimestamps = WithoutTimestamps.EMPTY,
) -> Entries:
    """Make the KIP's entries (timestamp, next offset) of the indexes that Kafka builds.

    1. Wherever a batch gets an offset entry, the greatest timestamp so far gets one too if it
       grew: (greatest timestamp, last offset of that batch + 1). Kafka's time entries are made at
       the same places, so each goes with the first offset entry at or above its offset.
    2. The greatest timestamp of the segment has the base offset of the next segment, or the log
       end offset in the last segment, whether or not it had an entry before.
    3. Without any timestamp: as ``without_timestamps`` says.

    Offsets must rise from batch to batch, as in any log that a broker wrote.
    """
    closing_offset = (
        place.log_end_offset if place.next_base_offset is None else place.next_base_offset
    )
    if not len(time_entries):
        return _without_timestamps(place, without_timestamps)
    entries = time_entries.copy()
    reached = time_entries[:-1, 1]
    at = np.searchsorted(offset_entries[:, 0], reached, side="left")
    at = np.minimum(at, len(offset_entries) - 1)  # only in a log whose offsets go back
    entries[:-1, 1] = np.maximum(offset_entries[at, 0], reached) + 1
    entries[-1, 1] = closing_offset
    return entries


def _without_timestamps(place: SegmentPlace, rule: WithoutTimestamps) -> Entries:
    offset = None
    if place.next_base_offset is not None and rule is WithoutTimestamps.MTIME_NEXT:
        offset = place.next_base_offset
    if place.next_base_offset is not None and rule is WithoutTimestamps.MTIME_FIRST:
        offset = place.first_offset
    rows = [] if offset is None else [(place.last_modified_ms, offset)]
    return np.array(rows, dtype=np.int64).reshape(-1, 2)


def encode_kip33_index(entries: Entries, *, base_offset: int) -> bytes:
    """Write entries as the bytes of a trimmed file.

    Raises:
        OffsetOverflowError: the next segment begins more than 2147483647 above ``base_offset``:
            it was rolled because offsets ran over, and the KIP's last entry has no room.
    """
    check_relative_offsets(entries[:, 1], base_offset=base_offset)
    return encode_time_index(entries, base_offset=base_offset)


@dataclass(frozen=True)
class Kip33Format(IndexFormat):
    """Another ``.timeindex``, beside Kafka's ``.index``."""

    name = "kip33"
    suffix = TIME_INDEX_SUFFIX
    replaces = TIME_INDEX_SUFFIX
    needs_next = True

    without_timestamps: WithoutTimestamps = field(
        default=WithoutTimestamps.EMPTY,
        metadata={"help": "the entry of a closed segment without timestamps."},
    )

    def encode(self, segment: SegmentToIndex) -> bytes:
        """Return the bytes of the time index."""
        rule, first_offset = self.without_timestamps, None
        if rule is WithoutTimestamps.MTIME_FIRST and not len(segment.time_entries):
            first_offset = segment.first_offset()
        place = SegmentPlace(
            base_offset=segment.base_offset,
            next_base_offset=segment.next_base_offset,
            log_end_offset=segment.next_offset,
            last_modified_ms=segment.last_modified_ms,
            first_offset=first_offset,
        )
        entries = kip33_entries(
            segment.offset_entries, segment.time_entries, place, without_timestamps=rule
        )
        return encode_kip33_index(entries, base_offset=segment.base_offset)
