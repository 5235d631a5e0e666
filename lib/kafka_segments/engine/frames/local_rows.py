"""Rows that go from Python to Spark and back, in a session of our own and over Connect."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import pyarrow as pa
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from kafka_segments.engine.spark.connect import is_connect
from kafka_segments.engine.workarounds.kept_rows import plan_of_kept_rows

_KNOWN: WeakKeyDictionary[DataFrame, tuple[pa.Table, StructType]] = WeakKeyDictionary()


def local_rows(
    spark: SparkSession, rows: Iterable[Sequence[Any]], columns: StructType
) -> DataFrame:
    """Return few rows, given as values in the order of ``columns``, as a DataFrame of one task.

    ``SparkSession.createDataFrame`` of the same values has Python workers hand them to the JVM,
    in a job each time that they are read.
    """
    names = columns.fieldNames()
    values = [dict(zip(names, row, strict=True)) for row in rows]
    return frame_of_rows(spark, pa.Table.from_pylist(values, schema=arrow_schema(columns)), columns)


def arrow_schema(columns: StructType) -> pa.Schema:
    """Return the schema by which Arrow holds rows of ``columns``."""
    return to_arrow_schema(columns, timezone="UTC")


def arrow_rows(spark: SparkSession, rows: pa.Table, columns: StructType) -> DataFrame:
    """Return rows of Arrow as a DataFrame; their schema is ``arrow_schema`` of ``columns``."""
    if not rows.num_rows:
        rows = rows.schema.empty_table()  # Spark takes no column without a chunk
    frame = spark.createDataFrame(rows, columns)
    return _with_schema(frame, columns) if is_connect(spark) else frame


def _with_schema(frame: Any, columns: StructType) -> DataFrame:
    """Tell a client's frame its schema, for which it would ask the server."""
    frame._cached_schema = columns
    found: DataFrame = frame
    return found


def computed_rows(frame: Any) -> tuple[pa.Table, StructType]:
    """Return the rows of a DataFrame as Arrow, and their schema; Spark computes unknown ones.

    ``DataFrame.toArrow`` of a client asks the server for the schema first, which then plans twice.
    """
    if frame in _KNOWN:
        return _KNOWN[frame]
    schema = schema_if_cheap(frame)
    if schema is not None:
        return frame.toArrow(), schema
    rows, schema = frame._to_table()
    return rows.cast(arrow_schema(schema)), schema


def schema_if_cheap(frame: DataFrame) -> StructType | None:
    """Return the schema of a DataFrame; None: a server of Connect would have to be asked for it."""
    return None if is_connect(frame.sparkSession) else frame.schema


def stream_rows(rows: DataFrame) -> Iterator[Row]:
    """Yield all rows, without holding them at once.

    Over Connect the server sends them as batches of Arrow. In the driver's own session it is not
    ``DataFrame.toLocalIterator``: its jobs start when their query counts as over, and Spark 4.2
    keeps such jobs, with plans and broadcasts, until the session ends
    (DAGScheduler.activeQueryToJobs).
    """
    if is_connect(rows.sparkSession):
        return rows.toLocalIterator()
    return rows.rdd.toLocalIterator()


def frame_of_rows(spark: SparkSession, rows: pa.Table, columns: StructType) -> DataFrame:
    """Return few rows of Arrow as a DataFrame of one task; ``rows_in_driver`` finds them by it."""
    frame = arrow_rows(spark, rows, columns).coalesce(1)
    _KNOWN[frame] = rows, columns
    return frame


def rows_in_driver(frame: DataFrame) -> pa.Table | None:
    """Return the rows that a DataFrame was made of; None: Spark has to compute them."""
    return _KNOWN[frame][0] if frame in _KNOWN else None


def persisted_rows(frame: DataFrame) -> DataFrame:
    """Persist a DataFrame; return one whose plan begins at the rows that are kept.

    The plan that ``DataFrame.persist`` returns still has all steps that lead to the rows. Spark
    analyzes and compares them anew in each step that follows, once for each side of a join: after
    ten such steps it plans for longer than it works. Over Connect nobody can cut a plan.
    ``frame.unpersist`` lets the rows go.
    """
    kept = frame.persist()
    if is_connect(frame.sparkSession):
        return kept
    return plan_of_kept_rows(kept)
