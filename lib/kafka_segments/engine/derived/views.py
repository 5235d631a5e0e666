"""Views for analysts: the tables of a warehouse under their names, with timestamps as such."""

import re
from collections.abc import Collection

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StructField

from kafka_segments.engine.derived.internal_current import current_records
from kafka_segments.engine.derived.internal_problems import internal_problems, problems_of
from kafka_segments.engine.derived.known_replicas import known_replicas
from kafka_segments.engine.tables.catalog import INTERNAL_RECORDS, SEGMENTS, Table
from kafka_segments.engine.tables.delta import Warehouse
from kafka_segments.engine.tables.missing import missing_tables
from kafka_segments.engine.tables.schemas import newest_versions
from kafka_segments.errors import UsageError
from kafka_segments.files.delta.log import last_version
from kafka_segments.files.storage.files import list_folder, place
from kafka_segments.files.storage.uris import join_uri
from kafka_segments.settings import TopicConfig

HISTORY = f"{SEGMENTS.name}_history"
_NAME = re.compile(r"[a-z][a-z0-9_]*")
CURRENT, PROBLEMS = "internal_current", "internal_problems"
_DURATIONS = frozenset(TopicConfig.model_fields)
"""Columns that are named for settings, whose ms are no moments."""
_MOMENT = re.compile(r"(.*_)?(timestamp|last_modified|at)_ms")
_YEAR_10000_MS = 253_402_300_800_000
_OF_TABLE = {
    HISTORY: SEGMENTS.name,
    CURRENT: INTERNAL_RECORDS.name,
    PROBLEMS: INTERNAL_RECORDS.name,
}
"""Views of other names than their tables."""


def register_views(warehouse: Warehouse, *, only: Collection[str] | None = None) -> list[str]:
    """Make a temporary view of every table of a warehouse; return their names, sorted.

    ``segments`` holds the segments that the last listing found, ``segments_history`` vanished
    ones too. ``internal_current`` holds what coordinators' topics say last of each key, and
    ``internal_problems`` of which of their partitions that is not known.
    Every column of ms since 1970 gets a TIMESTAMP column beside it, see ``moment_name``. It is
    null if the value is negative (Kafka's -1 means none) or beyond the year 9999.
    Delta can skip files by conditions on the column in ms only. ``only``: no other views are made.

    Raises:
        UsageError: the warehouse has no tables.
    """
    views = [name for name in view_names(warehouse.root) if only is None or name in only]
    for name in views:
        view_of(warehouse, name).createOrReplaceTempView(name)
    return views


def view_names(warehouse: str) -> list[str]:
    """Return the names of the views that a warehouse gives, sorted; Spark is not asked.

    Raises:
        UsageError: the warehouse has no tables.
    """
    names = table_names(warehouse)
    if not names:
        raise UsageError(missing_tables(warehouse))
    return sorted([*names, *(view for view, table in _OF_TABLE.items() if table in names)])


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
    if name == PROBLEMS:
        return internal_problems(tables)
    rows = published(tables, _OF_TABLE.get(name, name))
    if name == CURRENT:
        problems = problems_of(tables)
        current = current_records(known_replicas(tables), problems.logs, problems.keys)
        rows = rows.transform(current)
    rows = with_timestamps(rows)
    return rows.where(F.col("vanished_at").isNull()) if name == SEGMENTS.name else rows


def published(warehouse: Warehouse, name: str) -> DataFrame:
    """Return the rows of a table without those of quarantined segments."""
    return warehouse.read_published(Table(name, newest_versions().get(name, 1), ()))


def with_timestamps(rows: DataFrame) -> DataFrame:
    """Add a TIMESTAMP column beside every column that holds a moment in ms since 1970."""
    columns = []
    for field in rows.schema:
        columns.append(F.col(field.name))
        name = moment_name(field)
        if name is not None and name not in rows.columns:
            ms = F.col(field.name)
            fits = F.when((ms >= 0) & (ms < _YEAR_10000_MS), ms)
            moment = F.timestamp_millis(fits)
            columns.append(moment.alias(name, metadata={"comment": _comment(field)}))
    return rows.select(*columns)


def moment_name(field: StructField) -> str | None:
    """Return the name of the TIMESTAMP column beside a column; None: it holds no moment.

    A name that says a moment loses its ``_ms`` (largest_timestamp, expires_at); others get ``_at``
    for it (from_at, state_at).
    """
    is_moment = field.name.endswith("_ms") and field.name not in _DURATIONS
    if not is_moment or not isinstance(field.dataType, LongType):
        return None
    stem = field.name.removesuffix("_ms")
    return stem if _MOMENT.fullmatch(field.name) else f"{stem}_at"


def _comment(field: StructField) -> str:
    about = field.metadata.get("comment", "")
    return f"{field.name} as a timestamp; null where no calendar has it. {about}"
