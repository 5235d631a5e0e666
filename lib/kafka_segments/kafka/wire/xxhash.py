"""XXH32 with seed 0, compiled: the checksum of lz4's frames."""

from typing import Any

import numpy as np

from kafka_segments.compiling import njit

_MASK = 0xFFFFFFFF
_P1, _P2, _P3, _P4, _P5 = 2654435761, 2246822519, 3266489917, 668265263, 374761393
_STRIPE_BYTES = 16


def xxh32(data: bytes) -> int:
    """Compute XXH32 of some bytes."""
    return int(_xxh32(np.frombuffer(data, dtype=np.uint8)))


@njit(inline="always")  # type: ignore[untyped-decorator]
def _rotated(value: Any, bits: Any) -> Any:
    return ((value << bits) | (value >> (32 - bits))) & _MASK


@njit(inline="always")  # type: ignore[untyped-decorator]
def _word(data: Any, at: Any) -> Any:
    word = np.int64(0)
    for k in range(4):
        word |= np.int64(data[at + k]) << (8 * k)
    return word


@njit(inline="always")  # type: ignore[untyped-decorator]
def _product(value: Any, factor: Any) -> Any:
    """Multiply modulo 2^32; the halves keep it within an int64."""
    high = ((value >> 16) * factor) & 0xFFFF
    return ((high << 16) + (value & 0xFFFF) * factor) & _MASK


@njit(inline="always")  # type: ignore[untyped-decorator]
def _lane(lane: Any, word: Any) -> Any:
    return _product(_rotated((lane + _product(word, _P2)) & _MASK, 13), _P1)


@njit(cache=True)  # type: ignore[untyped-decorator]
def _xxh32(data: Any) -> Any:
    length = len(data)
    at = 0
    value = np.int64(_P5)
    if length >= _STRIPE_BYTES:
        one, two = np.int64((_P1 + _P2) & _MASK), np.int64(_P2)
        three, four = np.int64(0), np.int64(-_P1 & _MASK)
        while length - at >= _STRIPE_BYTES:
            one, two = _lane(one, _word(data, at)), _lane(two, _word(data, at + 4))
            three, four = _lane(three, _word(data, at + 8)), _lane(four, _word(data, at + 12))
            at += _STRIPE_BYTES
        value = _rotated(one, 1) + _rotated(two, 7) + _rotated(three, 12) + _rotated(four, 18)
    value = (value + length) & _MASK
    while length - at >= 4:
        added = (value + _product(_word(data, at), _P3)) & _MASK
        value = _product(_rotated(added, 17), _P4)
        at += 4
    while at < length:
        added = (value + np.int64(data[at]) * _P5) & _MASK
        value = _product(_rotated(added, 11), _P1)
        at += 1
    value = _product(value ^ (value >> 15), _P2)
    value = _product(value ^ (value >> 13), _P3)
    return value ^ (value >> 16)
