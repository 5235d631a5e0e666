"""Kafka's messages as a release defines them: the records of internal topics, by their numbers.

``messages.json`` has the facts of the definitions in Kafka's JARs, under Kafka's own names for
them; ``make messages`` draws it. Control records (``control``) are among the messages of clients.

Source: the definitions in ``common/message``, ``common/metadata`` and ``message`` of the JARs
kafka-clients, -metadata, -storage, -group-coordinator, -transaction-coordinator and
-share-coordinator; MessageGenerator, which makes Kafka's classes of them.
"""

import json
from importlib.resources import files
from typing import Any

from kafka_segments.kafka.messages.layout import (
    OF_ITS_KIND,
    Array,
    Field,
    KeyedLayouts,
    Kind,
    Layout,
    Primitive,
    Struct,
)

_DEFINED = json.loads(files(__package__).joinpath("messages.json").read_text("utf-8"))
_LIST = "[]"


def _layout(message: dict[str, Any]) -> Layout:
    return Layout(
        message["name"],
        message.get("apiKey"),
        message["validVersions"],
        message["flexibleVersions"],
        _fields(message),
    )


def _fields(of: dict[str, Any]) -> tuple[Field, ...]:
    return tuple(
        Field(
            field["name"],
            _kind(field["type"], field),
            field["versions"],
            field.get("nullableVersions", ""),
            field.get("tag"),
            field.get("default", OF_ITS_KIND),
        )
        for field in of["fields"]
    )


def _kind(name: str, field: dict[str, Any]) -> Kind:
    if name.startswith(_LIST):
        return Array(_kind(name.removeprefix(_LIST), field))
    return Struct(name, _fields(field)) if "fields" in field else Primitive(name)


def _keyed(layouts: tuple[Layout, ...]) -> tuple[KeyedLayouts, ...]:
    """Pair keys and values: Kafka names a record's key ``…Key`` and its value ``…Value``."""
    values = {layout.type_id: layout for layout in layouts if layout.name.endswith("Value")}
    keys = (layout for layout in layouts if layout.name.endswith("Key"))
    return tuple(KeyedLayouts(key, values[key.type_id]) for key in keys)


RELEASE: str = _DEFINED.pop("release")
_SETS = {name: tuple(map(_layout, messages)) for name, messages in _DEFINED.items()}
LAYOUTS = {layout.name: layout for layouts in _SETS.values() for layout in layouts}
METADATA, REMOTE_LOG = _SETS["metadata"], _SETS["remote_log"]
GROUPS, TRANSACTIONS, SHARES = map(
    _keyed, (_SETS["groups"], _SETS["transactions"], _SETS["shares"])
)
