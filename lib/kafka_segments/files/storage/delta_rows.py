"""Rows of a small Delta table of reader version 1, without Spark.

Source: delta-io/delta PROTOCOL.md, Action Reconciliation. What a plain reader cannot be sure of
(another reader version, partitions, a log with a gap, a large table) gives None: ask Spark then.
"""

import json
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple
from urllib.parse import unquote

import pyarrow as pa
from pyarrow import parquet

from kafka_segments.errors import SourceError
from kafka_segments.files.storage.delta_health import refuse_broken_log
from kafka_segments.files.storage.delta_log import CHECKPOINT, COMMIT
from kafka_segments.files.storage.files import Place, list_folder, place, read_whole

_MOST_LOG_BYTES = 64 * 1024 * 1024
_ACTIONS = ("add", "remove", "protocol", "metaData")
_IN_CHECKPOINT = ("add", "protocol", "metaData")
# Spark writes timestamps as Parquet's INT96, in which Arrow reads ns.
_UNIT = "us"


class _Log(NamedTuple):
    """The last version of a table, and the names in its log that give it."""

    version: int
    checkpoint: str | None
    commits: list[str]


class _Snapshot(NamedTuple):
    """What the log says of the last version: its files, as ``add`` actions, and its schema."""

    version: int
    added: list[dict[str, Any]]
    schema: str


class SmallTable(NamedTuple):
    """A version of a small table: its schema as JSON, and what each file holds of the columns.

    ``added`` are the ``add`` actions of the files.
    """

    version: int
    schema: str
    added: list[dict[str, Any]]
    files: list[pa.Table]


def read_small_files(
    uri: str, columns: Sequence[str] = (), *, most_bytes: int, most_files: int, most_rows: int
) -> SmallTable | None:
    """Read columns of the last version of the table at a URI; all of them where none is named.

    None: there is no table, it has more files, bytes or rows, its log has more bytes, or only Spark
    can tell.
    """
    table = place(uri)
    try:
        most_log_bytes = min(most_bytes, _MOST_LOG_BYTES)
        found = _snapshot(uri, most_log_bytes=most_log_bytes)
        if found is None or not _is_small(found, most_bytes) or len(found.added) > most_files:
            return None
        files = []
        for add in found.added:
            file = _rows_of(table.child(unquote(add["path"])), columns, most_rows=most_rows)
            if file is None:
                return None
            most_rows -= len(file)
            files.append(file)
    except (OSError, SourceError, pa.ArrowException, KeyError, ValueError):
        return None
    return SmallTable(found.version, found.schema, found.added, files)


def file_totals(uri: str, *, most_log_bytes: int = _MOST_LOG_BYTES) -> tuple[int, int] | None:
    """Return the number of files of the last version of the table at a URI, and their bytes.

    None: there is no table, its log has more bytes, or only Spark can tell.
    """
    try:
        found = _snapshot(uri, most_log_bytes=most_log_bytes)
    except (OSError, SourceError, pa.ArrowException, KeyError, ValueError):
        return None
    return None if found is None else (len(found.added), sum(add["size"] for add in found.added))


def _is_small(snapshot: _Snapshot, most_bytes: int) -> bool:
    size_bytes: int = sum(add["size"] for add in snapshot.added)
    return size_bytes <= most_bytes


def _rows_of(file: Place, columns: Sequence[str], *, most_rows: int) -> pa.Table | None:
    """Read a file; None: it has more rows, of which a few bytes can hold many."""
    with file.filesystem.open_input_file(file.path) as stream:
        opened = _opened(stream)
        if opened.metadata.num_rows > most_rows:
            return None
        there = set(opened.schema_arrow.names)
        return opened.read([name for name in columns if name in there] if columns else None)


