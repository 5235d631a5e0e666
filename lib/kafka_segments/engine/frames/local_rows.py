"""Rows that Python has already, as DataFrames that no task of Python has to make."""

from collections.abc import Iterable, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from kafka_segments.engine.spark.connect import is_connect

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
    if not is_connect(frame.sparkSession):
        return frame.toArrow(), frame.schema
    rows, schema = frame._to_table()
    return rows.cast(arrow_schema(schema)), schema


def frame_of_rows(spark: SparkSession, rows: pa.Table, columns: StructType) -> DataFrame:
    """Return few rows of Arrow as a DataFrame of one task; ``rows_in_driver`` finds them by it."""
    frame = arrow_rows(spark, rows, columns).coalesce(1)
    _KNOWN[frame] = rows, columns
    return frame


def rows_in_driver(frame: DataFrame) -> pa.Table | None:
    """Return the rows that a DataFrame was made of; None: Spark has to compute them."""
    return _KNOWN[frame][0] if frame in _KNOWN else None
