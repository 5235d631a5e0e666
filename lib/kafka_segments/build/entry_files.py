"""Index entries on their way from the executors to the tables, as flat Parquet files.

A task writes one file for each index and names them in its rows. So entries never go through
the JVM as nested arrays. No row names the files of a task that died or ran twice, so nothing is
counted twice. The driver makes and removes the folder: a task that outlives a failed build finds
no folder, and leaves nothing behind.
"""

import re
import uuid
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema

from kafka_segments.index.segment import Entries
from kafka_segments.spark.few_rows import has_few_rows
from kafka_segments.spark.local_rows import arrow_schema, frame_of_known
from kafka_segments.storage.files import Place, place
from kafka_segments.storage.publishing import make_folder, named_errors
from kafka_segments.storage.stores import hadoop_uri
from kafka_segments.storage.uris import join_uri
from kafka_segments.tables.catalog import OFFSET_INDEX, TIME_INDEX, Table
from kafka_segments.tables.keys import SEGMENT_KEYS

_ENTRY_COLUMNS = {OFFSET_INDEX: ("offset", "position"), TIME_INDEX: ("timestamp_ms", "offset")}
INDEX_TABLES = tuple(_ENTRY_COLUMNS)
_ROWS_A_GROUP = 500_000
_GLOB_SIGN = re.compile(r"([\\*?,{}\[\]])")


def entry_file(folder: str, table: Table, part: str) -> str:
    """Return the URI of the file with a part's entries for one of ``INDEX_TABLES``."""
    return join_uri(folder, table.name, f"{part}.parquet")


def make_folders(folder: str) -> None:
    """Make the folders that a build's tasks write to."""
    for table in INDEX_TABLES:
        make_folder(place(join_uri(folder, table.name)))


def read_entries(spark: SparkSession, folder: str, table: Table, parts: Sequence[str]) -> DataFrame:
    """Return the entries that tasks left in some parts, as rows of one of ``INDEX_TABLES``."""
    if has_few_rows(spark):
        files = [_read_file(place(entry_file(folder, table, part))) for part in parts]
        together = pa.concat_tables(files) if files else arrow_schema(table.schema).empty_table()
        return frame_of_known(spark, together, table.schema)
    folder = hadoop_uri(folder)
    paths = [_GLOB_SIGN.sub(r"\\\1", entry_file(folder, table, part)) for part in parts]
    if not paths:
        return spark.createDataFrame([], table.schema)
    return spark.read.schema(table.schema).parquet(*paths)


def _read_file(file: Place) -> pa.Table:
    with file.filesystem.open_input_file(file.path) as stream:
        return pq.read_table(stream)


class EntryFiles:
    """Writes the entries of one task's segments; use as a context manager.

    ``folder`` is one that ``make_folders`` made.
    """

    def __init__(self, folder: str) -> None:
        self._part = uuid.uuid4().hex
        self._is_named = False
        self._files = [_EntryFile(folder, table, self._part) for table in INDEX_TABLES]

    def add(
        self, keys: tuple[Any, ...], offset_entries: Entries | None, time_entries: Entries | None
    ) -> str | None:
        """Take the entries of a segment; return the name of their part, None if it has no entries.

        ``keys`` are the values of ``SEGMENT_KEYS``.
        """
        given = [offset_entries, time_entries]
        if not any(entries is not None and len(entries) for entries in given):
            return None
        self._is_named = True
        for file, entries in zip(self._files, given, strict=True):
            if entries is not None:
                file.add(keys, entries)
        return self._part

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for file in self._files:
            file.close(needed=self._is_named)


class _EntryFile:
    def __init__(self, folder: str, table: Table, part: str) -> None:
        self._place = place(entry_file(folder, table, part))
        self._schema = to_arrow_schema(table.schema)
        self._columns = _ENTRY_COLUMNS[table]
        self._writer: pq.ParquetWriter | None = None
        self._keys: list[tuple[Any, ...]] = []
        self._entries: list[Entries] = []
        self._rows = 0

    def add(self, keys: tuple[Any, ...], entries: Entries) -> None:
        self._keys.append(keys)
        self._entries.append(entries)
        self._rows += len(entries)
        if self._rows >= _ROWS_A_GROUP:
            self._write()

    def close(self, *, needed: bool) -> None:
        if self._rows or (needed and self._writer is None):
            self._write()
        if self._writer is not None:
            with named_errors(self._place.path):
                self._writer.close()

    def _write(self) -> None:
        entries = np.concatenate([*self._entries, np.empty((0, 2), dtype=np.int64)])
        columns = {
            name: pa.array(np.ascontiguousarray(entries[:, i]))
            for i, name in enumerate(self._columns)
        }
        rows = np.repeat(np.arange(len(self._keys), dtype=np.int32), list(map(len, self._entries)))
        for i, name in enumerate(SEGMENT_KEYS):
            values = pa.array([key[i] for key in self._keys], type=self._schema.field(name).type)
            columns[name] = values.take(pa.array(rows))
        arrays = [columns[name] for name in self._schema.names]
        batch = pa.RecordBatch.from_arrays(arrays, schema=self._schema)
        filesystem, path = self._place
        with named_errors(path):
            if self._writer is None:
                self._writer = pq.ParquetWriter(path, self._schema, filesystem=filesystem)
            self._writer.write_batch(batch)
        self._keys, self._entries, self._rows = [], [], 0
