"""The result of recovering one segment: entries, damage, counts, times and epochs."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kafka_segments.kafka.index.segment.producer_summary import ProducerSummary, empty_summary
from kafka_segments.kafka.text.checkpoints import EpochStart
from kafka_segments.kafka.wire.header_layout import NO_TIMESTAMP

Entries = npt.NDArray[np.int64]
"""Rows of two int64: (offset, position), (timestamp ms, offset) or (epoch, start offset)."""

Ranges = npt.NDArray[np.int64]
"""Digests of ranges of offsets: a column for each, rows as ``index.offset_ranges`` names them."""

OFFSET_ENTRY_BYTES = 8
TIME_ENTRY_BYTES = 12


class DamageKind(StrEnum):
    """Why a segment ends before its file does, or has no indexes."""

    PARTIAL_BATCH = "partial_batch"
    PREALLOCATED_TAIL = "preallocated_tail"
    CORRUPT_BATCH = "corrupt_batch"
    OFFSET_OVERFLOW = "offset_overflow"
    OFFSET_GOES_BACK = "offset_goes_back"
    INDEX_FULL = "index_full"
    BAD_MARKER = "bad_marker"
    INVALID_TRANSACTION = "invalid_transaction"
    UNREADABLE_CUT = "unreadable_cut"
    UNREADABLE_END = "unreadable_end"
    UNREADABLE_FIRST = "unreadable_first_batch"
    UNREADABLE_AGAIN = "unreadable_again"
    REMOVED = "removed_after_truncation"
    NOT_LOADED = "log_not_loaded"
    NEGATIVE_EPOCH_START = "negative_epoch_start"
    TOO_LARGE = "too_large"
    CHANGED = "changed_while_read"
    VANISHED = "vanished_while_read"
    UNREADABLE = "unreadable"
    NOT_PERMITTED = "not_permitted"
    UNDECODABLE = "undecodable_batch"
    NOT_INDEXABLE = "not_indexable"


@dataclass(frozen=True)
class Damage:
    """One finding in a segment, at a byte position of its file."""

    kind: DamageKind
    position: int
    message: str


class SegmentSummary(NamedTuple):
    """What later segments of the log need to know of a recovered segment (``log_recovery``).

    ``has_wrappers``: some batches are compressed messages v0 or v1. The other fields are those of
    ``SegmentRecovery``.
    """

    base_offset: int
    next_offset: int
    producer_end_offset: int
    valid_bytes: int
    truncated_bytes: int
    damage_kind: DamageKind | None
    leader_epochs: Sequence[EpochStart]
    producers: ProducerSummary
    has_wrappers: bool = False


class SegmentRecovery(NamedTuple):
    """A recovered segment, made with the names of its fields.

    A segment that could not be read has the fields' defaults. A field named like one of
    ``SegmentWalk`` takes the walk's value, and the column of that name takes the field's.

    ``offset_entries`` has rows (offset, position), ``time_entries`` (timestamp ms, offset),
    ``leader_epochs`` (epoch, start offset), all int64 and absolute. Both indexes are None
    where Kafka leaves none. Timestamps are in ms since 1970, -1 where no batch has one.
    ``producer_end_offset`` is how far the producer state reaches: the next offset after the last
    record batch v2. ``record_count`` is None where compressed messages v0 or v1 hide theirs.
    ``max_batch_bytes`` is 0 where there is no batch, None where none was read. ``max_record_bytes``
    is None where records were not decoded, or one cannot be.
    ``offset_ranges`` is None if it was not asked for, or the segment is not sound to its end.
    """

    valid_bytes: int
    truncated_bytes: int
    next_offset: int
    offset_of_max_timestamp: int
    leader_epochs: Entries
    producers: ProducerSummary
    producer_end_offset: int
    offset_entries: Entries | None
    time_entries: Entries | None
    damage: Damage | None
    batch_count: int = 0
    record_count: int | None = 0
    max_batch_bytes: int | None = None
    max_record_bytes: int | None = None
    first_batch_timestamp: int = NO_TIMESTAMP
    min_timestamp: int = NO_TIMESTAMP
    max_timestamp: int = NO_TIMESTAMP
    magics: tuple[int, ...] = ()
    codecs: tuple[int, ...] = ()
    timestamp_types: tuple[int, ...] = ()
    producer_count: int = 0
    control_batch_count: int = 0
    transactional_batch_count: int = 0
    offset_ranges: Ranges | None = None

    def summary(self, base_offset: int) -> SegmentSummary:
        """Return what later segments need to know; ``base_offset`` is this segment's."""
        return SegmentSummary(
            base_offset=base_offset,
            next_offset=self.next_offset,
            producer_end_offset=self.producer_end_offset,
            valid_bytes=self.valid_bytes,
            truncated_bytes=self.truncated_bytes,
            damage_kind=None if self.damage is None else self.damage.kind,
            leader_epochs=[EpochStart(*entry) for entry in self.leader_epochs.tolist()],
            producers=self.producers,
            has_wrappers=self.record_count is None,
        )


_NO_ENTRIES: Entries = np.empty((0, 2), dtype=np.int64)


def joined(parts: Sequence[Entries]) -> Entries:
    """Return the rows of all parts as one array; of one part alone, that part."""
    filled = [part for part in parts if len(part)]
    if len(filled) > 1:
        return np.concatenate(filled)
    return filled[0] if filled else _NO_ENTRIES


def unread_segment(*, size_bytes: int, base_offset: int, damage: Damage) -> SegmentRecovery:
    """Return the row of a segment that could not be read: no indexes, nothing known."""
    return SegmentRecovery(
        valid_bytes=0,
        truncated_bytes=size_bytes,
        next_offset=base_offset,
        offset_of_max_timestamp=base_offset,
        leader_epochs=joined([]),
        producers=empty_summary(),
        producer_end_offset=base_offset,
        offset_entries=None,
        time_entries=None,
        damage=damage,
    )
