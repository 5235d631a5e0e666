"""Rows of ``internal_records`` of files, read without Spark, as an executor reads them.

Each has what is known of its file beside it, as ``with_file_facts`` adds it.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from kafka_segments.engine.frames.local_rows import local_rows
from kafka_segments.engine.tables.catalog import INTERNAL_FILES, INTERNAL_RECORDS
from kafka_segments.verbs.find.internals.tasks import InternalReader

_SCHEMA = INTERNAL_RECORDS.schema
_ARROW_SCHEMA = to_arrow_schema(_SCHEMA)
_FACTS = ("is_active", "size_bytes")
SCHEMA = StructType([*_SCHEMA, *(INTERNAL_FILES.schema[name] for name in _FACTS)])


def rows_of_file(path: Path, *, broker_id: int = 1, is_active: bool = True) -> list[dict[str, Any]]:
    """Read a segment or a snapshot in the folder of its partition."""
    topic, _, partition = path.parent.name.rpartition("-")
    given = {
        "cluster": "c",
        "broker_id": broker_id,
        "log_dir": str(path.parent.parent),
        "topic": topic,
        "partition": int(partition),
        "file": path.name,
        "path": str(path),
        "is_snapshot": path.suffix == ".checkpoint",
        "is_active": is_active,
        "base_offset": int(path.name[:20]),
        "size_bytes": path.stat().st_size,
        "mtime_ns": 1,
    }
    batches = list(InternalReader(_ARROW_SCHEMA).file(given))
    assert all(batch.schema == _ARROW_SCHEMA for batch in batches)
    facts = {name: given[name] for name in _FACTS}
    return [row | facts for batch in batches for row in batch.to_pylist()]


def rows_of_log(folder: Path, **file: Any) -> list[dict[str, Any]]:
    """Read the segments of a partition; the last one is active."""
    logs = sorted(folder.glob("*.log"))
    return [row for log in logs for row in rows_of_file(log, is_active=log == logs[-1], **file)]


def internal_frame(spark: SparkSession, rows: Iterable[dict[str, Any]]) -> DataFrame:
    """Return such rows as a frame."""
    values = [tuple(row[name] for name in SCHEMA.fieldNames()) for row in rows]
    return local_rows(spark, values, SCHEMA)
