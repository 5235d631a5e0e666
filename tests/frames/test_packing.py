"""How many tasks share the segments; the packing itself needs Spark."""

import pytest

from kafka_segments.engine.frames.packing import count_tasks
from kafka_segments.engine.limits import Load

GIB = 1024**3


@pytest.mark.parametrize(
    ("load", "tasks"),
    [
        pytest.param(Load(), 1, id="no segments, still one task"),
        pytest.param(Load(3, 300), 3, id="never more tasks than segments"),
        pytest.param(Load(500, 500), 8, id="four a core"),
        pytest.param(Load(30, 20 * GIB), 20, id="more where a task would exceed 1 GiB"),
        pytest.param(Load(30, 20 * GIB + 1), 21, id="by a byte"),
        pytest.param(Load(40_960, 40_960), 10, id="more where a task would open 4096 segments"),
        pytest.param(Load(40_961, 40_961), 11, id="by one"),
        pytest.param(
            Load(100_000, 40_000 * GIB),
            20_000,
            id="20000 at most",
        ),
    ],
)
def test_tasks_follow_cores_bytes_and_segments(load, tasks):
    assert count_tasks(load, cores=2) == tasks
