"""Rows of a small Delta table, without Spark.

The library deltalake reads the log, Arrow the files. Where the files alone do not tell the rows
(deletion vectors, mapped columns, partitions), the query engine of deltalake reads them. What
neither can be sure of (widened types, a log with a gap, a large table) gives None: ask Spark then.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder
from deltalake.exceptions import DeltaError
from pyarrow import parquet

from kafka_segments.errors import BrokenTableError, SourceError
from kafka_segments.files.delta.data_files import OTHER_BYTES, why_of_other_size
from kafka_segments.files.delta.health import (
    Broken,
    refuse_broken_file,
    refuse_broken_log,
)
from kafka_segments.files.delta.log import TableLog
from kafka_segments.files.storage.files import opened_for_arrow, place, read_whole
from kafka_segments.files.storage.hadoop_checksums import has_other_checksums
from kafka_segments.files.storage.local_folder import FileEntry
from kafka_segments.files.storage.scratch import scratch_below, scratch_folder

_MOST_LOG_BYTES = 64 * 1024 * 1024
# Spark writes timestamps as Parquet's INT96, in which Arrow reads ns.
_UNIT = "us"
_NOT_TOLD = (OSError, SourceError, DeltaError, pa.ArrowException, KeyError, ValueError)
# deltalake takes %20 for a space and \ for /, and panics at [ and others.
_TAKEN_AS_IT_IS = re.compile(r"[\w /.,:;=+@~()#-]*")


class SmallTable(NamedTuple):
    """A version of a small table: its schema as JSON, and what each file holds of the columns.

    ``added`` are the names of the files, and their bytes, as the log has them. Where the table is
    not plain, its files alone do not tell its rows, and ``files`` has all rows in one.
    """

    version: int
    schema: str
    added: list[tuple[str, int]]
    files: list[pa.Table]
    is_plain: bool


def open_table(uri: str, *, most_log_bytes: int | None = None) -> DeltaTable | None:
    """Open the last version of the table at a URI; where deltalake cannot, a copy of its log.

    None: there is no table, its log has more bytes, or has what only Spark can tell.

    Raises:
        BrokenTableError: its log is broken, or what the log names.
    """
    log = refuse_broken_log(uri)
    needed = [entry for entry in (log.checkpoint, *log.commits) if entry is not None]
    size_bytes = sum(entry.size_bytes for entry in needed)
    if not needed or (most_log_bytes is not None and size_bytes > most_log_bytes):
        return None
    try:
        with ExitStack() as copies:
            folder = place(uri).path
            if not is_opened_in_place(uri):
                copy = copies.enter_context(scratch_below(scratch_folder()))
                _copy_log(log, needed, copy)
                folder = str(copy)
            return DeltaTable(folder)
    except _NOT_TOLD as error:
        refuse_broken_file(uri, error)
        return None


def is_opened_in_place(uri: str) -> bool:
    """Tell whether deltalake opens the table at a URI where it lies: on a disk of this machine."""
    folder = place(uri)
    return folder.store.is_local and bool(_TAKEN_AS_IT_IS.fullmatch(folder.path))


class _Opened(NamedTuple):
    """A table that was opened, and the names of its files, with their bytes.

    ``is_plain``: its files alone tell its rows.
    """

    uri: str
    table: DeltaTable
    added: list[tuple[str, int]]
    is_plain: bool

    @property
    def size_bytes(self) -> int:
        return sum(size_bytes for _, size_bytes in self.added)

    @property
    def files(self) -> list["_DataFile"]:
        return [_DataFile(self.uri, path, size) for path, size in self.added]


def _open(uri: str, *, most_log_bytes: int) -> _Opened | None:
    """Open a table as ``open_table`` does; None as well: its rows are read by Spark alone."""
    found = open_table(uri, most_log_bytes=most_log_bytes)
    if found is None:
        return None
    is_plain = found.protocol().min_reader_version == 1 and not found.metadata().partition_columns
    if not is_plain and not is_opened_in_place(uri):
        return None
    try:
        actions = found.get_add_actions()
    except _NOT_TOLD as error:
        refuse_broken_file(uri, error)
        return None
    names, sizes = (actions.column(name).to_pylist() for name in ("path", "size_bytes"))
    return _Opened(uri, found, list(zip(names, sizes, strict=True)), is_plain)


def _copy_log(log: TableLog, entries: list[FileEntry], folder: Path) -> None:
    (folder / "_delta_log").mkdir()
    for entry in entries:
        data = read_whole(log.file(entry.name), most_bytes=entry.size_bytes)
        (folder / "_delta_log" / entry.name).write_bytes(data)


def read_small_files(
    uri: str, columns: Sequence[str] = (), *, most_bytes: int, most_files: int, most_rows: int
) -> SmallTable | None:
    """Read columns of the last version of the table at a URI; all of them where none is named.

    None: there is no table, it has more files, bytes or rows, its log has more bytes, or only Spark
    can tell.

    Raises:
        BrokenTableError: its log is broken, or a file with its rows is.
    """
    found = _open(uri, most_log_bytes=min(most_bytes, _MOST_LOG_BYTES))
    if found is None or found.size_bytes > most_bytes or len(found.added) > most_files:
        return None
    files = _read(found, columns, most_rows=most_rows)
    if files is None:
        return None
    schema = found.table.schema().to_json()
    return SmallTable(found.table.version(), schema, found.added, files, found.is_plain)


def _read(
    found: _Opened, columns: Sequence[str], *, most_rows: int | None = None
) -> list[pa.Table] | None:
    """Read columns of each file of a table; as one table where the files do not tell its rows."""
    try:
        if not found.is_plain:
            rows = _queried(found, columns, most_rows=most_rows)
            return None if rows is None else [rows]
        files = []
        for file in found.files:
            rows = _rows_of(file, columns, most_rows=most_rows)
            if rows is None:
                return None
            most_rows = None if most_rows is None else most_rows - len(rows)
            files.append(rows)
    except _NOT_TOLD as error:
        refuse_broken_file(found.uri, error)
        return None
    return files


def _queried(found: _Opened, columns: Sequence[str], *, most_rows: int | None) -> pa.Table | None:
    """Read columns of a table by deltalake's query engine; None: it has more rows."""
    for file in found.files:
        with file.opened():  # its bytes are those that the log and its checksums say
            pass
    there = [field.name for field in found.table.schema().fields]
    wanted = [name for name in columns if name in there] if columns else there
    chosen = ", ".join(f'"{name}"' for name in wanted) or "1"
    limit = "" if most_rows is None else f" LIMIT {most_rows + 1}"
    query = QueryBuilder().register("rows", found.table)
    rows = pa.table(query.execute(f"SELECT {chosen} FROM rows{limit}").read_all())  # noqa: S608
    if most_rows is not None and len(rows) > most_rows:
        return None
    return without_views(rows.select(wanted))


