"""What ``retention plan``, ``apply`` and ``rollback`` print."""

from collections.abc import Iterable

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from kafka_segments.console.lines import say
from kafka_segments.console.output import print_records
from kafka_segments.console.tables import print_result
from kafka_segments.verbs.judge.retention.planned_log import LogMove, MoveStatus

_NAMES = ("topic-partition", "segments>", "bytes>", "problem")


def print_plan(plan_id: str, planned: DataFrame, output: str, *, dry_run: bool) -> int:
    """Print a plan, by log as a table, else by segment; return how many have a problem."""
    totals = planned.agg(
        F.count("*").alias("segments"),
        F.count("problem").alias("problems"),
        F.coalesce(F.sum("size_bytes"), F.lit(0)).alias("bytes"),
    ).collect()[0]
    rows = _by_log(planned) if output == "table" else planned.orderBy("path")
    print_result(rows, output, names=_NAMES, cells=_cells)
    found = f"{totals['segments']} segments, {totals['bytes']} bytes"
    if dry_run or not totals["segments"]:
        say(f"no plan written: {found}")
    else:
        say(f"plan {plan_id}: {found}; next: retention apply --plan {plan_id}")
    return int(totals["problems"])


def _by_log(planned: DataFrame) -> DataFrame:
    log = ("log_dir", "topic", "partition")
    sums = planned.groupBy("cluster", *log).agg(
        F.count("*").alias("segments"),
        F.sum("size_bytes").alias("bytes"),
        F.min("problem").alias("problem"),
    )
    return sums.orderBy(*log)


def _cells(row: Row) -> tuple[str, ...]:
    name = f"{row['topic']}-{row['partition']}"
    return name, str(row["segments"]), str(row["bytes"]), row["problem"] or ""


def print_moves(moves: Iterable[LogMove], output: str, *, execute: bool) -> int:
    """Print what became of each log; return how many were refused."""
    printed = print_records(moves, LogMove, output, _line, state=_state)
    refused = sum(move.status is MoveStatus.REFUSED for move in printed)
    if not execute:
        say("nothing was moved: --execute moves")
    return refused


def _state(move: LogMove) -> str | None:
    return move.reason if move.status is MoveStatus.REFUSED else None


def _line(move: LogMove) -> str:
    what = f"{move.segments} segments, {move.files} files, {move.bytes} bytes"
    return f"{move.log}: {move.status}, {what}; {move.reason}"
