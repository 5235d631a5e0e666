"""How many files a first build writes the rows of table segments to."""

import pytest

from kafka_segments.engine.frames.engines import count_files


@pytest.mark.parametrize(
    ("rows", "cores", "files"),
    [
        pytest.param(0, 8, 1, id="none, still one"),
        pytest.param(9_999, 8, 1, id="few"),
        pytest.param(10_000, 8, 2, id="as many cores as get some"),
        pytest.param(100_000, 2, 2, id="all cores"),
        pytest.param(100_001, 2, 3, id="more where one would be large"),
        pytest.param(1_000_000, 500, 200, id="not all cores of a cluster"),
    ],
)
def test_files_follow_rows_and_cores(rows: int, cores: int, files: int) -> None:
    assert count_files(rows, cores=cores) == files
