"""Commit what a merge made of a plain Delta table on this machine, without Spark.

Source: delta-io/delta PROTOCOL.md, Add File and Remove File, Add CDC File, Commit Provenance
Information; and the commits that Delta 4 writes, with which tests compare ours.
"""

import json
import time
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from kafka_segments.files.delta.append import (
    commit_written,
    writable_table,
    write_parquet,
    write_rows,
)
from kafka_segments.files.delta.commit import commit_info
from kafka_segments.files.delta.merged_rows import Merged
from kafka_segments.files.delta.metadata import TableMetadata
from kafka_segments.files.delta.properties import APPEND_ONLY, CHANGE_FEED, is_set
from kafka_segments.files.delta.rows import SmallTable
from kafka_segments.files.storage.durable_files import sync_folder
from kafka_segments.files.storage.files import place

_CHANGES = "_change_data"
_CHANGE_TYPE = "_change_type"


def mergeable_table(
    uri: str, constraints: Mapping[str, str], *, version: int
) -> TableMetadata | None:
    """Return what the log of a table says in which rows may be replaced; None: Delta is to merge.

    ``constraints`` are those that the new rows meet, conditions by name.

    Raises:
        FileExistsError: ``version`` is no longer the last one.
    """
    found = writable_table(uri, constraints)
    if found is None or is_set(found.properties, APPEND_ONLY):
        return None
    if found.version != version:
        raise FileExistsError(uri)
    return found


def commit_merge(
    uri: str, table: TableMetadata, read: SmallTable, merged: Merged, *, keys: Sequence[str]
) -> None:
    """Commit in one version what became of the rows that were read; nothing where none changed.

    The files whose rows changed are removed, one with all their rows is added. Where the table has
    a change data feed, it gets the rows that were updated or deleted.

    Raises:
        FileExistsError: another run committed first; the table is as that run left it.
        OSError: the disk refused; the table is as it was.
    """
    if not merged.changed and not len(merged.inserted):
        return
    written: list[dict[str, Any]] = []
    if len(merged.rows):
        written.append({"add": write_rows(uri, table, merged.rows)})
    # Readers of the feed take rows of added files for inserted ones where it has no files.
    if is_set(table.properties, CHANGE_FEED) and (len(merged.before) or len(merged.deleted)):
        written.append({"cdc": _write_changes(uri, merged)})
    now_ms = time.time_ns() // 1_000_000
    removed = [
        {"remove": removed_file(*read.added[number], len(read.files[number]), now_ms)}
        for number in merged.changed
    ]
    said = _commit_info(table, merged, keys)
    commit_written(uri, table.version + 1, said, written, removed)


def _write_changes(uri: str, merged: Merged) -> dict[str, Any]:
    """Write a merge's rows for the feed, and wait for the disk; return its ``cdc`` action."""
    changes = {
        "update_preimage": merged.before,
        "update_postimage": merged.after,
        "delete": merged.deleted,
        "insert": merged.inserted,
    }
    rows = pa.concat_tables(
        rows.append_column(_CHANGE_TYPE, pa.repeat(kind, len(rows)))
        for kind, rows in changes.items()
    )
    folder = Path(place(uri).child(_CHANGES).path)
    if not folder.is_dir():
        folder.mkdir(exist_ok=True)
        sync_folder(folder.parent)
    name = f"cdc-00000-{uuid.uuid4()}.c000.snappy.parquet"
    data = write_parquet(str(folder / name), rows)
    return {
        "path": f"{_CHANGES}/{name}",
        "partitionValues": {},
        "size": len(data),
        "dataChange": False,
    }


def removed_file(path: str, size_bytes: int, rows: int, now_ms: int) -> dict[str, Any]:
    """Return the ``remove`` action of a file by its path, bytes and rows."""
    return {
        "path": path,
        "deletionTimestamp": now_ms,
        "dataChange": True,
        "extendedFileMetadata": True,
        "partitionValues": {},
        "size": size_bytes,
        "stats": json.dumps({"numRecords": rows}),
    }


def _commit_info(table: TableMetadata, merged: Merged, keys: Sequence[str]) -> dict[str, Any]:
    condition = " AND ".join(f"(t.{key} = s.{key})" for key in keys)
    metrics = {
        "numTargetRowsUpdated": len(merged.before),
        "numTargetRowsDeleted": len(merged.deleted),
        "numTargetRowsInserted": len(merged.inserted),
        "numTargetFilesAdded": int(len(merged.rows) > 0),
        "numTargetFilesRemoved": len(merged.changed),
    }
    parameters = {
        "predicate": json.dumps([condition]),
        "matchedPredicates": json.dumps([{"actionType": "update"}]),
        "notMatchedPredicates": json.dumps([{"actionType": "insert"}]),
        "notMatchedBySourcePredicates": "[]",
    }
    counts = {name: str(number) for name, number in metrics.items()}
    return commit_info("MERGE", parameters, read_version=table.version, metrics=counts)
