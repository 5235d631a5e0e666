"""Forms of output that the verbs share: progress, tables, JSON lines, CSV."""

import csv
import json
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, fields
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeVar

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from kafka_segments.spark.connect import is_connect
from kafka_segments.spark.row_stream import stream_rows

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

MOST_ROWS_SHOWN = 50
_Record = TypeVar("_Record", bound="DataclassInstance")
_POLL_SECONDS = 0.3
_WIDE = 160


@contextmanager
def progress(spark: SparkSession) -> Iterator[None]:
    """Show the running Spark stage's tasks on stderr, where that is a terminal.

    Over Spark Connect nothing is shown: the client does not see the stages of others' jobs.
    """
    if not sys.stderr.isatty() or is_connect(spark):
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


def print_records(
    records: Iterable[_Record], form: type[_Record], output: str, text: Callable[[_Record], str]
) -> Iterator[_Record]:
    """Print records as they come, and yield each: as JSON or CSV by their fields, else as text.

    Args:
        records: records.
        form: their class, a dataclass.
        output: json, csv or any other.
        text: gives the line of a record.
    """
    writer = csv.writer(sys.stdout, lineterminator="\n")
    if output == "csv":
        writer.writerow([field.name for field in fields(form)])
    for record in records:
        if output == "json":
            sys.stdout.write(json.dumps(asdict(record)) + "\n")
        elif output == "csv":
            writer.writerow(asdict(record).values())
        else:
            console().print(escape(text(record)))
        yield record


def print_rows(rows: DataFrame, output: str) -> None:
    """Print all rows as JSON lines or CSV, without holding them at once."""
    if output == "json":
        lines = rows.select(F.to_json(F.struct("*"), {"ignoreNullFields": "false"}))
        for line in stream_rows(lines):
            sys.stdout.write(line[0] + "\n")
        return
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(rows.columns)
    for row in stream_rows(rows):
        writer.writerow([_csv_value(value) for value in row])


def _csv_value(value: Any) -> Any:
    if isinstance(value, Row):
        return json.dumps(value.asDict(recursive=True))
    if isinstance(value, dict):
        return json.dumps(value)
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


def duration(ms: int | None) -> str:
    """Write a span of time in its two greatest units."""
    if ms is None:
        return "-"
    if ms < _MINUTE_MS:
        return f"{ms / 1000:.3f} s"
    if ms < _HOUR_MS:
        return f"{ms // _MINUTE_MS} min {ms % _MINUTE_MS // 1000} s"
    if ms < _DAY_MS:
        return f"{ms // _HOUR_MS} h {ms % _HOUR_MS // _MINUTE_MS} min"
    return f"{ms // _DAY_MS} d {ms % _DAY_MS // _HOUR_MS} h"


_DAY_MS, _HOUR_MS, _MINUTE_MS = 86_400_000, 3_600_000, 60_000
