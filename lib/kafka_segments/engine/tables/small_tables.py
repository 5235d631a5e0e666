"""Small tables on local disks, read by Arrow without Spark.

Delta plans a read of few rows for longer than it takes.
"""

import json
from collections.abc import Sequence

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructField, StructType

from kafka_segments.engine.spark.few_rows import MOST_ROWS
from kafka_segments.engine.spark.local_rows import arrow_schema, frame_of_rows
from kafka_segments.files.storage.delta_rows import SmallTable, file_totals, read_small_files
from kafka_segments.files.storage.stores import store_of

MOST_BYTES = 4 * 1024 * 1024
MOST_FILES = 500
MOST_BYTES_READ = 16 * 1024 * 1024
_MOST_BYTES_OF_COLUMNS = 4 * 1024**3


def read_small(spark: SparkSession, uri: str, columns: Sequence[str] = ()) -> DataFrame | None:
    """Return the rows of the last version of a small table on this machine, as Delta gives them.

    The rows are a copy: later writes do not show in it. Where ``columns`` are named the
    rows have those of them that the table has, without their comments.
    None: the table is not small or lies in a store, or only Delta can tell what it holds.
    """
    found = _read_small(uri, columns)
    if found is None:
        return None
    schema = _schema_of(found, columns)
    rows = _joined(found, arrow_schema(schema))
    if rows is None or rows.nbytes > MOST_BYTES_READ:
        return None
    return frame_of_rows(spark, rows, schema)


def read_columns(
    uri: str, columns: Sequence[str], *, most_rows: int
) -> tuple[pa.Table, StructType] | None:
    """Return those of some columns that a table on this machine has, however large its rows are.

    None: the table has more rows or lies in a store, or only Delta can tell what it holds.
    """
    if not store_of(uri).is_local:
        return None
    found = read_small_files(
        uri, columns, most_bytes=_MOST_BYTES_OF_COLUMNS, most_files=most_rows, most_rows=most_rows
    )
    if found is None:
        return None
    schema = _schema_of(found, columns)
    rows = _joined(found, arrow_schema(schema))
    return None if rows is None else (rows, schema)


def _schema_of(table: SmallTable, columns: Sequence[str]) -> StructType:
    """Return the schema of what was read: of all columns, or of some without their comments."""
    schema = StructType.fromJson(json.loads(table.schema))
    if not columns:
        return schema
    fields = {field.name: field for field in schema}
    asked = (fields[name] for name in columns if name in fields)
    return StructType([StructField(of.name, of.dataType, of.nullable) for of in asked])


def is_small(uri: str) -> bool:
    """Tell whether a table on this machine has few bytes in few files, by its log."""
    found = file_totals(uri, most_log_bytes=MOST_BYTES) if store_of(uri).is_local else None
    return found is not None and found[0] <= MOST_FILES and found[1] <= MOST_BYTES


def _read_small(uri: str, columns: Sequence[str] = ()) -> SmallTable | None:
    if not store_of(uri).is_local:
        return None
    return read_small_files(
        uri, columns, most_bytes=MOST_BYTES, most_files=MOST_FILES, most_rows=MOST_ROWS
    )


def _joined(table: SmallTable, schema: pa.Schema) -> pa.Table | None:
    """Join the rows of a table's files; a column that a file does not have is null."""
    try:
        files = [_with_schema(file, schema) for file in table.files]
    except pa.ArrowException:
        return None
    return pa.concat_tables(files).combine_chunks() if files else schema.empty_table()


def _with_schema(file: pa.Table, schema: pa.Schema) -> pa.Table:
    columns = [
        file[field.name].cast(field.type)
        if field.name in file.column_names
        else pa.nulls(len(file), field.type)
        for field in schema
    ]
    return pa.table(columns, schema=schema)
