"""The JSON of a message, as Kafka's own converters write it.

Only fields that the version has are there, and of tagged fields those that are not their default.
Bytes are base64, a double that is no number is text, unknown tagged fields are left out.

Source: the ``JsonConverter.write`` of generated messages, JsonConverterGenerator.
"""

import json
import math
from base64 import b64encode
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

from kafka_segments.kafka.messages.decoder import Message
from kafka_segments.kafka.messages.layout import (
    BYTES,
    FLOAT64,
    Array,
    Field,
    Kind,
    Layout,
    Primitive,
    Struct,
)

Form = Callable[[Any], Any]

_ENCODER = json.JSONEncoder(
    ensure_ascii=False, check_circular=False, separators=(",", ":"), allow_nan=False
)


def json_form(layout: Layout, version: int, message: Message) -> dict[str, Any]:
    """Return what Kafka's converter makes of a message: objects, lists, text and numbers."""
    form: dict[str, Any] = _message_form(layout, version)(message)
    return form


def json_text(layout: Layout, version: int, message: Message) -> str:
    """Return the JSON of a message as text without spaces."""
    return text_of_form(json_form(layout, version, message))


def value_text(kind: Kind, version: int, value: Any) -> str:
    """Return the JSON of a field's value as text without spaces."""
    value_form = _kind_form(kind, version)
    return _ENCODER.encode(value if value is None or value_form is None else value_form(value))


def text_of_form(form: dict[str, Any]) -> str:
    """Return what ``json_form`` gives as text without spaces."""
    return _ENCODER.encode(form)


@cache
def _message_form(layout: Layout, version: int) -> Form:
    return _struct_form(layout.fields, version)


def _struct_form(fields: Iterable[Field], version: int) -> Form:
    present = [field for field in fields if field.is_in(version)]
    steps = [
        (
            field.name,
            _kind_form(field.kind, version),
            field.tag is not None,
            field.default_maker()(),
        )
        for field in present
    ]

    def form_of(message: Message) -> dict[str, Any]:
        form = {}
        for name, value_form, is_tagged, default in steps:
            value = message[name]
            if is_tagged and value == default:
                continue
            form[name] = value if value is None or value_form is None else value_form(value)
        return form

    return form_of


def _kind_form(kind: Kind, version: int) -> Form | None:
    """Return what makes JSON of a value that is not null; None: it is JSON as it is."""
    if isinstance(kind, Struct):
        return _struct_form(kind.fields, version)
    if isinstance(kind, Array):
        element_form = _kind_form(kind.of, version)
        return None if element_form is None else _array_form(element_form)
    return _PRIMITIVE_FORMS.get(kind)


def _array_form(element_form: Form) -> Form:
    return lambda values: [element_form(value) for value in values]


def _base64(value: bytes) -> str:
    return b64encode(value).decode("ascii")


def _double(value: float) -> float | str:
    if math.isnan(value):
        return "NaN"
    return _INFINITE.get(value, value)


_INFINITE: dict[float, str] = {math.inf: "Infinity", -math.inf: "-Infinity"}
_PRIMITIVE_FORMS: dict[Primitive, Form] = {BYTES: _base64, FLOAT64: _double}
