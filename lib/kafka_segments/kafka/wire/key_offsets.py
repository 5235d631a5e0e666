"""The last offset of each key, compiled: keys by a hash of 128 bits, in an open-addressed table.

Source: SkimpyOffsetMap, which takes MD5, and as many keys as its memory has room for.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from kafka_segments.compiling import njit
from kafka_segments.kafka.wire.filling import Bytes
from kafka_segments.kafka.wire.native import load_i64

_HIGH, _LOW, _OFFSET = 0, 1, 2  # rows of a table
_ROWS = 3
_FIRST_SLOTS = 1024
_NONE = -1
_FACTOR = np.uint64(0x9E3779B97F4A7C15)
_MIX_1, _MIX_2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)

Int64s = npt.NDArray[np.int64]
Rows = npt.NDArray[np.intp]


@njit(forceinline=True)  # type: ignore[untyped-decorator]
def _mixed(value: Any) -> Any:
    value = (value ^ (value >> np.uint64(30))) * _MIX_1
    value = (value ^ (value >> np.uint64(27))) * _MIX_2
    return value ^ (value >> np.uint64(31))


@njit(forceinline=True)  # type: ignore[untyped-decorator]
def _hash(data: Any, start: Any, end: Any) -> Any:
    """Return the two halves of a key's hash."""
    high = np.uint64(end - start) + _FACTOR
    low = high * _FACTOR
    at = start
    while at + 8 <= end:
        word = np.uint64(load_i64(data, at))
        high = _mixed(high ^ word)
        low = _mixed(low + word * _FACTOR)
        at += 8
    word = np.uint64(0)
    for k in range(at, end):
        word = (word << np.uint64(8)) | np.uint64(data[k])
    high = _mixed(high ^ word)
    return np.int64(high), np.int64(_mixed(low + word * _FACTOR + high))


@njit(forceinline=True)  # type: ignore[untyped-decorator]
def _slot(table: Any, high: Any, low: Any) -> Any:
    """Return where a key is, or the empty slot that it would take."""
    mask = table.shape[1] - 1
    slot = high & mask
    while table[_OFFSET, slot] != _NONE and (
        table[_HIGH, slot] != high or table[_LOW, slot] != low
    ):
        slot = (slot + 1) & mask
    return slot


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _put(
    data: Any, ends: Any, rows: Any, at: Any, offsets: Any, table: Any, count: Any, most: Any
) -> Any:
    """Note the keys of rows from ``at`` on; return the first one not noted, and the keys then."""
    while at < len(rows) and count < most:
        row = rows[at]
        high, low = _hash(data, np.int64(ends[row]), np.int64(ends[row + 1]))
        slot = _slot(table, high, low)
        if table[_OFFSET, slot] == _NONE:
            if 2 * count >= table.shape[1]:
                break
            count += 1
            table[_HIGH, slot] = high
            table[_LOW, slot] = low
        table[_OFFSET, slot] = offsets[row]
        at += 1
    return at, count


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _get(data: Any, ends: Any, rows: Any, table: Any, found: Any) -> None:
    for i in range(len(rows)):
        high, low = _hash(data, np.int64(ends[rows[i]]), np.int64(ends[rows[i] + 1]))
        found[i] = table[_OFFSET, _slot(table, high, low)]


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _move(table: Any, larger: Any) -> None:
    for old in range(table.shape[1]):
        if table[_OFFSET, old] != _NONE:
            slot = _slot(larger, table[_HIGH, old], table[_LOW, old])
            larger[:, slot] = table[:, old]


class KeyOffsets:
    """The last offset of each of so many keys; it grows with them (48 bytes a key at most)."""

    def __init__(self, most_keys: int) -> None:
        self._most, self._count = most_keys, 0
        self._table = _new_table(_FIRST_SLOTS)

    def __len__(self) -> int:
        return self._count

    def put(self, keys: Bytes, rows: Rows, offsets: Int64s) -> int:
        """Note the offsets, none below 0, of keys in some rows; return how many are noted.

        Fewer than all: as many keys are in it as it may hold.
        """
        at = 0
        while True:
            at, self._count = _put(
                keys.data, keys.ends, rows, at, offsets, self._table, self._count, self._most
            )
            if at == len(rows) or self._count >= self._most:
                return int(at)
            larger = _new_table(2 * self._table.shape[1])
            _move(self._table, larger)
            self._table = larger

    def get(self, keys: Bytes, rows: Rows) -> Int64s:
        """Return the offsets of keys in some rows; -1: not noted."""
        found = np.empty(len(rows), dtype=np.int64)
        _get(keys.data, keys.ends, rows, self._table, found)
        return found


def _new_table(slots: int) -> Int64s:
    return np.full((_ROWS, slots), _NONE, dtype=np.int64)