def read_small_table(
    uri: str,
    columns: Sequence[str],
    *,
    most_bytes: int,
    where: tuple[str, Any] | None = None,
) -> list[dict[str, Any]] | None:
    """Read columns of the last version of the table at a URI; one that a file has not is null.

    ``where``: another column, and the value that it has in the rows that are wanted.
    None: there is no table, its files have more than ``most_bytes``, or only Spark can tell.
    """
    table = place(uri)
    try:
        found = _snapshot(uri, most_log_bytes=_MOST_LOG_BYTES)
        if found is None or not _is_small(found, most_bytes):
            return None
        return [
            row
            for add in found.added
            for row in _read_file(table.child(unquote(add["path"])), columns, where)
        ]
    except (OSError, SourceError, pa.ArrowException, KeyError, ValueError):
        return None


def _read_file(
    file: Place, columns: Sequence[str], where: tuple[str, Any] | None
) -> Iterator[dict[str, Any]]:
    with file.filesystem.open_input_file(file.path) as stream:
        opened = _opened(stream)
        there = set(opened.schema_arrow.names)
        wanted = [column for column in columns if column in there]
        if where is not None:
            wanted = [*wanted, where[0]]
        rows = opened.read(columns=wanted).to_pylist()
    missing = dict.fromkeys(column for column in columns if column not in there)
    for row in rows:
        if where is None or row.pop(where[0]) == where[1]:
            yield {**row, **missing}


def _snapshot(uri: str, *, most_log_bytes: int) -> _Snapshot | None:
    refuse_broken_log(uri)
    log = place(uri).child("_delta_log")
    names = _last_version(log, most_log_bytes)
    if names is None:
        return None
    added: dict[str, dict[str, Any]] = {}
    schema = None
    for kind, action in _actions(log, names):
        if kind == "add":
            if action.get("partitionValues") or action.get("deletionVector"):
                return None
            added[action["path"]] = action
        elif kind == "remove":
            added.pop(action["path"], None)
        elif kind == "protocol" and action["minReaderVersion"] > 1:
            return None
        elif kind == "metaData":
            schema = action["schemaString"]
    return None if schema is None else _Snapshot(names.version, list(added.values()), schema)


def _last_version(log: Place, most_bytes: int) -> _Log | None:
    """Find the last checkpoint and the commits after it.

    None: there is a gap or no table, or they have more bytes.
    """
    entries = list_folder(log)
    commits = sorted(int(found[1]) for entry in entries if (found := COMMIT.fullmatch(entry.name)))
    checkpoints = [
        int(found[1]) for entry in entries if (found := CHECKPOINT.fullmatch(entry.name))
    ]
    if not commits:
        return None
    first = max((version + 1 for version in checkpoints if version <= commits[-1]), default=0)
    after = [version for version in commits if version >= first]
    if after != list(range(first, commits[-1] + 1)):
        return None
    sizes = {entry.name: entry.size_bytes for entry in entries}
    checkpoint = f"{first - 1:020d}.checkpoint.parquet" if first else None
    names = _Log(commits[-1], checkpoint, [f"{version:020d}.json" for version in after])
    read_bytes = sum(sizes[name] for name in (*names.commits, checkpoint) if name)
    return names if read_bytes <= most_bytes else None


def _actions(log: Place, names: _Log) -> Iterator[tuple[str, dict[str, Any]]]:
    if names.checkpoint is not None:
        for row in _read_checkpoint(log.child(names.checkpoint)):
            yield from ((kind, row[kind]) for kind in _ACTIONS if row.get(kind) is not None)
    for name in names.commits:
        text = read_whole(log.child(name), most_bytes=_MOST_LOG_BYTES).decode("utf-8")
        for line in text.splitlines():
            if line.strip():
                action = json.loads(line)
                yield from ((kind, action[kind]) for kind in _ACTIONS if action.get(kind))


def _read_checkpoint(file: Place) -> Iterator[dict[str, Any]]:
    with file.filesystem.open_input_file(file.path) as stream:
        opened = _opened(stream)
        there = set(opened.schema_arrow.names)
        wanted = [kind for kind in _IN_CHECKPOINT if kind in there]
        yield from opened.read(columns=wanted).to_pylist()


def _opened(stream: pa.NativeFile) -> parquet.ParquetFile:
    """Open a file by itself: ``read_table`` takes it for a data set, and imports pandas for it."""
    return parquet.ParquetFile(stream, coerce_int96_timestamp_unit=_UNIT)
