"""Rows, or files of rows, written to a plain Delta table on this machine, without Spark.

The library deltalake writes and commits, under the lock that all commits of ours take. It does not
wait for the disk: that is done after each commit.
"""

import json
import os
import time
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, PostCommitHookProperties, write_deltalake
from deltalake.exceptions import CommitFailedError, DeltaError
from deltalake.transaction import AddAction, RemoveAction
from pyarrow import parquet

from kafka_segments.files.storage.delta_log import last_version, log_of, read_actions
from kafka_segments.files.storage.delta_rows import is_opened_in_place, open_table
from kafka_segments.files.storage.durable_files import free_bytes, sync_file, sync_folder
from kafka_segments.files.storage.files import place
from kafka_segments.files.storage.folder_lock import commit_lock

MEETS_CONSTRAINTS = b"kafkaSegments.meetsConstraints"
"""A key in the footer of a file, whose writer made sure that its rows meet those of their table."""
FEED = "delta.enableChangeDataFeed"
_WITH_CONSTRAINTS = 3  # and without features
_FEATURES = {"appendOnly", "invariants", "changeDataFeed", "checkConstraints"}
_LEAST_ROOM = 64 * 1024 * 1024  # where a disk is full deltalake panics
_CHECKPOINT_EVERY = 10  # Delta's default; deltalake's is 100
_APPEND_ONLY = "delta.appendOnly"
_CONSTRAINT = "delta.constraints."
_OF_A_COLUMN = '"delta.'  # invariants, generated values, identities: in a column's metadata
_MEASURED = "delta.dataSkippingStatsColumns"
# Delta cuts longer texts off in its statistics.
_LONGEST_TEXT = 32
_GREATEST_SIGN = "\U0010ffff"
_NONE: Mapping[str, str] = MappingProxyType({})
_APPENDED = CommitProperties(custom_metadata={"isBlindAppend": True})
# Nothing comes after a commit that may fail: what has failed has written nothing.
_ALONE = PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False)


def append_rows(uri: str, rows: pa.Table, *, constraints: Mapping[str, str] = _NONE) -> bool:
    """Append few rows by one commit; they may have more columns than the table.

    ``constraints``: conditions by name that deltalake understands as Spark does.

    False: nothing is written, Spark is to do it or to say why not. Rows do not meet a constraint or
    have other types, or the table asks for something else of its writers.
    """

    def append(table: DeltaTable) -> bool:
        schema = schema_of(table)
        chosen = rows.select(schema.names).cast(schema)
        if len(rows):
            write_deltalake(
                table,
                chosen,
                mode="append",
                commit_properties=_APPENDED,
                post_commithook_properties=_ALONE,
            )
        return True

    return _written(uri, append, constraints)


def merge_rows(
    uri: str,
    rows: pa.Table,
    *,
    keys: Sequence[str],
    deleted: str | None = None,
    constraints: Mapping[str, str] = _NONE,
) -> bool:
    """Update rows by key, delete and insert others, in one commit, as ``Warehouse.merge`` says.

    ``constraints`` and the answer are those of ``append_rows``. Where the table has no change data
    feed, rows that are there as they are make no commit.
    """

    def merge(table: DeltaTable) -> bool:
        schema = schema_of(table)
        if not _is_mergeable(table, rows, keys=keys, deleted=deleted):
            return False
        source = rows.select(schema.names).cast(schema)
        if deleted is not None:
            source = source.append_column(deleted, rows[deleted])
        values = {name: f"s.{name}" for name in schema.names}
        is_other = " OR ".join(f"(t.{name} IS DISTINCT FROM s.{name})" for name in values)
        condition = " AND ".join(f"t.{key} = s.{key}" for key in keys)
        merger = table.merge(source, condition, "s", "t", post_commithook_properties=_ALONE)
        if deleted is not None:
            merger = merger.when_matched_delete(f"s.{deleted}")
        merger = merger.when_matched_update(values, None if _is_set(table, FEED) else is_other)
        is_new = None if deleted is None else f"NOT s.{deleted}"
        merger.when_not_matched_insert(values, is_new).execute()
        return True

    return not len(rows) or _written(uri, merge, constraints)


def append_files(uri: str, files: Sequence[str], *, constraints: Mapping[str, str] = _NONE) -> bool:
    """Append Parquet files on the table's disk, which are synced, by one commit.

    The table has links to them: their own names can be removed. ``files`` are paths; their columns
    and types are the table's. ``constraints``: those that the rows of all files meet if each file
    has ``MEETS_CONSTRAINTS`` in its footer. False is that of ``append_rows``, or the files lie on
    another disk.

    Raises:
        OSError: a file cannot be read; the table is as it was.
    """
    read = {file: parquet.read_metadata(file) for file in files}
    are_marked = all(MEETS_CONSTRAINTS in (found.metadata or {}) for found in read.values())
    full = {file: found for file, found in read.items() if found.num_rows}
    links = {file: Path(place(uri).child(_new_name(n)).path) for n, file in enumerate(full)}

    def append(table: DeltaTable) -> bool:
        try:
            for file, link in links.items():
                os.link(file, link)
        except OSError:
            return False
        measured = table.metadata().configuration.get(_MEASURED, "").split(",")
        adds: list[AddAction | RemoveAction] = [
            _add(links[file], _statistics(found, measured)) for file, found in full.items()
        ]
        if adds:
            schema = table.schema()
            table.create_write_transaction(
                adds,
                "append",
                schema,
                commit_properties=_APPENDED,
                post_commithook_properties=_ALONE,
            )
        return True

    is_written = _written(uri, append, constraints if are_marked else _NONE)
    if not is_written:
        for link in links.values():
            link.unlink(missing_ok=True)
    return is_written


