"""Index files, read by ranges: how many entries there are, the last of them, or all.

A broker preallocates the index files of its active segment: zeros follow the entries until it
rolls. They are none, and where they begin is found by halving.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from kafka_segments.errors import CorruptIndexError
from kafka_segments.kafka.index.segment.offset_index import decode_offset_index
from kafka_segments.kafka.index.segment.recovered_segment import (
    OFFSET_ENTRY_BYTES,
    TIME_ENTRY_BYTES,
    Entries,
)
from kafka_segments.kafka.index.segment.time_index import decode_time_index
from kafka_segments.kafka.index.segment.transaction_index import (
    TRANSACTION_ENTRY_BYTES,
    AbortedTransaction,
    decode_transaction_index,
)
from kafka_segments.kafka.text.names import OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX, TXN_INDEX_SUFFIX

PIECE_BYTES = 4080  # a page's worth: a multiple of the entries of all three files
_MOST_WHOLE_BYTES = 16 * 1024 * 1024


class RangedFile(NamedTuple):
    """A file that is read by ranges.

    ``read`` takes a position and a length that lie within the file, and returns these bytes.
    """

    size_bytes: int
    read: Callable[[int, int], bytes]


class IndexFiles(NamedTuple):
    """The index files of a segment; None: there is no such file."""

    offset_index: RangedFile | None
    time_index: RangedFile | None
    txn_index: RangedFile | None


class IndexEnd(NamedTuple):
    """The last entries of an index file.

    Attributes:
        entry_count: how many entries the file has, without preallocated zeros.
        entries: the last of them, rows as ``decode_offset_index`` and ``decode_time_index`` give.
        has_zeros: zeros follow them.
    """

    entry_count: int
    entries: Entries
    has_zeros: bool

    @property
    def first(self) -> int:
        """The number of the first of ``entries`` in the file."""
        return self.entry_count - len(self.entries)


def count_filled(file: RangedFile, width: int) -> int:
    """Return how many entries of ``width`` bytes an index file has before its zeros."""
    low, high = 0, file.size_bytes // width
    while low < high:
        middle = (low + high) // 2
        if any(file.read(middle * width, width)):
            low = middle + 1
        else:
            high = middle
    return low


def offset_index_end(file: RangedFile | None, *, base_offset: int) -> IndexEnd:
    """Read the last entries (offset, position) of an ``.index`` file.

    Raises:
        CorruptIndexError: there is no such file, or none that a broker would use as it is.
    """
    count, data, has_zeros = _end(file, OFFSET_INDEX_SUFFIX, OFFSET_ENTRY_BYTES)
    entries = decode_offset_index(data, base_offset=base_offset)
    _check_rising(OFFSET_INDEX_SUFFIX, entries, (base_offset - 1, -1), may_repeat=False)
    return IndexEnd(count, entries, has_zeros)


def time_index_end(file: RangedFile | None, *, base_offset: int) -> IndexEnd:
    """Read the last entries (timestamp ms, offset) of a ``.timeindex`` file.

    Raises:
        CorruptIndexError: there is no such file, or none that a broker would use as it is.
    """
    count, data, has_zeros = _end(file, TIME_INDEX_SUFFIX, TIME_ENTRY_BYTES)
    entries = decode_time_index(data, base_offset=base_offset)
    _check_rising(TIME_INDEX_SUFFIX, entries, (-1, base_offset), may_repeat=True)
    return IndexEnd(count, entries, has_zeros)


def whole_offset_index(file: RangedFile | None, *, base_offset: int) -> Entries:
    """Return all entries (offset, position) of an ``.index`` file.

    Raises:
        CorruptIndexError: there is no such file, none that a broker would use as it is, or it is
            larger than any that a broker writes.
    """
    data = _whole(file, OFFSET_INDEX_SUFFIX, OFFSET_ENTRY_BYTES)
    entries = decode_offset_index(data, base_offset=base_offset)
    _check_rising(OFFSET_INDEX_SUFFIX, entries, (base_offset - 1, -1), may_repeat=False)
    return entries


def whole_time_index(file: RangedFile | None, *, base_offset: int) -> Entries:
    """Return all entries (timestamp ms, offset) of a ``.timeindex`` file.

    Raises:
        CorruptIndexError: see ``whole_offset_index``.
    """
    data = _whole(file, TIME_INDEX_SUFFIX, TIME_ENTRY_BYTES)
    entries = decode_time_index(data, base_offset=base_offset)
    _check_rising(TIME_INDEX_SUFFIX, entries, (-1, base_offset), may_repeat=True)
    return entries


def offset_entry(file: RangedFile, end: IndexEnd, number: int, *, base_offset: int) -> list[int]:
    """Return (offset, position) of one entry of an ``.index`` file."""
    if number >= end.first:
        return [int(value) for value in end.entries[number - end.first]]
    data = file.read(number * OFFSET_ENTRY_BYTES, OFFSET_ENTRY_BYTES)
    return [int(value) for value in decode_offset_index(data, base_offset=base_offset)[0]]


def check_transaction_index(file: RangedFile | None, *, base_offset: int, next_offset: int) -> None:
    """Check the last entries of a ``.txnindex`` file, if there is one.

    Raises:
        CorruptIndexError: a partial entry, another version, transactions out of order, or one
            that ends outside of the segment.
    """
    if file is None or not file.size_bytes:
        return
    if file.size_bytes % TRANSACTION_ENTRY_BYTES:
        raise _partial(TXN_INDEX_SUFFIX, file.size_bytes, TRANSACTION_ENTRY_BYTES)
    start = max(0, file.size_bytes - PIECE_BYTES)
    data = file.read(start, file.size_bytes - start)
    if any(data[at] or data[at + 1] for at in range(0, len(data), TRANSACTION_ENTRY_BYTES)):
        raise CorruptIndexError(f"the {TXN_INDEX_SUFFIX} has an entry of another version than 0")
    before = AbortedTransaction(0, 0, base_offset - 1, 0)
    for entry in decode_transaction_index(data):
        is_within = entry.first_offset <= entry.last_offset < next_offset
        if not is_within or entry.last_offset <= before.last_offset:
            raise CorruptIndexError(
                f"the {TXN_INDEX_SUFFIX} has a transaction of offsets {entry.first_offset} to"
                f" {entry.last_offset} after one that ends at {before.last_offset}; the segment"
                f" ends below {next_offset}"
            )
        before = entry


def _check_rising(
    suffix: str, entries: Entries, least: tuple[int, int], *, may_repeat: bool
) -> None:
    """Check that entries rise, from ``least`` on; ``may_repeat``: their second value may stay."""
    before = np.concatenate((np.array([least], dtype=np.int64), entries))[:-1]
    falls = entries[:, 1] < before[:, 1] if may_repeat else entries[:, 1] <= before[:, 1]
    wrong = np.flatnonzero((entries[:, 0] <= before[:, 0]) | falls)
    if not len(wrong):
        return
    words = "timestamp {} at offset {}" if may_repeat else "offset {} at byte {}"
    found, last = (words.format(*rows[wrong[0]].tolist()) for rows in (entries, before))
    raise CorruptIndexError(f"the {suffix} has {found} after {last}: entries must rise")


def _end(file: RangedFile | None, suffix: str, width: int) -> tuple[int, bytes, bool]:
    """Return how many entries a file has, the bytes of the last of them, and if zeros follow."""
    file = _there(file, suffix)
    if file.size_bytes % width:
        raise _partial(suffix, file.size_bytes, width)
    count = file.size_bytes // width
    data = _last(file, count, width)
    if any(data[-width:]):
        return count, data, False
    filled = count_filled(file, width)
    return filled, _last(file, filled, width), filled < count


def _whole(file: RangedFile | None, suffix: str, width: int) -> bytes:
    """Return the bytes of all entries of a file."""
    file = _there(file, suffix)
    count, last, _ = _end(file, suffix, width)
    length = count * width
    if length > _MOST_WHOLE_BYTES:
        raise CorruptIndexError(f"the {suffix} has {count} entries")
    return last if len(last) == length else file.read(0, length)


def _there(file: RangedFile | None, suffix: str) -> RangedFile:
    if file is None:
        raise CorruptIndexError(f"there is no {suffix}")
    return file


def _last(file: RangedFile, count: int, width: int) -> bytes:
    length = min(PIECE_BYTES, count * width)
    return file.read(count * width - length, length) if length else b""


def _partial(suffix: str, size_bytes: int, width: int) -> CorruptIndexError:
    return CorruptIndexError(f"the {suffix} has {size_bytes} bytes, no multiple of {width}")
