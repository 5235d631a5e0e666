"""Which clusters have metadata in the tables, and what of it held at a moment, without Spark."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from kafka_segments.engine.derived.cluster_names import cluster_in_words
from kafka_segments.engine.limits import METADATA_BYTES, METADATA_FILES, METADATA_ROWS
from kafka_segments.engine.tables.catalog import (
    INTERNAL_RECORDS,
    LOG_DIRS,
    METADATA_PROBLEMS,
    METADATA_TABLES,
)
from kafka_segments.errors import NoFolderError
from kafka_segments.files.delta.health import version_if_there
from kafka_segments.files.delta.notes import noted_log, noted_logs
from kafka_segments.files.delta.rows import read_small_files, read_small_table
from kafka_segments.files.storage.files import list_folder, place
from kafka_segments.files.storage.uris import join_uri

_HELD = ("cluster", "from_offset", "from_ms", "until_offset", "until_ms")


class NoMetadataError(Exception):
    """Why a warehouse that has metadata does not tell it."""


class MetadataClusters(NamedTuple):
    """The clusters whose metadata a warehouse has, as of a moment.

    ``at_offset`` has the offset of each cluster's metadata log that the moment stands for;
    ``begin_ms`` when the history of each other cluster begins, which is later.
    """

    at_offset: dict[str, int]
    begin_ms: dict[str, int]


class MetadataProblem(NamedTuple):
    """What the history of a cluster's metadata lacks, from an offset on; None: all of it."""

    cluster: str
    at_offset: int | None
    problem: str

    def __str__(self) -> str:
        return f"cluster {cluster_in_words(self.cluster)}: {self.problem}"

    def concerns(self, at_offset: int | None) -> bool:
        """Tell whether it concerns the state as of an offset; None: as of the end."""
        return self.at_offset is None or at_offset is None or self.at_offset <= at_offset


def metadata_problems(warehouse: str) -> list[MetadataProblem]:
    """Return what the histories in the tables of a warehouse, a URI, lack.

    Raises:
        NoMetadataError: only Spark can read the table, or one of the histories' was there and is
            gone.
    """
    _refuse_gone(warehouse)
    rows = _rows_of(warehouse, METADATA_PROBLEMS.name, (*MetadataProblem._fields, "number"))
    in_order = sorted(rows, key=lambda row: (row["cluster"], row["number"]))
    return [MetadataProblem(*(row[name] for name in MetadataProblem._fields)) for row in in_order]


def clusters_with_metadata(warehouse: str, *, at_ms: int) -> MetadataClusters:
    """Find the clusters that have any metadata in the tables of a warehouse, an absolute URI.

    A moment stands for the offset before the first later change, as for ``internals --at``.

    Raises:
        NoMetadataError: only Spark can read one of the tables, or it was there and is gone.
    """
    begin: dict[str, tuple[int, int]] = {}
    later: dict[str, int] = {}
    for table in METADATA_TABLES:
        for rows in _files_of(warehouse, table.name):
            for cluster, offset, ms in _least(rows, "from_offset", "from_ms"):
                begin[cluster] = min((offset, ms), begin.get(cluster, (offset, ms)))
            for end in ("from", "until"):
                changed_later = rows.filter(pc.greater(rows[f"{end}_ms"], at_ms))
                for cluster, offset in _least(changed_later, f"{end}_offset"):
                    later[cluster] = min(offset, later.get(cluster, offset))
    at_offset = {cluster: later.get(cluster, 2**63) - 1 for cluster in begin}
    is_told = {cluster: at_offset[cluster] >= offset for cluster, (offset, _) in begin.items()}
    return MetadataClusters(
        {cluster: offset for cluster, offset in at_offset.items() if is_told[cluster]},
        {cluster: ms for cluster, (_, ms) in begin.items() if not is_told[cluster]},
    )


def clusters_of_logs(warehouse: str) -> set[str]:
    """Return the clusters that ``build`` has found log directories of.

    Raises:
        NoMetadataError: only Spark can read the table, or it was there and is gone.
    """
    return {row["cluster"] for row in _rows_of(warehouse, LOG_DIRS.name, ("cluster",))}


def has_internals(warehouse: str) -> bool:
    """Tell whether internal topics were read into the tables of a warehouse, whichever."""
    return version_if_there(join_uri(warehouse, INTERNAL_RECORDS.name)) is not None


def rows_held(
    warehouse: str, table: str, columns: Sequence[str], at_offset: Mapping[str, int]
) -> Iterator[dict[str, Any]]:
    """Yield the rows of a metadata table that held at an offset of each cluster's metadata log.

    Raises:
        NoMetadataError: only Spark can read the table, or it was there and is gone.
    """
    for row in rows_until(warehouse, table, columns, at_offset):
        if row["until_offset"] is None or row["until_offset"] > at_offset[row["cluster"]]:
            yield row


def rows_until(
    warehouse: str, table: str, columns: Sequence[str], at_offset: Mapping[str, int]
) -> Iterator[dict[str, Any]]:
    """Yield the rows that held at an offset of each cluster's metadata log, or at an earlier one.

    Raises:
        NoMetadataError: only Spark can read the table, or it was there and is gone.
    """
    for row in _rows_of(warehouse, table, (*columns, *_HELD)):
        if row["from_offset"] <= at_offset.get(row["cluster"], -1):
            yield row


def _rows_of(warehouse: str, table: str, columns: Sequence[str]) -> list[dict[str, Any]]:
    """Return columns of a table; no row where the table is not there.

    Raises:
        NoMetadataError: only Spark can read it, or it was there and is gone.
    """
    rows = read_small_table(join_uri(warehouse, table), columns, most_bytes=METADATA_BYTES)
    if rows is None:
        _refuse_unread(warehouse, table)
    return rows or []


def _files_of(warehouse: str, table: str) -> list[pa.Table]:
    found = read_small_files(
        join_uri(warehouse, table),
        _HELD,
        most_bytes=METADATA_BYTES,
        most_files=METADATA_FILES,
        most_rows=METADATA_ROWS,
    )
    if found is None:
        _refuse_unread(warehouse, table)
        return []
    return found.files


def _refuse_unread(warehouse: str, table: str) -> None:
    """Refuse a table that is there, and was not read without Spark, and one that was there."""
    uri = join_uri(warehouse, table)
    if version_if_there(uri) is not None:
        why = "is too large to be read here, or has features of Delta's that only Spark reads"
        raise NoMetadataError(f"its table {table} {why}")
    if noted_log(uri) is not None:
        raise _gone(table)


def _refuse_gone(warehouse: str) -> None:
    """Refuse a warehouse of which a table of the histories was there, by one listing."""
    try:
        there = {entry.name for entry in list_folder(place(warehouse))}
    except NoFolderError:
        return
    with suppress(ValueError):  # notes that are spoilt are refused by whoever reads a table
        noted = noted_logs(warehouse)
        for table in METADATA_TABLES:
            if table.name not in there and table.name in noted:
                raise _gone(table.name)


def _gone(table: str) -> NoMetadataError:
    return NoMetadataError(
        f"its table {table} was there and is gone; with {INTERNAL_RECORDS.name} moved away, too,"
        " `kafka-segments internals read` of the disks of its clusters makes it anew"
    )


def _least(rows: pa.Table, *columns: str) -> Iterator[tuple[Any, ...]]:
    """Yield each cluster with the least value of each column."""
    least = rows.group_by("cluster").aggregate([(column, "min") for column in columns])
    names = ("cluster", *(f"{column}_min" for column in columns))
    yield from zip(*(least[name].to_pylist() for name in names), strict=True)
