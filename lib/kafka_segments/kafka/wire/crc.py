"""CRC-32C (record batches v2) and CRC-32 (messages v0 and v1), compiled.

Running values are the register before the final inversion, so that a checksum can go on over
the next buffer: start with ``CRC_START``, end with ``value ^ CRC_START``.

CRC-32C takes the CPU's instruction where there is one. Its latency is three cycles, so three
lanes, each a third of the bytes, run side by side. A register is moved over the bytes of the lanes
behind it by carry-less multiplication: by x to the power of their bits. A CPU that has no such
instruction multiplies bit by bit, and then few bytes get one lane. CRC-32 for all, and CRC-32C
elsewhere, take 8 bytes a step by eight tables; as each step waits for the one before, three lanes
run side by side there too, joined by a table.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from kafka_segments.compiling import njit
from kafka_segments.kafka.wire.native import (
    byte_at,
    carryless_product,
    cpu_crc_feature,
    crc32c_step_1,
    crc32c_step_8,
    has_cpu_multiplication,
    load_u64_le,
)

CRC_START = 0xFFFFFFFF
HAS_CPU_CRC = cpu_crc_feature() is not None

HAS_CPU_MULTIPLICATION = has_cpu_multiplication()

_CASTAGNOLI = 0x82F63B78  # bit-reversed polynomials
_ZLIB = 0xEDB88320
_TABLE_LANE = 128  # bytes
_MOST_LANE_WORDS = 512
_LEAST_LANES_WORDS = 24 if HAS_CPU_MULTIPLICATION else 96  # below, one lane is as quick

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


def _factors_over_words(most: int) -> npt.NDArray[np.uint64]:
    """Return, by number of 8-byte words, the factor that moves a CRC-32C register over them.

    The instruction itself multiplies by 32 bits, and reflected factors count from 1.
    """
    factors = np.zeros(most + 1, dtype=np.uint64)
    register = 0x80000000  # reflected: 1
    for power in range(1, 64 * most - 32):
        register = register >> 1 ^ (_CASTAGNOLI if register & 1 else 0)
        if (power + 33) % 64 == 0:
            factors[(power + 33) // 64] = register
    return factors


_TABLES_C = _slicing_tables(_CASTAGNOLI)
_TABLES_Z = _slicing_tables(_ZLIB)
_AFTER_LANE = _zeros_table(_CASTAGNOLI, _TABLE_LANE)
_AFTER_LANE_Z = _zeros_table(_ZLIB, _TABLE_LANE)
_OVER_WORDS = _factors_over_words(2 * _MOST_LANE_WORDS)


@njit(forceinline=True)  # type: ignore[untyped-decorator]
def _after_zeros(table: Any, crc: Any) -> Any:
    return np.uint64(
        table[0, crc & np.uint64(0xFF)]
        ^ table[1, (crc >> np.uint64(8)) & np.uint64(0xFF)]
        ^ table[2, (crc >> np.uint64(16)) & np.uint64(0xFF)]
        ^ table[3, (crc >> np.uint64(24)) & np.uint64(0xFF)]
    )


@njit  # type: ignore[untyped-decorator]
def _product_by_bits(one: Any, other: Any) -> Any:
    product = np.uint64(0)
    while other != np.uint64(0):
        if other & np.uint64(1):
            product ^= one
        one <<= np.uint64(1)
        other >>= np.uint64(1)
    return product


@njit(forceinline=True)  # type: ignore[untyped-decorator]
def _product(one: Any, other: Any) -> Any:
    if HAS_CPU_MULTIPLICATION:
        product = carryless_product(one, other)
    else:
        product = _product_by_bits(one, other)
    return product


@njit(forceinline=True)  # type: ignore[untyped-decorator]
def _by_instruction(data: Any, start: Any, end: Any, crc: Any) -> Any:
    i = start
    words = (end - start) >> 3
    while words >= _LEAST_LANES_WORDS:
        lane_words = min(words // 3, _MOST_LANE_WORDS)
        lane = 8 * lane_words
        second = np.uint64(0)
        third = np.uint64(0)
        lane_end = i + lane
        while i < lane_end:
            crc = crc32c_step_8(crc, load_u64_le(data, i))
            second = crc32c_step_8(second, load_u64_le(data, i + lane))
            third = crc32c_step_8(third, load_u64_le(data, i + 2 * lane))
            i += 8
        moved = _product(crc, _OVER_WORDS[2 * lane_words])
        moved ^= _product(second, _OVER_WORDS[lane_words])
        crc = crc32c_step_8(np.uint64(0), moved) ^ third
        i += 2 * lane
        words -= 3 * lane_words
    while words >= 2:
        crc = crc32c_step_8(crc, load_u64_le(data, i))
        crc = crc32c_step_8(crc, load_u64_le(data, i + 8))
        i += 16
        words -= 2
    if words > 0:
        crc = crc32c_step_8(crc, load_u64_le(data, i))
        i += 8
    return _last_bytes(data, start, i, end, crc)


@njit(forceinline=True)  # type: ignore[untyped-decorator]
def _last_bytes(data: Any, start: Any, i: Any, end: Any, crc: Any) -> Any:
    """Feed ``data[i:end]``, fewer than 8 bytes, where all of ``data[start:end]`` is there."""
    if i < end:
        if end - start < 8:
            while i < end:
                crc = crc32c_step_1(crc, byte_at(data, i))
                i += 1
        else:
            # In one step: zero bytes in front leave a zero register zero, so they may be the high
            # end of a word, the register folded in.
            bits = np.uint64(8) * np.uint64(end - i)
            high = np.uint64(64) - bits
            word = (load_u64_le(data, end - 8) >> high) ^ crc
            crc = crc32c_step_8(np.uint64(0), word << high) ^ (crc >> bits)
    return crc


@njit(forceinline=True)  # type: ignore[untyped-decorator]
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
    while end - i >= 3 * _TABLE_LANE:
        second = np.uint64(0)
        third = np.uint64(0)
        for j in range(i, i + _TABLE_LANE, 8):
            crc = _table_step_8(tables, crc, load_u64_le(data, j))
            second = _table_step_8(tables, second, load_u64_le(data, j + _TABLE_LANE))
            third = _table_step_8(tables, third, load_u64_le(data, j + 2 * _TABLE_LANE))
        crc = _after_zeros(after_lane, _after_zeros(after_lane, crc) ^ second) ^ third
        i += 3 * _TABLE_LANE
    while end - i >= 8:
        crc = _table_step_8(tables, crc, load_u64_le(data, i))
        i += 8
    while i < end:
        crc = np.uint64(tables[0, (crc ^ np.uint64(byte_at(data, i))) & low]) ^ (
            crc >> np.uint64(8)
        )
        i += 1
    return crc


@njit(forceinline=True, cache=True)  # type: ignore[untyped-decorator]
def crc32c_update(data: Any, start: Any, end: Any, crc: Any, by_instruction: Any) -> Any:
    """Return the CRC-32C register ``crc`` after the bytes ``data[start:end]``."""
    if by_instruction:
        crc = _by_instruction(data, start, end, crc)
    else:
        crc = _by_tables(_TABLES_C, _AFTER_LANE, data, start, end, crc)
    return crc


@njit(forceinline=True, cache=True)  # type: ignore[untyped-decorator]
def crc32_update(data: Any, start: Any, end: Any, crc: Any) -> Any:
    """Return the CRC-32 register ``crc`` after the bytes ``data[start:end]``."""
    return _by_tables(_TABLES_Z, _AFTER_LANE_Z, data, start, end, crc)


@njit(cache=True)  # type: ignore[untyped-decorator]
def _crc32c(data: Any, by_instruction: Any) -> Any:
    return crc32c_update(data, 0, len(data), np.uint64(CRC_START), by_instruction)


def crc32c(data: bytes | Bytes, *, by_instruction: bool = HAS_CPU_CRC) -> int:
    """Compute the CRC-32C of ``data``."""
    view = np.frombuffer(data, dtype=np.uint8)
    return int(_crc32c(view, by_instruction)) ^ CRC_START