def _written(uri: str, write: Callable[[DeltaTable], bool], constraints: Mapping[str, str]) -> bool:
    """Have the last version of a table written to under its lock, and wait for the disk.

    Raises:
        DeltaError: there is a later version all the same, which may be what was to be written.
    """
    if not is_opened_in_place(uri) or last_version(uri) is None:
        return False
    if free_bytes(Path(place(uri).path)) < _LEAST_ROOM:
        return False
    with commit_lock(uri):
        table = open_table(uri)
        if table is None or not _takes_rows(table, constraints):
            return False
        before = table.version()
        try:
            is_written = write(table)
        except CommitFailedError:  # another engine, which knows no lock of ours, was first
            return False
        except (DeltaError, pa.ArrowException, KeyError, ValueError):
            if last_version(uri) != before:
                raise
            return False
        _sync(uri, after=before)
        _checkpoint(uri, after=before)
    return is_written


def _checkpoint(uri: str, *, after: int) -> None:
    """Write a checkpoint where Spark would; as there the table is whole without it."""
    version = last_version(uri) or 0
    if version > after and version % _CHECKPOINT_EVERY == 0:
        with suppress(DeltaError, OSError):
            DeltaTable(place(uri).path).create_checkpoint()


def _takes_rows(table: DeltaTable, constraints: Mapping[str, str]) -> bool:
    """Tell whether deltalake holds rows to all that the table asks of them, as Spark does."""
    protocol, metadata = table.protocol(), table.metadata()
    features = {*(protocol.writer_features or ()), *(protocol.reader_features or ())}
    # Of a table of another protocol deltalake passes constraints over.
    is_held = "checkConstraints" in features or protocol.min_writer_version == _WITH_CONSTRAINTS
    known = {f"{_CONSTRAINT}{name}": condition for name, condition in constraints.items()}
    return (
        protocol.min_reader_version == 1
        and (bool(features) or protocol.min_writer_version <= _WITH_CONSTRAINTS)
        and features <= _FEATURES
        and not metadata.partition_columns
        and all(
            is_held and known.get(key) == condition
            for key, condition in metadata.configuration.items()
            if key.startswith(_CONSTRAINT)
        )
        and _OF_A_COLUMN not in table.schema().to_json()
    )


def _is_mergeable(
    table: DeltaTable, rows: pa.Table, *, keys: Sequence[str], deleted: str | None
) -> bool:
    """Tell whether deltalake merges rows as Spark does.

    Where rows are deleted it checks those for a feed that are not there as if it inserted them.
    """
    schema = schema_of(table)
    kinds = [schema.field(key).type for key in keys]
    return (
        not _is_set(table, _APPEND_ONLY)
        and not (deleted is not None and _is_set(table, FEED))
        and all(pa.types.is_integer(kind) or pa.types.is_string(kind) for kind in kinds)
        and len(rows.group_by(list(keys)).aggregate([])) == len(rows)
    )


def _is_set(table: DeltaTable, name: str) -> bool:
    return table.metadata().configuration.get(name, "").lower() == "true"


def schema_of(table: DeltaTable) -> pa.Schema:
    """Return the schema of a table, by which Arrow holds its rows."""
    return pa.schema(table.schema())


def _sync(uri: str, *, after: int) -> None:
    """Wait for the disk: for the commits after a version, and the files that they name."""
    folder, log = Path(place(uri).path), Path(log_of(uri).path)
    folders = {folder, log}
    for version in range(after + 1, (last_version(uri) or 0) + 1):
        commit = log / f"{version:020d}.json"
        for action in read_actions(place(str(commit))):
            for kind in ("add", "cdc"):
                if kind in action:
                    file = folder / unquote(action[kind]["path"])
                    sync_file(file)
                    folders.add(file.parent)
        sync_file(commit)
    for each in folders:
        sync_folder(each)


def _new_name(number: int) -> str:
    return f"part-{number:05d}-{uuid.uuid4()}-c000.snappy.parquet"


def _add(file: Path, statistics: Mapping[str, Any]) -> AddAction:
    now_ms = time.time_ns() // 1_000_000
    return AddAction(file.name, file.stat().st_size, {}, now_ms, True, json.dumps(statistics))


def _statistics(file: parquet.FileMetaData, columns: Iterable[str]) -> dict[str, Any]:
    """Return the statistics of a file that has some for each of its groups of rows."""
    least: dict[str, Any] = {}
    most: dict[str, Any] = {}
    nulls: dict[str, int] = {}
    places = {file.schema.column(place).path: place for place in range(file.num_columns)}
    for name in columns:
        if name not in places:
            continue
        groups = [
            file.row_group(number).column(places[name]).statistics
            for number in range(file.num_row_groups)
        ]
        if any(group is None for group in groups):
            continue
        nulls[name] = sum(group.null_count for group in groups)
        of_values = [group for group in groups if group.num_values]
        if of_values and all(group.has_min_max for group in of_values):
            first, last = min(of.min for of in of_values), max(of.max for of in of_values)
            if isinstance(first, str):
                least[name], most[name] = first[:_LONGEST_TEXT], _not_less(last)
            elif isinstance(first, int):
                least[name], most[name] = first, last
    return {
        **{"numRecords": file.num_rows, "minValues": least},
        **{"maxValues": most, "nullCount": nulls},
    }


def _not_less(text: str) -> str:
    """Cut a text off after 32 characters; what comes of it is not less than the text."""
    return text if len(text) <= _LONGEST_TEXT else text[:_LONGEST_TEXT] + _GREATEST_SIGN
