"""Lines on stdout and stderr, JSON and CSV: here names become text. Nothing heavy is imported."""

import json
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from io import TextIOWrapper
from typing import Any

from kafka_segments.console.json_log import INFO, JsonLog
from kafka_segments.kafka.text.plain_text import plain, plain_json, plain_lines

_QUOTE, _EMPTY = '"', '""'
_IN_QUOTES = re.compile('[,"\r\n]')  # RFC 4180


def take_any_letter() -> None:
    """Let stdout take each letter of a name, whatever the locale.

    Files and pipes get UTF-8, as JSON and CSV are. On a terminal that cannot show a letter it is
    escaped.
    """
    if isinstance(sys.stdout, TextIOWrapper):
        encoding = None if sys.stdout.isatty() else "utf-8"
        sys.stdout.reconfigure(encoding=encoding, errors="backslashreplace")


def say(text: str, *, level: str = INFO, **fields: Any) -> None:
    """Write one line on stderr, whatever names are in it; ``level`` and ``fields`` are of JSON."""
    if isinstance(sys.stderr, JsonLog):
        sys.stderr.log(level, plain(text), **fields)
    else:
        sys.stderr.write(f"{plain(text)}\n")


def print_line(text: str) -> None:
    """Write one line on stdout, whatever names are in it."""
    sys.stdout.write(f"{plain(text)}\n")


def print_as_it_is(text: str) -> None:
    """Write a text for a program on stdout, exactly; on a terminal nothing in it acts."""
    sys.stdout.write(plain_lines(text) if sys.stdout.isatty() else text)


def print_json(row: Mapping[str, Any], *, default: Callable[[Any], Any] | None = None) -> None:
    """Write an object as one line of JSON on stdout."""
    print_json_line(json.dumps(row, default=default))


def print_json_line(line: str) -> None:
    """Write a line of JSON on stdout: the same values, nothing that acts on a terminal."""
    sys.stdout.write(f"{plain_json(line)}\n")


def print_csv(row: Iterable[Any]) -> None:
    r"""Write a row of CSV on stdout, exactly: None is an empty field, an empty text ``""``.

    A value with CR or LF is quoted, a list or an object is JSON, lines end in \n. Of one column
    None is ``""``, too: most readers pass over an empty line.
    """
    line = ",".join(map(_csv_field, row))
    sys.stdout.write(f"{line or _EMPTY}\n")


def print_dicts(rows: Iterable[Mapping[str, Any]], output: str) -> None:
    """Write rows on stdout as JSON lines, or as CSV below their names."""
    for number, row in enumerate(rows):
        if output == "json":
            print_json(row)
            continue
        if not number:
            print_csv(row)
        print_csv(row.values())


def _csv_field(value: Any) -> str:
    if value is None:
        return ""
    text = json.dumps(value) if isinstance(value, list | tuple | dict) else str(value)
    if not text:
        return _EMPTY
    return f'"{text.replace(_QUOTE, _QUOTE * 2)}"' if _IN_QUOTES.search(text) else text
