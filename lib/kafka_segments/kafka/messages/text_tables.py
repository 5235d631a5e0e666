"""Steps by which compiled code writes messages of a topic as JSON (``wire.message_text``)."""

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

from kafka_segments.kafka.messages import control
from kafka_segments.kafka.messages.consumer_protocol import OF_MEMBERS
from kafka_segments.kafka.messages.json_form import value_text
from kafka_segments.kafka.messages.layout import (
    Array,
    Field,
    Kind,
    Layout,
    Primitive,
    Struct,
    versions_of,
)
from kafka_segments.kafka.messages.records import FRAMED, GROUP_METADATA, KEYED
from kafka_segments.kafka.wire import message_text as compiled

_SINGLE = {  # with their bytes
    Primitive.BOOL: (compiled.BOOL, 1),
    Primitive.INT8: (compiled.SIGNED, 1),
    Primitive.INT16: (compiled.SIGNED, 2),
    Primitive.INT32: (compiled.SIGNED, 4),
    Primitive.INT64: (compiled.SIGNED, 8),
    Primitive.UINT16: (compiled.UNSIGNED, 2),
    Primitive.UINT32: (compiled.UNSIGNED, 4),
    Primitive.UUID: (compiled.UUID, 16),
}
_SIZED = {  # with the bytes of their length, in a version that is not flexible
    Primitive.STRING: (compiled.STRING, 2),
    Primitive.BYTES: (compiled.BYTES, 4),
}
_MEMBER_KINDS = dict.fromkeys(OF_MEMBERS, compiled.MEMBER) | {
    "protocolType": compiled.PROTOCOL_TYPE
}
FRAME_BYTES = 3  # before a value; of a version, of a type and of a version below 128
VERSION_BYTES = 2


class TextTables(NamedTuple):
    """The steps of a topic's messages, and what Kafka calls its records: by type, a marker last.

    ``of_keys``, ``of_values``: the first step of a message, by the type and version that records
    name; -1: there is none. ``of_keys`` is empty where records have a frame before the value.
    ``of_marker``: the first step of a control record's key, and of a marker's value.
    """

    steps: compiled.Steps
    texts: compiled.Letters
    of_keys: compiled.Steps
    of_values: compiled.Steps
    of_marker: tuple[int, int]
    slots: int
    kinds: tuple[str | None, ...]


@cache
def text_tables(topic: str) -> TextTables:
    """Return the tables of one of ``INTERNAL_TOPICS``."""
    keyed = KEYED.get(topic, ())
    made = _Steps()
    of_keys = made.by_type([layouts.key for layouts in keyed])
    of_values = made.by_type([layouts.value for layouts in keyed])
    if not keyed:
        of_values = made.by_type(FRAMED[topic], is_framed=True)
    names = {layouts.value.type_id: layouts.kind for layouts in keyed} or {
        layout.type_id: layout.name for layout in FRAMED[topic]
    }
    return TextTables(
        of_keys=of_keys,
        of_values=of_values,
        of_marker=(made.message(control.TYPE_SCHEMA, 0), made.message(control.END_TXN_MARKER, 0)),
        steps=np.array(made.steps, np.int64),
        texts=np.frombuffer(bytes(made.texts), np.uint8),
        slots=made.slots,
        kinds=(*map(names.get, range(len(of_values))), control.END_TXN_MARKER.name),
    )