def file_totals(uri: str, *, most_log_bytes: int = _MOST_LOG_BYTES) -> tuple[int, int] | None:
    """Return the number of files of the last version of the table at a URI, and their bytes.

    None: there is no table, its log has more bytes, or its files alone do not tell its rows.
    """
    found = _open(uri, most_log_bytes=most_log_bytes)
    if found is None or not found.is_plain:
        return None
    return len(found.added), found.size_bytes


class _DataFile(NamedTuple):
    """A file of the table at a URI, by the path and the bytes that its log says."""

    table: str
    path: str
    size_bytes: int

    @contextmanager
    def opened(self) -> Iterator[parquet.ParquetFile]:
        """Open it by itself: ``read_table`` takes it for a data set, and imports pandas for it.

        Raises:
            BrokenTableError: it has other bytes, as one of another version has other rows.
        """
        file = place(self.table).child(unquote(self.path))
        with opened_for_arrow(file) as stream:
            why = why_of_other_size(stream.size(), self.size_bytes)
            if why is None and file.store.is_local and has_other_checksums(file.path):
                why = OTHER_BYTES
            if why is not None:
                raise BrokenTableError(Broken(self.table, self.path, why).text)
            yield parquet.ParquetFile(
                stream, coerce_int96_timestamp_unit=_UNIT, page_checksum_verification=True
            )


def _rows_of(file: _DataFile, columns: Sequence[str], *, most_rows: int | None) -> pa.Table | None:
    """Read a file; None: it has more rows, of which a few bytes can hold many."""
    with file.opened() as opened:
        if most_rows is not None and opened.metadata.num_rows > most_rows:
            return None
        there = set(opened.schema_arrow.names)
        wanted = [name for name in columns if name in there] if columns else None
        return without_views(opened.read(wanted))


def without_views(rows: pa.Table) -> pa.Table:
    """Return rows with texts and bytes in the form that Arrow filters and takes.

    Files that deltalake merged have them as views, nested ones, too, which it cannot (Arrow 26).
    """
    plain = pa.schema([field.with_type(_without_view(field.type)) for field in rows.schema])
    return rows if plain == rows.schema else rows.cast(plain)


def _without_view(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_string_view(kind):
        return pa.string()
    if pa.types.is_binary_view(kind):
        return pa.binary()
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_without_view(field.type)) for field in kind])
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_without_view(kind.value_type)))
    if pa.types.is_map(kind):
        item = kind.item_field.with_type(_without_view(kind.item_type))
        return pa.map_(_without_view(kind.key_type), item)
    return kind


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

    Raises:
        BrokenTableError: its log is broken, or a file with its rows is.
    """
    found = _open(uri, most_log_bytes=_MOST_LOG_BYTES)
    if found is None or found.size_bytes > most_bytes:
        return None
    asked = [*columns] if where is None else [*columns, where[0]]
    files = _read(found, asked)
    return None if files is None else [row for file in files for row in _rows(file, columns, where)]


def _rows(
    file: pa.Table, columns: Sequence[str], where: tuple[str, Any] | None
) -> Iterator[dict[str, Any]]:
    missing = dict.fromkeys(column for column in columns if column not in file.column_names)
    for row in file.to_pylist():
        if where is None or row.pop(where[0], None) == where[1]:
            yield {**row, **missing}
