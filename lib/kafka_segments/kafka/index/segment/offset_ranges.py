"""Digests of a segment's batches by ranges of offsets, compiled: copies compare by few numbers.

A range holds the batches whose last offset has the same bits above the lowest few, wherever a
segment begins. A batch's mark is a hash of what identifies it: base offset, last offset, leader
epoch, magic, size and checksum. The first three and the magic are not covered by the checksum. A
range's digest is the exclusive or of its marks, so the digests of pieces in two segments combine.
"""

from typing import Any

import numpy as np

from kafka_segments.compiling import njit
from kafka_segments.kafka.wire import batches as wire
from kafka_segments.kafka.wire import header_layout as layout
from kafka_segments.kafka.wire.headers import magic_at, size_at
from kafka_segments.kafka.wire.native import load_i64

RANGE_BITS = 12
"""A range is 4096 offsets."""

# Rows of the array of ranges (int64); a column of it is a range.
RANGE = 0  # last offsets of its batches, without the lowest bits
DIGEST = 1
BATCHES = 2
BYTES = 3
BASE_OFFSET = 4  # of its first batch
LAST_OFFSET = 5  # of its last batch
FIRST_EPOCH = 6
LAST_EPOCH = 7
POSITION = 8  # of its first batch in the segment
END_POSITION = 9  # behind its last batch
THINNED = 10  # batches that tell of compaction: fewer records than offsets, or a gap in front
RANGE_FIELDS = 11


@njit(forceinline=True)  # type: ignore[untyped-decorator]
def _mixed(digest: Any, value: Any) -> Any:
    digest = (digest ^ np.uint64(value)) * np.uint64(0xBF58476D1CE4E5B9)
    digest = (digest ^ (digest >> np.uint64(29))) * np.uint64(0x94D049BB133111EB)
    return digest ^ (digest >> np.uint64(32))


@njit(forceinline=True)  # type: ignore[untyped-decorator]
def _mark(batches: Any, at: Any) -> Any:
    digest = _mixed(np.uint64(0x9E3779B97F4A7C15), batches[wire.BATCH_BASE_OFFSET, at])
    digest = _mixed(digest, batches[wire.BATCH_LAST_OFFSET, at])
    digest = _mixed(digest, batches[wire.BATCH_LEADER_EPOCH, at])
    digest = _mixed(digest, batches[wire.BATCH_MAGIC, at])
    digest = _mixed(digest, batches[wire.BATCH_SIZE_BYTES, at])
    return np.int64(_mixed(digest, batches[wire.BATCH_CRC, at]))


@njit(forceinline=True)  # type: ignore[untyped-decorator]
def _is_thinned(batches: Any, at: Any, next_offset: Any) -> Any:
    """Tell whether a batch has lost records, or batches in front of it are gone.

    ``next_offset`` is that behind the batch before it in the segment; -1: it is not known.
    """
    count = batches[wire.BATCH_RECORD_COUNT, at]
    base_offset, last_offset = (
        batches[wire.BATCH_BASE_OFFSET, at],
        batches[wire.BATCH_LAST_OFFSET, at],
    )
    if batches[wire.BATCH_MAGIC, at] < layout.MAGIC_V2 and count < 0:
        return False  # a compressed set does not say where it begins
    return count < last_offset - base_offset + 1 or 0 <= next_offset < base_offset


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def fold_ranges(
    batches: Any, first: Any, next_offset: Any, ranges: Any, count: Any, bits: Any
) -> Any:
    """Fold batches, from column ``first`` on, into ``ranges``, of which ``count`` are in use.

    The last range goes on where the next batch belongs to it. ``next_offset`` is as in
    ``_is_thinned``; a range is 2^``bits`` offsets. Return (columns folded, ranges in use): fewer
    columns where there is no room.
    """
    at = first
    while at < batches.shape[1]:
        last_offset = batches[wire.BATCH_LAST_OFFSET, at]
        number = last_offset >> bits
        if count == 0 or ranges[RANGE, count - 1] != number:
            if count == ranges.shape[1]:
                break
            ranges[:, count] = 0
            ranges[RANGE, count] = number
            ranges[BASE_OFFSET, count] = batches[wire.BATCH_BASE_OFFSET, at]
            ranges[FIRST_EPOCH, count] = batches[wire.BATCH_LEADER_EPOCH, at]
            ranges[POSITION, count] = batches[wire.BATCH_POSITION, at]
            count += 1
        here = count - 1
        size_bytes = batches[wire.BATCH_SIZE_BYTES, at]
        ranges[DIGEST, here] ^= _mark(batches, at)
        ranges[BATCHES, here] += 1
        ranges[BYTES, here] += size_bytes
        ranges[LAST_OFFSET, here] = last_offset
        ranges[LAST_EPOCH, here] = batches[wire.BATCH_LEADER_EPOCH, at]
        ranges[END_POSITION, here] = batches[wire.BATCH_POSITION, at] + size_bytes
        if _is_thinned(batches, at, next_offset):
            ranges[THINNED, here] += 1
        next_offset = last_offset + 1
        at += 1
    return at, count


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def find_header(data: Any, length: Any, low_offset: Any, high_offset: Any, most_bytes: Any) -> Any:
    """Return the first place in ``data[:length]`` that may be a batch's header, -1 for none.

    Its offset lies from ``low_offset`` to ``high_offset``, and its size is possible: the caller
    has its checksum verified. ``most_bytes`` are left in the file from ``data`` on.
    """
    for at in range(length - layout.HEADER_BYTES + 1):
        magic = magic_at(data, at)
        if magic < 0 or magic > layout.MAGIC_V2:
            continue
        offset = load_i64(data, at)
        least = layout.HEADER_BYTES if magic == layout.MAGIC_V2 else layout.MIN_BATCH_BYTES
        if low_offset <= offset <= high_offset and least <= size_at(data, at) <= most_bytes - at:
            return at
    return -1
