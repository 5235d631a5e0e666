"""One encoder for every layout: a dict of a message's fields to bytes, the decoder's way back.

A field that the dict does not name has its default. A tagged field is written where its value is
not its default, as Kafka writes it; tags that the layout does not know are written again.

Source: the ``write`` of generated messages, MessageDataGenerator.
"""

import struct
from base64 import urlsafe_b64decode
from collections.abc import Iterable, Mapping
from typing import Any

from kafka_segments.errors import CorruptMessageError
from kafka_segments.kafka.messages.decoder import UNKNOWN_TAGGED_FIELDS
from kafka_segments.kafka.messages.layout import (
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
from kafka_segments.kafka.messages.values import FORMS


def encode(layout: Layout, version: int, message: Mapping[str, Any]) -> bytes:
    """Write a message.

    Raises:
        CorruptMessageError: a version that the layout does not have, or a value that its field
            cannot hold.
    """
    if not layout.has_version(version):
        found = f"has version {version}, {layout.versions} is known"
        raise CorruptMessageError(layout.name, found, 0)
    try:
        return _fields(layout.fields, version, layout.is_flexible_in(version), message)
    except (struct.error, AttributeError, TypeError, ValueError) as error:
        raise CorruptMessageError(layout.name, f"cannot be written: {error}", 0) from None


def write_unsigned_varint(value: int) -> bytes:
    """Write a number from 0 on, seven bits a byte, the lowest first."""
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _fields(
    fields: Iterable[Field], version: int, is_flexible: bool, message: Mapping[str, Any]
) -> bytes:
    parts, tagged = [], {}
    for field in fields:
        if not field.is_in(version):
            continue
        default = field.default_maker()()
        value = message.get(field.name, default)
        is_nullable = field.is_nullable_in(version)
        if field.tag is None:
            parts.append(_value(field.kind, version, is_flexible, is_nullable, value))
        elif value != default and is_nullable and isinstance(field.kind, Struct):
            tagged[field.tag] = _tagged_struct(field.kind, version, is_flexible, value)
        elif value != default:
            tagged[field.tag] = _value(field.kind, version, is_flexible, is_nullable, value)
    if is_flexible:
        unknown = message.get(UNKNOWN_TAGGED_FIELDS, ())
        tagged |= {found["tag"]: found["data"] for found in unknown}
        parts.append(write_unsigned_varint(len(tagged)))
        for tag, data in sorted(tagged.items()):
            parts += [write_unsigned_varint(tag), write_unsigned_varint(len(data)), data]
    return b"".join(parts)


def _tagged_struct(kind: Struct, version: int, is_flexible: bool, value: Any) -> bytes:
    """Write a struct that may be null as a tagged field: its mark is 0 or 1, elsewhere -1 or 1."""
    return b"\0" if value is None else b"\1" + _fields(kind.fields, version, is_flexible, value)


def _value(kind: Kind, version: int, is_flexible: bool, is_nullable: bool, value: Any) -> bytes:
    if isinstance(kind, Struct):
        if is_nullable:
            mark = b"\xff" if value is None else b"\x01"
            return (
                mark if value is None else mark + _fields(kind.fields, version, is_flexible, value)
            )
        return _fields(kind.fields, version, is_flexible, value)
    if value is None and not is_nullable:
        raise ValueError("null, which a field cannot be")
    if isinstance(kind, Array):
        length = _length(None if value is None else len(value), "i", is_flexible)
        elements = (_value(kind.of, version, is_flexible, False, one) for one in value or ())
        return length + b"".join(elements)
    return _primitive(kind, is_flexible, value)


def _primitive(kind: Primitive, is_flexible: bool, value: Any) -> bytes:
    if kind is UUID:
        return urlsafe_b64decode(value + "==")
    if kind in (STRING, BYTES):
        data = value.encode() if kind is STRING and value is not None else value
        form = "h" if kind is STRING else "i"
        return _length(None if data is None else len(data), form, is_flexible) + (data or b"")
    return struct.pack(f">{FORMS[kind]}", value)


def _length(length: int | None, form: str, is_flexible: bool) -> bytes:
    """Write a length, and null as -1; flexible versions write one more, as a varint."""
    number = -1 if length is None else length
    return write_unsigned_varint(number + 1) if is_flexible else struct.pack(f">{form}", number)
