"""The tables' published schemas, read without a JVM so that executors can use them too."""

import json
from functools import cache
from importlib.resources import files

from pyspark.sql.types import StructType


@cache
def schema(name: str) -> StructType:
    """Give a published schema, e.g. ``schema("segments.v2")``."""
    text = files("kafka_segments").joinpath("schemas", f"{name}.json").read_text("utf-8")
    return StructType.fromJson(json.loads(text))
