"""Rows as tests of decisions write them; no process of Python hands them to the JVM."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import ArrayType, DataType, StructType

from kafka_segments.engine.frames.local_rows import local_rows

LOG = "cluster string, broker_id int, log_dir string, topic string, partition int"
_KEY = {"cluster": "c", "broker_id": 1, "log_dir": "/d", "topic": "t", "partition": 0}


def frame(spark: SparkSession, columns: str, *rows: Mapping[str, Any]) -> DataFrame:
    """Give rows with a log's key and ``columns``; what a row does not name is null."""
    schema = StructType.fromDDL(f"{LOG}, {columns}")
    values = [tuple((_KEY | dict(row)).get(name) for name in schema.fieldNames()) for row in rows]
    return _local(spark, values, schema)


def rows_of(spark: SparkSession, rows: Iterable[Sequence[Any]], columns: str) -> DataFrame:
    """Give rows of values in the order of ``columns``."""
    return _local(spark, rows, StructType.fromDDL(columns))


def _local(spark: SparkSession, rows: Iterable[Sequence[Any]], columns: StructType) -> DataFrame:
    kinds = [field.dataType for field in columns]
    held = [tuple(map(_as_arrow_takes_it, row, kinds)) for row in rows]
    return local_rows(spark, held, columns)


def _as_arrow_takes_it(value: Any, kind: DataType) -> Any:
    """Give a value whose structs have their fields' names: here they are written as tuples."""
    if isinstance(kind, StructType) and isinstance(value, tuple):
        pairs = zip(kind, value, strict=True)
        return {field.name: _as_arrow_takes_it(part, field.dataType) for field, part in pairs}
    if isinstance(kind, ArrayType) and value is not None:
        return [_as_arrow_takes_it(part, kind.elementType) for part in value]
    return value
