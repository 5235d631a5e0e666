"""The sparse index of the article: one offset entry every N messages; not Kafka's.

The file is laid out as ``.index``: 8-byte entries (``relativeOffset`` int32, ``position`` int32,
the first byte of the batch that holds the record), big-endian. Kafka can look offsets up in it, as
an entry's batch begins at or before the record.

Source: an article on sparse indexes ("every N messages"); worked example in docs/index-formats.md.
"""

from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np
import numpy.typing as npt

from kafka_segments.errors import OffsetGoesBackError, UsageError
from kafka_segments.kafka.index.formats.index_format import IndexFormat, SegmentToIndex
from kafka_segments.kafka.index.segment.offset_index import encode_offset_index
from kafka_segments.kafka.index.segment.recovered_segment import Entries
from kafka_segments.kafka.index.segment.relative import check_relative_offsets
from kafka_segments.kafka.text.names import OFFSET_INDEX_SUFFIX

Int64s = npt.NDArray[np.int64]


class EveryNRule(StrEnum):
    """Which record is the N-th.

    ``BY_OFFSET``: its offset is a multiple of N, as in the article. ``BY_ORDINAL``: it is number
    0, N, 2 N, ... of its segment, so gaps in the offsets make no difference.
    """

    BY_OFFSET = "by-offset"
    BY_ORDINAL = "by-ordinal"


class EveryNIndexBuilder:
    """Builds a segment's entries as its records come."""

    def __init__(self, n: int, rule: EveryNRule = EveryNRule.BY_OFFSET) -> None:
        self._n = n
        self._rule = rule
        self._record_count = 0
        self._parts: list[Entries] = []

    def add(self, offsets: Int64s, positions: Int64s) -> None:
        """Go on with the next records: their offsets and the positions of their batches."""
        numbers = offsets
        if self._rule is EveryNRule.BY_ORDINAL:
            numbers = np.arange(self._record_count, self._record_count + len(offsets))
        rows = numbers % self._n == 0
        self._record_count += len(offsets)
        self._parts.append(np.column_stack((offsets[rows], positions[rows])))

    def entries(self) -> Entries:
        """Return the entries (offset, position).

        Raises:
            OffsetGoesBackError: an entry's offset is not above the one before.
        """
        entries = np.concatenate([np.empty((0, 2), dtype=np.int64), *self._parts])
        back = np.flatnonzero(entries[1:, 0] <= entries[:-1, 0])
        if len(back):
            row = int(back[0])
            raise OffsetGoesBackError(int(entries[row + 1, 0]), int(entries[row, 0]))
        return entries


def encode_every_n_index(entries: Entries, *, base_offset: int) -> bytes:
    """Write entries (offset, position) as the bytes of a file.

    Raises:
        OffsetOverflowError: an offset is not 0 to 2147483647 above ``base_offset``.
    """
    check_relative_offsets(entries[:, 0], base_offset=base_offset)
    return encode_offset_index(entries, base_offset=base_offset)


@dataclass(frozen=True)
class EveryNFormat(IndexFormat):
    """Another ``.index``, beside Kafka's ``.timeindex``.

    Raises:
        UsageError: ``every_n`` is below 1.
    """

    name = "every-n"
    suffix = OFFSET_INDEX_SUFFIX
    replaces = OFFSET_INDEX_SUFFIX

    every_n: int = field(default=100, metadata={"help": "messages an entry."})
    every_n_rule: EveryNRule = field(
        default=EveryNRule.BY_OFFSET,
        metadata={"help": "offsets that are multiples of N, or each N-th message of a segment."},
    )

    def __post_init__(self) -> None:
        if self.every_n < 1:
            raise UsageError(f"--every-n is {self.every_n}, the least is 1")

    def encode(self, segment: SegmentToIndex) -> bytes:
        """Return the bytes of the offset index."""
        index = EveryNIndexBuilder(self.every_n, self.every_n_rule)
        for records in segment.records():
            index.add(records.offset, records.position)
        return encode_every_n_index(index.entries(), base_offset=segment.base_offset)
