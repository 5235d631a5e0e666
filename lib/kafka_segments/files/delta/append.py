"""Append rows, or files of rows, to a plain Delta table on this machine, without Spark.

Source: delta-io/delta PROTOCOL.md, Add File, Writer Version Requirements, Per-file Statistics.
"""

import io
import json
import os
import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

from kafka_segments.files.delta.commit import commit_info, publish_commit
from kafka_segments.files.delta.metadata import KEPT_FEATURES, TableMetadata, read_metadata
from kafka_segments.files.delta.properties import MEASURED_COLUMNS
from kafka_segments.files.storage.durable_files import sync_folder, write_durably
from kafka_segments.files.storage.files import place
from kafka_segments.files.storage.hadoop_checksums import checksums_beside, write_checksums

_MOST_TRIES = 20
# A multiple of ten: Delta writes one after its own commits with such a version. For the first one a
# session waits as long as for all else that a verb does; one commit more is read in a millisecond.
_CHECKPOINT_EVERY = 50
_LAST_WITHOUT_FEATURES = 3
_OF_A_COLUMN = '"delta.'  # invariants, generated values, identities: in a column's metadata
MEETS_CONSTRAINTS = b"kafkaSegments.meetsConstraints"
"""A key in the footer of a file, whose writer made sure that its rows meet those of their table."""
# Delta cuts longer texts off in its statistics.
_LONGEST_TEXT = 32
_GREATEST_SIGN = "\U0010ffff"
_NONE: Mapping[str, str] = MappingProxyType({})


def append_rows(uri: str, rows: pa.Table, *, constraints: Mapping[str, str] = _NONE) -> bool:
    """Append few rows by one file and one commit; ``rows`` has the table's columns and types.

    ``constraints``: CHECK constraints that all rows meet, conditions by name.

    False: nothing is written, Delta is to do it. The table has something else that is asked of a
    writer's rows, or the commit is one after which Delta writes a checkpoint.

    Raises:
        OSError: the disk refused; the table is as it was.
    """
    before = writable_table(uri, constraints)
    if before is None:
        return False
    if not len(rows):
        return True
    # What ends this otherwise may come after the commit: then the file stays, and VACUUM takes it
    # if there was none.
    add = write_rows(uri, before, rows)
    is_written = _commit(uri, before, [add])
    if not is_written:
        remove_file(place(uri).child(add["path"]).path)
    return is_written


def write_rows(uri: str, table: TableMetadata, rows: pa.Table) -> dict[str, Any]:
    """Write rows to a new file of a table, and wait for the disk; return its ``add`` action."""
    name = _new_name()
    data = write_parquet(place(uri).child(name).path, rows)
    return _add(name, len(data), _statistics(rows, _measured(table)))


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
    before = writable_table(uri, constraints if are_marked else _NONE)
    if before is None:
        return False
    full = {file: found for file, found in read.items() if found.num_rows}
    if not full:
        return True
    folder = Path(place(uri).path)
    named = {file: folder / _new_name(number) for number, file in enumerate(full)}
    try:
        adds = []
        for file, link in named.items():
            os.link(file, link)
            stats = _statistics_of_file(full[file], _measured(before))
            adds.append(_add(link.name, link.stat().st_size, stats))
        sync_folder(folder)
    except OSError:
        _unlink(named.values())
        return False
    is_written = _commit(uri, before, adds)
    if not is_written:
        _unlink(named.values())
    return is_written


def _unlink(links: Iterable[Path]) -> None:
    for link in links:
        link.unlink(missing_ok=True)


def _new_name(number: int = 0) -> str:
    return f"part-{number:05d}-{uuid.uuid4()}-c000.snappy.parquet"


def writable_table(uri: str, constraints: Mapping[str, str]) -> TableMetadata | None:
    """Return what the log of a table says that takes any rows which meet the constraints.

    None: Delta is to write. The table asks more of its writers, or the next commit is one after
    which Delta writes a checkpoint.
    """
    before = read_metadata(uri)
    if before is None or not _is_plain(before, constraints):
        return None
    return before if (before.version + 1) % _CHECKPOINT_EVERY else None


def _is_plain(table: TableMetadata, constraints: Mapping[str, str]) -> bool:
    """Tell whether any row that meets the constraints may be appended as it is."""
    protocol, features = table.protocol, table.features
    return (
        protocol["minReaderVersion"] == 1
        and (bool(features) or protocol["minWriterVersion"] <= _LAST_WITHOUT_FEATURES)
        and features <= KEPT_FEATURES
        and not table.metadata.get("partitionColumns")
        and table.constraints.items() <= constraints.items()
        and _OF_A_COLUMN not in table.schema
    )


