"""What ``lag`` prints."""

import sys

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F
from rich.markup import escape
from rich.table import Table as RichTable

from kafka_segments.console.output import MOST_ROWS_SHOWN, console, duration, print_rows
from kafka_segments.lag.decide import BEHIND, UP_TO_DATE

_ORDER = ("cluster", "group_id", "topic", "partition")


def print_lag(lags: DataFrame, output: str) -> int:
    """Print lags; gives how many commits are not simply up to date or behind."""
    lags = lags.persist()
    try:
        if output == "table":
            _print_table(lags.orderBy(F.desc_nulls_last("time_lag_ms"), *_ORDER))
        else:
            print_rows(lags.orderBy(*_ORDER), output)
        found = lags.where(~F.col("status").isin(UP_TO_DATE, BEHIND)).count()
        sys.stderr.write(f"{lags.count()} commits, {found} that someone must look at\n")
        return found
    finally:
        lags.unpersist()


def _print_table(lags: DataFrame) -> None:
    rows = lags.take(MOST_ROWS_SHOWN + 1)
    table = RichTable(box=None, pad_edge=False)
    for name in ("group", "topic-partition", "committed", "end", "behind", "time behind", "status"):
        is_number = name in ("committed", "end", "behind", "time behind")
        table.add_column(name, justify="right" if is_number else "left", overflow="fold")
    for row in rows[:MOST_ROWS_SHOWN]:
        table.add_row(
            escape(row["group_id"]),
            escape(f"{row['topic']}-{row['partition']}"),
            *("-" if row[name] is None else str(row[name]) for name in _NUMBERS),
            _time_lag(row),
            escape(_note(row)),
        )
    console().print(table)
    if len(rows) > MOST_ROWS_SHOWN:
        sys.stdout.write("… and more: --output csv prints them all\n")


_NUMBERS = ("committed_offset", "end_offset", "offset_lag")


def _time_lag(row: Row) -> str:
    lag_ms: int | None = row["time_lag_ms"]
    if lag_ms is None:
        return "-"
    least = "more than " if row["is_time_lag_least"] else ""
    sign = "-" if lag_ms < 0 else ""
    return f"{least}{sign}{duration(abs(lag_ms))}"


def _note(row: Row) -> str:
    gone = f": {row['gone_offsets']} offsets" if row["gone_offsets"] else ""
    problem = f": {row['problem']}" if row["problem"] else ""
    return f"{row['status']}{gone}{problem}"
