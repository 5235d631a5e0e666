"""One decoder for every layout: bytes to a dict of a message's fields.

A value is as Kafka's object of the message holds it: a field that the version does not have, or a
tagged field that the bytes leave out, has its default. A uuid is text, as Kafka prints it. Tagged
fields with tags that the layout does not know are kept under ``UNKNOWN_TAGGED_FIELDS``.

What reads a layout in one version is put together once, of small functions (``Reader``): each takes
the bytes and a place in them, and returns a value and the place after it.

Source: the ``read`` of generated messages, ByteBufferAccessor, ByteUtils.
"""

import re
import struct
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any

from kafka_segments.errors import CorruptMessageError
from kafka_segments.generated.layout import (
    BYTES,
    STRING,
    UUID,
    Array,
    Field,
    Kind,
    Layout,
    Primitive,
    Struct,
)

UNKNOWN_TAGGED_FIELDS = "_unknownTaggedFields"

Message = dict[str, Any]
Reader = Callable[[bytes, int], tuple[Any, int]]

_FORMS = {
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
_ENCODED_SURROGATE = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]")
_REPLACEMENT = "\ufffd".encode()


class _BadBytesError(Exception):
    """What is wrong at a place; ``path`` gets the names of the fields that lead there."""

    def __init__(self, reason: str, position: int) -> None:
        super().__init__(reason, position)
        self.reason = reason
        self.position = position
        self.path: list[str] = []

    def within(self, name: str) -> "_BadBytesError":
        self.path.insert(0, name)
        return self


def decode(layout: Layout, version: int, data: bytes) -> Message:
    """Read a message; bytes after it are passed over, as Kafka's messages do.

    Raises:
        CorruptMessageError: a version that the layout does not have, bytes that are cut off, or a
            length that is impossible.
    """
    return decode_from(layout, version, data, 0)[0]


def decode_from(layout: Layout, version: int, data: bytes, at: int) -> tuple[Message, int]:
    """Read a message that begins at a place; return it and the place after it.

    Raises:
        CorruptMessageError: as ``decode``.
    """
    read = _message_reader(layout, version)
    if read is None:
        found = f"has version {version}, {layout.versions} is known"
        raise CorruptMessageError(layout.name, found, at)
    try:
        message: Message
        message, end = read(data, at)
    except _BadBytesError as wrong:
        field = ".".join([layout.name, *wrong.path])
        raise CorruptMessageError(field, wrong.reason, wrong.position) from None
    return message, end


@cache
def _message_reader(layout: Layout, version: int) -> Reader | None:
    if not layout.has_version(version):
        return None
    return _struct_reader(layout.fields, version, layout.is_flexible_in(version))


def _struct_reader(fields: Iterable[Field], version: int, is_flexible: bool) -> Reader:
    fields = list(fields)
    present = [field for field in fields if field.is_in(version)]
    steps = [
        (field.name, _field_reader(field, version, is_flexible))
        for field in present
        if field.tag is None
    ]
    tagged = {
        field.tag: (field.name, _field_reader(field, version, is_flexible))
        for field in present
        if field.tag is not None
    }
    others = {field.tag for field in fields if field.tag is not None} - set(tagged)
    in_bytes = {name for name, _ in steps}
    empty = dict.fromkeys(field.name for field in fields)
    defaults = [(f.name, f.default_maker()) for f in fields if f.name not in in_bytes]

    def read(data: bytes, at: int) -> tuple[Message, int]:
        message: Message = empty.copy()
        for name, make in defaults:
            message[name] = make()
        name = "tagged fields"
        try:
            for name, read_field in steps:
                message[name], at = read_field(data, at)
            if is_flexible:
                name = "tagged fields"
                at = _read_tagged(message, tagged, others, data, at)
        except (IndexError, struct.error):
            raise _cut_off(data, at).within(name) from None
        except _BadBytesError as wrong:
            raise wrong.within(name) from None
        return message, at

    return read


