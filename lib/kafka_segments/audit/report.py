"""What ``audit`` prints."""

import sys

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from rich.markup import escape
from rich.table import Table as RichTable

from kafka_segments.console.output import MOST_ROWS_SHOWN, console, print_rows

_SHOWN = ("path", "verdict", "kind", "message", "consequence", "action")


def print_audits(audits: DataFrame, output: str) -> None:
    """Print findings as a table, or all rows as JSON lines or CSV."""
    audits = audits.orderBy("log_dir", "topic", "partition", "base_offset", "path")
    if output != "table":
        print_rows(audits, output)
        return
    rows = audits.where("is_finding").select(*_SHOWN).take(MOST_ROWS_SHOWN + 1)
    for row in rows[:MOST_ROWS_SHOWN]:
        kind = f" ({row['kind']})" if row["kind"] else ""
        console().print(f"{escape(row['path'])}: [bold]{row['verdict']}[/bold]{kind}")
        for name in ("message", "consequence", "action"):
            console().print(f"  {'found' if name == 'message' else name}: {escape(row[name])}")
    if len(rows) > MOST_ROWS_SHOWN:
        sys.stdout.write("… and more: --output csv prints them all\n")
    _print_counts(audits)


def _print_counts(audits: DataFrame) -> None:
    """Print how many files have which verdict and consequence."""
    table = RichTable(box=None, pad_edge=False)
    for name in ("suffix", "verdict", "kind", "consequence", "files", "findings"):
        is_number = name in ("files", "findings")
        table.add_column(name, justify="right" if is_number else "left", overflow="fold")
    keys = ("suffix", "verdict", "kind", "effect")
    counted = audits.groupBy(*keys).agg(
        F.count("*").alias("files"), F.count_if("is_finding").alias("findings")
    )
    for row in counted.orderBy(*keys).collect():
        table.add_row(*("" if value is None else str(value) for value in row))
    console().print(table)
