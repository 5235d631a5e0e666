"""The time index file: 12-byte entries, no header, no checksum.

``timestamp`` int64 (ms, the greatest up to here), ``relativeOffset`` int32 (last offset of the
first batch that has it, minus the base offset). Timestamps strictly increase. Big-endian.
Every record with a greater timestamp has a greater offset.
"""

import struct
from typing import NamedTuple

import numpy as np

from kafka_segments.errors import CorruptIndexError
from kafka_segments.kafka.index.segment.recovered_segment import TIME_ENTRY_BYTES, Entries

_ENTRY = np.dtype([("timestamp", ">i8"), ("relative_offset", ">i4")])
_ONE_ENTRY = struct.Struct(">qI")
_INT32 = 2**32 - 1


class TimestampOffset(NamedTuple):
    """An entry: ``timestamp`` is the greatest up to the batch whose last offset is ``offset``."""

    timestamp: int
    offset: int


def encode_time_index(entries: Entries, *, base_offset: int) -> bytes:
    """Write entries (timestamp, offset) as the bytes of a trimmed ``.timeindex`` file."""
    if len(entries) == 1:  # as most small segments have
        timestamp, offset = entries[0].tolist()
        return _ONE_ENTRY.pack(timestamp, offset - base_offset & _INT32)
    rows = np.empty(len(entries), dtype=_ENTRY)
    rows["timestamp"] = entries[:, 0]
    rows["relative_offset"] = entries[:, 1] - base_offset
    return rows.tobytes()


def decode_time_index(data: bytes, *, base_offset: int) -> Entries:
    """Read the entries (timestamp, offset) of a ``.timeindex`` file; a partial one is left out."""
    rows = np.frombuffer(data, dtype=_ENTRY, count=len(data) // TIME_ENTRY_BYTES)
    entries = np.empty((len(rows), 2), dtype=np.int64)
    entries[:, 0], entries[:, 1] = rows["timestamp"], rows["relative_offset"]
    entries[:, 1] += base_offset
    return entries


def check_time_index(data: bytes, *, base_offset: int) -> None:
    """Check a ``.timeindex`` file as Kafka does.

    Raises:
        CorruptIndexError: the length is no multiple of 12, the last timestamp lies below the
            first, or the last offset below the base offset.

    Source: TimeIndex.sanityCheck.
    """
    entries = decode_time_index(data, base_offset=base_offset)
    if len(entries) and entries[-1, 0] < entries[0, 0]:
        raise CorruptIndexError(
            f"last timestamp is {entries[-1, 0]}, below the first, {entries[0, 0]}"
        )
    if len(entries) and entries[-1, 1] < base_offset:
        raise CorruptIndexError(
            f"last offset is {entries[-1, 1]}, below the base offset {base_offset}"
        )
    if len(data) % TIME_ENTRY_BYTES:
        raise CorruptIndexError(f"length is {len(data)} bytes, no multiple of {TIME_ENTRY_BYTES}")
