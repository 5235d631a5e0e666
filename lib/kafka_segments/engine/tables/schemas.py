"""The published schemas of the tables. They are read without a JVM, so executors can use them."""

import json
import re
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

_FILE = re.compile(r"([a-z_]+)\.v([0-9]+)\.json")


@cache
def schema(name: str) -> "StructType":
    """Return a published schema, e.g. ``schema("segments.v2")``."""
    return parsed(files("kafka_segments").joinpath("schemas", f"{name}.json").read_text("utf-8"))


def parsed(text: str) -> "StructType":
    """Return a schema that is written as JSON, as in the log of a table."""
    from pyspark.sql.types import StructType  # noqa: PLC0415  names are asked for without Spark

    return StructType.fromJson(json.loads(text))


@cache
def newest_versions() -> dict[str, int]:
    """Return the newest published version of each schema, by the schema's name."""
    found = (
        _FILE.fullmatch(file.name) for file in files("kafka_segments").joinpath("schemas").iterdir()
    )
    versions: dict[str, int] = {}
    for name, version in (match.groups() for match in found if match):
        versions[name] = max(int(version), versions.get(name, 0))
    return versions


@cache
def tables_with(columns: frozenset[str]) -> tuple[str, ...]:
    """Return the names of the published schemas that have these columns alone, in any version."""
    return tuple(
        name
        for name, newest in newest_versions().items()
        if any(
            columns == set(schema(f"{name}.v{version}").fieldNames())
            for version in range(newest, 0, -1)
        )
    )
