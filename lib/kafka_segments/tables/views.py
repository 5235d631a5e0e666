"""Views for analysts: the tables of a warehouse under their names, with timestamps as such."""

import re
from collections.abc import Collection

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StructField

from kafka_segments.errors import UsageError
from kafka_segments.storage.delta_log import last_version
from kafka_segments.storage.files import list_folder, place
from kafka_segments.storage.uris import join_uri
from kafka_segments.tables.catalog import SEGMENTS, Table
from kafka_segments.tables.delta import Warehouse
from kafka_segments.tables.missing import missing_tables

HISTORY = f"{SEGMENTS.name}_history"
_NAME = re.compile(r"[a-z][a-z0-9_]*")
_MOMENT = re.compile(r"((?:.*_)?(?:timestamp|last_modified|at))_ms")
_YEAR_10000_MS = 253_402_300_800_000


def register_views(
    spark: SparkSession, warehouse: str, *, only: Collection[str] | None = None
) -> list[str]:
    """Make a temporary view of every table of a warehouse; return their names, sorted.

    ``segments`` holds the segments that the last listing found, ``segments_history`` vanished
    ones too. Every column of ms since 1970 gets a TIMESTAMP column beside it, named without
    ``_ms``. It is null if the value is negative (Kafka's -1 means none) or beyond the year 9999.
    Delta can skip files by conditions on the column in ms only. ``only``: no other views are made.

    Raises:
        UsageError: the warehouse has no tables.
    """
    tables = Warehouse(spark, warehouse)
    views = [name for name in view_names(tables.root) if only is None or name in only]
    for name in views:
        view_of(tables, name).createOrReplaceTempView(name)
    return views


def view_names(warehouse: str) -> list[str]:
    """Return the names of the views that a warehouse gives, sorted; Spark is not asked.

    Raises:
        UsageError: the warehouse has no tables.
    """
    names = table_names(warehouse)
    if not names:
        raise UsageError(missing_tables(warehouse))
    return sorted([*names, *([HISTORY] if SEGMENTS.name in names else [])])


def table_names(warehouse: str) -> list[str]:
    """Return the names of the tables of a warehouse that have been made, sorted."""
    return sorted(
        entry.name
        for entry in list_folder(place(warehouse))
        if entry.is_folder
        and _NAME.fullmatch(entry.name)
        and last_version(join_uri(warehouse, entry.name)) is not None
    )


def view_of(tables: Warehouse, name: str) -> DataFrame:
    """Return what the view of a name holds, see ``register_views``.

    Raises:
        UsageError: its table does not exist.
    """
    if name == HISTORY:
        return with_timestamps(published(tables, SEGMENTS.name))
    rows = with_timestamps(published(tables, name))
    return rows.where(F.col("vanished_at").isNull()) if name == SEGMENTS.name else rows


def published(warehouse: Warehouse, name: str) -> DataFrame:
    """Return the rows of a table without those of quarantined segments."""
    return warehouse.read_published(Table(name, 1, ()))


def with_timestamps(rows: DataFrame) -> DataFrame:
    """Add a TIMESTAMP column beside every column that holds a moment in ms since 1970."""
    columns = []
    for field in rows.schema:
        columns.append(F.col(field.name))
        found = _MOMENT.fullmatch(field.name)
        if found and isinstance(field.dataType, LongType) and found[1] not in rows.columns:
            ms = F.col(field.name)
            fits = F.when((ms >= 0) & (ms < _YEAR_10000_MS), ms)
            moment = F.timestamp_millis(fits)
            columns.append(moment.alias(found[1], metadata={"comment": _comment(field)}))
    return rows.select(*columns)


def _comment(field: StructField) -> str:
    about = field.metadata.get("comment", "")
    return f"{field.name} as a timestamp; null where no calendar has it. {about}"
