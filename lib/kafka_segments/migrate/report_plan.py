"""What ``migrate plan`` prints."""

import sys

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from rich.markup import escape

from kafka_segments.console.output import MOST_ROWS_SHOWN, console, print_rows
from kafka_segments.console.tables import made_table, print_table
from kafka_segments.migrate.decide.actions import SegmentAction


def print_plan(plan_id: str, planned: DataFrame, output: str, *, dry_run: bool) -> int:
    """Print a plan, a row for each segment; return the number of segments refused."""
    action = F.col("action")
    totals = planned.agg(
        F.count("*").alias("segments"),
        *(F.count_if(action == name).alias(name) for name in SegmentAction),
        F.coalesce(F.sum("size_bytes"), F.lit(0)).alias("bytes"),
        F.coalesce(F.sum("expected_bytes"), F.lit(0)).alias("expected_bytes"),
        F.coalesce(
            F.sum(F.when(action != SegmentAction.REFUSE, F.col("cut_bytes"))), F.lit(0)
        ).alias("cut_bytes"),
    ).collect()[0]
    if output == "table":
        _print_segments(planned)
    else:
        print_rows(planned.orderBy("path"), output)
    done = {
        SegmentAction.INDEXES: "get index files",
        SegmentAction.CONVERT: "are converted",
        SegmentAction.CUT: "are cut",
        SegmentAction.REFUSE: "are refused",
    }
    counts = ", ".join(f"{totals[action]} {words}" for action, words in done.items())
    sys.stderr.write(
        f"{totals['segments']} segments, {totals['bytes']} bytes: {counts};"
        f" {totals['expected_bytes']} bytes after\n"
    )
    if totals["cut_bytes"]:
        sys.stderr.write(f"{totals['cut_bytes']} bytes stay behind, as recovery cuts them off\n")
    _print_refused(planned)
    if totals[SegmentAction.CONVERT]:
        sys.stderr.write("replicas elsewhere must be converted with the same options\n")
    if dry_run:
        sys.stderr.write("no plan written\n")
    else:
        sys.stderr.write(f"plan {plan_id}; next: migrate stage --plan {plan_id}\n")
    return int(totals[SegmentAction.REFUSE])


def _print_refused(planned: DataFrame) -> None:
    """Name the logs that are refused, each with its broker and the reason."""
    folder = F.concat_ws("/", "log_dir", F.concat_ws("-", "topic", "partition"))
    logs = (
        planned.where(F.col("action") == SegmentAction.REFUSE)
        .groupBy("broker_id", folder.alias("folder"))
        .agg(F.min_by("reason", "base_offset").alias("reason"))
        .orderBy("broker_id", "folder")
        .take(MOST_ROWS_SHOWN + 1)
    )
    for log in logs[:MOST_ROWS_SHOWN]:
        sys.stderr.write(
            f"refused: {log['folder']} of broker {log['broker_id']}: {log['reason']}\n"
        )
    if len(logs) > MOST_ROWS_SHOWN:
        sys.stderr.write("refused: … and more\n")


def _print_segments(planned: DataFrame) -> None:
    rows = planned.orderBy("log_dir", "topic", "partition", "base_offset").take(MOST_ROWS_SHOWN + 1)
    table = made_table(
        "broker>",
        "log directory",
        "topic-partition",
        "base offset>",
        "action",
        "bytes>",
        "after>",
        "why",
    )
    for row in rows[:MOST_ROWS_SHOWN]:
        table.add_row(
            str(row["broker_id"]),
            escape(row["log_dir"]),
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
