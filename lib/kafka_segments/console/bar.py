"""The bar on stderr: how far the running Spark stage is, or what the driver reads itself."""

import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout, suppress
from typing import TYPE_CHECKING, Any, TextIO, cast

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from kafka_segments.console.output import duration, size_text

if TYPE_CHECKING:
    from pyspark import SparkStageInfo
    from pyspark.sql import SparkSession

    from kafka_segments.engine.limits import Load

_POLL_SECONDS = 0.3
COMPILES = "compiling for this machine"


class ReadProgress:
    """What a verb reads: told when it is known, shown while it is read.

    ``is_shown``: somebody looks, so it pays to find out how much there is to read.
    """

    def __init__(self, *, is_shown: bool = False) -> None:
        self.is_shown = is_shown
        self.amount = 0
        self.counted = ""
        self.tasks = 0
        self.done = 0
        self.told = 0

    def reads(self, load: "Load", tasks: int) -> None:
        """Note how much is read, and by how many tasks of about as many bytes each.

        A load without bytes is looked at, a few bytes of each segment: those are counted then.
        No tasks: this process reads it, and tells by ``has_read`` how far it is.
        """
        if load.bytes:
            self._tell(load.bytes, "", tasks)
        else:
            self._tell(load.segments, "segments", tasks)

    def reads_in_driver(self, size_bytes: int) -> None:
        """Note how much this process reads itself; it tells by ``has_read`` how far it is."""
        self._tell(size_bytes, "", 0)

    def looks_in_driver(self, count: int, counted: str) -> None:
        """Note how many ``counted`` (segments, logs) this process looks at itself."""
        self._tell(count, counted, 0)

    def has_read(self, amount: int) -> None:
        """Note that this process has read so many bytes more, or looked at so many more."""
        self.done += amount

    def text(self, share: float) -> str:
        """Return how much of it is read, in words."""
        if not self.counted:
            return f"read {size_text(share * self.amount)} of {size_text(self.amount)}"
        return f"looked at {int(share * self.amount):,} of {self.amount:,} {self.counted}"

    def _tell(self, amount: int, counted: str, tasks: int) -> None:
        self.amount, self.counted, self.tasks, self.done = amount, counted, tasks, 0
        self.told += 1


class ProgressBar:
    """A bar on stderr, which a thread moves until it is ended.

    ``spark``: the session whose stages are shown; None, or one of Spark Connect, has none to show.
    """

    def __init__(self, spark: "SparkSession | None", work: ReadProgress) -> None:
        self._stages, self._jvm_errors = _stages_of(spark), _jvm_errors_of(spark)
        self._readings = (ReadingHere(work), ReadingStage(work))
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

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Show it until there is a first text on stdout."""
        result = cast("TextIO", _Result(sys.stdout, self.end))
        self._bars.start()
        self._watcher.start()
        try:
            with redirect_stdout(result):
                yield
        finally:
            self.end()

    def end(self) -> None:
        """Take the bar away; it does not come back."""
        if not self._is_over:
            self._ended.set()
            self._watcher.join()
            self._bars.stop()
            self._is_over = True  # not before: Ctrl-C may come meanwhile, and end it once more

    def _watch(self) -> None:
        with suppress(*self._jvm_errors, OSError):  # the JVM is gone: the verb says so itself
            self._move(self._bars.add_task("starting", total=None))

    def _move(self, bar: TaskID) -> None:
        while not self._ended.wait(_POLL_SECONDS):
            stages, now = self._stages(), time.monotonic()
            done = sum(stage.numCompletedTasks for stage in stages)
            total = sum(stage.numTasks for stage in stages)
            for reading in self._readings:
                text = reading.told(stages, now)
                if text is not None:
                    done, total = reading.done, reading.total
                    break
            else:
                text = f"{done} of {total} tasks"
            if _compiles():
                self._bars.update(bar, description=COMPILES)
            elif total:
                self._bars.update(bar, description=text, completed=done, total=total)


class _Result:
    """stdout; the bar is taken away before the first text is written to it."""

    def __init__(self, stdout: TextIO, end: Callable[[], None]) -> None:
        self._stdout = stdout
        self._end = end

    def write(self, text: str) -> int:
        self._end()
        return self._stdout.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stdout, name)


class ReadingHere:
    """What this process reads itself."""

    def __init__(self, work: ReadProgress) -> None:
        self._work = work
        self._since: float | None = None
        self.done = self.total = 0

    def told(self, stages: "Sequence[SparkStageInfo]", now: float) -> str | None:
        """Return how much is read and the time left; None if this process reads nothing.

        ``now``: seconds of any clock.
        """
        del stages
        done, total = self._work.done, self._work.amount
        if self._work.tasks or not total or done >= total:
            self._since = None
            return None
        if self._since is None:
            self._since = now
        self.done, self.total = done, total
        return _reading_text(self._work, done / total, now - self._since)


class ReadingStage:
    """The stage that reads what a verb announced: the first one with that number of tasks.

    Its tasks have about as many bytes each, so those that are done tell how much is read. Where a
    verb tells of more to read, it is a later stage.
    """

    def __init__(self, work: ReadProgress) -> None:
        self._work = work
        self._told = 0
        self._stage: int | None = None
        self._before = -1
        self._since = 0.0
        self.done = self.total = 0

    def told(self, stages: "Sequence[SparkStageInfo]", now: float) -> str | None:
        """Return how much is read and the time left; None if the stage does not run.

        ``now``: seconds of any clock.
        """
        if self._told != self._work.told:
            self._before = self._before if self._stage is None else self._stage
            self._told, self._stage = self._work.told, None
        if self._stage is None:
            as_many = (stage.stageId for stage in stages if stage.numTasks == self._work.tasks)
            new = (stage for stage in as_many if stage > self._before)
            self._stage, self._since = min(new, default=None), now
        for stage in stages:
            if stage.stageId == self._stage:
                self.done, self.total = stage.numCompletedTasks, stage.numTasks
                return _reading_text(self._work, self.done / self.total, now - self._since)
        return None


def _reading_text(work: ReadProgress, share: float, spent: float) -> str:
    text = work.text(share)
    if not share:
        return text
    left = round(spent * (1 - share) / share)
    return f"{text}, {f'{left} s' if left < 60 else duration(1000 * left)} left"


def _compiles() -> bool:
    """Tell whether this process compiles now, if it has come to what is compiled at all."""
    compiling = sys.modules.get("kafka_segments.compiling")
    return compiling is not None and bool(compiling.COMPILED_NOW)


def _jvm_errors_of(spark: "SparkSession | None") -> tuple[type[Exception], ...]:
    """Return what is raised where the JVM of a session is gone; nothing where there is none."""
    if spark is None:
        return ()
    from py4j.protocol import Py4JError  # noqa: PLC0415

    return (Py4JError,)


def _stages_of(spark: "SparkSession | None") -> "Callable[[], list[SparkStageInfo]]":
    """Return what gives the stages that run; without a session there are none."""
    if spark is None:
        return list
    from kafka_segments.engine.spark.stages import stages_of  # noqa: PLC0415

    return stages_of(spark)