def _read_tagged(
    message: Message,
    tagged: Mapping[int, tuple[str, Reader]],
    others: set[int],
    data: bytes,
    at: int,
) -> int:
    """Read the section of tagged fields; a known field's size is passed over, as Kafka does it."""
    count, at = _read_unsigned_varint(data, at)
    for _ in range(count):
        start = at
        tag, at = _read_unsigned_varint(data, at)
        size, at = _read_unsigned_varint(data, at)
        if tag in tagged:
            name, read_field = tagged[tag]
            message[name], at = read_field(data, at)
        elif tag in others:
            raise _BadBytesError(f"hold tag {tag}, which this version does not have", start)
        else:
            piece, at = _take(data, at, size)
            message.setdefault(UNKNOWN_TAGGED_FIELDS, []).append({"tag": tag, "data": piece})
    return at


def _field_reader(field: Field, version: int, is_flexible: bool) -> Reader:
    is_nullable = field.is_nullable_in(version)
    if is_nullable and isinstance(field.kind, Struct):
        read_struct = _struct_reader(field.kind.fields, version, is_flexible)
        read_mark = _number_reader("b") if field.tag is None else _read_struct_length
        return _nullable_struct_reader(read_mark, read_struct)
    return _kind_reader(field.kind, version, is_flexible, is_nullable)


def _kind_reader(kind: Kind, version: int, is_flexible: bool, is_nullable: bool) -> Reader:
    if isinstance(kind, Array):
        return _array_reader(kind, version, is_flexible, is_nullable)
    if isinstance(kind, Struct):
        return _struct_reader(kind.fields, version, is_flexible)
    if kind is STRING:
        return _string_reader(_read_compact_length if is_flexible else _read_int16, is_nullable)
    if kind is BYTES:
        return _bytes_reader(_read_compact_length if is_flexible else _read_int32, is_nullable)
    return _read_uuid if kind is UUID else _number_reader(_FORMS[kind])


def _number_reader(form: str) -> Reader:
    number = struct.Struct(f">{form}")
    unpack, size = number.unpack_from, number.size

    def read(data: bytes, at: int) -> tuple[Any, int]:
        return unpack(data, at)[0], at + size

    return read


def _array_reader(kind: Array, version: int, is_flexible: bool, is_nullable: bool) -> Reader:
    read_length = _read_compact_length if is_flexible else _read_int32
    if isinstance(kind.of, Primitive) and kind.of in _FORMS:
        read_values = _numbers_reader(_FORMS[kind.of])
    else:
        read_values = _values_reader(_kind_reader(kind.of, version, is_flexible, False))

    def read(data: bytes, at: int) -> tuple[list[Any] | None, int]:
        length, begin = read_length(data, at)
        if length < 0:
            return _null(is_nullable, length, begin, at)
        if length > len(data) - begin:
            left = len(data) - begin
            raise _BadBytesError(f"says {length} elements, {left} bytes are left", at)
        return read_values(data, begin, length)

    return read


def _numbers_reader(form: str) -> Callable[[bytes, int, int], tuple[list[Any], int]]:
    width = struct.calcsize(f">{form}")

    def read(data: bytes, at: int, length: int) -> tuple[list[Any], int]:
        return list(struct.unpack_from(f">{length}{form}", data, at)), at + length * width

    return read


def _values_reader(read_value: Reader) -> Callable[[bytes, int, int], tuple[list[Any], int]]:
    def read(data: bytes, at: int, length: int) -> tuple[list[Any], int]:
        values: list[Any] = []
        try:
            for _ in range(length):
                value, at = read_value(data, at)
                values.append(value)
        except (IndexError, struct.error):
            raise _cut_off(data, at).within(str(len(values))) from None
        except _BadBytesError as wrong:
            raise wrong.within(str(len(values))) from None
        return values, at

    return read


def _nullable_struct_reader(read_mark: Reader, read_struct: Reader) -> Reader:
    """Read a struct behind a number: negative, it is null. In a tagged field it is its length."""

    def read(data: bytes, at: int) -> tuple[Message | None, int]:
        mark, at = read_mark(data, at)
        return (None, at) if mark < 0 else read_struct(data, at)

    return read


