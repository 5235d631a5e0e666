"""Rows that threads of the driver share out."""

from collections.abc import Iterable, Iterator
from threading import Barrier

import pyarrow as pa
import pytest

from kafka_segments.engine.frames.map_rows import _SharedRows

ROWS = pa.table({"n": list(range(20))})


def _numbers(batches: Iterable[pa.RecordBatch]) -> list[int]:
    return [number for batch in batches for number in batch.column("n").to_pylist()]


def test_each_row_is_mapped_once_and_told_of_and_threads_work_at_the_same_time() -> None:
    together, told = Barrier(3, timeout=10), []

    def on_task(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        together.wait()
        yield from batches

    mapped = _SharedRows(ROWS, 1, told.append).map(on_task, 3)

    assert sorted(_numbers(mapped)) == list(range(20))
    assert sorted(_numbers(told)) == list(range(20))


def test_after_an_error_no_more_rows_are_taken() -> None:
    taken = []

    def on_task(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            taken.append(batch)
            raise OSError("no room")
            yield batch

    with pytest.raises(OSError, match="no room"):
        _SharedRows(ROWS, 1, None).map(on_task, 2)

    assert len(taken) <= 2
