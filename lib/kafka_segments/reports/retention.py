"""What ``retention`` prints."""

import sys

from pyspark.sql import DataFrame
from rich.markup import escape
from rich.table import Table as RichTable

from kafka_segments.reports.output import MOST_ROWS_SHOWN, console, print_rows, utc


def print_decisions(decisions: DataFrame, output: str) -> None:
    """Print decisions of retention, and in the end what they free."""
    decisions = decisions.orderBy("log_dir", "topic", "partition", "base_offset")
    if output != "table":
        print_rows(decisions, output)
        return
    columns = ("topic", "partition", "base_offset", "decision", "size_bytes", "expires_at_ms")
    rows = decisions.select(*columns, "reason").take(MOST_ROWS_SHOWN + 1)
    table = RichTable(box=None, pad_edge=False)
    for name in ("topic-partition", "base offset", "decision", "bytes", "expires (UTC)", "reason"):
        table.add_column(name, justify="right" if name in ("base offset", "bytes") else "left")
    for row in rows[:MOST_ROWS_SHOWN]:
        table.add_row(
            escape(f"{row['topic']}-{row['partition']}"),
            str(row["base_offset"]),
            row["decision"],
            str(row["size_bytes"]),
            utc(row["expires_at_ms"]),
            row["reason"],
        )
    console().print(table)
    if len(rows) > MOST_ROWS_SHOWN:
        sys.stdout.write("… and more: --output csv prints them all\n")
