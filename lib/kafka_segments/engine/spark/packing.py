"""Share segments out to tasks by bytes, without collecting them."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from kafka_segments.engine.spark.parallelism import default_parallelism

OPEN_COST_BYTES = 1024 * 1024
"""What opening a segment and writing its files costs, in bytes read in that time."""

_TASK_BYTES = 1024**3
_TASK_SEGMENTS = 4096  # small ones; to start a task and to end its files costs as much as dozens
_TASKS_A_CORE = 4
_LEAST_TASK_BYTES = 16 * 1024**2  # less than two tasks a core have
_MOST_TASKS = 20_000
_LITTLE_BYTES = 128 * 1024**2


class Load(NamedTuple):
    """How much there is to read."""

    segments: int = 0
    bytes: int = 0

    @property
    def weight(self) -> int:
        """Bytes, with the cost of opening each segment."""
        return self.bytes + self.segments * OPEN_COST_BYTES

    @property
    def is_little(self) -> bool:
        """So little that the driver reads it sooner than processes for it have started."""
        return self.weight <= _LITTLE_BYTES

    def is_within(self, most: "Load") -> bool:
        """So much at most, by the number of segments and by bytes."""
        return self.segments <= most.segments and self.bytes <= most.bytes


TellLoad = Callable[[Load, int], None]
"""Is told how much is read, and by how many tasks of about as many bytes each."""


TellRead = Callable[[int], None]
"""Is told of bytes that the driver has read itself; of first looks, of segments."""


def tell_nobody(load: Load, tasks: int) -> None:
    """Be told how much is read, where nobody wants to know."""


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
    tasks = count_tasks(load, cores=default_parallelism(rows.sparkSession))
    tell(load, tasks)
    return rows.transform(pack_segments(load, tasks=tasks, by=by, order=("path",)))


def pack_segments(
    load: Load,
    *,
    tasks: int,
    by: str | None = "size_bytes",
    order: Sequence[str] = ("relative_path", "base_offset"),
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
