"""Checkpoints that a log directory had when it was built before, and that are gone."""

from typing import Any, NamedTuple

import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from kafka_segments.engine.frames.driver_rows import as_dicts, with_values
from kafka_segments.engine.frames.local_rows import local_rows
from kafka_segments.engine.tables.catalog import LOG_DIRS, LOGS, Table
from kafka_segments.engine.tables.delta import Warehouse
from kafka_segments.files.folders import kinds
from kafka_segments.kafka.text.checkpoints import HIGH_WATERMARK, LOG_START_OFFSET

_WAS_THERE = "it was there when its directory was built before, and is gone"
_KEYS = LOG_DIRS.keys
_Key = tuple[Any, ...]


class _Notes(NamedTuple):
    """A checkpoint: its file, what a listing says of it, the column of ``logs`` that it fills."""

    file: str
    is_there: str
    column: str

    @property
    def lost(self) -> str:
        """What is said of it."""
        return f"{self.file}: {_WAS_THERE}"


_OF_BOUNDS = (
    _Notes(HIGH_WATERMARK, "has_high_watermarks", "high_watermark"),
    _Notes(LOG_START_OFFSET, "has_log_starts", "log_start_offset"),
)


def with_lost_notes(warehouse: Warehouse, listed: DataFrame) -> DataFrame:
    """Say in the reason of log directories which checkpoints they had before, and lack now.

    Without one that tells how far logs reached nothing shows that they lack their end. Nothing is
    said of a directory that never had one. A broker's start makes them anew.

    Needs: rows of a listing, with cluster and broker_id.
    Gives: the same.
    """
    if not warehouse.version(LOG_DIRS) or not warehouse.version(LOGS):
        return listed
    log_dirs = as_dicts(with_values(listed, {"kind": (kinds.LOG_DIR,)}), (*_KEYS, "meta"))
    lost: dict[_Key, list[str]] = {}
    for notes in _OF_BOUNDS:
        lacking = {
            tuple(map(row.get, _KEYS)) for row in log_dirs if not row["meta"][notes.is_there]
        }
        for key in sorted(lacking & _had(warehouse, notes)) if lacking else ():
            lost.setdefault(key, []).append(notes.lost)
    if not lost:
        return listed
    kind = {field.name: field.dataType for field in LOG_DIRS.schema}
    columns = [StructField(name, kind[name]) for name in _KEYS] + [
        StructField("_lost", StringType())
    ]
    rows = [(*key, "; ".join(of_dir)) for key, of_dir in lost.items()]
    told = F.broadcast(local_rows(listed.sparkSession, rows, StructType(columns)))
    is_told = (F.col("kind") == kinds.LOG_DIR) & F.col("_lost").isNotNull()
    reason = F.when(is_told, F.concat_ws("; ", "reason", "_lost")).otherwise(F.col("reason"))
    joined = listed.join(told, [*_KEYS], how="left")
    return joined.withColumn("reason", reason).select(*listed.columns)


def _had(warehouse: Warehouse, notes: _Notes) -> set[_Key]:
    """Return the log directories that had a checkpoint: it noted a log, or was missed before."""
    noted = _keys(warehouse, LOGS, notes.column, "")
    return noted | _keys(warehouse, LOG_DIRS, "problem", notes.lost)


def _keys(warehouse: Warehouse, table: Table, column: str, holds: str) -> set[_Key]:
    """Return the log directories of rows with a value in a column, one that ``holds`` a text."""
    found = warehouse.columns_in_driver(table, (*_KEYS, column))
    if found is None:
        rows = warehouse.read(table, (*_KEYS, column))
        if column not in rows.columns:  # an older release made the table
            return set()
        holding = rows.where(F.col(column).cast("string").contains(holds))
        return {tuple(row) for row in holding.select(*_KEYS).distinct().collect()}
    if column not in found[0].column_names:
        return set()
    there = found[0].filter(pc.is_valid(found[0][column]))
    if holds:
        there = there.filter(pc.match_substring(there[column], holds))
    return {
        tuple(map(row.get, _KEYS)) for row in there.group_by([*_KEYS]).aggregate([]).to_pylist()
    }
