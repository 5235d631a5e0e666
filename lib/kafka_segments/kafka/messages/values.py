"""Single values of a message: numbers, text, bytes, uuids and lengths, from their bytes.

A ``Reader`` takes bytes and a place in them, and returns a value and the place after it. Where
bytes end too early it lets IndexError or struct.error out, which the decoder turns into words.

Source: ByteBufferAccessor, ByteUtils, MessageDataGenerator, java.lang.String (its UTF-8).
"""

import re
import struct
from base64 import urlsafe_b64encode
from collections.abc import Callable
from typing import Any

from kafka_segments.kafka.messages.layout import BYTES, STRING, UUID, Primitive

Reader = Callable[[bytes, int], tuple[Any, int]]
LengthReader = Callable[[bytes, int], tuple[int, int]]

FORMS = {
    Primitive.BOOL: "?",
    Primitive.INT8: "b",
    Primitive.INT16: "h",
    Primitive.UINT16: "H",
    Primitive.INT32: "i",
    Primitive.UINT32: "I",
    Primitive.INT64: "q",
    Primitive.FLOAT64: "d",
}
_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")
_MAX_INT16 = 2**15 - 1
_MAX_INT32 = 2**31 - 1
_UUID_BYTES = 16
_ENCODED_SURROGATE = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]?")
_REPLACEMENT = "\ufffd".encode()


class BadBytesError(Exception):
    """What is wrong at a place; ``path`` gets the names of the fields that lead there."""

    def __init__(self, reason: str, position: int) -> None:
        super().__init__(reason, position)
        self.reason = reason
        self.position = position
        self.path: list[str] = []

    def within(self, name: str) -> "BadBytesError":
        """Put a name before the path."""
        self.path.insert(0, name)
        return self


def cut_off(data: bytes, at: int) -> BadBytesError:
    """Say that a value begins at a place and has not its bytes."""
    return BadBytesError(f"is cut off, {max(len(data) - at, 0)} bytes are left", at)


def primitive_reader(kind: Primitive, is_flexible: bool, is_nullable: bool) -> Reader:
    """Return what reads a single value."""
    if kind is STRING:
        return _string_reader(read_compact_length if is_flexible else _read_int16, is_nullable)
    if kind is BYTES:
        return _bytes_reader(read_compact_length if is_flexible else read_int32, is_nullable)
    return _read_uuid if kind is UUID else _number_reader(FORMS[kind])


def _number_reader(form: str) -> Reader:
    number = struct.Struct(f">{form}")
    unpack, size = number.unpack_from, number.size

    def read(data: bytes, at: int) -> tuple[Any, int]:
        return unpack(data, at)[0], at + size

    return read


def _string_reader(read_length: LengthReader, is_nullable: bool) -> Reader:
    def read(data: bytes, at: int) -> tuple[str | None, int]:
        length, begin = read_length(data, at)
        end = begin + length
        if length < 0:
            return null(is_nullable, length, begin, at)
        if length > _MAX_INT16 or end > len(data):
            raise _too_long(length, data, begin, at)
        piece = data[begin:end]
        try:
            return piece.decode(), end
        except UnicodeDecodeError:
            return _text_as_java_reads_it(piece), end

    return read


def _text_as_java_reads_it(piece: bytes) -> str:
    """Decode bytes that are not all UTF-8: Java takes an encoded surrogate for one bad letter."""
    return _ENCODED_SURROGATE.sub(_REPLACEMENT, piece).decode("utf-8", "replace")


def _bytes_reader(read_length: LengthReader, is_nullable: bool) -> Reader:
    def read(data: bytes, at: int) -> tuple[bytes | None, int]:
        length, begin = read_length(data, at)
        if length < 0:
            return null(is_nullable, length, begin, at)
        return take(data, begin, length)

    return read


def _read_uuid(data: bytes, at: int) -> tuple[str, int]:
    piece, at = take(data, at, _UUID_BYTES)
    return urlsafe_b64encode(piece)[:22].decode("ascii"), at


def take(data: bytes, at: int, size: int) -> tuple[bytes, int]:
    """Read as many bytes as ``size`` says."""
    end = at + size
    if size < 0 or end > len(data):
        raise _too_long(size, data, at, at)
    return data[at:end], end


def null(is_nullable: bool, length: int, end: int, at: int) -> tuple[None, int]:
    """Read the null that a negative length stands for."""
    if not is_nullable:
        raise BadBytesError(f"has length {length}: null, which it cannot be", at)
    return None, end


def _too_long(length: int, data: bytes, begin: int, at: int) -> BadBytesError:
    return BadBytesError(f"says {length} bytes, {len(data) - begin} are left", at)


def read_int8(data: bytes, at: int) -> tuple[int, int]:
    """Read an int8."""
    byte = data[at]
    return byte - 256 if byte >= 0x80 else byte, at + 1


def _read_int16(data: bytes, at: int) -> tuple[int, int]:
    return _INT16.unpack_from(data, at)[0], at + 2


def read_int32(data: bytes, at: int) -> tuple[int, int]:
    """Read an int32."""
    return _INT32.unpack_from(data, at)[0], at + 4


def read_compact_length(data: bytes, at: int) -> tuple[int, int]:
    """Read a length that is written as one more than it is; -1: null."""
    first = data[at]
    if first < 0x80:
        return first - 1, at + 1
    value, at = read_unsigned_varint(data, at)
    return (value - 1 if value > -(2**31) else _MAX_INT32), at  # Java's int goes round


def read_struct_length(data: bytes, at: int) -> tuple[int, int]:
    """Read the length of a struct in a tagged field, written as one more; negative: null."""
    value, at = read_unsigned_varint(data, at)
    return value - 1, at


def read_unsigned_varint(data: bytes, at: int) -> tuple[int, int]:
    """Read an int32 of five bytes at most; a 32nd bit makes it negative, as in Java."""
    value = 0
    for shift in range(0, 35, 7):
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            value &= 0xFFFFFFFF
            return (value if value <= _MAX_INT32 else value - 2**32), at
    raise BadBytesError("has a varint of more than 5 bytes", at - 5)
