"""A column that a table lacks, or has of another type, and a table in the folder of another."""

import json
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

from kafka_segments.engine.tables.catalog import ALL_TABLES
from kafka_segments.engine.tables.schemas import tables_with
from kafka_segments.errors import KafkaSegmentsError, UsageError
from kafka_segments.files.delta.health import made_anew, misplaced
from kafka_segments.files.delta.metadata import read_metadata
from kafka_segments.files.storage.uris import join_uri

_NAMED = re.compile(r"with name `(\w+)` cannot be resolved|Field \"(\w+)\" does not exist")

_NUMBER = re.compile(r"byte|short|integer|long|float|double|decimal")


def refuse_other_table(uri: str, columns: Iterable[str]) -> None:
    """Refuse a table whose columns are those of another one, as where folders were exchanged.

    Raises:
        UsageError: names the other table, and the step.
    """
    other = _other_table(uri, columns)
    if other is not None:
        raise UsageError(misplaced(uri, other))


def misplaced_table(warehouse: str) -> str | None:
    """Return in words which table's folder holds another one, and the step; None: none does.

    Tables that cannot be looked at are passed over.
    """
    for table in ALL_TABLES:
        uri = join_uri(warehouse, table.name)
        with suppress(KafkaSegmentsError, OSError):
            other = _other_table(uri, filter(None, _columns(uri, default=None)))
            if other is not None:
                return misplaced(uri, other)
    return None


def _other_table(uri: str, columns: Iterable[str]) -> str | None:
    """Return the name of the other table that has these columns; None: none has."""
    names = tables_with(frozenset(columns))
    return None if uri.rstrip("/").rpartition("/")[2] in names else next(iter(names), None)


def lacking_column(warehouse: str, said: str) -> str | None:
    """Return in words which table lacks the column that a verb could not find, and the step.

    ``said``: how the verb failed. Tables that cannot be looked at are passed over. None: no table
    lacks it.
    """
    named = _NAMED.search(said)
    name = None if named is None else named[1] or named[2]
    for table in ALL_TABLES:
        if name in table.schema.fieldNames():
            uri = join_uri(warehouse, table.name)
            with suppress(KafkaSegmentsError, OSError):
                if name not in _columns(uri, default=name):
                    return f"table {uri} has no column {name}. {_step(uri)}"
    return None


def retyped_column(warehouse: str) -> str | None:
    """Return in words which table has a column of another kind of type, and the step.

    Numbers are of one kind, however wide. Tables that cannot be looked at are passed over. None:
    there is none.
    """
    for table in ALL_TABLES:
        uri = join_uri(warehouse, table.name)
        with suppress(KafkaSegmentsError, OSError):
            found = read_metadata(uri)
            fields = [] if found is None else json.loads(found.schema)["fields"]
            there = {field["name"]: field["type"] for field in fields}
            for field in table.schema:
                expected = field.dataType.jsonValue()
                kind, of = _kind(there.get(field.name, expected)), _kind(expected)
                if kind != of:
                    what = f"its column {field.name} is {kind}, {of} expected"
                    return f"table {uri} was altered: {what}. {_step(uri)}"
    return None


def _kind(of_type: Any) -> str:
    """Return the kind of a type as a schema's JSON has it."""
    if isinstance(of_type, Mapping):
        return str(of_type["type"])
    return "number" if _NUMBER.match(str(of_type)) else str(of_type)


def _step(uri: str) -> str:
    anew = made_anew(uri) or f"{uri} away: its rows are lost"
    return f"Restore it from a copy, or move {anew}"


def _columns(uri: str, *, default: str | None) -> list[str | None]:
    """Return the names of a table's columns; ``default`` alone where there is no table."""
    found = read_metadata(uri)
    if found is None:
        return [default]
    return [field["name"] for field in json.loads(found.schema)["fields"]]
