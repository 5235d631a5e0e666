"""What ``forensics`` prints."""

import sys

from pyspark.sql import DataFrame, Row
from rich.markup import escape
from rich.table import Table as RichTable

from kafka_segments.console.output import MOST_ROWS_SHOWN, console, print_rows

_NUMBERS = {
    "batches": "batches",
    "future": "future_batches",
    "ahead by (ms)": "largest_ahead_ms",
    "back": "regressions",
    "back by (ms)": "largest_regression_ms",
    "gap (ms)": "largest_step_ms",
    "skew to (ms)": "skew_most_ms",
    "too old": "refused_before_batches",
    "too new": "refused_after_batches",
    "too far": "refused_difference_batches",
}


def print_forensics(summed: DataFrame, output: str) -> None:
    """Print a row a topic, partition and producer."""
    summed = summed.orderBy("topic", "partition", "producer_id")
    if output != "table":
        print_rows(summed, output)
        return
    found = summed.take(MOST_ROWS_SHOWN + 1)
    table = RichTable(box=None, pad_edge=False)
    for name in ("topic-partition", "producer", "unit"):
        table.add_column(name)
    for name in _NUMBERS:
        table.add_column(name, justify="right")
    for row in found[:MOST_ROWS_SHOWN]:
        table.add_row(*_cells(row))
    console().print(table)
    if len(found) > MOST_ROWS_SHOWN:
        sys.stdout.write("… and more: --output csv prints them all\n")


def _cells(row: Row) -> list[str]:
    unit = "-" if row["unit"] is None else f"{row['unit']} ({row['unit_share']:.0%})"
    producer = row["producer_id"]
    numbers = (row[name] for name in _NUMBERS.values())
    return [
        escape(f"{row['topic']}-{row['partition']}"),
        "-" if producer is None or producer < 0 else str(producer),
        unit,
        *("-" if number is None else str(number) for number in numbers),
    ]
