"""Reads of internal topics into tables, and what the tables must have then."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from kafka_segments.engine.tables.catalog import INTERNAL_FILES, INTERNAL_RECORDS, Table
from kafka_segments.engine.tables.delta import Warehouse
from kafka_segments.verbs.find.internals.files import Origin
from kafka_segments.verbs.find.internals.run import InternalsOptions, Reading, run_internals
from support.logs.internal_rows import rows_of_file

Rows = list[dict[str, Any]]
_NOTES = ("read_bytes", "read_rows", "crc32c", "records_version")
"""Columns of ``internal_files`` that say how the next run goes on, which depends on the runs."""


def read(spark: SparkSession, folder: Path, warehouse: Path, *, is_dry: bool = False) -> Reading:
    """Read a log directory into tables, as the verb does."""
    origin = Origin((str(folder),), cluster="c", broker_id=1)
    with ExitStack() as caches:
        options = InternalsOptions(origin, is_dry)
        reading = run_internals(Warehouse(spark, str(warehouse)), options, caches)
        return reading._replace(sums=_kept(reading))


def _kept(reading: Reading) -> Any:
    return sorted(map(str, reading.sums.collect()))


def rows_now(files: Iterable[Path]) -> Rows:
    """Give what a reader of all files finds, without Spark."""
    names = INTERNAL_RECORDS.schema.fieldNames()
    rows = [row for file in files for row in rows_of_file(file)]
    return [{name: row[name] for name in names} for row in rows]


def in_order(rows: Rows) -> Rows:
    """Sort rows of ``internal_records`` or ``internal_files``."""
    names = ("topic", "partition", "file", "row")
    return sorted(rows, key=lambda row: tuple(row.get(name, 0) for name in names))


def table_rows(spark: SparkSession, warehouse: Path, table: Table) -> Rows:
    """Return the rows of a table."""
    rows = Warehouse(spark, str(warehouse)).read(table).collect()
    return [row.asDict(recursive=True) for row in rows]


def file_rows(spark: SparkSession, warehouse: Path) -> Rows:
    """Return what ``internal_files`` says that does not depend on how files were read."""
    rows = in_order(table_rows(spark, warehouse, INTERNAL_FILES))
    return [{name: row[name] for name in row if name not in _NOTES} for row in rows]
