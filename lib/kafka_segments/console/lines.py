"""Lines on stdout and stderr, JSON and CSV: here names become text. Nothing heavy is imported."""

import csv
import json
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from kafka_segments.kafka.wire.plain_text import plain, plain_json

_CSV_END = "\r\n"  # with it the writer quotes both of its signs (RFC 4180)


def say(text: str) -> None:
    """Write one line on stderr, whatever names are in it."""
    sys.stderr.write(f"{plain(text)}\n")


def print_line(text: str) -> None:
    """Write one line on stdout, whatever names are in it."""
    sys.stdout.write(f"{plain(text)}\n")


def print_json(row: Mapping[str, Any], *, default: Callable[[Any], Any] | None = None) -> None:
    """Write an object as one line of JSON on stdout."""
    print_json_line(json.dumps(row, default=default))


def print_json_line(line: str) -> None:
    """Write a line of JSON on stdout: the same values, nothing that acts on a terminal."""
    sys.stdout.write(f"{plain_json(line)}\n")


def print_csv(row: Iterable[Any]) -> None:
    r"""Write a row of CSV on stdout, exactly: a value with CR or LF is quoted. Lines end in \n."""
    csv.writer(_CsvLines(), lineterminator=_CSV_END).writerow(row)


class _CsvLines:
    """stdout for a CSV writer, which gives it each row at once."""

    def write(self, line: str) -> int:
        return sys.stdout.write(f"{line.removesuffix(_CSV_END)}\n")
