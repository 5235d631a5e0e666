"""Split a segment whose offsets do not fit its base offset, as a broker's load does.

1. The batches are copied in order, each piece named by the base offset of its first batch.
2. A piece ends before the first batch whose last offset lies more than 2^31 - 1 above its name.
3. A segment is not split, and its log not loaded, where the last batch fits the base offset
   (the overflow lies in the middle), where a piece's last offset lies below its name, where bytes
   that are no batch stand behind the last one, or where a batch has a magic other than 0, 1, 2.

Each piece is then recovered like any segment. A first batch v0 or v1 that is compressed does not
say its base offset in its header; such a segment is taken as not to be split.

Source: UnifiedLog.splitOverflowedSegment, LogSegment.hasOverflow, appendFromFile (2.0 and later).
"""

import struct
from typing import NamedTuple

from kafka_segments.index.recovery import DamageKind, SegmentRecoverer, SegmentRecovery
from kafka_segments.wire.reading import ReadInto

_FIRST_BYTES = 23  # up to the attributes of a v2 batch
_LEGACY_ATTRIBUTES, _MAGIC = 17, 16
_CODEC_BITS = 0x07
_MAX_RELATIVE_OFFSET = 2**31 - 1


class Piece(NamedTuple):
    """A segment that a split makes: its base offset and what recovery makes of it."""

    base_offset: int
    recovery: SegmentRecovery


def split_overflowed(
    recoverer: SegmentRecoverer, read_into: ReadInto, *, size_bytes: int, base_offset: int
) -> list[Piece] | None:
    """Split a segment into sound pieces; None: a broker does not load it.

    Raises:
        FileChangedError: the file ended before ``size_bytes``.
        OSError: whatever ``read_into`` raises.
    """
    pieces: list[Piece] = []
    position = 0
    while position < size_bytes:
        first_offset = _first_offset(read_into, position)
        if first_offset is None:
            return None
        read_on = _shifted(read_into, position)
        found = recoverer.recover(
            read_on, size_bytes=size_bytes - position, base_offset=first_offset
        )
        if found.damage is not None:
            if found.damage.kind != DamageKind.OFFSET_OVERFLOW or not found.valid_bytes:
                return None
            found = recoverer.recover(
                read_on, size_bytes=found.valid_bytes, base_offset=first_offset
            )
        if not set(found.magics) <= {0, 1, 2}:
            return None
        pieces.append(Piece(first_offset, found))
        position += found.valid_bytes
    end = pieces[-1].recovery.next_offset if pieces else base_offset
    return pieces if end - 1 - base_offset > _MAX_RELATIVE_OFFSET else None


def _shifted(read_into: ReadInto, start: int) -> ReadInto:
    return lambda position, view: read_into(start + position, view)


def _first_offset(read_into: ReadInto, position: int) -> int | None:
    """Read the base offset of the batch at a position; None where its header does not say."""
    header = bytearray(_FIRST_BYTES)
    if read_into(position, memoryview(header)) < _FIRST_BYTES:
        return None
    if header[_MAGIC] < 2 and header[_LEGACY_ATTRIBUTES] & _CODEC_BITS:
        return None
    offset: int = struct.unpack_from(">q", header)[0]
    return offset
