"""Sessions of verbs that work on few rows: their queries run in one task, and are not compiled.

Spark compiles a Java program for each query, starts Python workers, and caches frames. On few rows
each of these takes longer than the query.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Lock
from weakref import WeakKeyDictionary

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from kafka_segments.engine.spark.connect import is_connect, is_on_this_machine
from kafka_segments.engine.spark.local_rows import (
    arrow_schema,
    computed_rows,
    frame_of_rows,
    rows_in_driver,
)
from kafka_segments.engine.spark.parallelism import default_parallelism
from kafka_segments.engine.spark.settings import restore, settings_meanwhile
from kafka_segments.engine.spark.shared_folders import shares_folder

MOST_ROWS = 50_000
"""A small table has no more rows."""
MOST_IN_DRIVER = 256
"""The driver works on no more rows; for more, parallel tasks are quicker."""

_FEW_ROWS = "spark.kafkaSegments.fewRows"
_FEW = {_FEW_ROWS: "true", "spark.sql.codegen.wholeStage": "false"}
_INTERPRETED = {"spark.sql.codegen.factoryMode": "NO_CODEGEN"}
# A session of our own has these already.
_OF_A_CLIENT = {"spark.sql.adaptive.enabled": "false", "spark.sql.shuffle.partitions": "4"}
_CLIENTS: WeakKeyDictionary[SparkSession, Mapping[str, str | None]] = WeakKeyDictionary()
"""Sessions of Spark Connect in which a verb works on few rows, with their settings before it.

A session of our own is asked. To ask a server each time would take longer than the steps do.
"""


@contextmanager
def few_rows(
    spark: SparkSession, *, of: str | None = None, runs_any_query: bool = False
) -> Iterator[None]:
    """Treat all that is read in this block as few rows, until ``expect_many_rows`` is called.

    What a verb reads is small where the tables that it reads are. Before and after it the session
    is as it was. A client of Spark Connect works on few rows where the server is on this machine,
    and sees the warehouse that the client sees.

    ``of``: the warehouse of the verb, None: it has none.
    ``runs_any_query``: single expressions are compiled all the same. Spark tests little of what it
    can do without, and some of it, such as listing tables, fails then.
    """
    settings = _FEW if runs_any_query else _FEW | _INTERPRETED
    if not is_connect(spark):
        with settings_meanwhile(spark, settings):
            yield
        return
    if not (is_on_this_machine(spark) if of is None else shares_folder(spark, of)):
        yield
        return
    with settings_meanwhile(spark, settings | _OF_A_CLIENT) as before:
        _CLIENTS[spark] = before
        try:
            yield
        finally:
            _CLIENTS.pop(spark, None)


def has_few_rows(spark: SparkSession) -> bool:
    """Tell whether a verb takes all that it reads for few rows."""
    if is_connect(spark):
        return spark in _CLIENTS
    return spark.conf.get(_FEW_ROWS, None) == "true"


def can_work_in_driver(spark: SparkSession) -> bool:
    """Tell whether a verb works on few rows where the driver sees what the executors see."""
    if is_connect(spark):
        return has_few_rows(spark)
    return has_few_rows(spark) and (spark.sparkContext.master or "").startswith("local")


def expect_many_rows(spark: SparkSession) -> None:
    """Compile the plans of the queries that come, as Spark does by itself."""
    if is_connect(spark):
        restore(spark, _CLIENTS.pop(spark, {}))
    elif has_few_rows(spark):
        restore(spark, dict.fromkeys(_FEW | _INTERPRETED))


def map_few(
    rows: DataFrame,
    on_task: Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]],
    columns: StructType,
    *,
    most_in_driver: int = MOST_IN_DRIVER,
    spread: bool = False,
    threads: int = 1,
    rows_at_once: int = 1,
    tell: Callable[[pa.RecordBatch], None] | None = None,
) -> DataFrame:
    """Map rows as ``DataFrame.mapInArrow`` does; few ones at once, in the driver.

    ``most_in_driver``: that many at most.
    ``spread``: others are shared out to as many tasks as the session runs at once.
    ``threads``: as many work in the driver, each through ``on_task`` of its own; the rows then come
    in no order. That pays where most of the work is compiled code or reading.
    ``rows_at_once``: as many rows are given to ``on_task`` in one batch there, where there are
    threads or somebody is told.
    ``tell``: is told of rows that were mapped in the driver.
    """
    spark = rows.sparkSession
    if can_work_in_driver(spark):
        known = rows_in_driver(rows)
        found = computed_rows(rows)[0] if known is None else known
        if len(found) <= most_in_driver:
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
    """Yield rows, so many at once; tell of them when the next ones are asked for."""
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
