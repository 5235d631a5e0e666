"""One decoder for every layout: bytes to a dict of a message's fields.

A value is as Kafka's object of the message holds it: a field that the version does not have, or a
tagged field that the bytes leave out, has its default. A uuid is text, as Kafka prints it. Tagged
fields with tags that the layout does not know are kept under ``UNKNOWN_TAGGED_FIELDS``.

What reads a layout in one version is put together once, of small functions.

Source: the ``read`` of generated messages, MessageDataGenerator.
"""

import struct
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any

from kafka_segments.errors import CorruptMessageError
from kafka_segments.kafka.messages.layout import Array, Field, Kind, Layout, Primitive, Struct
from kafka_segments.kafka.messages.values import (
    FORMS,
    BadBytesError,
    Reader,
    cut_off,
    null,
    primitive_reader,
    read_compact_length,
    read_int8,
    read_int32,
    read_struct_length,
    read_unsigned_varint,
    take,
)

UNKNOWN_TAGGED_FIELDS = "_unknownTaggedFields"
_TAGGED_FIELDS = "tagged fields"

Message = dict[str, Any]
_ElementsReader = Callable[[bytes, int, int], tuple[list[Any], int]]


def decode_from(layout: Layout, version: int, data: bytes, at: int) -> tuple[Message, int]:
    """Read a message that begins at a place; return it and the place after it.

    Raises:
        CorruptMessageError: a version that the layout does not have, bytes that are cut off, or a
            length that is impossible.
    """
    read = _message_reader(layout, version)
    if read is None:
        found = f"has version {version}, {layout.versions} is known"
        raise CorruptMessageError(layout.name, found, at)
    try:
        message: Message
        message, end = read(data, at)
    except BadBytesError as wrong:
        field = ".".join([layout.name, *wrong.path])
        raise CorruptMessageError(field, wrong.reason, wrong.position) from None
    return message, end


@cache
def _message_reader(layout: Layout, version: int) -> Reader | None:
    if not layout.has_version(version):
        return None
    return _struct_reader(layout.fields, version, layout.is_flexible_in(version))


def _struct_reader(fields: Iterable[Field], version: int, is_flexible: bool) -> Reader:
    """Return what reads fields one after another, and the tagged ones behind them."""
    makers = {field.name: field.default_maker() for field in fields}
    defaults = {name: make() for name, make in makers.items()}
    present = [field for field in fields if field.is_in(version)]
    readers = {field.name: _field_reader(field, version, is_flexible) for field in present}
    steps = [(field.name, readers[field.name]) for field in present if field.tag is None]
    read_tagged = _tagged_reader(fields, readers) if is_flexible else None
    in_bytes = {name for name, _ in steps}
    own = [  # a list or dict must not be shared between messages
        (name, makers[name])
        for name, default in defaults.items()
        if name not in in_bytes and isinstance(default, list | dict)
    ]

    def read(data: bytes, at: int) -> tuple[Message, int]:
        message: Message = defaults.copy()
        for name, make in own:
            message[name] = make()
        name = _TAGGED_FIELDS
        try:
            for name, read_field in steps:
                message[name], at = read_field(data, at)
            if read_tagged is not None:
                name = _TAGGED_FIELDS
                at = read_tagged(message, data, at)
        except (IndexError, struct.error):
            raise cut_off(data, at).within(name) from None
        except BadBytesError as wrong:
            raise wrong.within(name) from None
        return message, at

    return read


def _tagged_reader(
    fields: Iterable[Field], readers: Mapping[str, Reader]
) -> Callable[[Message, bytes, int], int]:
    """Return what reads the section of tagged fields into a message.

    The size of a field that is known is passed over, as Kafka does it.
    """
    tagged = {field.tag: field.name for field in fields if field.tag is not None}

    def read(message: Message, data: bytes, at: int) -> int:
        count, at = read_unsigned_varint(data, at)
        for _ in range(count):
            start = at
            tag, at = read_unsigned_varint(data, at)
            size, at = read_unsigned_varint(data, at)
            name = tagged.get(tag)
            if name is None:
                piece, at = take(data, at, size)
                message.setdefault(UNKNOWN_TAGGED_FIELDS, []).append({"tag": tag, "data": piece})
            elif name in readers:
                message[name], at = readers[name](data, at)
            else:
                raise BadBytesError(f"hold tag {tag}, which this version does not have", start)
        return at

    return read


def _field_reader(field: Field, version: int, is_flexible: bool) -> Reader:
    is_nullable = field.is_nullable_in(version)
    if is_nullable and isinstance(field.kind, Struct):
        read_struct = _struct_reader(field.kind.fields, version, is_flexible)
        read_mark = read_int8 if field.tag is None else read_struct_length
        return _nullable_struct_reader(read_mark, read_struct)
    return _kind_reader(field.kind, version, is_flexible, is_nullable)


def _kind_reader(kind: Kind, version: int, is_flexible: bool, is_nullable: bool) -> Reader:
    if isinstance(kind, Array):
        return _array_reader(kind, version, is_flexible, is_nullable)
    if isinstance(kind, Struct):
        return _struct_reader(kind.fields, version, is_flexible)
    return primitive_reader(kind, is_flexible, is_nullable)


def _nullable_struct_reader(read_mark: Reader, read_struct: Reader) -> Reader:
    """Return what reads a struct behind a number; where that is negative, it is null."""

    def read(data: bytes, at: int) -> tuple[Message | None, int]:
        mark, at = read_mark(data, at)
        return (None, at) if mark < 0 else read_struct(data, at)

    return read


def _array_reader(kind: Array, version: int, is_flexible: bool, is_nullable: bool) -> Reader:
    read_length = read_compact_length if is_flexible else read_int32
    if isinstance(kind.of, Primitive) and kind.of in FORMS:
        read_elements = _numbers_reader(FORMS[kind.of])
    else:
        read_elements = _elements_reader(_kind_reader(kind.of, version, is_flexible, False))

    def read(data: bytes, at: int) -> tuple[list[Any] | None, int]:
        length, begin = read_length(data, at)
        if length < 0:
            return null(is_nullable, length, begin, at)
        left = len(data) - begin
        if length > left:  # an element has a byte or more: no memory for what is not there
            raise BadBytesError(f"says {length} elements, {left} bytes are left", at)
        return read_elements(data, begin, length)

    return read


def _numbers_reader(form: str) -> _ElementsReader:
    width = struct.calcsize(f">{form}")

    def read(data: bytes, at: int, length: int) -> tuple[list[Any], int]:
        return list(struct.unpack_from(f">{length}{form}", data, at)), at + length * width

    return read


def _elements_reader(read_element: Reader) -> _ElementsReader:
    def read(data: bytes, at: int, length: int) -> tuple[list[Any], int]:
        elements: list[Any] = []
        try:
            for _ in range(length):
                element, at = read_element(data, at)
                elements.append(element)
        except (IndexError, struct.error):
            raise cut_off(data, at).within(str(len(elements))) from None
        except BadBytesError as wrong:
            raise wrong.within(str(len(elements))) from None
        return elements, at

    return read
