"""Kafka's variable-length integers, compiled: seven bits a byte, zig-zag, lowest bits first.

Source: ByteUtils.readVarint, readVarlong, writeVarint, writeVarlong.
"""

from typing import Any

import numpy as np

from kafka_segments.compiling import njit
from kafka_segments.kafka.wire.native import byte_at

PAST_END = -1
TOO_LONG = -2


@njit(forceinline=True, cache=True)  # type: ignore[untyped-decorator]
def read_varint(data: Any, at: Any, end: Any) -> Any:
    """Read an int32; return (value, next byte), or PAST_END or TOO_LONG for the next byte.

    Five bytes at most; bits above the 32nd are dropped, as Kafka drops them.
    """
    if at < end and byte_at(data, at) < 0x80:
        first = np.int64(byte_at(data, at))
        return (first >> 1) ^ -(first & 1), at + 1
    value = np.int64(0)
    for k in range(5):
        if at + k >= end:
            return np.int64(0), np.int64(PAST_END)
        byte = np.int64(byte_at(data, at + k))
        value |= (byte & 0x7F) << (7 * k)
        if byte < 0x80:
            value &= 0xFFFFFFFF
            return (value >> 1) ^ -(value & 1), at + k + 1
    return np.int64(0), np.int64(TOO_LONG)


@njit(forceinline=True, cache=True)  # type: ignore[untyped-decorator]
def read_varlong(data: Any, at: Any, end: Any) -> Any:
    """Read an int64, ten bytes at most; else as ``read_varint``."""
    if at < end and byte_at(data, at) < 0x80:
        first = np.int64(byte_at(data, at))
        return (first >> 1) ^ -(first & 1), at + 1
    value = np.uint64(0)
    for k in range(10):
        if at + k >= end:
            return np.int64(0), np.int64(PAST_END)
        byte = np.uint64(byte_at(data, at + k))
        value |= (byte & np.uint64(0x7F)) << np.uint64(7 * k)
        if byte < np.uint64(0x80):
            half = np.int64(value >> np.uint64(1))
            return half ^ -np.int64(value & np.uint64(1)), at + k + 1
    return np.int64(0), np.int64(TOO_LONG)


@njit(forceinline=True)  # type: ignore[untyped-decorator]
def varint_bytes(value: Any) -> Any:
    """Return how many bytes ``write_varint`` takes for an int64."""
    left = np.uint64((np.int64(value) << 1) ^ (np.int64(value) >> 63))
    count = 1
    while left >= np.uint64(0x80):
        left >>= np.uint64(7)
        count += 1
    return count


@njit(forceinline=True)  # type: ignore[untyped-decorator]
def write_varint(out: Any, at: Any, value: Any) -> Any:
    """Write an int32 or int64, the same bytes where it is either; return the next byte."""
    left = np.uint64((np.int64(value) << 1) ^ (np.int64(value) >> 63))
    while left >= np.uint64(0x80):
        out[at] = np.uint8((left & np.uint64(0x7F)) | np.uint64(0x80))
        left >>= np.uint64(7)
        at += 1
    out[at] = np.uint8(left)
    return at + 1
