"""What ``migrate plan`` prints."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kafka_segments.console.lines import say
from kafka_segments.console.output import MOST_ROWS_SHOWN, cell, print_rows, print_text
from kafka_segments.console.table_form import made_table, print_table
from kafka_segments.console.tables import cluster_column
from kafka_segments.verbs.change.migrate.decide.actions import SegmentAction


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
    say(
        f"{totals['segments']} segments, {totals['bytes']} bytes: {counts};"
        f" {totals['expected_bytes']} bytes after"
    )
    if totals["cut_bytes"]:
        say(f"{totals['cut_bytes']} bytes stay behind, as recovery cuts them off")
    _print_refused(planned)
    if totals[SegmentAction.CONVERT]:
        say("replicas elsewhere must be converted with the same options")
    if dry_run:
        say("no plan written")
    else:
        say(f"plan {plan_id}; next: migrate stage --plan {plan_id}")
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
        say(f"refused: {log['folder']} of broker {log['broker_id']}: {log['reason']}")
    if len(logs) > MOST_ROWS_SHOWN:
        say("refused: … and more")


def _print_segments(planned: DataFrame) -> None:
    rows = planned.orderBy("log_dir", "topic", "partition", "base_offset").take(MOST_ROWS_SHOWN + 1)
    heading, cluster_of = cluster_column(rows)
    table = made_table(
        *heading,
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
            *map(cell, cluster_of(row)),
            str(row["broker_id"]),
            cell(row["log_dir"]),
            cell(f"{row['topic']}-{row['partition']}"),
            str(row["base_offset"]),
            cell(row["action"]),
            str(row["size_bytes"]),
            str(row["expected_bytes"]),
            cell(row["reason"]),
        )
    print_table(table, len(rows))
    hazards = planned.select(F.explode("hazards").alias("hazard")).groupBy("hazard").count()
    for row in hazards.orderBy(F.desc("count"), "hazard").take(MOST_ROWS_SHOWN):
        print_text(f"! {row['hazard']} (segments: {row['count']})")
