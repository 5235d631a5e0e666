"""CRC-32C (record batches v2) and CRC-32 (messages v0 and v1), compiled.

Running values are the register before the final inversion, so that a checksum can go on over
the next buffer: start with ``CRC_START``, end with ``value ^ CRC_START``.

CRC-32C takes the CPU's instruction where there is one. Its latency is three cycles, so three
lanes run side by side and are joined by a table that says what a register becomes after
one lane's length of zero bytes. CRC-32 takes
carry-less multiplication (``crc_folding``) where the CPU has it. Elsewhere eight tables take 8
bytes a step; as each step waits for the one before, three lanes run side by side there too.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

from kafka_segments.wire.crc_folding import BLOCK_BYTES, fold_blocks, has_cpu_multiplication
from kafka_segments.wire.native import (
    cpu_crc_feature,
    crc32c_step_1,
    crc32c_step_8,
    load_u64_le,
)

CRC_START = 0xFFFFFFFF
HAS_CPU_CRC = cpu_crc_feature() is not None

HAS_CPU_MULTIPLICATION = has_cpu_multiplication()
_LEAST_FOLDED = 2 * BLOCK_BYTES

_CASTAGNOLI = 0x82F63B78  # bit-reversed polynomials
_ZLIB = 0xEDB88320
_LONG_LANE = 1024
_SHORT_LANE = 128

Table = npt.NDArray[np.uint32]
Bytes = npt.NDArray[np.uint8]


def _slicing_tables(polynomial: int) -> Table:
    tables = np.zeros((8, 256), dtype=np.uint32)
    crc = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        crc = np.where(crc & 1, (crc >> 1) ^ np.uint32(polynomial), crc >> 1).astype(np.uint32)
    tables[0] = crc
    for row in range(1, 8):
        before = tables[row - 1]
        tables[row] = tables[0][before & 0xFF] ^ (before >> 8)
    return tables


def _zeros_table(polynomial: int, length: int) -> Table:
    """Return a table, by byte of a register, of what ``length`` zero bytes make of the register."""
    one_byte = _slicing_tables(polynomial)[0]
    images = np.left_shift(np.uint32(1), np.arange(32, dtype=np.uint32))  # of each single bit
    for _ in range(length):
        images = one_byte[images & 0xFF] ^ (images >> 8)
    table = np.zeros((4, 256), dtype=np.uint32)
    for byte in range(4):
        for bit in range(8):
            has_bit = (np.arange(256) >> bit) & 1 == 1
            table[byte][has_bit] ^= images[8 * byte + bit]
    return table


_TABLES_C = _slicing_tables(_CASTAGNOLI)
_TABLES_Z = _slicing_tables(_ZLIB)
_AFTER_LONG = _zeros_table(_CASTAGNOLI, _LONG_LANE)
_AFTER_SHORT = _zeros_table(_CASTAGNOLI, _SHORT_LANE)
_AFTER_SHORT_Z = _zeros_table(_ZLIB, _SHORT_LANE)


@njit(inline="always")  # type: ignore[untyped-decorator]
def _after_zeros(table: Any, crc: Any) -> Any:
    return np.uint64(
        table[0, crc & np.uint64(0xFF)]
        ^ table[1, (crc >> np.uint64(8)) & np.uint64(0xFF)]
        ^ table[2, (crc >> np.uint64(16)) & np.uint64(0xFF)]
        ^ table[3, (crc >> np.uint64(24)) & np.uint64(0xFF)]
    )


@njit(inline="always")  # type: ignore[untyped-decorator]
def _three_lanes(data: Any, start: Any, lane: Any, crc: Any, after_lane: Any) -> Any:
    second = np.uint64(0)
    third = np.uint64(0)
    for i in range(start, start + lane, 8):
        crc = crc32c_step_8(crc, load_u64_le(data, i))
        second = crc32c_step_8(second, load_u64_le(data, i + lane))
        third = crc32c_step_8(third, load_u64_le(data, i + 2 * lane))
    return _after_zeros(after_lane, _after_zeros(after_lane, crc) ^ second) ^ third


@njit  # type: ignore[untyped-decorator]
def _lanes(data: Any, start: Any, end: Any, crc: Any) -> Any:
    """Feed as much of ``data[start:end]`` as fills three lanes; return (register, next byte)."""
    i = start
    while end - i >= 3 * _LONG_LANE:
        crc = _three_lanes(data, i, _LONG_LANE, crc, _AFTER_LONG)
        i += 3 * _LONG_LANE
    while end - i >= 3 * _SHORT_LANE:
        crc = _three_lanes(data, i, _SHORT_LANE, crc, _AFTER_SHORT)
        i += 3 * _SHORT_LANE
    return crc, i


@njit(inline="always")  # type: ignore[untyped-decorator]
def _by_instruction(data: Any, start: Any, end: Any, crc: Any) -> Any:
    i = start
    if end - i >= 3 * _SHORT_LANE:
        crc, i = _lanes(data, i, end, crc)
    while end - i >= 8:
        crc = crc32c_step_8(crc, load_u64_le(data, i))
        i += 8
    if i < end:
        if end - start < 8:
            while i < end:
                crc = crc32c_step_1(crc, data[i])
                i += 1
        else:
            # The last 1 to 7 bytes in one step: zero bytes in front of them leave a zero
            # register zero, so they may be the high end of a word, the register folded in.
            bits = np.uint64(8) * np.uint64(end - i)
            high = np.uint64(64) - bits
            word = (load_u64_le(data, end - 8) >> high) ^ crc
            crc = crc32c_step_8(np.uint64(0), word << high) ^ (crc >> bits)
    return crc


@njit(inline="always")  # type: ignore[untyped-decorator]
def _table_step_8(tables: Any, crc: Any, word: Any) -> Any:
    low = np.uint64(0xFF)
    word ^= crc
    return np.uint64(
        tables[7, word & low]
        ^ tables[6, (word >> np.uint64(8)) & low]
        ^ tables[5, (word >> np.uint64(16)) & low]
        ^ tables[4, (word >> np.uint64(24)) & low]
        ^ tables[3, (word >> np.uint64(32)) & low]
        ^ tables[2, (word >> np.uint64(40)) & low]
        ^ tables[1, (word >> np.uint64(48)) & low]
        ^ tables[0, word >> np.uint64(56)]
    )


@njit  # type: ignore[untyped-decorator]
def _by_tables(tables: Any, after_lane: Any, data: Any, start: Any, end: Any, crc: Any) -> Any:
    i = start
    low = np.uint64(0xFF)
    while end - i >= 3 * _SHORT_LANE:
        second = np.uint64(0)
        third = np.uint64(0)
        for j in range(i, i + _SHORT_LANE, 8):
            crc = _table_step_8(tables, crc, load_u64_le(data, j))
            second = _table_step_8(tables, second, load_u64_le(data, j + _SHORT_LANE))
            third = _table_step_8(tables, third, load_u64_le(data, j + 2 * _SHORT_LANE))
        crc = _after_zeros(after_lane, _after_zeros(after_lane, crc) ^ second) ^ third
        i += 3 * _SHORT_LANE
    while end - i >= 8:
        crc = _table_step_8(tables, crc, load_u64_le(data, i))
        i += 8
    while i < end:
        crc = np.uint64(tables[0, (crc ^ np.uint64(data[i])) & low]) ^ (crc >> np.uint64(8))
        i += 1
    return crc


@njit(inline="always")  # type: ignore[untyped-decorator]
def crc32c_update(data: Any, start: Any, end: Any, crc: Any, by_instruction: Any) -> Any:
    """Return the CRC-32C register ``crc`` after the bytes ``data[start:end]``."""
    if by_instruction:
        crc = _by_instruction(data, start, end, crc)
    else:
        crc = _by_tables(_TABLES_C, _AFTER_SHORT, data, start, end, crc)
    return crc


@njit(inline="always")  # type: ignore[untyped-decorator]
def crc32_by_tables(data: Any, start: Any, end: Any, crc: Any) -> Any:
    """Return the CRC-32 register ``crc`` after the bytes ``data[start:end]``, on any CPU."""
    return _by_tables(_TABLES_Z, _AFTER_SHORT_Z, data, start, end, crc)


@njit(inline="always")  # type: ignore[untyped-decorator]
def crc32_update(data: Any, start: Any, end: Any, crc: Any) -> Any:
    """Return the CRC-32 register ``crc`` after the bytes ``data[start:end]``."""
    if HAS_CPU_MULTIPLICATION and end - start >= _LEAST_FOLDED:
        folded_end = start + (end - start) // BLOCK_BYTES * BLOCK_BYTES
        low, high = fold_blocks(data, start, folded_end, crc)
        crc = _table_step_8(_TABLES_Z, _table_step_8(_TABLES_Z, np.uint64(0), low), high)
        start = folded_end
    return crc32_by_tables(data, start, end, crc)


@njit(cache=True)  # type: ignore[untyped-decorator]
def _crc32c(data: Any, by_instruction: Any) -> Any:
    return crc32c_update(data, 0, len(data), np.uint64(CRC_START), by_instruction)


def crc32c(data: bytes | Bytes, *, by_instruction: bool = HAS_CPU_CRC) -> int:
    """Compute the CRC-32C of ``data``."""
    view = np.frombuffer(data, dtype=np.uint8)
    return int(_crc32c(view, by_instruction)) ^ CRC_START
