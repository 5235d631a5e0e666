"""Share segments out to tasks by bytes, without collecting them."""

from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import NamedTuple

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

OPEN_COST_BYTES = 1024 * 1024
"""What opening a segment and writing its files costs, in bytes read in that time."""

_TASK_BYTES = 1024**3
_TASKS_A_CORE = 4
_MOST_TASKS = 20_000


class PartitionLoad(NamedTuple):
    """What one Spark partition of a segment list holds."""

    spark_partition: int
    segments: int
    bytes: int


def count_tasks(loads: Sequence[PartitionLoad], *, cores: int) -> int:
    """Choose the number of tasks: some per core, more where a task would exceed 1 GiB."""
    total = sum(_weight(load) for load in loads)
    wanted = max(_TASKS_A_CORE * cores, -(-total // _TASK_BYTES))
    return max(1, min(wanted, sum(load.segments for load in loads), _MOST_TASKS))


def _weight(load: PartitionLoad) -> int:
    return load.bytes + load.segments * OPEN_COST_BYTES


def pack_segments(
    loads: Sequence[PartitionLoad], *, tasks: int
) -> Callable[[DataFrame], DataFrame]:
    """Repartition a segment list so that every task has about as many bytes.

    The list is seen as one line of bytes, cut into ``tasks`` equal pieces; a segment goes to
    the piece that holds its middle. Only each Spark partition's sum is known beforehand.

    Needs: size_bytes (long), relative_path, base_offset; the rows in the Spark partitions
        that ``loads`` counted (a cached DataFrame).
    Gives: the same rows and columns.
    """
    weights = [_weight(load) for load in loads]
    total = max(1, sum(weights))
    before = dict(
        zip((load.spark_partition for load in loads), accumulate([0, *weights]), strict=False)
    )

    def transform(segments: DataFrame) -> DataFrame:
        here = F.col("_spark_partition")
        earlier = (
            Window.partitionBy(here)
            .orderBy("relative_path", "base_offset")
            .rowsBetween(Window.unboundedPreceding, -1)
        )
        weight = F.col("size_bytes") + F.lit(OPEN_COST_BYTES)
        starts = F.create_map(*(F.lit(item) for pair in before.items() for item in pair))
        middle = starts[here] + F.coalesce(F.sum(weight).over(earlier), F.lit(0)) + weight / 2
        task = F.least(F.lit(tasks - 1), F.floor(middle * F.lit(tasks) / F.lit(total)))
        return (
            segments.withColumn("_spark_partition", F.spark_partition_id())
            .withColumn("_task", task.cast("int"))
            .repartitionById(tasks, "_task")
            .drop("_spark_partition", "_task")
        )

    return transform
