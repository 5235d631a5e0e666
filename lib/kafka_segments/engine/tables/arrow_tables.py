"""Small tables on local disks: read, appended to and merged into by Arrow, without Spark.

Delta plans a read or a write of few rows for longer than either takes.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructField, StructType

from kafka_segments.engine.frames.local_rows import arrow_schema, frame_of_rows
from kafka_segments.engine.limits import (
    COLUMNS_BYTES,
    JOINED_EVERY_VERSIONS,
    LEAST_JOINED_FILES,
    MOST_ROWS,
    SMALL_ROWS_BYTES,
    SMALL_TABLE_BYTES,
    SMALL_TABLE_FILES,
)
from kafka_segments.engine.tables.schemas import parsed
from kafka_segments.files.delta.append import append_rows, writable_table
from kafka_segments.files.delta.join import commit_join
from kafka_segments.files.delta.log import last_version
from kafka_segments.files.delta.merge import commit_merge, mergeable_table
from kafka_segments.files.delta.merged_rows import merge_rows, rows_gone
from kafka_segments.files.delta.metadata import read_metadata
from kafka_segments.files.delta.properties import CHANGE_FEED, is_set
from kafka_segments.files.delta.rows import SmallTable, file_totals, read_small_files
from kafka_segments.files.storage.stores import store_of

_NONE: Mapping[str, str] = MappingProxyType({})
_MOST_TRIES = 5
_IS_GONE = "_is_gone"


def read_small(spark: SparkSession, uri: str, columns: Sequence[str] = ()) -> DataFrame | None:
    """Return the rows of the last version of a small table on this machine, as Delta gives them.

    The rows are a copy: later writes do not show in it. Where ``columns`` are named the
    rows have those of them that the table has, without their comments.
    None: the table is not small or lies in a store, or only Delta can read it.
    """
    found = _read_small(uri, columns)
    if found is None:
        return None
    schema = _schema_of(found, columns)
    rows = _joined(found, arrow_schema(schema))
    if rows is None or rows.nbytes > SMALL_ROWS_BYTES:
        return None
    return frame_of_rows(spark, rows, schema)


def read_columns(
    uri: str, columns: Sequence[str], *, most_rows: int
) -> tuple[pa.Table, StructType] | None:
    """Return those of some columns that a table on this machine has, however large its rows are.

    None: the table has more rows or lies in a store, or only Delta can read it.
    """
    if not store_of(uri).is_local:
        return None
    found = read_small_files(
        uri, columns, most_bytes=COLUMNS_BYTES, most_files=most_rows, most_rows=most_rows
    )
    if found is None:
        return None
    schema = _schema_of(found, columns)
    rows = _joined(found, arrow_schema(schema))
    return None if rows is None else (rows, schema)


def _schema_of(table: SmallTable, columns: Sequence[str]) -> StructType:
    """Return the schema of what was read: of all columns, or of some without their comments."""
    schema = parsed(table.schema)
    if not columns:
        return schema
    fields = {field.name: field for field in schema}
    asked = (fields[name] for name in columns if name in fields)
    return StructType([StructField(of.name, of.dataType, of.nullable) for of in asked])


def is_small(uri: str) -> bool:
    """Tell whether a table on this machine has few bytes in few files, by its log."""
    found = file_totals(uri, most_log_bytes=SMALL_TABLE_BYTES) if store_of(uri).is_local else None
    return found is not None and found[0] <= SMALL_TABLE_FILES and found[1] <= SMALL_TABLE_BYTES


def append_small(uri: str, rows: pa.Table, *, constraints: Mapping[str, str] = _NONE) -> bool:
    """Append few rows to a table on this machine by one file; they may have more columns.

    ``constraints``: CHECK constraints that all rows meet, conditions by name.

    False: nothing is written, and Delta is to do it or to say why not.
    """
    if not store_of(uri).is_local:
        return False
    found = read_metadata(uri)
    if found is None:
        return False
    schema = arrow_schema(parsed(found.schema))
    try:
        return append_rows(uri, _as_written(rows, schema), constraints=constraints)
    except (pa.ArrowException, KeyError, ValueError):  # another type, or null where none may be
        return False


def merge_small(
    uri: str,
    rows: pa.Table,
    *,
    keys: Sequence[str],
    deleted: str | None = None,
    constraints: Mapping[str, str] = _NONE,
) -> bool:
    """Merge few rows into a small table on this machine, as ``merge_statement`` says.

    ``constraints``: CHECK constraints that all rows meet, conditions by name. They may have more
    columns than the table. Where the table has no change data feed, rows that are there as they
    are make no commit.

    False: nothing is written, and Delta is to do it or to say why not.
    """
    if not len(rows):
        return True
    for _ in range(_MOST_TRIES):
        read = _read_small(uri)
        try:
            if read is None or not _merge_into(uri, read, rows, keys, deleted, constraints):
                return False
        except FileExistsError:  # another run was first: the table is another one now
            continue
        except (pa.ArrowException, KeyError, ValueError):  # as of ``append_small``
            return False
        return True
    return False


def replace_small(
    uri: str,
    kept: pa.Table,
    rows: pa.Table,
    *,
    keys: Sequence[str],
    constraints: Mapping[str, str] = _NONE,
) -> bool:
    """Put few rows in the place of others of a small table on this machine, as ``merge_small``.

    ``kept``: the rows that the table has in that place, with all of its columns. A file in which
    nothing changes stays. False: as of ``merge_small``; so it is where a key is null or repeated,
    by which nothing can be merged.
    """
    try:
        named = _as_written(rows, kept.schema)
    except (pa.ArrowException, KeyError, ValueError):
        return False
    gone = rows_gone(kept, named, keys=keys)
    if gone is None:
        return False
    both = pa.concat_tables([named, gone])
    is_gone = np.arange(len(both)) >= len(named)
    marked = both.append_column(_IS_GONE, pa.array(is_gone))
    return merge_small(uri, marked, keys=keys, deleted=_IS_GONE, constraints=constraints)


def join_small(uri: str) -> None:
    """Join the files of a small table on this machine now and then: once in some commits.

    Delta is left alone to do it in a table that asks more of its writers.
    """
    if not store_of(uri).is_local or (last_version(uri) or 0) % JOINED_EVERY_VERSIONS != 1:
        return
    read, table = _read_small(uri), read_metadata(uri)
    if read is None or table is None or not read.is_plain or len(read.files) < LEAST_JOINED_FILES:
        return
    if table.version == read.version and writable_table(uri, table.constraints) == table:
        rows = _joined(read, arrow_schema(parsed(read.schema)))
        if rows is not None:
            commit_join(uri, table, read, rows)


def _merge_into(
    uri: str,
    read: SmallTable,
    rows: pa.Table,
    keys: Sequence[str],
    deleted: str | None,
    constraints: Mapping[str, str],
) -> bool:
    """Merge rows into what was read of a table; the errors are those of ``commit_merge``."""
    if not read.is_plain:
        return False
    table = mergeable_table(uri, constraints, version=read.version)
    schema = arrow_schema(parsed(read.schema))
    if table is None or not all(_is_exact(schema.field(key).type) for key in keys):
        return False
    merged = merge_rows(
        [_with_schema(file, schema) for file in read.files],
        rows.select(schema.names).cast(schema),
        keys=keys,
        is_gone=None if deleted is None else rows[deleted],
        keeps_same=not is_set(table.properties, CHANGE_FEED),
    )
    if merged is None:
        return False
    commit_merge(uri, table, read, merged, keys=keys)
    return True


def _is_exact(kind: pa.DataType) -> bool:
    """Tell whether Arrow and Spark call the same values of a type equal."""
    return bool(pa.types.is_integer(kind) or pa.types.is_string(kind))


def _read_small(uri: str, columns: Sequence[str] = ()) -> SmallTable | None:
    if not store_of(uri).is_local:
        return None
    return read_small_files(
        uri,
        columns,
        most_bytes=SMALL_TABLE_BYTES,
        most_files=SMALL_TABLE_FILES,
        most_rows=MOST_ROWS,
    )


def _joined(table: SmallTable, schema: pa.Schema) -> pa.Table | None:
    """Join the rows of a table's files; a column that a file does not have is null."""
    try:
        files = [_with_schema(file, schema) for file in table.files]
    except pa.ArrowException:
        return None
    return pa.concat_tables(files).combine_chunks() if files else schema.empty_table()


def _as_written(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return rows with the columns of a table; those of it that they lack are null.

    Raises:
        ArrowException, ValueError: another type, or null where none may be.
    """
    for field in schema:
        if field.name not in rows.column_names:
            rows = rows.append_column(field.name, pa.nulls(len(rows), field.type))
    return rows.select(schema.names).cast(schema)


def _with_schema(file: pa.Table, schema: pa.Schema) -> pa.Table:
    columns = [
        file[field.name].cast(field.type)
        if field.name in file.column_names
        else pa.nulls(len(file), field.type)
        for field in schema
    ]
    return pa.table(columns, schema=schema)
