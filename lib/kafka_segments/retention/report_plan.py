"""What ``retention plan``, ``apply`` and ``rollback`` print."""

import csv
import json
import sys
from collections.abc import Iterable
from dataclasses import asdict, fields

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from rich.markup import escape

from kafka_segments.console.output import MOST_ROWS_SHOWN, console, print_rows
from kafka_segments.retention.report import made_table, print_table
from kafka_segments.retention.run_plan import LogMove
from kafka_segments.tables.outcomes import Outcome


def print_plan(plan_id: str, planned: DataFrame, output: str, *, dry_run: bool) -> int:
    """Print a plan, one row a log or all its segments; gives the segments with problems."""
    totals = planned.agg(
        F.count("*").alias("segments"),
        F.count("problem").alias("problems"),
        F.coalesce(F.sum("size_bytes"), F.lit(0)).alias("bytes"),
    ).collect()[0]
    if output != "table":
        print_rows(planned.orderBy("path"), output)
    else:
        logs = planned.groupBy("log_dir", "topic", "partition").agg(
            F.count("*").alias("segments"),
            F.sum("size_bytes").alias("bytes"),
            F.min("problem").alias("problem"),
        )
        rows = logs.orderBy("log_dir", "topic", "partition").take(MOST_ROWS_SHOWN + 1)
        table = made_table("topic-partition", "segments>", "bytes>", "problem")
        for row in rows[:MOST_ROWS_SHOWN]:
            name = escape(f"{row['topic']}-{row['partition']}")
            problem = escape(row["problem"] or "")
            table.add_row(name, str(row["segments"]), str(row["bytes"]), problem)
        print_table(table, len(rows))
    found = f"{totals['segments']} segments, {totals['bytes']} bytes"
    if dry_run or not totals["segments"]:
        sys.stderr.write(f"no plan written: {found}\n")
    else:
        sys.stderr.write(f"plan {plan_id}: {found}; next: retention apply --plan {plan_id}\n")
    return int(totals["problems"])


def print_moves(moves: Iterable[LogMove], output: str, *, execute: bool) -> int:
    """Print what became of each log; gives the number of those refused."""
    refused = 0
    writer = csv.writer(sys.stdout, lineterminator="\n")
    if output == "csv":
        writer.writerow([field.name for field in fields(LogMove)])
    for move in moves:
        refused += move.status == Outcome.REFUSED
        if output == "json":
            sys.stdout.write(json.dumps(asdict(move)) + "\n")
        elif output == "csv":
            writer.writerow(asdict(move).values())
        else:
            what = f"{move.segments} segments, {move.files} files, {move.bytes} bytes"
            console().print(escape(f"{move.log}: {move.status}, {what}; {move.reason}"))
    if not execute:
        sys.stderr.write("nothing was moved: --execute moves\n")
    return refused
