"""What ``roll`` prints."""

import sys
from collections.abc import Callable

from pyspark.sql import DataFrame, Row
from rich.markup import escape
from rich.table import Table as RichTable

from kafka_segments.console.output import MOST_ROWS_SHOWN, console, print_rows, utc

Cells = Callable[[Row], tuple[str, ...]]
_NUMBERS = {"base offset", "bytes", "used", "segments", "files", "maps", "index bytes"}
_COUNTS = ("segments", "segments_least", "segments_most")


def print_rolls(decisions: DataFrame, output: str) -> None:
    """Print which active segments roll, and what is nearest for the others."""
    decisions = decisions.orderBy("log_dir", "topic", "partition", "base_offset")
    if output != "table":
        print_rows(decisions, output)
        return
    names = ("topic-partition", "base offset", "decision", "bytes", "by time from (UTC)", "used")
    _print(decisions, (*names, "reason"), _decision)


def print_cuts(cuts: DataFrame, output: str) -> None:
    """Print what other settings would have given, log by log."""
    cuts = cuts.orderBy("log_dir", "topic", "partition", "setting")
    if output != "table":
        print_rows(cuts, output)
        return
    names = ("topic-partition", "setting", "today", "segments", "at least", "at most", "files")
    _print(cuts, (*names, "maps", "index bytes", "overshoot bytes", "overshoot"), _cut)


def _print(
    rows: DataFrame, names: tuple[str, ...], cells: Callable[[Row], tuple[str, ...]]
) -> None:
    found = rows.take(MOST_ROWS_SHOWN + 1)
    table = RichTable(box=None, pad_edge=False)
    for name in names:
        table.add_column(name, justify="right" if name in _NUMBERS else "left")
    for row in found[:MOST_ROWS_SHOWN]:
        table.add_row(escape(f"{row['topic']}-{row['partition']}"), *cells(row))
    console().print(table)
    if len(found) > MOST_ROWS_SHOWN:
        sys.stdout.write("… and more: --output csv prints them all\n")


def _decision(row: Row) -> tuple[str, ...]:
    share = row["nearest_share"]
    return (
        str(row["base_offset"]),
        row["decision"],
        str(row["size_bytes"]),
        utc(row["rolls_from_ms"]),
        "-" if share is None else f"{share:.1%}",
        row["reason"],
    )


def _cut(row: Row) -> tuple[str, ...]:
    if row["not_decided"] is not None:
        return (escape(f"{row['setting']}: {row['not_decided']}"), *["-"] * 9)
    seconds = row["retention_overshoot_ms"] // 1000
    return (
        row["setting"],
        str(row["segments_today"]),
        *(str(row[name]) for name in _COUNTS),
        str(row["files"]),
        str(row["memory_maps"]),
        str(row["index_bytes"]),
        str(row["retention_overshoot_bytes"]),
        f"{seconds} s",
    )
