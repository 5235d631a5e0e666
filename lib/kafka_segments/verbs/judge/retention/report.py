"""What ``retention`` prints: decisions, and other settings side by side with today's."""

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from kafka_segments.console.grouping import counted
from kafka_segments.console.not_known import say_not_known
from kafka_segments.console.output import MOST_ROWS_SHOWN, cell, duration, print_rows, utc
from kafka_segments.console.prometheus import PROMETHEUS, give_figures
from kafka_segments.console.table_form import made_table, or_dash, print_table
from kafka_segments.console.tables import cluster_column, print_result
from kafka_segments.verbs.judge.retention.decide.reasons import NOT_KNOWN
from kafka_segments.verbs.judge.retention.report_figures import figures_of, topics_of

_YEAR_10000_MS = 253_402_300_800_000
_DECISION = ("topic-partition", "base offset>", "decision", "bytes>", "goes (UTC)", "reason")
_WHAT_IF = ("topic", "setting", "segments>", "bytes>", "oldest offset>", "time span>")


def print_retention(decisions: DataFrame, output: str) -> None:
    """Print decisions, the oldest segment of each log first."""
    if output == PROMETHEUS:
        topics = topics_of(decisions)
        unsure = sum(row["unsure"] for row in topics)
        give_figures(figures_of(topics), findings=unsure, unknowns=unsure)
        return
    ordered = decisions.orderBy("log_dir", "topic", "partition", "base_offset")
    print_result(ordered, output, names=_DECISION, cells=_decision)


def print_not_decided(decisions: DataFrame) -> int:
    """Say on stderr which segments stay as what would let them go is not known, a line a reason.

    Return how many these are.

    Needs: log_dir, topic, partition, base_offset, reason_code, reason.
    """
    first = F.min(F.struct("log_dir", "topic", "partition", "base_offset"))
    unsure = decisions.where(F.col("reason_code").isin(*NOT_KNOWN))
    found = unsure.groupBy("reason_code").agg(
        F.count("*").alias("segments"), first.alias("one"), F.min("reason").alias("reason")
    )
    rows = found.orderBy("reason_code").collect()
    for row in rows:
        one = row["one"]
        where = f"{one['topic']}-{one['partition']} segment {one['base_offset']}"
        why = f"in {one['log_dir']} stays, whether it goes is not known: {row['reason']}"
        say_not_known(counted(row["segments"], f"{where} {why}"))
    return sum(row["segments"] for row in rows)


def _decision(row: Row) -> tuple[str, ...]:
    return (
        f"{row['topic']}-{row['partition']}",
        str(row["base_offset"]),
        row["decision"],
        str(row["size_bytes"]),
        moment(row["deletes_at_ms"]),
        row["reason"],
    )


def print_what_if(comparison: DataFrame, output: str) -> None:
    """Print what other settings leave of each topic, below what today's leave."""
    comparison = comparison.orderBy("cluster", "topic", "setting")
    if output != "table":
        print_rows(comparison, output)
        return
    rows = comparison.take(MOST_ROWS_SHOWN + 1)
    heading, cluster_of = cluster_column(rows)
    table = made_table(*heading, *_WHAT_IF)
    shown = None
    for row in rows[:MOST_ROWS_SHOWN]:
        if shown != (row["cluster"], row["topic"]):
            shown = (row["cluster"], row["topic"])
            names = map(cell, (*cluster_of(row), row["topic"]))
            table.add_row(*names, "as it is today", *_left(row, "today_"))
        setting, reason = row["setting"], row["not_decided"]
        shown_as = setting if reason is None else f"{setting}: not decided, {reason}"
        table.add_row(*("" for _ in heading), "", cell(shown_as), *_left(row, ""))
    print_table(table, len(rows))


def _left(row: Row, prefix: str) -> tuple[str, ...]:
    return (
        str(row[f"{prefix}segments"]),
        str(row[f"{prefix}size_bytes"]),
        or_dash(row[f"{prefix}oldest_offset"]),
        duration(row[f"{prefix}span_ms"]),
    )


def moment(ms: int | None) -> str:
    """Return when a segment goes, as a person reads it."""
    if ms is None:
        return "never"
    return utc(ms) if ms < _YEAR_10000_MS else "after the year 9999"
