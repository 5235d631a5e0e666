"""Rows mapped by a function on batches of Arrow: few in the driver, others by tasks."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Lock

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from kafka_segments.engine.frames.engines import rows_to_map
from kafka_segments.engine.frames.local_rows import arrow_schema, frame_of_rows
from kafka_segments.engine.limits import MOST_IN_DRIVER, MOST_ROWS
from kafka_segments.engine.spark.parallelism import default_parallelism


def map_rows(
    rows: DataFrame,
    on_task: Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]],
    columns: StructType,
    *,
    most_in_driver: int | None = MOST_IN_DRIVER,
    spread: bool = False,
    threads: int = 1,
    rows_at_once: int = 1,
    tell: Callable[[pa.RecordBatch], None] | None = None,
) -> DataFrame:
    """Map rows as ``DataFrame.mapInArrow`` does; few ones in the driver, without a job.

    ``most_in_driver``: that many at most; None: as many as few rows may be.
    ``spread``: others are shared out to as many tasks as the session runs at once.
    ``threads``: as many work in the driver, each through ``on_task`` of its own; the rows then come
    in no order. That pays where most of the work is compiled code or reading.
    ``rows_at_once``: as many rows are given to ``on_task`` in one batch there, where there are
    threads or somebody is told.
    ``tell``: is told of rows that were mapped in the driver.
    """
    spark = rows.sparkSession
    here = rows_to_map(rows)
    if here is not None:
        found = here[0]
        if len(found) <= (MOST_ROWS if most_in_driver is None else most_in_driver):
            if threads > 1:
                done = _SharedRows(found, rows_at_once, tell).map(on_task, threads)
            elif tell is not None:
                done = list(on_task(_told(found, rows_at_once, tell)))
            else:
                done = list(on_task(found.to_batches()))
            made = pa.Table.from_batches(done) if done else arrow_schema(columns).empty_table()
            return frame_of_rows(spark, made, columns)
    shared = rows.repartition(default_parallelism(spark)) if spread else rows
    return shared.mapInArrow(on_task, columns)


def _told(
    rows: pa.Table, at_once: int, tell: Callable[[pa.RecordBatch], None]
) -> Iterator[pa.RecordBatch]:
    """Yield rows in groups of so many; report a group when the next one is asked for."""
    for batch in rows.to_batches(max_chunksize=at_once):
        yield batch
        tell(batch)


class _SharedRows:
    """Rows that threads take few by few, so that all of them end at about the same time."""

    def __init__(
        self, rows: pa.Table, at_once: int, tell: Callable[[pa.RecordBatch], None] | None
    ) -> None:
        self._rows = iter(rows.to_batches(max_chunksize=at_once))
        self._tell = tell
        self._one_at_a_time = Lock()

    def map(
        self,
        on_task: Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]],
        threads: int,
    ) -> list[pa.RecordBatch]:
        """Return what ``on_task`` makes of all rows; after an error no more rows are taken."""

        def work() -> list[pa.RecordBatch]:
            try:
                return list(on_task(self._taken()))
            except BaseException:
                self._stop()
                raise

        with ThreadPoolExecutor(threads) as pool:
            try:
                mapped = [pool.submit(work) for _ in range(threads)]
                return [batch for each in mapped for batch in each.result()]
            finally:
                self._stop()

    def _stop(self) -> None:
        with self._one_at_a_time:
            self._rows = iter(())

    def _taken(self) -> Iterator[pa.RecordBatch]:
        while True:
            with self._one_at_a_time:
                batch = next(self._rows, None)
            if batch is None:
                return
            yield batch
            if self._tell is not None:
                with self._one_at_a_time:
                    self._tell(batch)
