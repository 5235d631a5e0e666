"""Forms of output that the verbs share: progress, tables, JSON lines, CSV."""

import csv
import json
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout, suppress
from dataclasses import asdict, fields
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Self, TextIO, TypeVar, cast

from py4j.protocol import Py4JError
from pyspark import SparkStageInfo
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from kafka_segments.spark.connect import is_connect
from kafka_segments.spark.packing import Load
from kafka_segments.spark.row_stream import stream_rows

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

MOST_ROWS_SHOWN = 50
_Record = TypeVar("_Record", bound="DataclassInstance")
_POLL_SECONDS = 0.3
_WIDE = 160
_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB")


class Work:
    """What a verb reads: told when it is known, shown while it is read."""

    def __init__(self) -> None:
        self.load = Load()
        self.tasks = 0

    def reads(self, load: Load, tasks: int) -> None:
        """Note how much is read, and by how many tasks of about as many bytes each."""
        self.load, self.tasks = load, tasks


@contextmanager
def progress(spark: SparkSession) -> Iterator[Work]:
    """Show on stderr, where that is a terminal, how far the running Spark stage is.

    What is read is shown in bytes with the time left, if the verb tells ``Work`` of it; other
    stages in tasks. The bar ends before the first line on stdout. Over Spark Connect nothing is
    shown: the client does not see the stages of others' jobs.
    """
    work = Work()
    if not sys.stderr.isatty() or is_connect(spark):
        yield work
        return
    with _Bar(spark, work) as bar, redirect_stdout(cast("TextIO", _Result(sys.stdout, bar.end))):
        yield work


class _Result:
    """stdout, before whose first text the bar goes."""

    def __init__(self, stdout: TextIO, end: Callable[[], None]) -> None:
        self._stdout = stdout
        self._end = end

    def write(self, text: str) -> int:
        self._end()
        return self._stdout.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stdout, name)


class _Bar:
    """A bar on stderr, which a thread moves until it is ended."""

    def __init__(self, spark: SparkSession, work: Work) -> None:
        self._tracker = spark.sparkContext.statusTracker()
        self._reading = ReadingStage(work)
        self._ended = threading.Event()
        self._is_over = False
        self._bars = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TimeElapsedColumn(),
            console=Console(stderr=True),
            transient=True,
            redirect_stdout=False,  # it would go to stderr
        )
        self._watcher = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        self._bars.start()
        self._watcher.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self) -> None:
        """Take the bar away; it does not come back."""
        if not self._is_over:
            self._ended.set()
            self._watcher.join()
            self._bars.stop()
            self._is_over = True  # not before: Ctrl-C may come meanwhile, and end it once more

    def _watch(self) -> None:
        with suppress(Py4JError, OSError):  # the JVM is gone: the verb says so itself
            self._move(self._bars.add_task("starting", total=None))

    def _move(self, bar: TaskID) -> None:
        while not self._ended.wait(_POLL_SECONDS):
            stages = [
                self._tracker.getStageInfo(stage) for stage in self._tracker.getActiveStageIds()
            ]
            known = [stage for stage in stages if stage is not None]
            if known:
                done = sum(stage.numCompletedTasks for stage in known)
                total = sum(stage.numTasks for stage in known)
                text = self._reading.told(known, time.monotonic()) or f"{done} of {total} tasks"
                self._bars.update(bar, description=text, completed=done, total=total)


class ReadingStage:
    """The stage that reads what a verb has told of: the first one with as many tasks.

    Its tasks have about as many bytes each, so those that are done tell how much is read.
    """

    def __init__(self, work: Work) -> None:
        self._work = work
        self._stage: int | None = None
        self._since = 0.0

    def told(self, stages: Sequence[SparkStageInfo], now: float) -> str | None:
        """Return how much is read and the time left; None if the stage does not run.

        ``now``: seconds of any clock.
        """
        if self._stage is None:
            new = [stage.stageId for stage in stages if stage.numTasks == self._work.tasks]
            self._stage, self._since = min(new, default=None), now
        for stage in stages:
            if stage.stageId == self._stage:
                return self._text(stage.numCompletedTasks / stage.numTasks, now - self._since)
        return None

    def _text(self, share: float, spent: float) -> str:
        whole = self._work.load.bytes
        text = f"read {size_text(share * whole)} of {size_text(whole)}"
        if not share:
            return text
        left = round(spent * (1 - share) / share)
        return f"{text}, {f'{left} s' if left < 60 else duration(1000 * left)} left"


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


def size_text(size_bytes: float) -> str:
    """Write a number of bytes in the greatest unit that it fills."""
    size, unit = float(size_bytes), 0
    while abs(size) >= 1024 and unit < len(_UNITS) - 1:
        size, unit = size / 1024, unit + 1
    return f"{size:.0f} {_UNITS[unit]}" if unit == 0 else f"{size:.1f} {_UNITS[unit]}"


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
