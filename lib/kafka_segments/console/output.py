"""Forms of output that the verbs share: progress, tables, JSON lines, CSV.

What needs no Spark does not wait for it: it is imported where it is used.
"""

import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, fields
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeGuard, TypeVar

from rich.console import Console
from rich.markup import escape

from kafka_segments.console.grouping import counted, without_numbers
from kafka_segments.console.lines import print_csv, print_json, print_json_line
from kafka_segments.kafka.text.plain_text import plain

if TYPE_CHECKING:
    from _typeshed import DataclassInstance
    from pyspark.sql import DataFrame, Row


MOST_ROWS_SHOWN = 50
_Record = TypeVar("_Record", bound="DataclassInstance")
_WIDE = 160
JSON_FORM = {
    "ignoreNullFields": "false",
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss[.SSSSSS][XXX]",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss[.SSSSSS]",
}
"""How Spark writes values as JSON: with nulls, and with all that a timestamp holds."""
_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB")
_DAY_MS, _HOUR_MS, _MINUTE_MS = 86_400_000, 3_600_000, 60_000


def print_records(
    records: Iterable[_Record],
    form: type[_Record],
    output: str,
    text: Callable[[_Record], str],
    *,
    state: Callable[[_Record], str | None] = lambda _: None,
) -> Iterator[_Record]:
    """Print records as they come, and yield each: as JSON or CSV by their fields, else as text.

    Args:
        records: records.
        form: their class, a dataclass.
        output: json, csv or any other.
        text: gives the line of a record.
        state: gives the words of what is wrong with a record; the lines of those that are alike are
            one, at the end, with a count and the first. None: a line of its own.
    """
    if output == "csv":
        print_csv(field.name for field in fields(form))
    groups: dict[str, list[_Record]] = {}
    try:
        for record in records:
            if output == "json":
                print_json(asdict(record))
            elif output == "csv":
                print_csv(asdict(record).values())
            elif (words := state(record)) is not None:
                groups.setdefault(without_numbers(words), []).append(record)
            else:
                print_text(text(record))
            yield record
    finally:
        for alike in groups.values():
            print_text(counted(len(alike), text(alike[0])))


def print_rows(rows: "DataFrame", output: str) -> None:
    """Print all rows as JSON lines or CSV, without holding them at once."""
    from pyspark.sql import functions as F  # noqa: PLC0415

    from kafka_segments.engine.frames.local_rows import stream_rows  # noqa: PLC0415

    if output == "json":
        lines = rows.select(F.to_json(F.struct("*"), JSON_FORM))
        for line in stream_rows(lines):
            print_json_line(line[0])
        return
    print_csv(rows.columns)
    for row in stream_rows(rows):
        print_csv(map(_csv_value, row))


def _csv_value(value: Any) -> Any:
    """Return a value of Spark's; its rows, which are tuples, as objects."""
    if _is_row(value):
        return value.asDict(recursive=True)
    if isinstance(value, list):
        return [item.asDict() if _is_row(item) else item for item in value]
    return value


def _is_row(value: Any) -> "TypeGuard[Row]":
    """Tell a row, which is a tuple, and the only one that Spark gives."""
    return isinstance(value, tuple)


def size_text(size_bytes: float) -> str:
    """Write a number of bytes in the greatest unit that it fills."""
    size, unit = float(size_bytes), 0
    while abs(size) >= 1024 and unit < len(_UNITS) - 1:
        size, unit = size / 1024, unit + 1
    return f"{size:.0f} {_UNITS[unit]}" if unit == 0 else f"{size:.1f} {_UNITS[unit]}"


def utc(ms: int | None) -> str:
    """Write a timestamp as a person reads it; the number itself where no calendar has it."""
    if ms is None or ms < 0:
        return "-"
    try:
        return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")
    except (OverflowError, ValueError, OSError):
        return f"{ms} ms"


def console() -> Console:
    """Return the console for stdout; wide where stdout is a file or a pipe.

    Names are data, and may look like an emoji's.
    """
    is_terminal = sys.stdout.isatty()
    width = None if is_terminal else _WIDE
    return Console(width=width, soft_wrap=True, emoji=False, highlight=is_terminal)


def cell(text: str) -> str:
    """Return a text as rich prints it: what looks like markup is text, and names are plain."""
    return escape(plain(text))


def print_text(text: str) -> None:
    """Print one line of text on stdout; on a terminal numbers and paths in it are coloured."""
    if sys.stdout.isatty():
        console().print(cell(text))
    else:  # a console for each of thousands of lines takes as long as what they tell of
        sys.stdout.write(f"{plain(text)}\n")
        sys.stdout.flush()


def duration(ms: int | None) -> str:
    """Write a span of time in its two greatest units."""
    if ms is None:
        return "-"
    if ms < _MINUTE_MS:
        return f"{ms / 1000:.3f} s"
    if ms < _HOUR_MS:
        return f"{ms // _MINUTE_MS} min {ms % _MINUTE_MS // 1000} s"
    if ms < _DAY_MS:
        return f"{ms // _HOUR_MS} h {ms % _HOUR_MS // _MINUTE_MS} min"
    return f"{ms // _DAY_MS} d {ms % _DAY_MS // _HOUR_MS} h"
