"""What a person reads: tables and summaries on stdout, progress on stderr."""

import csv
import json
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table as RichTable

from kafka_segments.pipelines.build import BuildSummary
from kafka_segments.pipelines.build_options import BuildOptions
from kafka_segments.spark import tables
from kafka_segments.spark.tables import Warehouse
from kafka_segments.storage.index_files import IndexOutput

MOST_ROWS_SHOWN = 50
_POLL_SECONDS = 0.3
_WIDE = 160
_SHOWN = (
    "topic",
    "partition",
    "base_offset",
    "next_offset",
    "valid_bytes",
    "truncated_bytes",
    "batch_count",
    "largest_timestamp_ms",
    "index_entries",
    "time_index_entries",
    "damage",
)


@contextmanager
def progress(spark: SparkSession) -> Iterator[None]:
    """Show the running Spark stage's tasks on stderr, where that is a terminal."""
    if not sys.stderr.isatty():
        yield
        return
    console = Console(stderr=True)
    ended = threading.Event()
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TimeElapsedColumn(),
        console=console,
        transient=True,
    ) as bars:
        watcher = threading.Thread(target=_watch, args=(spark, bars, ended), daemon=True)
        watcher.start()
        try:
            yield
        finally:
            ended.set()
            watcher.join()


def _watch(spark: SparkSession, bars: Progress, ended: threading.Event) -> None:
    tracker = spark.sparkContext.statusTracker()
    bar = bars.add_task("starting", total=None)
    while not ended.wait(_POLL_SECONDS):
        stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
        known = [stage for stage in stages if stage is not None]
        if known:
            done = sum(stage.numCompletedTasks for stage in known)
            total = sum(stage.numTasks for stage in known)
            bars.update(bar, description=f"{done} of {total} tasks", completed=done, total=total)


def segments_of_run(spark: SparkSession, warehouse: str, run_id: str, output: str) -> None:
    """Print the segments that a run read."""
    segments = (
        Warehouse(spark, warehouse)
        .read(tables.SEGMENTS)
        .where(F.col("run_id") == run_id)
        .orderBy("log_dir", "topic", "partition", "base_offset")
    )
    if output == "table":
        _print_segments(segments)
    else:
        print_rows(segments, output)


def print_rows(rows: DataFrame, output: str) -> None:
    """Print all rows as JSON lines or CSV, without holding them at once."""
    if output == "json":
        for line in rows.select(
            F.to_json(F.struct("*"), {"ignoreNullFields": "false"})
        ).toLocalIterator():
            sys.stdout.write(line[0] + "\n")
        return
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(rows.columns)
    for row in rows.toLocalIterator():
        writer.writerow([_csv_value(value) for value in row])


def _csv_value(value: Any) -> Any:
    if isinstance(value, Row):
        return json.dumps(value.asDict(recursive=True))
    if isinstance(value, list):
        return json.dumps([item.asDict() if isinstance(item, Row) else item for item in value])
    return value


def utc(ms: int | None) -> str:
    """Write a timestamp as a person reads it; the number itself where no calendar has it."""
    if ms is None or ms < 0:
        return "-"
    try:
        return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")
    except (OverflowError, ValueError, OSError):
        return f"{ms} ms"


def console() -> Console:
    """Give the console for stdout; wide where stdout is a file or a pipe."""
    return Console(width=None if sys.stdout.isatty() else _WIDE, soft_wrap=True)


def _print_segments(segments: DataFrame) -> None:
    rows = segments.select(*_SHOWN).take(MOST_ROWS_SHOWN + 1)
    if not rows:
        return
    table = RichTable(box=None, pad_edge=False)
    for name in (
        "topic-partition",
        "base offset",
        "next offset",
        "valid bytes",
        "cut off",
        "batches",
        "largest timestamp (UTC)",
        "index",
        "time index",
        "damage",
    ):
        is_text = name in ("topic-partition", "largest timestamp (UTC)", "damage")
        table.add_column(name, justify="left" if is_text else "right", overflow="fold")
    for row in rows[:MOST_ROWS_SHOWN]:
        damage = row["damage"]
        table.add_row(
            escape(f"{row['topic']}-{row['partition']}"),
            *(_number(row[name]) for name in _SHOWN[2:7]),
            utc(row["largest_timestamp_ms"]),
            _number(row["index_entries"]),
            _number(row["time_index_entries"]),
            "" if damage is None else escape(_damage(damage)),
        )
    console().print(table)
    if len(rows) > MOST_ROWS_SHOWN:
        sys.stdout.write("… and more: table segments has them, --output csv prints them all\n")


def retention(decisions: DataFrame, output: str) -> None:
    """Print decisions of retention, and in the end what they free."""
    decisions = decisions.orderBy("log_dir", "topic", "partition", "base_offset")
    if output != "table":
        print_rows(decisions, output)
        return
    columns = ("topic", "partition", "base_offset", "decision", "size_bytes", "expires_at_ms")
    rows = decisions.select(*columns, "reason").take(MOST_ROWS_SHOWN + 1)
    table = RichTable(box=None, pad_edge=False)
    for name in ("topic-partition", "base offset", "decision", "bytes", "expires (UTC)", "reason"):
        table.add_column(name, justify="right" if name in ("base offset", "bytes") else "left")
    for row in rows[:MOST_ROWS_SHOWN]:
        table.add_row(
            escape(f"{row['topic']}-{row['partition']}"),
            str(row["base_offset"]),
            row["decision"],
            str(row["size_bytes"]),
            utc(row["expires_at_ms"]),
            row["reason"],
        )
    console().print(table)
    if len(rows) > MOST_ROWS_SHOWN:
        sys.stdout.write("… and more: --output csv prints them all\n")


def _damage(damage: Row) -> str:
    return f"{damage['kind']} at byte {damage['position']}: {damage['message']}"


def _number(value: int | None) -> str:
    return "-" if value is None else str(value)


def build_summary(summary: BuildSummary, options: BuildOptions, *, dry_run: bool) -> None:
    """Say on stderr, in a few lines, what a build did and where it lies."""
    verb = "would read" if dry_run else "read"
    steps = ", ".join(f"{step} {spent:.1f}" for step, spent in summary.seconds_by_step.items())
    lines = [
        f"{verb} {summary.segments_scanned} of {summary.segments_found} segments"
        f" ({summary.bytes_scanned} bytes), {summary.segments_unchanged} unchanged,"
        f" {summary.segments_vanished} vanished, in {summary.seconds:.1f} s"
        + (f" ({steps})" if steps else "")
    ]
    if summary.segments_found == 0:
        lines.append(f"no segments under {', '.join(options.sources)}")
    if summary.segments_damaged:
        lines.append(
            f"{summary.segments_damaged} damaged segments: column damage of table segments"
        )
    if summary.files_unrecognized:
        lines.append(
            f"{summary.files_unrecognized} files or folders not taken: table unrecognized_files"
        )
    if not dry_run:
        output: IndexOutput | None = options.index_output(summary.run_id)
        if output is not None:
            lines.append(f"index files: {output.index_dir or 'beside the segments'}")
        lines.append(f"tables: {options.warehouse}")
    sys.stderr.write("\n".join(lines) + "\n")
