"""What a message is made of: how a message lies in bytes, version by version.

Versions are written as Kafka writes them: ``0+`` (all from 0 on), ``1`` (only 1), ``0-3``.

A version is *flexible* from the one on that its layout names. A flexible struct has lengths as
varints and ends with a section of tagged fields: fields that a writer leaves out where they have
their default, and that a reader passes over where it does not know their tag.

Source: MessageDataGenerator, FieldSpec, Versions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum
from functools import cache
from typing import Any, NamedTuple

ZERO_UUID = "AAAAAAAAAAAAAAAAAAAAAA"
_NO_LAST = 2**15 - 1


class Primitive(Enum):
    """The kinds of single values. Numbers are big-endian; a uuid is 16 bytes."""

    BOOL = "bool"
    INT8 = "int8"
    INT16 = "int16"
    UINT16 = "uint16"
    INT32 = "int32"
    UINT32 = "uint32"
    INT64 = "int64"
    FLOAT64 = "float64"
    UUID = "uuid"
    STRING = "string"
    BYTES = "bytes"


BOOL = Primitive.BOOL
INT8 = Primitive.INT8
INT16 = Primitive.INT16
UINT16 = Primitive.UINT16
INT32 = Primitive.INT32
UINT32 = Primitive.UINT32
INT64 = Primitive.INT64
FLOAT64 = Primitive.FLOAT64
UUID = Primitive.UUID
STRING = Primitive.STRING
BYTES = Primitive.BYTES


@dataclass(frozen=True, eq=False)
class Struct:
    """Fields that follow one another, inside of a message."""

    name: str
    fields: tuple[Field, ...] = ()

    def of(self, *fields: Field) -> Struct:
        """Return the struct with its fields."""
        return replace(self, fields=fields)


@dataclass(frozen=True, eq=False)
class Array:
    """A list of values of one kind."""

    of: Kind


Kind = Primitive | Struct | Array


class _OfItsKind:
    """The default of a field that names none: 0, false, empty, or a struct of defaults."""


OF_ITS_KIND = _OfItsKind()


@dataclass(frozen=True, eq=False)
class Field:
    """One field.

    ``versions``: those that have it. ``nullable``: those in which it may be null; empty: none.
    ``tag``: its number where it is a tagged field. ``default``: its value where it is absent.
    """

    name: str
    kind: Kind
    versions: str = "0+"
    nullable: str = ""
    tag: int | None = None
    default: object = OF_ITS_KIND

    def is_in(self, version: int) -> bool:
        """Return whether a version has the field."""
        return version in versions_of(self.versions)

    def is_nullable_in(self, version: int) -> bool:
        """Return whether the field may be null in a version."""
        return version in versions_of(self.nullable)

    def default_maker(self) -> Callable[[], Any]:
        """Return what makes the field's default, as a value of its own at each call."""
        if self.default is not OF_ITS_KIND:
            return lambda: self.default
        if isinstance(self.kind, Array):
            return list
        if isinstance(self.kind, Struct):
            makers = [(field.name, field.default_maker()) for field in self.kind.fields]
            return lambda: {name: make() for name, make in makers}
        value = _DEFAULTS[self.kind]
        return lambda: value


_DEFAULTS: dict[Primitive, object] = {
    BOOL: False,
    FLOAT64: 0.0,
    UUID: ZERO_UUID,
    STRING: "",
    BYTES: b"",
}
_DEFAULTS |= {kind: 0 for kind in Primitive if "int" in kind.value}


@dataclass(frozen=True, eq=False)
class Layout:
    """A message: its name in Kafka, its type number, its versions and its fields.

    ``type_id``: Kafka's ``apiKey``, which says in the bytes what follows; None where they name it
    otherwise. ``flexible``: the versions that are flexible; empty: none.
    """

    name: str
    type_id: int | None = None
    versions: str = "0"
    flexible: str = "0+"
    fields: tuple[Field, ...] = ()

    def of(self, *fields: Field) -> Layout:
        """Return the layout with its fields."""
        return replace(self, fields=fields)

    def has_version(self, version: int) -> bool:
        """Return whether the version is one of this layout's."""
        return version in versions_of(self.versions)

    def is_flexible_in(self, version: int) -> bool:
        """Return whether a version is flexible."""
        return version in versions_of(self.flexible)


class KeyedLayouts(NamedTuple):
    """A kind of record of a coordinator's topic: the layouts of its key and of its value."""

    key: Layout
    value: Layout

    @property
    def kind(self) -> str:
        """Its name, such as ``OffsetCommit``."""
        return self.key.name.removesuffix("Key")


@cache
def versions_of(text: str) -> range:
    """Read versions in Kafka's way of writing them: ``0+``, ``1``, ``0-3``, or nothing."""
    if not text:
        return range(0)
    if text.endswith("+"):
        return range(int(text[:-1]), _NO_LAST + 1)
    first, _, last = text.partition("-")
    return range(int(first), int(last or first) + 1)
