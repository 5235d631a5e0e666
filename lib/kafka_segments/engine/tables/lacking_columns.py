"""A column that a table of a warehouse lacks, named where a verb failed for want of it."""

import json
import re
from contextlib import suppress

from kafka_segments.engine.tables.catalog import ALL_TABLES
from kafka_segments.errors import KafkaSegmentsError
from kafka_segments.files.delta.health import made_anew
from kafka_segments.files.delta.metadata import read_metadata
from kafka_segments.files.storage.uris import join_uri

_NAMED = re.compile(r"with name `(\w+)` cannot be resolved|Field \"(\w+)\" does not exist")


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
                    anew = made_anew(uri) or f"{uri} away: its rows are lost"
                    return (
                        f"table {uri} has no column {name}. Restore it from a copy, or move {anew}"
                    )
    return None


def _columns(uri: str, *, default: str | None) -> list[str | None]:
    """Return the names of a table's columns; ``default`` alone where there is no table."""
    found = read_metadata(uri)
    if found is None:
        return [default]
    return [field["name"] for field in json.loads(found.schema)["fields"]]
