"""What ``retention`` prints: decisions, and other settings side by side with today's."""

import sys

from pyspark.sql import DataFrame, Row
from rich.markup import escape
from rich.table import Table as RichTable

from kafka_segments.console.output import MOST_ROWS_SHOWN, console, duration, print_rows, utc

_YEAR_10000_MS = 253_402_300_800_000


def print_decisions(decisions: DataFrame, output: str) -> None:
    """Print decisions of retention, oldest segment of each log first."""
    decisions = decisions.orderBy("log_dir", "topic", "partition", "base_offset")
    if output != "table":
        print_rows(decisions, output)
        return
    columns = ("topic", "partition", "base_offset", "decision", "size_bytes", "deletes_at_ms")
    rows = decisions.select(*columns, "reason").take(MOST_ROWS_SHOWN + 1)
    table = made_table(
        "topic-partition", "base offset>", "decision", "bytes>", "goes (UTC)", "reason"
    )
    for row in rows[:MOST_ROWS_SHOWN]:
        table.add_row(
            escape(f"{row['topic']}-{row['partition']}"),
            str(row["base_offset"]),
            row["decision"],
            str(row["size_bytes"]),
            moment(row["deletes_at_ms"]),
            row["reason"],
        )
    print_table(table, len(rows))


def print_comparison(comparison: DataFrame, output: str) -> None:
    """Print what other settings would leave of each topic, beside what today's leave."""
    comparison = comparison.orderBy("cluster", "topic", "setting")
    if output != "table":
        print_rows(comparison, output)
        return
    rows = comparison.take(MOST_ROWS_SHOWN + 1)
    names = ("segments>", "bytes>", "oldest offset>", "time span>")
    table = made_table("topic", "setting", *names)
    shown = None
    for row in rows[:MOST_ROWS_SHOWN]:
        if shown != (row["cluster"], row["topic"]):
            shown = (row["cluster"], row["topic"])
            table.add_row(escape(row["topic"]), "as it is today", *_left(row, "today_"))
        setting, reason = row["setting"], row["not_decided"]
        shown_as = setting if reason is None else f"{setting}: not decided, {reason}"
        table.add_row("", escape(shown_as), *_left(row, ""))
    print_table(table, len(rows))


def _left(row: Row, prefix: str) -> tuple[str, ...]:
    oldest = row[f"{prefix}oldest_offset"]
    return (
        str(row[f"{prefix}segments"]),
        str(row[f"{prefix}size_bytes"]),
        "-" if oldest is None else str(oldest),
        duration(row[f"{prefix}span_ms"]),
    )


def moment(ms: int | None) -> str:
    """Write when a segment goes."""
    if ms is None:
        return "never"
    return utc(ms) if ms < _YEAR_10000_MS else "after the year 9999"


def made_table(*names: str) -> RichTable:
    """Make a table; a name that ends in > stands over numbers."""
    table = RichTable(box=None, pad_edge=False)
    for name in names:
        table.add_column(name.rstrip(">"), justify="right" if name.endswith(">") else "left")
    return table


def print_table(table: RichTable, found: int) -> None:
    """Print a table, and that there is more where it holds fewer rows than were found."""
    console().print(table)
    if found > MOST_ROWS_SHOWN:
        sys.stdout.write("… and more: --output csv prints them all\n")
