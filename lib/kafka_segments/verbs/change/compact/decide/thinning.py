"""Make index files smaller while every answer stays right: no zeros, no repeats, fewer entries.

1. A lookup in a thinned offset index starts at the same batch or before it, never behind it.
2. Every entry that stays in a time index was there before, so it is still true. The last entry
   stays: retention and searches take it for the segment's greatest timestamp.
"""

from typing import NamedTuple

import numpy as np

from kafka_segments.kafka.index.segment.offset_index import decode_offset_index, encode_offset_index
from kafka_segments.kafka.index.segment.recovered_segment import (
    OFFSET_ENTRY_BYTES,
    TIME_ENTRY_BYTES,
    Entries,
)
from kafka_segments.kafka.index.segment.time_index import decode_time_index, encode_time_index


class IndexBytes(NamedTuple):
    """The bytes of a segment's two index files; None: the file does not exist."""

    offset_index: bytes | None
    time_index: bytes | None


def compact_files(
    files: IndexBytes, *, base_offset: int, index_interval_bytes: int | None
) -> IndexBytes:
    """Return both files trimmed, without repeated entries, and thinned where an interval is given.

    A file stays as it is where its entries do not rise, its format is another, or its length is no
    multiple of an entry's: ``audit`` says what is wrong with it.
    """
    offsets = times = None
    if files.offset_index is not None:
        trimmed = trim(files.offset_index, OFFSET_ENTRY_BYTES)
        offsets = _entries(decode_offset_index(trimmed, base_offset=base_offset), trimmed, 8)
    if files.time_index is not None:
        trimmed = trim(files.time_index, TIME_ENTRY_BYTES)
        times = _entries(decode_time_index(trimmed, base_offset=base_offset), trimmed, 12)
    if index_interval_bytes is not None and offsets is not None:
        kept = thin_offsets(offsets, index_interval_bytes=index_interval_bytes)
        times = None if times is None else thin_times(times, kept)
        offsets = kept
    return IndexBytes(
        files.offset_index
        if offsets is None
        else encode_offset_index(offsets, base_offset=base_offset),
        files.time_index if times is None else encode_time_index(times, base_offset=base_offset),
    )


def trim(data: bytes, entry_bytes: int) -> bytes:
    """Return an index file without the zeros of preallocation at its end.

    A single entry of zeros may be true (timestamp 0 at the base offset), so it stays.
    """
    if len(data) <= entry_bytes:
        return data
    written = len(data.rstrip(b"\0"))
    whole = -(-written // entry_bytes) * entry_bytes
    return data if whole > len(data) or len(data) % entry_bytes else data[:whole]


def _entries(entries: Entries, data: bytes, entry_bytes: int) -> Entries | None:
    """Return entries without those that repeat the one before; None: they do not rise."""
    if len(data) % entry_bytes:
        return None
    if len(entries) > 1:
        is_new = np.append(True, (np.diff(entries, axis=0) != 0).any(axis=1))
        entries = entries[is_new]
    steps = np.diff(entries, axis=0)
    rises = (steps[:, 0] > 0).all() and (steps[:, 1] >= 0).all()
    return entries if rises else None


def thin_offsets(entries: Entries, *, index_interval_bytes: int) -> Entries:
    """Return entries that lie more than ``index_interval_bytes`` behind the last one kept."""
    kept, last = [], 0
    for row, position in enumerate(entries[:, 1].tolist()):
        if position - last > index_interval_bytes:
            kept.append(row)
            last = position
    return entries[kept]


def thin_times(entries: Entries, offset_entries: Entries) -> Entries:
    """Return the last time entry up to each offset entry, and the last of all.

    Args:
        entries: (timestamp ms, offset).
        offset_entries: (offset, position), those that were kept.
    """
    if not len(entries):
        return entries
    rows = np.searchsorted(entries[:, 1], offset_entries[:, 0], side="right") - 1
    kept = np.unique(np.append(rows[rows >= 0], len(entries) - 1))
    thinned: Entries = entries[kept]
    return thinned
