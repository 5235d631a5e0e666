"""Index entries on their way from the executors to the tables, as flat Parquet files.

A task writes one file an index and names them in its rows. Entries never go through the JVM
as nested arrays; the files of a task that died or ran twice are named by no row, so nothing
is counted twice. The folder is made and removed by the driver: a task that outlives a failed
build finds none, and leaves nothing behind.
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

from kafka_segments.index.recovery import Entries
from kafka_segments.storage.files import place
from kafka_segments.storage.publishing import make_folder, named_errors
from kafka_segments.storage.stores import hadoop_uri
from kafka_segments.storage.uris import join_uri
from kafka_segments.tables.keys import SEGMENT_KEYS
from kafka_segments.tables.schemas import schema

INDEX_TABLES = ("offset_index", "time_index")
_ROWS_A_GROUP = 500_000
_GLOB_SIGN = re.compile(r"([\\*?,{}\[\]])")


def entry_file(folder: str, table: str, part: str) -> str:
    """Give where the entries of a part for one of ``INDEX_TABLES`` lie."""
    return join_uri(folder, table, f"{part}.parquet")


def make_folders(folder: str) -> None:
    """Make the folders that a build's tasks write to."""
    for table in INDEX_TABLES:
        make_folder(place(join_uri(folder, table)))


def read_entries(spark: SparkSession, folder: str, table: str, parts: Sequence[str]) -> DataFrame:
    """Read the entries that tasks left in some parts, as rows of one of ``INDEX_TABLES``."""
    rows = schema(f"{table}.v1")
    folder = hadoop_uri(folder)
    paths = [_GLOB_SIGN.sub(r"\\\1", entry_file(folder, table, part)) for part in parts]
    return spark.read.schema(rows).parquet(*paths) if paths else spark.createDataFrame([], rows)


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
        """Take a segment's entries; gives the name of the part they go to, None without any.

        ``keys`` are the segment's: cluster, broker_id, log_dir, topic, partition, base_offset.
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
    def __init__(self, folder: str, table: str, part: str) -> None:
        self._place = place(entry_file(folder, table, part))
        self._schema = to_arrow_schema(schema(f"{table}.v1"))
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
        rows = np.repeat(np.arange(len(self._keys), dtype=np.int32), list(map(len, self._entries)))
        columns = [
            pa.array(values, type=field.type).take(pa.array(rows))
            for values, field in zip(
                zip(*self._keys, strict=True) if self._keys else [()] * len(SEGMENT_KEYS),
                self._schema,
                strict=False,
            )
        ]
        entries = np.concatenate([*self._entries, np.empty((0, 2), dtype=np.int64)])
        columns += [pa.array(np.ascontiguousarray(entries[:, column])) for column in (0, 1)]
        batch = pa.RecordBatch.from_arrays(columns, schema=self._schema)
        filesystem, path = self._place
        with named_errors(path):
            if self._writer is None:
                self._writer = pq.ParquetWriter(path, self._schema, filesystem=filesystem)
            self._writer.write_batch(batch)
        self._keys, self._entries, self._rows = [], [], 0
