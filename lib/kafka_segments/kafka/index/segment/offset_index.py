"""The offset index file: 8-byte entries, no header, no checksum.

``relativeOffset`` int32 (offset - base offset), ``position`` int32 (first byte of the batch
whose last offset it is). Offsets strictly increase. Big-endian.
"""

from typing import NamedTuple

import numpy as np

from kafka_segments.errors import CorruptIndexError
from kafka_segments.kafka.index.segment.recovered_segment import OFFSET_ENTRY_BYTES, Entries

_ENTRY = np.dtype([("relative_offset", ">i4"), ("position", ">i4")])


class OffsetPosition(NamedTuple):
    """An entry: the batch whose last offset is ``offset`` starts at byte ``position``."""

    offset: int
    position: int


def encode_offset_index(entries: Entries, *, base_offset: int) -> bytes:
    """Write entries (offset, position) as the bytes of a trimmed ``.index`` file."""
    if not len(entries):
        return b""
    rows = np.empty(len(entries), dtype=_ENTRY)
    rows["relative_offset"] = entries[:, 0] - base_offset
    rows["position"] = entries[:, 1]
    return rows.tobytes()


def decode_offset_index(data: bytes, *, base_offset: int) -> Entries:
    """Read the entries (offset, position) of an ``.index`` file; a partial last one is left out.

    Zero padding is read as entries, as Kafka reads it.
    """
    count = len(data) // OFFSET_ENTRY_BYTES
    entries = np.frombuffer(data, dtype=">i4", count=2 * count).astype(np.int64).reshape(count, 2)
    entries[:, 0] += base_offset
    return entries


def lookup_offset(entries: Entries, target_offset: int, *, base_offset: int) -> OffsetPosition:
    """Find the entry with the greatest offset not above the target.

    1. A target below the first entry, or an empty index, gives (base_offset, 0).
    2. A target above the last entry gives the last entry.

    Source: OffsetIndex.lookup.
    """
    row = int(np.searchsorted(entries[:, 0], target_offset, side="right")) - 1
    if row < 0:
        return OffsetPosition(base_offset, 0)
    return OffsetPosition(int(entries[row, 0]), int(entries[row, 1]))


def check_offset_index(data: bytes, *, base_offset: int) -> None:
    """Check an ``.index`` file as brokers from 2.0 on do.

    Raises:
        CorruptIndexError: the length is no multiple of 8, or the last offset lies below
            the base offset.

    Source: OffsetIndex.sanityCheck.
    """
    if len(data) % OFFSET_ENTRY_BYTES:
        raise CorruptIndexError(f"length is {len(data)} bytes, no multiple of {OFFSET_ENTRY_BYTES}")
    entries = decode_offset_index(data, base_offset=base_offset)
    if len(entries) and entries[-1, 0] < base_offset:
        raise CorruptIndexError(
            f"last offset is {entries[-1, 0]}, below the base offset {base_offset}"
        )
