"""Options of ``spark.read.format("kafka_segments")``; the data source says what they mean."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql.types import StructType

from kafka_segments.errors import UsageError
from kafka_segments.spark.schemas import schema as published
from kafka_segments.storage.files import absolute_uri

BATCHES, RECORDS = "batches", "records"
_SCHEMAS = {BATCHES: "kafka_segments_batches.v1", RECORDS: "kafka_segments_records.v1"}
_CHECKS = ("full", "headers")
_OPTIONS = ("path", "paths", "rows", "columns", "check", "max_batch_bytes", "tasks")
_MAX_BATCH_BYTES = 256 * 1024 * 1024
_LEAST_BATCH_BYTES = 1024


@dataclass(frozen=True)
class ReadOptions:
    """The options of one read, parsed."""

    sources: tuple[str, ...]
    rows: str
    columns: tuple[str, ...]
    check_crc: bool
    max_batch_bytes: int
    tasks: int | None

    @property
    def is_records(self) -> bool:
        """Whether rows are records."""
        return self.rows == RECORDS

    def schema(self) -> StructType:
        """Give the published schema, narrowed to ``columns``."""
        whole = published(_SCHEMAS[self.rows])
        for name in self.columns:
            if name not in whole.names:
                raise UsageError(f"column {name} is not one of {', '.join(whole.names)}")
        return StructType([whole[name] for name in self.columns]) if self.columns else whole


def parse_options(options: dict[str, str]) -> ReadOptions:
    """Parse the options of a read.

    Raises:
        UsageError: an option that is unknown, missing or cannot be meant.
    """
    options = {name.lower(): text for name, text in options.items()}
    for name in options:
        if name not in _OPTIONS:
            raise UsageError(f"option {name} is not one of {', '.join(_OPTIONS)}")
    paths = json.loads(options["paths"]) if "paths" in options else [options.get("path", "")]
    columns = tuple(name.strip() for name in options.get("columns", "").split(",") if name.strip())
    return ReadOptions(
        sources=tuple(absolute_uri(path) for path in paths),
        rows=_choice(options, "rows", (BATCHES, RECORDS)),
        columns=columns,
        check_crc=_choice(options, "check", _CHECKS) == "full",
        max_batch_bytes=_number(
            options, "max_batch_bytes", _MAX_BATCH_BYTES, _LEAST_BATCH_BYTES, 2**31 - 1
        ),
        tasks=_number(options, "tasks", 0, 1, 1_000_000) if "tasks" in options else None,
    )


def _choice(options: dict[str, str], name: str, choices: Sequence[str]) -> str:
    value = options.get(name, choices[0])
    if value not in choices:
        raise UsageError(f"option {name} is {value!r}, {' or '.join(choices)} expected")
    return value


def _number(options: dict[str, str], name: str, default: int, least: int, most: int) -> int:
    text = options.get(name, str(default))
    if not (text.isascii() and text.isdigit() and least <= int(text) <= most):
        raise UsageError(f"option {name} is {text!r}, a number from {least} to {most} expected")
    return int(text)
