"""How many tasks share the segments; the packing itself needs Spark."""

import pytest

from kafka_segments.spark.packing import PartitionLoad, count_tasks

GIB = 1024**3


@pytest.mark.parametrize(
    ("loads", "tasks"),
    [
        pytest.param([], 1, id="no segments, still one task"),
        pytest.param([PartitionLoad(0, 3, 300)], 3, id="never more tasks than segments"),
        pytest.param([PartitionLoad(0, 500, 500)], 8, id="four a core"),
        pytest.param(
            [PartitionLoad(0, 30, 20 * GIB)], 21, id="more where a task would exceed 1 GiB"
        ),
        pytest.param(
            [PartitionLoad(0, 50_000, 10_000 * GIB), PartitionLoad(1, 50_000, 30_000 * GIB)],
            20_000,
            id="20000 at most",
        ),
    ],
)
def test_tasks_follow_cores_bytes_and_segments(loads, tasks):
    assert count_tasks(loads, cores=2) == tasks
