"""Options of ``spark.read.format("kafka_segments")``; the data source says what they mean."""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pyspark.sql.datasource import Filter, GreaterThanOrEqual, In, LessThanOrEqual
from pyspark.sql.types import StructType

from kafka_segments.engine.tables.schemas import schema as published
from kafka_segments.errors import UsageError
from kafka_segments.files.storage.typed_uris import absolute_uri

DEFAULT_MAX_BATCH_BYTES = 256 * 1024 * 1024
BATCHES, RECORDS = "batches", "records"
_SCHEMAS = {BATCHES: "kafka_segments_batches.v1", RECORDS: "kafka_segments_records.v1"}
_CHECKS = ("full", "headers")
_NAMED = ("topic", "partition", "segment_base_offset")
_RANGES = {
    "min_offset": (GreaterThanOrEqual, "offset"),
    "max_offset": (LessThanOrEqual, "offset"),
    "min_timestamp_ms": (GreaterThanOrEqual, "timestamp_ms"),
    "max_timestamp_ms": (LessThanOrEqual, "timestamp_ms"),
}
_OPTIONS = (
    *("path", "paths", "rows", "columns", *_NAMED, *_RANGES),
    *("index_dir", "check", "max_batch_bytes", "tasks", "pushdown", "follow_links"),
)
_LEAST_BATCH_BYTES = 1024
_MAX_INT64 = 2**63 - 1


@dataclass(frozen=True)
class ReadOptions:
    """The parsed options of one read."""

    sources: tuple[str, ...]
    rows: str
    columns: tuple[str, ...] = ()
    filters: tuple[Filter, ...] = ()
    index_dir: str | None = None
    check_crc: bool = True
    max_batch_bytes: int = DEFAULT_MAX_BATCH_BYTES
    tasks: int | None = None
    has_pushdown: bool = False
    follow_links: bool = False

    @property
    def is_records(self) -> bool:
        """Whether rows are records."""
        return self.rows == RECORDS

    def schema(self) -> StructType:
        """Return the published schema, narrowed to ``columns``."""
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
    return ReadOptions(
        sources=tuple(absolute_uri(path) for path in paths),
        rows=_choice(options, "rows", (BATCHES, RECORDS)),
        columns=_names(options, "columns"),
        filters=(*_lists(options), *_ranges(options)),
        index_dir=absolute_uri(options["index_dir"]) if "index_dir" in options else None,
        check_crc=_choice(options, "check", _CHECKS) == "full",
        max_batch_bytes=_number(
            options, "max_batch_bytes", (_LEAST_BATCH_BYTES, 2**31 - 1), DEFAULT_MAX_BATCH_BYTES
        ),
        tasks=_number(options, "tasks", (1, 1_000_000)) if "tasks" in options else None,
        has_pushdown=_choice(options, "pushdown", ("false", "true")) == "true",
        follow_links=_choice(options, "follow_links", ("false", "true")) == "true",
    )


def _names(options: dict[str, str], option: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in options.get(option, "").split(",") if name.strip())


def _lists(options: dict[str, str]) -> Iterator[Filter]:
    for option in _NAMED:
        if option not in options:
            continue
        names = _names(options, option)
        if option == "topic":
            yield In((option,), names)
        else:
            numbers = [_number({option: name}, option, (0, _MAX_INT64)) for name in names]
            yield In((option,), tuple(numbers))


def _ranges(options: dict[str, str]) -> Iterator[Filter]:
    for option, (kind, column) in _RANGES.items():
        if option in options:
            yield kind((column,), _number(options, option, (-_MAX_INT64 - 1, _MAX_INT64)))


def _choice(options: dict[str, str], name: str, choices: Sequence[str]) -> str:
    value = options.get(name, choices[0])
    if value not in choices:
        raise UsageError(f"option {name} is {value!r}, {' or '.join(choices)} expected")
    return value


def _number(
    options: dict[str, str], name: str, limits: tuple[int, int], default: int | None = None
) -> int:
    text = options.get(name, str(default))
    least, most = limits
    if re.fullmatch("-?[0-9]{1,19}", text) is None or not least <= int(text) <= most:
        raise UsageError(f"option {name} is {text!r}, a number from {least} to {most} expected")
    return int(text)
