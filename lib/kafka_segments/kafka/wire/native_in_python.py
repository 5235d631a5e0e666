"""What the intrinsics of ``native`` do, in Python: for debuggers and coverage.

They stand in where numba compiles nothing (``NUMBA_DISABLE_JIT``). Numbers have the types that
compiled code gives them, so that they overflow alike.
"""

import ctypes
from typing import Any

import numpy as np

_CASTAGNOLI = 0x82F63B78  # bit-reversed polynomial
_LOW_8_BYTES = 0xFFFF_FFFF_FFFF_FFFF


def address_of(array: Any) -> np.int64:
    """Return where the first byte of a uint8 array lies, which must live meanwhile."""
    return np.int64(array.ctypes.data)


def load_u8(data: Any, index: Any) -> np.uint8:
    """Return the byte at ``index`` of a uint8 array or address."""
    return np.uint8(_bytes_at(data, index, 1)[0])


def store_u8(address: Any, index: Any, byte: Any) -> None:
    """Put a byte ``index`` bytes behind an address."""
    ctypes.c_uint8.from_address(int(address) + int(index)).value = int(byte)


def load_u64_le(data: Any, index: Any) -> np.uint64:
    """Return 8 bytes at ``index`` of a uint8 array or address, little-endian."""
    return np.uint64(int.from_bytes(_bytes_at(data, index, 8), "little"))


def load_i64(data: Any, index: Any) -> np.int64:
    """Return a big-endian int64 at ``index`` of a uint8 array or address."""
    return _load_signed(data, index, 8)


def load_i16(data: Any, index: Any) -> np.int64:
    """Return a big-endian int16 at ``index`` of a uint8 array or address."""
    return _load_signed(data, index, 2)


def load_i32(data: Any, index: Any) -> np.int64:
    """Return a big-endian int32 at ``index`` of a uint8 array or address."""
    return _load_signed(data, index, 4)


def load_u32(data: Any, index: Any) -> np.uint64:
    """Return a big-endian uint32 at ``index`` of a uint8 array or address."""
    return np.uint64(int.from_bytes(_bytes_at(data, index, 4)))


def crc32c_step_8(crc: Any, word: Any) -> np.uint64:
    """Return the CRC-32C after 8 more bytes (little-endian)."""
    register = int(crc)
    for byte in int(word).to_bytes(8, "little"):
        register = _after_byte(register, byte)
    return np.uint64(register)


def crc32c_step_1(crc: Any, byte: Any) -> np.uint64:
    """Return the CRC-32C after one more byte."""
    return np.uint64(_after_byte(int(crc), int(byte)))


def carryless_product(one: Any, other: Any) -> np.uint64:
    """Return the low 8 bytes of the carry-less product."""
    factor, product = int(one), 0
    for bit in range(int(other).bit_length()):
        if int(other) >> bit & 1:
            product ^= factor << bit
    return np.uint64(product & _LOW_8_BYTES)


def _bytes_at(data: Any, index: Any, length: int) -> bytes:
    if isinstance(data, np.ndarray):
        return data[index : index + length].tobytes()
    return ctypes.string_at(int(data) + int(index), length)


def _load_signed(data: Any, index: Any, length: int) -> np.int64:
    return np.int64(int.from_bytes(_bytes_at(data, index, length), signed=True))


def _after_byte(register: int, byte: int) -> int:
    register ^= byte
    for _ in range(8):
        register = register >> 1 ^ (_CASTAGNOLI if register & 1 else 0)
    return register
