"""Scan segments in the executors: paths in, index files written, rows out."""

import gc
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from itertools import repeat
from operator import itemgetter
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from kafka_segments.engine.frames.map_rows import map_rows
from kafka_segments.engine.frames.packing import TellRead
from kafka_segments.engine.tables.array_columns import to_nested
from kafka_segments.engine.tables.keys import SEGMENT_KEYS, Transform
from kafka_segments.files.segments.format_files import Around
from kafka_segments.kafka.index.formats.by_name import FOREIGN_SUFFIXES
from kafka_segments.verbs.scan.entry_files import EntryFiles
from kafka_segments.verbs.scan.first_looks import Looked, LooksAtOnce
from kafka_segments.verbs.scan.scanner import Scanned, ScanOptions, SegmentScanner, in_turn
from kafka_segments.verbs.scan.segment_values import SCANNED_COLUMNS, scanned_values

_NS_A_MS = 1_000_000
_ROWS_A_BATCH = 2_000
_key_of = itemgetter(*SEGMENT_KEYS)
_LOOKS_A_BATCH = 64  # in the driver: more than are under way at once
CARRIED = (
    *SEGMENT_KEYS,
    "source",
    "relative_path",
    "name",
    "size_bytes",
    "mtime_ns",
    "is_active",
    "next_base_offset",
    "index_format_before",
    "fingerprint",
)
"""The columns that a scan needs; all of them are in its rows again."""


def scan_segments(
    options: ScanOptions, *, threads_here: int = 0, tell_read: TellRead | None = None
) -> Transform:
    """Recover every segment of a DataFrame and publish its index files.

    ``threads_here``: how many threads of the driver read the segments, where these are so few that
    tasks would begin later; 0: tasks read them.
    ``tell_read``: is told then of the bytes of each segment that was read, or of one looked at.

    Needs: ``CARRIED``, as ``plan_scan`` gives them.
    Gives: the same, with size and mtime of the log that was read, and ``SCANNED_COLUMNS``.
    """

    def transform(segments: DataFrame) -> DataFrame:
        carried = segments.select(*CARRIED)
        row_type = StructType([*carried.schema.fields, *SCANNED_COLUMNS])

        def on_task(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            arrow_schema = to_arrow_schema(row_type)
            scanner, looks = SegmentScanner(options), LooksAtOnce(options.recovery)
            if not threads_here:
                gc.freeze()  # Spark collects after each task: what is imported is not searched
            with _entry_files(options.entries) as entries, closing(scanner), closing(looks):
                asked = _few_at_once(batches)
                if options.is_first_look:
                    asked = _looked_ahead(asked, looks)
                for rows, given, taken in asked:
                    scanner.announce(
                        (row["source"], row["relative_path"], row["name"]) for row in given
                    )
                    begun = (
                        _begin(scanner, row, looked)
                        for row, looked in zip(given, taken, strict=False)
                    )
                    scanned = [
                        _values(entries, row, found)
                        for row, found in zip(given, in_turn(begun), strict=True)
                    ]
                    yield _to_batch(rows, scanned, arrow_schema)

        if threads_here:
            tell = None if tell_read is None else _teller(tell_read, options)
            return map_rows(
                carried,
                on_task,
                row_type,
                threads=threads_here,
                rows_at_once=_LOOKS_A_BATCH if options.is_first_look else 1,
                tell=tell,
            )
        return carried.mapInArrow(on_task, row_type)

    return transform


def _teller(tell_read: TellRead, options: ScanOptions) -> Callable[[pa.RecordBatch], None]:
    if options.is_first_look:
        return lambda rows: tell_read(rows.num_rows)
    return lambda rows: tell_read(sum(rows.column("size_bytes").to_pylist()))


class _Asked(NamedTuple):
    """Rows of ``CARRIED``, the same as values, and the first looks at them as far as taken."""

    rows: pa.RecordBatch
    given: list[dict[str, Any]]
    looks: Iterable[Looked | None]


def _few_at_once(batches: Iterable[pa.RecordBatch]) -> Iterator[_Asked]:
    for batch in batches:
        for first in range(0, batch.num_rows, _ROWS_A_BATCH):
            rows = batch.slice(first, _ROWS_A_BATCH)
            yield _Asked(rows, rows.to_pylist(), repeat(None))


def _looked_ahead(asked: Iterable[_Asked], looks: LooksAtOnce) -> Iterator[_Asked]:
    """Begin the first looks at a batch of rows while those at the batch before it still run."""
    before: _Asked | None = None
    for one in asked:
        begun = one._replace(looks=looks.begin(one.given))
        if before is not None:
            yield before
        before = begun
    if before is not None:
        yield before


def _entry_files(folder: str | None) -> AbstractContextManager[EntryFiles | None]:
    return nullcontext() if folder is None else EntryFiles(folder)


def _begin(
    scanner: SegmentScanner, row: dict[str, Any], looked: Looked | None
) -> Callable[[], Scanned]:
    """Begin to scan the segment of a row of ``CARRIED``; return what finishes that.

    ``looked`` is a first look that was taken already.
    """
    format_before = row["index_format_before"]
    return scanner.begin(
        row["source"],
        row["relative_path"],
        row["name"],
        row["base_offset"],
        topic=(row["cluster"], row["broker_id"], row["topic"]),
        around=Around(row["next_base_offset"], row["mtime_ns"] // _NS_A_MS),
        gone=[FOREIGN_SUFFIXES[format_before]] if format_before in FOREIGN_SUFFIXES else (),
        is_active=row["is_active"],
        looked=looked,
    )


def _values(entries: EntryFiles | None, row: dict[str, Any], scanned: Scanned) -> dict[str, Any]:
    """Return the values of the columns of a row of ``CARRIED`` that its scan changes."""
    found, part = scanned.recovery, None
    if entries is not None and found is not None:
        part = entries.add(_key_of(row), found.offset_entries, found.time_entries)
    return scanned_values(
        scanned, size_bytes=row["size_bytes"], mtime_ns=row["mtime_ns"], entry_part=part
    )


def _to_batch(
    carried: pa.RecordBatch, rows: Sequence[dict[str, Any]], arrow_schema: pa.Schema
) -> pa.RecordBatch:
    """Build a batch: a column comes from the scan if it has one, otherwise from the input."""
    scanned = {name: [row[name] for row in rows] for name in (rows[0] if rows else ())}
    arrays = [
        _array(scanned[field.name], field.type)
        if field.name in scanned
        else carried.column(field.name)
        for field in arrow_schema
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=arrow_schema)


def _array(values: Sequence[Any], arrow_type: pa.DataType) -> pa.Array:
    is_table = pa.types.is_list(arrow_type) and pa.types.is_struct(arrow_type.value_type)
    return to_nested(values, arrow_type) if is_table else pa.array(values, type=arrow_type)
