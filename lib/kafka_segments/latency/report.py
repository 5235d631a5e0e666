"""What ``latency`` prints."""

import sys

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from rich.markup import escape
from rich.table import Table as RichTable

from kafka_segments.console.output import MOST_ROWS_SHOWN, console, print_rows, utc

_SHOWN = ("batches", "p50_ms", "p90_ms", "p99_ms", "max_ms", "equal_batches", "negative_batches")
_TITLES = ("batches", "p50 ms", "p90 ms", "p99 ms", "max ms", "0 ms", "negative", "least ms")


def print_latency(measured: DataFrame, output: str) -> int:
    """Print latencies; gives how many batches have a negative one."""
    measured = measured.persist()
    try:
        ordered = measured.orderBy("cluster", "topic", "hour_ms")
        if output == "table":
            _print_table(ordered)
        else:
            print_rows(ordered, output)
        negative = measured.agg(F.coalesce(F.sum("negative_batches"), F.lit(0))).first()
    finally:
        measured.unpersist()
    return 0 if negative is None else int(negative[0])


def _print_table(measured: DataFrame) -> None:
    rows = measured.take(MOST_ROWS_SHOWN + 1)
    if not rows:
        sys.stderr.write("no batch v2 with LogAppendTime: the latency cannot be told\n")
        return
    table = RichTable(box=None, pad_edge=False)
    table.add_column("topic")
    table.add_column("hour (UTC)")
    for title in _TITLES:
        table.add_column(title, justify="right")
    for row in rows[:MOST_ROWS_SHOWN]:
        numbers = (row[name] for name in (*_SHOWN, "most_negative_ms"))
        table.add_row(
            escape(row["topic"]),
            utc(row["hour_ms"]),
            *("-" if number is None else str(number) for number in numbers),
        )
    console().print(table)
    if len(rows) > MOST_ROWS_SHOWN:
        sys.stdout.write("… and more: --output csv prints them all\n")