def _string_reader(
    read_length: Callable[[bytes, int], tuple[int, int]], is_nullable: bool
) -> Reader:
    def read(data: bytes, at: int) -> tuple[str | None, int]:
        length, begin = read_length(data, at)
        end = begin + length
        if length < 0:
            return _null(is_nullable, length, begin, at)
        if length > _MAX_INT16 or end > len(data):
            raise _too_long(length, data, begin, at)
        piece = data[begin:end]
        try:
            return piece.decode(), end
        except UnicodeDecodeError:
            return _text_as_java_reads_it(piece), end

    return read


def _bytes_reader(
    read_length: Callable[[bytes, int], tuple[int, int]], is_nullable: bool
) -> Reader:
    def read(data: bytes, at: int) -> tuple[bytes | None, int]:
        length, begin = read_length(data, at)
        if length < 0:
            return _null(is_nullable, length, begin, at)
        return _take(data, begin, length)

    return read


def _read_uuid(data: bytes, at: int) -> tuple[str, int]:
    piece, at = _take(data, at, _UUID_BYTES)
    return urlsafe_b64encode(piece)[:22].decode("ascii"), at


def _read_int16(data: bytes, at: int) -> tuple[int, int]:
    return _INT16.unpack_from(data, at)[0], at + 2


def _read_int32(data: bytes, at: int) -> tuple[int, int]:
    return _INT32.unpack_from(data, at)[0], at + 4


def _read_compact_length(data: bytes, at: int) -> tuple[int, int]:
    """Read a length that is written as one more than it is; -1: null."""
    first = data[at]
    if first < 0x80:
        return first - 1, at + 1
    value, at = _read_unsigned_varint(data, at)
    return (value - 1 if value > -(2**31) else _MAX_INT32), at  # Java's int goes round


def _read_struct_length(data: bytes, at: int) -> tuple[int, int]:
    value, at = _read_unsigned_varint(data, at)
    return value - 1, at


def _read_unsigned_varint(data: bytes, at: int) -> tuple[int, int]:
    """Read an int32 of five bytes at most; a 32nd bit makes it negative, as in Java."""
    value = 0
    for shift in range(0, 35, 7):
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            value &= 0xFFFFFFFF
            return (value if value <= _MAX_INT32 else value - 2**32), at
    raise _BadBytesError("has a varint of more than 5 bytes", at - 5)


def read_unsigned_varint(data: bytes, at: int, name: str) -> tuple[int, int]:
    """Read an unsigned varint, an int32, outside of a message; return it and the place after it.

    Raises:
        CorruptMessageError: it is cut off, or longer than five bytes.
    """
    try:
        return _read_unsigned_varint(data, at)
    except IndexError:
        raise CorruptMessageError(name, "is cut off", at) from None
    except _BadBytesError as wrong:
        raise CorruptMessageError(name, wrong.reason, wrong.position) from None


def _take(data: bytes, at: int, size: int) -> tuple[bytes, int]:
    end = at + size
    if not size >= 0 or end > len(data):
        raise _too_long(size, data, at, at)
    return data[at:end], end


def _null(is_nullable: bool, length: int, end: int, at: int) -> tuple[None, int]:
    if not is_nullable:
        raise _BadBytesError(f"has length {length}: null, which it cannot be", at)
    return None, end


def _too_long(length: int, data: bytes, begin: int, at: int) -> _BadBytesError:
    return _BadBytesError(f"says {length} bytes, {len(data) - begin} are left", at)


def _cut_off(data: bytes, at: int) -> _BadBytesError:
    return _BadBytesError(f"is cut off, {max(len(data) - at, 0)} bytes are left", at)


def _text_as_java_reads_it(piece: bytes) -> str:
    """Decode bytes that are not all UTF-8: Java takes an encoded surrogate for one bad letter."""
    return _ENCODED_SURROGATE.sub(_REPLACEMENT, piece).decode("utf-8", "replace")