def write_parquet(path: str, rows: pa.Table) -> bytes:
    """Write rows as a Parquet file that any engine reads, with its checksums; return its bytes."""
    written = io.BytesIO()
    parquet.write_table(
        rows, written, compression="snappy", store_schema=False, write_page_checksum=True
    )
    data = written.getvalue()
    write_checksums(path, data)
    write_durably(path, data, is_synced=True)
    return data


def remove_file(path: str) -> None:
    """Remove a file that ``write_parquet`` wrote."""
    Path(path).unlink()
    checksums_beside(path).unlink(missing_ok=True)


def commit_written(
    uri: str,
    version: int,
    said: Mapping[str, Any],
    written: Sequence[Mapping[str, Any]],
    removed: Iterable[Mapping[str, Any]],
) -> None:
    """Commit a version of the table at a URI, and with it files that were written for it alone.

    ``said`` is what the commit says of itself, ``written`` and ``removed`` the actions for files
    that come and go. Where another run committed first, the files that were written are removed.

    Raises:
        FileExistsError: another run committed first; the table is as that run left it.
        OSError: the disk refused; the table is as it was.
    """
    try:
        publish_commit(uri, version, [said, *written, *removed])
    except FileExistsError:
        # After another error the commit may be there: then the files stay.
        for action in written:
            for file in action.values():
                remove_file(place(uri).child(file["path"]).path)
        raise


def _add(name: str, size_bytes: int, stats: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "path": name,
        "partitionValues": {},
        "size": size_bytes,
        "modificationTime": time.time_ns() // 1_000_000,
        "dataChange": True,
        "stats": json.dumps(stats),
    }


def _measured(table: TableMetadata) -> list[str]:
    """Return the columns by which files are passed over; what is not measured passes none over."""
    return table.properties.get(MEASURED_COLUMNS, "").split(",")


def _statistics(rows: pa.Table, columns: Iterable[str]) -> dict[str, Any]:
    bounds: dict[str, tuple[Any, Any]] = {}
    nulls: dict[str, int] = {}
    for name in columns:
        if name not in rows.column_names:
            continue
        nulls[name] = rows[name].null_count
        if pa.types.is_string(rows[name].type) or pa.types.is_integer(rows[name].type):
            found = pc.min_max(rows[name]).as_py()
            bounds[name] = (found["min"], found["max"])
    return _as_delta_has_them(len(rows), bounds, nulls)


def _statistics_of_file(file: parquet.FileMetaData, columns: Iterable[str]) -> dict[str, Any]:
    """Return the statistics of a file that has some for each of its groups of rows."""
    bounds: dict[str, tuple[Any, Any]] = {}
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
            least, most = (group.min for group in of_values), (group.max for group in of_values)
            bounds[name] = (min(least), max(most))
    return _as_delta_has_them(file.num_rows, bounds, nulls)


def _as_delta_has_them(
    rows: int, bounds: Mapping[str, tuple[Any, Any]], nulls: Mapping[str, int]
) -> dict[str, Any]:
    least: dict[str, Any] = {}
    most: dict[str, Any] = {}
    for name, (first, last) in bounds.items():
        if isinstance(first, str):
            least[name], most[name] = first[:_LONGEST_TEXT], _not_less(last)
        elif isinstance(first, int):
            least[name], most[name] = first, last
    return {"numRecords": rows, "minValues": least, "maxValues": most, "nullCount": nulls}


def _not_less(text: str) -> str:
    """Cut a text off after 32 characters; what comes of it is not less than the text."""
    return text if len(text) <= _LONGEST_TEXT else text[:_LONGEST_TEXT] + _GREATEST_SIGN


def _commit(uri: str, before: TableMetadata, adds: Sequence[Mapping[str, Any]]) -> bool:
    """Commit files as the next version; False: the table has become another one meanwhile."""
    latest = before
    for _ in range(_MOST_TRIES):
        said = commit_info("WRITE", {"mode": "Append"}, read_version=latest.version, is_blind=True)
        with suppress(FileExistsError):  # another run was first: rows are appended after its own
            publish_commit(uri, latest.version + 1, [said, *({"add": add} for add in adds)])
            return True
        now = read_metadata(uri)
        if now is None or now[1:] != before[1:]:
            return False
        latest = now
    return False
