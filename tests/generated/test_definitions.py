"""The tables of fields against Kafka's definitions of its messages, where a JAR holds them.

They hold what bytes hardly show: the default of a field that a version lacks. Where no JAR has
the definitions (KRaft's), a message that was just made shows them.
"""

import json
import re
import zipfile
from collections.abc import Iterable
from typing import Any

import pytest

from kafka_referee import KAFKA_JARS, Referee
from kafka_segments.generated import (
    control,
    groups,
    metadata,
    remote_log,
    share_groups,
    shares,
    streams_groups,
)
from kafka_segments.generated import transactions as txn
from kafka_segments.generated.json_form import json_text
from kafka_segments.generated.layout import (
    OF_ITS_KIND,
    Array,
    Field,
    Kind,
    Layout,
    Struct,
    versions_of,
)

pytestmark = pytest.mark.referee  # needs Kafka's JARs
KEYED = groups, share_groups, streams_groups, shares, txn
LAYOUTS = [
    *(layout for module in KEYED for pair in module.RECORDS for layout in pair),
    control.CONTROL_RECORD_TYPE_SCHEMA,
    *set(control.RECORDS.values()),
]


def _definitions() -> dict[str, dict[str, Any]]:
    """Read the definitions in the JARs by the names of their messages."""
    found = {}
    for path in KAFKA_JARS.glob("*.jar"):
        with zipfile.ZipFile(path) as jar:
            for name in jar.namelist():
                if re.fullmatch(r"common/message/\w+\.json", name):
                    text = re.sub(r"^\s*//.*$", "", jar.read(name).decode(), flags=re.MULTILINE)
                    definition = json.loads(text)
                    found[definition["name"]] = definition
    return found


def _kafkas(
    fields: Iterable[dict[str, Any]], structs: dict[str, list[Any]], valid: range
) -> list[Any]:
    """Give fields as (name, kind, versions, nullable versions, tag, default)."""

    def kind_of(text: str, own: list[Any] | None) -> Any:
        if text.startswith("[]"):
            return [kind_of(text[2:], own)]
        if own is not None or text in structs:
            return _kafkas(own if own is not None else structs[text], structs, valid)
        return text

    return [
        (
            field["name"][0].lower() + field["name"][1:],
            kind_of(field["type"], field.get("fields")),
            _of(field.get("versions") or field["taggedVersions"], valid),
            _of(field.get("nullableVersions", ""), valid),
            field.get("tag"),
            _default(field.get("default"), field["type"]),
        )
        for field in fields
    ]


def _default(value: Any, kind: str) -> Any:
    """Read a default; null, unlike "null", is none. 0 is that of every number."""
    if value is None:
        return OF_ITS_KIND
    if value == "null":
        return None
    if kind == "bool":
        return str(value).lower() == "true"
    return (int(str(value), 0) or OF_ITS_KIND) if "int" in kind else value


def _of(versions: str, valid: range) -> list[int]:
    versions = "" if versions == "none" else versions
    return [version for version in valid if version in versions_of(versions)]


def _ours(fields: Iterable[Field], valid: range) -> list[Any]:
    def kind_of(kind: Kind) -> Any:
        if isinstance(kind, Array):
            return [kind_of(kind.of)]
        return _ours(kind.fields, valid) if isinstance(kind, Struct) else kind.value

    return [
        (
            field.name,
            kind_of(field.kind),
            _of(field.versions, valid),
            _of(field.nullable, valid),
            field.tag,
            field.default,
        )
        for field in fields
    ]


def test_fields_versions_tags_and_defaults_are_those_that_kafka_defines() -> None:
    definitions = _definitions()
    differing = {}
    for layout in LAYOUTS:
        defined = definitions[layout.name]
        valid = versions_of(defined["validVersions"])
        structs = {one["name"]: one["fields"] for one in defined.get("commonStructs", ())}
        kafkas = _kafkas(defined["fields"], structs, valid)
        if _ours(layout.fields, valid) != kafkas:
            differing[layout.name] = _ours(layout.fields, valid), kafkas

    assert differing == {}


def test_numbers_and_versions_of_messages_are_those_that_kafka_defines() -> None:
    definitions = _definitions()

    def facts(layout: Layout) -> tuple[Any, ...]:
        return layout.type_id, *map(versions_of, (layout.versions, layout.flexible))

    for layout in LAYOUTS:
        defined = definitions[layout.name]
        flexible = defined["flexibleVersions"].replace("none", "")
        versions = tuple(map(versions_of, (defined["validVersions"], flexible)))

        assert facts(layout) == (defined.get("apiKey"), *versions), layout.name


def test_a_message_of_defaults_is_the_one_that_kafka_makes(referee: Referee) -> None:
    layouts = {one.name: one for one in (*LAYOUTS, *metadata.RECORDS, *remote_log.RECORDS)}
    types = {one["name"]: one for one in referee.message_types() if one["name"] in layouts}

    ours = {
        name: json_text(
            layout,
            types[name]["highest"],
            {field.name: field.default_maker()() for field in layout.fields},
        )
        for name, layout in layouts.items()
    }

    assert {name: json.loads(text) for name, text in ours.items()} == {
        name: json.loads(one["fresh"]) for name, one in types.items()
    }