class _Steps:
    """Makes the steps of messages; ``slots``: how many ``state`` has."""

    def __init__(self) -> None:
        self.steps: list[list[int]] = []
        self.texts = bytearray()
        self.slots = compiled.FIRST_SLOT
        self._has_members = False
        self._version = 0
        self._is_flexible = False
        self._text = ""

    def by_type(self, layouts: Sequence[Layout], *, is_framed: bool = False) -> compiled.Steps:
        """Make messages in all their versions; return their first steps by type and version."""
        rows = {
            (layout.type_id or 0, version): self.message(layout, version, is_framed)
            for layout in layouts
            for version in versions_of(layout.versions)
        }
        shape = [max((number[axis] for number in rows), default=-1) + 1 for axis in range(2)]
        table = np.full(shape, compiled.NOTHING, np.int64)
        for place, row in rows.items():
            table[place] = row
        return table

    def message(self, layout: Layout, version: int, is_framed: bool = False) -> int:
        """Make the steps of a message; return the row of the first.

        Nothing may follow a message that has a frame.
        """
        skip = FRAME_BYTES if is_framed else VERSION_BYTES
        first = self._step(compiled.SKIP, WIDTH=skip)
        self._has_members = layout is GROUP_METADATA
        self._message(layout, version)
        self._step(compiled.WHOLE_END if is_framed else compiled.END)
        return first

    def _message(self, layout: Layout, version: int) -> None:
        self._version, self._is_flexible = version, layout.is_flexible_in(version)
        self._struct(layout.fields)

    def _step(self, kind: int, **columns: int) -> int:
        """Make a step, which writes the text that is due; return its row."""
        row = len(self.steps)
        text, text_bytes = self._kept(self._text)
        given = {"KIND": kind, "TEXT": text, "TEXT_BYTES": text_bytes, "GOTO": row + 1, **columns}
        step = [0] * compiled.STEP_COLUMNS
        for name, value in given.items():
            step[getattr(compiled, name)] = value
        self.steps.append(step)
        self._text = ""
        return row

    def _kept(self, text: str) -> tuple[int, int]:
        begin = len(self.texts)
        self.texts += text.encode()
        return begin, len(self.texts) - begin

    def _label(self) -> int:
        """Write the text that is due; return the row of the next step, for a GOTO."""
        if self._text:
            self._step(compiled.GO)
        return len(self.steps)

    def _goes_here(self, *rows: int) -> None:
        """Let steps go to the next one."""
        here = self._label()
        for row in rows:
            self.steps[row][compiled.GOTO] = here

    def _new_slots(self, count: int) -> int:
        first = self.slots
        self.slots += count
        return first

    def _width(self, width: int) -> int:
        return compiled.VARINT if self._is_flexible else width

    def _struct(self, fields: Sequence[Field]) -> None:
        present = [field for field in fields if field.is_in(self._version)]
        tagged = [field for field in present if field.tag is not None]
        if tagged and tagged[0] is present[0]:  # a comma would come first where others follow
            self._step(compiled.OTHER)
        slot = self._new_slots(compiled.PLACES + len(tagged))
        places, separator = slot + compiled.PLACES, "{"
        for field in present:
            if field.tag is None:
                self._text += f'{separator}"{field.name}":'
                self._field(field)
                separator = ","
            else:
                self._step(compiled.PLACE, SLOT=places)
                places += 1
        self._text += "{" if not present else ""
        if self._is_flexible:
            self._section(tagged, slot)
        self._text += "}"

    def _section(self, tagged: Sequence[Field], slot: int) -> None:
        """Read tagged fields: each is written last, and put in its place."""
        behind = [self._step(compiled.SECTION, SLOT=slot)]
        if tagged:
            first = self._step(compiled.TAG, SLOT=slot)
            behind.append(first)
            for place, field in enumerate(tagged):
                given = self._step(compiled.TAGGED, SLOT=slot, NUMBER=field.tag or 0)
                name = f',"{field.name}":'
                self._text = name
                self._field(field)
                default = value_text(field.kind, self._version, field.default_maker()())
                begin, text_bytes = self._kept(name + default)
                places = {"SLOT": slot, "NUMBER": place, "COUNT": len(tagged)}
                default_text = {"DEFAULT": begin, "DEFAULT_BYTES": text_bytes}
                self._step(compiled.PUT, GOTO=first, **places, **default_text)
                self._goes_here(given)
        self._step(compiled.OTHER)
        self._goes_here(*behind)

    def _field(self, field: Field) -> None:
        is_nullable = field.is_nullable_in(self._version)
        if is_nullable and isinstance(field.kind, Struct):
            mark = 1 if field.tag is None else compiled.VARINT
            begin = self._step(compiled.STRUCT, WIDTH=mark, IS_NULLABLE=1)
            self._struct(field.kind.fields)
            self._goes_here(begin)
        elif self._has_members and field.name in _MEMBER_KINDS:
            self._of_members(field, is_nullable)
        else:
            self._value(field.kind, is_nullable)

    def _value(self, kind: Kind, is_nullable: bool = False) -> None:
        if isinstance(kind, Struct):
            self._struct(kind.fields)
        elif isinstance(kind, Array):
            slot = self._new_slots(1)
            columns = {"WIDTH": self._width(4), "IS_NULLABLE": is_nullable, "SLOT": slot}
            begin = self._step(compiled.ARRAY, **columns)
            self._value(kind.of)
            self._step(compiled.NEXT, GOTO=begin + 1, SLOT=slot)
            self._goes_here(begin)
        elif kind in _SIZED:
            code, width = _SIZED[kind]
            self._step(code, WIDTH=self._width(width), IS_NULLABLE=is_nullable)
        elif kind in _SINGLE:
            code, width = _SINGLE[kind]
            self._step(code, WIDTH=width)
        else:
            self._step(compiled.OTHER)

    def _of_members(self, field: Field, is_nullable: bool) -> None:
        """Read what members of a group of consumers wrote."""
        self._value(field.kind, is_nullable)
        row = len(self.steps) - 1
        self.steps[row][compiled.KIND] = _MEMBER_KINDS[field.name]
        if field.name in OF_MEMBERS:
            layout = OF_MEMBERS[field.name]
            versions = versions_of(layout.versions)
            self.steps[row][compiled.NUMBER] = versions[-1]
            begins = [self._step(compiled.GO) for _ in versions]
            of_group = self._version, self._is_flexible
            self._has_members = False
            for begin, version in zip(begins, versions, strict=True):
                self._goes_here(begin)
                self._message(layout, version)
                self._step(compiled.MEMBER_END, NUMBER=versions[-1])
            self._version, self._is_flexible = of_group
            self._has_members = True
            self._goes_here(row)
