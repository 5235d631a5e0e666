"""What the steps of ``migrate`` print."""

import csv
import json
import sys
from collections.abc import Iterable
from dataclasses import asdict, fields

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from rich.markup import escape

from kafka_segments.decide.migration import CONVERT, INDEXES, REFUSE, REFUSED
from kafka_segments.pipelines.migration import LogStep
from kafka_segments.reports.output import MOST_ROWS_SHOWN, console, print_rows
from kafka_segments.reports.retention import made_table, print_table


def print_plan(plan_id: str, planned: DataFrame, output: str, *, dry_run: bool) -> int:
    """Print a plan, one row a segment; gives the number of segments refused."""
    action = F.col("action")
    totals = planned.agg(
        F.count("*").alias("segments"),
        *(F.count_if(action == name).alias(name) for name in (INDEXES, CONVERT, REFUSE)),
        F.coalesce(F.sum("size_bytes"), F.lit(0)).alias("bytes"),
        F.coalesce(F.sum("expected_bytes"), F.lit(0)).alias("expected_bytes"),
    ).collect()[0]
    if output == "table":
        _print_segments(planned)
    else:
        print_rows(planned.orderBy("path"), output)
    sys.stderr.write(
        f"{totals['segments']} segments, {totals['bytes']} bytes: {totals[INDEXES]} get index"
        f" files, {totals[CONVERT]} are converted, {totals[REFUSE]} are refused;"
        f" {totals['expected_bytes']} bytes after\n"
    )
    if totals[CONVERT]:
        sys.stderr.write("replicas elsewhere must be converted with the same options\n")
    if dry_run:
        sys.stderr.write("no plan written\n")
    else:
        sys.stderr.write(f"plan {plan_id}; next: migrate stage --plan {plan_id}\n")
    return int(totals[REFUSE])


def _print_segments(planned: DataFrame) -> None:
    rows = planned.orderBy("log_dir", "topic", "partition", "base_offset").take(MOST_ROWS_SHOWN + 1)
    table = made_table("topic-partition", "base offset>", "action", "bytes>", "after>", "why")
    for row in rows[:MOST_ROWS_SHOWN]:
        table.add_row(
            escape(f"{row['topic']}-{row['partition']}"),
            str(row["base_offset"]),
            row["action"],
            str(row["size_bytes"]),
            str(row["expected_bytes"]),
            escape(row["reason"]),
        )
    print_table(table, len(rows))
    hazards = planned.select(F.explode("hazards").alias("hazard")).groupBy("hazard").count()
    for row in hazards.orderBy(F.desc("count"), "hazard").take(MOST_ROWS_SHOWN):
        console().print(escape(f"! {row['hazard']} (segments: {row['count']})"))


def print_steps(steps: Iterable[LogStep], output: str) -> int:
    """Print what became of each log; gives the number of those refused."""
    refused = 0
    writer = csv.writer(sys.stdout, lineterminator="\n")
    if output == "csv":
        writer.writerow([field.name for field in fields(LogStep)])
    for step in steps:
        refused += step.status == REFUSED
        if output == "json":
            sys.stdout.write(json.dumps(asdict(step)) + "\n")
        elif output == "csv":
            writer.writerow(asdict(step).values())
        else:
            what = f"{step.segments} segments, {step.bytes} bytes, in place: {step.in_place}"
            said = f"; {step.message}" if step.message else ""
            console().print(escape(f"{step.log}: {step.status}, {what}{said}"))
    return refused
