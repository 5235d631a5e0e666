"""Share segments out to tasks by bytes, without collecting them."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from kafka_segments.engine.frames.engines import threads_for
from kafka_segments.engine.limits import OPEN_COST_BYTES, Load
from kafka_segments.engine.spark.parallelism import default_parallelism

_TASK_BYTES = 1024**3
_TASK_SEGMENTS = 4096  # small ones; to start a task and to end its files costs as much as dozens
_TASKS_A_CORE = 4
_LEAST_TASK_BYTES = 16 * 1024**2  # less than two tasks a core have
_MOST_TASKS = 20_000
ORDER = ("relative_path", "base_offset")
"""Segments that lie beside each other are read by one task."""


TellLoad = Callable[[Load, int], None]
"""Is told how much is read, and how many tasks share it evenly."""


TellRead = Callable[[int], None]
"""Is told how many bytes the driver has read itself, or how many segments it has looked at."""


def tell_nobody(load: Load, tasks: int) -> None:
    """Take no notice of how much is read."""


def count_tasks(load: Load, *, cores: int) -> int:
    """Choose the number of tasks: two to four a core, more where one would have too much.

    That is more than 1 GiB to read, or more than ``_TASK_SEGMENTS`` segments to open.
    """
    some = min(_TASKS_A_CORE * cores, max(2 * cores, load.weight // _LEAST_TASK_BYTES))
    wanted = max(some, -(-load.bytes // _TASK_BYTES), -(-load.segments // _TASK_SEGMENTS))
    return max(1, min(wanted, load.segments, _MOST_TASKS))


def pack_by_bytes(
    rows: DataFrame, *, by: str, load: Load | None = None, tell: TellLoad = tell_nobody
) -> DataFrame:
    """Repartition rows that name files so that every task has about as many bytes; tell of it.

    ``load``: their number and bytes; None: a query asks.

    Needs: path, and the column ``by`` of bytes to read (long, null: none).
    Gives: the same rows and columns.
    """
    if load is None:
        total = F.coalesce(F.sum(by), F.lit(0))
        load = Load(*rows.agg(F.count("*"), total).collect()[0])
    return rows.transform(packed(load, tell, by=by, order=("path",)))


def packed(
    load: Load,
    tell: TellLoad = tell_nobody,
    *,
    by: str | None = "size_bytes",
    order: Sequence[str] = ORDER,
) -> Callable[[DataFrame], DataFrame]:
    """Repartition a segment list as ``pack_segments`` does, for as many tasks as it takes; tell."""

    def transform(segments: DataFrame) -> DataFrame:
        tasks = tasks_for(segments.sparkSession, load)
        tell(load, tasks)
        return segments.transform(pack_segments(load, tasks=tasks, by=by, order=order))

    return transform


class Shared(NamedTuple):
    """Segments shared out to threads of the driver, or, where there are none, to tasks."""

    segments: DataFrame
    threads: int


def share_out(
    segments: DataFrame, load: Load, tell: TellLoad = tell_nobody, *, by: str | None = "size_bytes"
) -> Shared:
    """Share a segment list out: few to threads of the driver, others to tasks by bytes; tell."""
    threads = threads_for(segments.sparkSession, load)
    if threads:
        tell(load, 0)
        return Shared(segments, threads)
    return Shared(segments.transform(packed(load, tell, by=by)), 0)


def tasks_for(spark: SparkSession, load: Load) -> int:
    """Return in how many tasks a session reads so much (``count_tasks``)."""
    return count_tasks(load, cores=default_parallelism(spark))


def spread(rows: DataFrame, *keys: str) -> DataFrame:
    """Share rows out by keys, to as many tasks as a session runs at once."""
    return rows.repartition(default_parallelism(rows.sparkSession), *keys)


def pack_segments(
    load: Load,
    *,
    tasks: int,
    by: str | None = "size_bytes",
    order: Sequence[str] = ORDER,
) -> Callable[[DataFrame], DataFrame]:
    """Repartition a segment list so that every task has about as many bytes.

    The list is seen as one line of bytes, cut into ``tasks`` equal pieces; a segment goes to
    the piece that holds its middle. One task sorts the list for that: its rows are small
    beside the segments that they name.

    Needs: ``order``, and the column ``by`` of bytes to read (long, null: none; None: hardly any,
        segments count alike); ``load`` is its sum.
    Gives: the same rows and columns.
    """

    def transform(segments: DataFrame) -> DataFrame:
        earlier = Window.orderBy(*order).rowsBetween(Window.unboundedPreceding, -1)
        size_bytes = F.lit(0) if by is None else F.coalesce(F.col(by), F.lit(0))
        weight = size_bytes + F.lit(OPEN_COST_BYTES)
        middle = F.coalesce(F.sum(weight).over(earlier), F.lit(0)) + weight / 2
        task = F.least(F.lit(tasks - 1), F.floor(middle * tasks / max(1, load.weight)))
        return (
            segments.withColumn("_task", task.cast("int"))
            .repartitionById(tasks, "_task")
            .drop("_task")
        )

    return transform
