"""Append a file of rows to a plain Delta table on this machine, without Spark.

Source: delta-io/delta PROTOCOL.md, Add File, Writer Version Requirements, Per-file Statistics.
"""

import io
import json
import time
import uuid
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

from kafka_segments.storage.delta_metadata import TableMetadata, publish_commit, read_metadata
from kafka_segments.storage.durable_files import write_durably
from kafka_segments.storage.files import place

_MOST_TRIES = 20
_CHECKPOINT_EVERY = 10  # Delta writes one after its own commits with such a version
_LAST_WITHOUT_FEATURES = 3
# What these ask of a writer is nothing where rows are appended, or is looked for below.
_FEATURES = {
    *("appendOnly", "invariants", "changeDataFeed", "checkConstraints"),
    *("clustering", "domainMetadata"),  # statistics of the columns clustered by: of all its keys
}
_CONSTRAINT = "delta.constraints."
_OF_A_COLUMN = '"delta.'  # invariants, generated values, identities: in a column's metadata
_MEASURED = "delta.dataSkippingStatsColumns"
# Delta cuts longer texts off in its statistics.
_LONGEST_TEXT = 32
_GREATEST_SIGN = "\U0010ffff"
_NONE: Mapping[str, str] = MappingProxyType({})


def append_rows(uri: str, rows: pa.Table, *, constraints: Mapping[str, str] = _NONE) -> bool:
    """Append few rows by one file and one commit; ``rows`` has the table's columns and types.

    ``constraints``: those that all rows are known to meet, conditions by name.

    False: nothing is written, Delta is to do it. The table has something else that is asked of a
    writer's rows, or the commit is one after which Delta writes a checkpoint.

    Raises:
        OSError: the disk refused; the table is as it was.
    """
    before = read_metadata(uri)
    if before is None or not _is_plain(before, constraints):
        return False
    if not (before.version + 1) % _CHECKPOINT_EVERY:
        return False
    if not len(rows):
        return True
    name = f"part-00000-{uuid.uuid4()}-c000.snappy.parquet"
    file = Path(place(uri).child(name).path)
    data = _as_parquet(rows)
    write_durably(str(file), data, is_synced=True)
    # What ends this otherwise may come after the commit: then the file stays, and VACUUM takes it
    # if there was none.
    is_written = _commit(uri, before, _add(name, len(data), rows, before.properties))
    if not is_written:
        file.unlink()
    return is_written


def _is_plain(table: TableMetadata, constraints: Mapping[str, str]) -> bool:
    """Tell whether any row that meets the constraints may be appended as it is."""
    met = {f"{_CONSTRAINT}{name}": condition for name, condition in constraints.items()}
    protocol = table.protocol
    features = {*(protocol.get("writerFeatures") or ()), *(protocol.get("readerFeatures") or ())}
    return (
        protocol["minReaderVersion"] == 1
        and (bool(features) or protocol["minWriterVersion"] <= _LAST_WITHOUT_FEATURES)
        and features <= _FEATURES
        and not table.metadata.get("partitionColumns")
        and all(
            met.get(key) == condition
            for key, condition in table.properties.items()
            if key.startswith(_CONSTRAINT)
        )
        and _OF_A_COLUMN not in table.schema
    )


def _as_parquet(rows: pa.Table) -> bytes:
    data = io.BytesIO()
    parquet.write_table(rows, data, compression="snappy", store_schema=False)
    return data.getvalue()


def _add(name: str, size_bytes: int, rows: pa.Table, properties: dict[str, str]) -> dict[str, Any]:
    measured = properties.get(_MEASURED, "").split(",")
    return {
        "path": name,
        "partitionValues": {},
        "size": size_bytes,
        "modificationTime": time.time_ns() // 1_000_000,
        "dataChange": True,
        "stats": json.dumps(_statistics(rows, measured)),
    }


def _statistics(rows: pa.Table, columns: Iterable[str]) -> dict[str, Any]:
    """Return what files are passed over by; what it does not name passes nothing over."""
    least: dict[str, Any] = {}
    most: dict[str, Any] = {}
    nulls: dict[str, int] = {}
    for name in columns:
        if name not in rows.column_names:
            continue
        nulls[name] = rows[name].null_count
        is_text = pa.types.is_string(rows[name].type)
        if is_text or pa.types.is_integer(rows[name].type):
            bounds = pc.min_max(rows[name]).as_py()
            if bounds["min"] is not None:
                least[name], most[name] = bounds["min"], bounds["max"]
            if bounds["min"] is not None and is_text:
                least[name] = least[name][:_LONGEST_TEXT]
                most[name] = _not_less(most[name])
    return {"numRecords": len(rows), "minValues": least, "maxValues": most, "nullCount": nulls}


def _not_less(text: str) -> str:
    """Cut a text off after 32 characters; what comes of it is not less than the text."""
    return text if len(text) <= _LONGEST_TEXT else text[:_LONGEST_TEXT] + _GREATEST_SIGN


def _commit(uri: str, before: TableMetadata, add: dict[str, Any]) -> bool:
    """Commit a file as the next version; False: the table has become another one meanwhile."""
    known = before
    for _ in range(_MOST_TRIES):
        commit = {
            "timestamp": time.time_ns() // 1_000_000,
            "operation": "WRITE",
            "operationParameters": {"mode": "Append"},
            "readVersion": known.version,
            "isolationLevel": "Serializable",
            "isBlindAppend": True,
            "operationMetrics": {},
            "engineInfo": "kafka-segments",
        }
        lines = ({"commitInfo": commit}, {"add": add})
        with suppress(FileExistsError):  # another run was first: rows are appended after its own
            publish_commit(uri, known.version + 1, lines)
            return True
        now = read_metadata(uri)
        if now is None or now[1:] != before[1:]:
            return False
        known = now
    return False
