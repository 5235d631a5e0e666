"""Index entries on their way from the executors to the tables, as flat Parquet files.

A task writes one file for each index and names them in its rows. So entries never go through
the JVM as nested arrays, and an empty table takes the files themselves. No row names the files of
a task that died or ran twice, so nothing is counted twice. The driver makes and removes the folder:
a task that outlives a failed build finds no folder, and leaves nothing behind.
"""

import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema

from kafka_segments.engine.frames.engines import rows_of_files
from kafka_segments.engine.tables.catalog import OFFSET_INDEX, TIME_INDEX, Table
from kafka_segments.engine.tables.keys import SEGMENT_KEYS
from kafka_segments.files.delta.append import MEETS_CONSTRAINTS
from kafka_segments.files.storage.durable_files import sync_file
from kafka_segments.files.storage.files import place
from kafka_segments.files.storage.publishing import make_folder, named_errors
from kafka_segments.files.storage.uris import join_uri
from kafka_segments.kafka.index.segment.recovered_segment import Entries

_ENTRY_COLUMNS = {OFFSET_INDEX: ("offset", "position"), TIME_INDEX: ("timestamp_ms", "offset")}
INDEX_TABLES = tuple(_ENTRY_COLUMNS)
_MOST_RELATIVE = 2**31 - 1
_ROWS_A_GROUP = 500_000
BaseOffsets: TypeAlias = "npt.NDArray[np.int64]"


def entry_file(folder: str, table: Table, part: str) -> str:
    """Return the URI of the file with a part's entries for one of ``INDEX_TABLES``."""
    return join_uri(folder, table.name, _file_name(part))


def _file_name(part: str) -> str:
    return f"{part}.parquet"


def make_folders(folder: str) -> None:
    """Make the folders that a build's tasks write to."""
    for table in INDEX_TABLES:
        make_folder(place(join_uri(folder, table.name)))


class EntryParts:
    """The entries that the tasks of a build left in some parts."""

    def __init__(self, spark: SparkSession, folder: str, parts: Sequence[str]) -> None:
        self._spark = spark
        self._folder = folder
        self._parts = parts

    def files(self, table: Table) -> list[str]:
        """Return the URIs of the files with entries for one of ``INDEX_TABLES``."""
        return [entry_file(self._folder, table, part) for part in self._parts]

    def rows(self, table: Table) -> DataFrame:
        """Return the entries as rows of one of ``INDEX_TABLES``."""
        folder = join_uri(self._folder, table.name)
        names = list(map(_file_name, self._parts))
        return rows_of_files(self._spark, folder, names, table.schema)


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
            if entries is not None and len(entries):
                file.add(keys, entries)
        return self._part

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for file in self._files:
            file.close(needed=self._is_named)


class _EntryFile:
    def __init__(self, folder: str, table: Table, part: str) -> None:
        self._place = place(entry_file(folder, table, part))
        self._schema = _with_dictionaries(to_arrow_schema(table.schema))
        self._table = table
        self._columns = _ENTRY_COLUMNS[table]
        self._writer: pq.ParquetWriter | None = None
        self._keys: list[tuple[Any, ...]] = []
        self._entries: list[Entries] = []
        self._rows = 0
        self._meets_all = True

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
                if self._meets_all:
                    self._writer.add_key_value_metadata({MEETS_CONSTRAINTS: b"true"})
                self._writer.close()
                if self._place.store.is_local:
                    sync_file(Path(self._place.path))

    def _write(self) -> None:
        entries = np.concatenate([*self._entries, np.empty((0, 2), dtype=np.int64)])
        columns: dict[str, pa.Array] = {
            name: pa.array(np.ascontiguousarray(entries[:, i]))
            for i, name in enumerate(self._columns)
        }
        lengths = list(map(len, self._entries))
        base_offsets = np.array([key[-1] for key in self._keys], dtype=np.int64)
        self._meets_all &= _MEETS[self._table](np.repeat(base_offsets, lengths), entries)
        segments = pa.array(np.repeat(np.arange(len(lengths), dtype=np.int32), lengths))
        for i, name in enumerate(SEGMENT_KEYS):
            of_segments = [key[i] for key in self._keys]
            found = pa.array(of_segments, type=self._schema.field(name).type.value_type)
            each = found.dictionary_encode()
            columns[name] = pa.DictionaryArray.from_arrays(
                each.indices.take(segments), each.dictionary
            )
        arrays = [columns[name] for name in self._schema.names]
        batch = pa.RecordBatch.from_arrays(arrays, schema=self._schema)
        filesystem, path = self._place
        with named_errors(path):
            if self._writer is None:
                self._writer = pq.ParquetWriter(
                    path,
                    self._schema,
                    filesystem=filesystem,
                    use_dictionary=list(SEGMENT_KEYS),
                    column_encoding=dict.fromkeys(self._columns, "DELTA_BINARY_PACKED"),
                    store_schema=False,  # no reader is to know of the dictionaries
                    write_page_checksum=True,
                )
            self._writer.write_batch(batch)
        self._keys, self._entries, self._rows = [], [], 0


def _with_dictionaries(schema: pa.Schema) -> pa.Schema:
    """Return a schema whose keys are dictionaries: a segment's are the same in all its rows."""
    for name in SEGMENT_KEYS:
        field = schema.field(name)
        encoded = field.with_type(pa.dictionary(pa.int32(), field.type))
        schema = schema.set(schema.get_field_index(name), encoded)
    return schema


def _are_offsets_within_reach(base_offsets: BaseOffsets, entries: Entries) -> bool:
    offsets, positions = entries[:, 0], entries[:, 1]
    is_above = bool((offsets >= base_offsets).all())  # then the difference is no negative number
    reach = bool((offsets - base_offsets <= _MOST_RELATIVE).all())
    return is_above and reach and bool((positions >= 0).all())


def _are_times_sound(base_offsets: BaseOffsets, entries: Entries) -> bool:
    return bool((entries[:, 0] >= 0).all() and (entries[:, 1] >= base_offsets).all())


_MEETS: Mapping[Table, Callable[[BaseOffsets, Entries], bool]] = {
    OFFSET_INDEX: _are_offsets_within_reach,
    TIME_INDEX: _are_times_sound,
}
"""Whether entries, each with its segment's base offset, surely meet all constraints of their
table. Where offsets wrap some meet them that are not told so."""
