"""What ``search failover`` and ``search restore`` print."""

import csv
import sys
from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from rich.markup import escape
from rich.table import Table as RichTable

from kafka_segments.console.output import MOST_ROWS_SHOWN, console, print_rows
from kafka_segments.spark.row_stream import stream_rows


def print_failover(plan: DataFrame, output: str) -> int:
    """Print a failover plan; gives how many partitions someone must look at."""
    plan = plan.persist()
    ordered = plan.orderBy("topic", "partition")
    try:
        if output == "reset-offsets":
            writer = csv.writer(sys.stdout, lineterminator="\n")
            for row in stream_rows(ordered.where("to_offset IS NOT NULL")):
                writer.writerow([row["topic"], row["partition"], row["to_offset"]])
        elif output == "table":
            _print_table(ordered, ordered.columns)
        else:
            print_rows(ordered, output)
        is_short = ~F.col("is_margin_enough")
        is_unknown = F.col("to_offset").isNull() | F.col("problem").isNotNull()
        short, unknown = plan.where(is_short).count(), plan.where(is_unknown).count()
        sys.stderr.write(
            f"{plan.count()} partitions; in {short} a message older than the margin is unread, the"
            f" search goes back to it; {unknown} not known\n"
        )
        return short + unknown
    finally:
        plan.unpersist()


def print_restore(plan: DataFrame, output: str) -> int:
    """Print a restore plan; gives how many logs it is not known for."""
    plan = plan.persist()
    ordered = plan.orderBy("log_dir", "topic", "partition")
    try:
        if output == "table":
            hidden = ("cluster", "broker_id", "log_dir")
            _print_table(ordered, [name for name in ordered.columns if name not in hidden])
        else:
            print_rows(ordered, output)
        total = plan.agg(F.sum("segments_needed"), F.sum("bytes_needed")).first()
        if total is not None:
            sys.stderr.write(f"{total[0] or 0} segments needed, {total[1] or 0} bytes\n")
        return plan.where(F.col("problem").isNotNull()).count()
    finally:
        plan.unpersist()


def _print_table(rows: DataFrame, columns: Sequence[str]) -> None:
    shown = rows.select(*columns).take(MOST_ROWS_SHOWN + 1)
    table = RichTable(box=None, pad_edge=False)
    for name in columns:
        table.add_column(name.replace("_", " "), overflow="fold")
    for row in shown[:MOST_ROWS_SHOWN]:
        table.add_row(*("-" if value is None else escape(str(value)) for value in row))
    console().print(table)
    if len(shown) > MOST_ROWS_SHOWN:
        sys.stdout.write("… and more: --output csv prints them all\n")
