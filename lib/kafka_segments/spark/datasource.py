"""``spark.read.format("kafka_segments")``: batches or records of raw segments as rows.

Options:
    path: what ``load`` takes: a log directory, a folder of several, or one partition's folder,
        as a path or URI; or a list of these.
    rows: ``batches`` (default), one row a batch, or ``records``, one row a record.
    columns: names, separated by commas; only these columns are made. Spark does not tell a
        Python data source which columns a query uses, so this (or ``.schema(...)``) is how to
        spare keys, values and headers that are not needed.
    check: ``full`` (default) verifies checksums, ``headers`` does not and jumps over what a
        query does not need.
    max_batch_bytes: a batch that is larger, compressed or not, is a row with ``error``.
    tasks: number of Spark tasks; by default four a core of the driver, more above 1 GiB a task.

What filters spare:
    Segments are left out by topic, partition, segment_base_offset and path, and by offset where
    their range, up to the next segment's base offset, does not meet the one asked for. Batches are
    passed over undecoded by their last offset and greatest timestamp. Whole segments are not left
    out by timestamp: the last entry of a .timeindex bounds a segment's greatest timestamp from
    below only, and nothing proves that the file belongs to the log as it is.

Damage is rows: ``error`` says why a segment ends before its file does, cannot be read, or why a
batch cannot be decoded; it is null in all other rows.
"""

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, Filter, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from kafka_segments.errors import FileChangedError, UsageError
from kafka_segments.spark.arrow_columns import HeaderColumns, segment_column
from kafka_segments.spark.packing import OPEN_COST_BYTES, PartitionLoad, count_tasks
from kafka_segments.spark.pushdown import batch_bounds, may_hold, record_bounds
from kafka_segments.spark.record_rows import RecordRows
from kafka_segments.spark.schemas import schema as published
from kafka_segments.storage.chunks import Bounds, Chunk, ChunkOptions, ChunkReader
from kafka_segments.storage.files import absolute_uri, first_line, open_segment, place
from kafka_segments.storage.walk import SegmentFile, UnlistedFolder, find_segments

BATCHES, RECORDS = "batches", "records"
_SCHEMAS = {BATCHES: "kafka_segments_batches.v1", RECORDS: "kafka_segments_records.v1"}
_CHECKS = ("full", "headers")
_OPTIONS = ("path", "paths", "rows", "columns", "check", "max_batch_bytes", "tasks")
_MAX_BATCH_BYTES = 256 * 1024 * 1024
_LEAST_BATCH_BYTES = 1024


@dataclass(frozen=True)
class ReadOptions:
    """The options of one read, parsed."""

    sources: tuple[str, ...]
    rows: str
    columns: tuple[str, ...]
    check_crc: bool
    max_batch_bytes: int
    tasks: int | None

    @property
    def is_records(self) -> bool:
        """Whether rows are records."""
        return self.rows == RECORDS

    def schema(self) -> StructType:
        """Give the published schema, narrowed to ``columns``."""
        whole = published(_SCHEMAS[self.rows])
        for name in self.columns:
            if name not in whole.names:
                raise UsageError(f"column {name} is not one of {', '.join(whole.names)}")
        return StructType([whole[name] for name in self.columns]) if self.columns else whole


def parse_options(options: dict[str, str]) -> ReadOptions:
    """Parse the options of a read.

    Raises:
        UsageError: an option that is unknown, missing or cannot be meant.
    """
    options = {name.lower(): text for name, text in options.items()}
    for name in options:
        if name not in _OPTIONS:
            raise UsageError(f"option {name} is not one of {', '.join(_OPTIONS)}")
    paths = json.loads(options["paths"]) if "paths" in options else [options.get("path", "")]
    columns = tuple(name.strip() for name in options.get("columns", "").split(",") if name.strip())
    return ReadOptions(
        sources=tuple(absolute_uri(path) for path in paths),
        rows=_choice(options, "rows", (BATCHES, RECORDS)),
        columns=columns,
        check_crc=_choice(options, "check", _CHECKS) == "full",
        max_batch_bytes=_number(
            options, "max_batch_bytes", _MAX_BATCH_BYTES, _LEAST_BATCH_BYTES, 2**31 - 1
        ),
        tasks=_number(options, "tasks", 0, 1, 1_000_000) if "tasks" in options else None,
    )


def _choice(options: dict[str, str], name: str, choices: Sequence[str]) -> str:
    value = options.get(name, choices[0])
    if value not in choices:
        raise UsageError(f"option {name} is {value!r}, {' or '.join(choices)} expected")
    return value


def _number(options: dict[str, str], name: str, default: int, least: int, most: int) -> int:
    text = options.get(name, str(default))
    if not (text.isascii() and text.isdigit() and least <= int(text) <= most):
        raise UsageError(f"option {name} is {text!r}, a number from {least} to {most} expected")
    return int(text)


class SegmentTask(InputPartition):
    """The segments that one Spark task reads, and folders that could not be listed."""

    def __init__(self, segments: list[SegmentFile], unlisted: list[UnlistedFolder]) -> None:
        super().__init__(len(segments))
        self.segments = segments
        self.unlisted = unlisted


class KafkaSegmentsDataSource(DataSource):
    """Data source ``kafka_segments``; see the module for options and columns."""

    @classmethod
    def name(cls) -> str:
        """Name the format."""
        return "kafka_segments"

    def schema(self) -> StructType:
        """Give the columns that the options ask for."""
        return parse_options(dict(self.options)).schema()

    def reader(self, schema: StructType) -> "SegmentsReader":
        """Make the reader of the schema's columns."""
        options = parse_options(dict(self.options))
        known = {field.name: field.dataType.simpleString() for field in options.schema()}
        for field in schema:
            found = field.dataType.simpleString()
            if known.get(field.name) != found:
                expected = known.get(field.name, f"one of {', '.join(known)}")
                raise UsageError(f"column {field.name} is {found}, {expected} expected")
        return SegmentsReader(options, schema)


class SegmentsReader(DataSourceReader):
    """Plans tasks from the sources and the filters, and reads a task's segments."""

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema
        self._filters: list[Filter] = []
        self._bounds = Bounds()

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802
        """Note what the filters spare; all of them stay Spark's to evaluate."""
        self._filters = list(filters)
        find = record_bounds if self._options.is_records else batch_bounds
        self._bounds = find(self._filters)
        return filters

    def partitions(self) -> list[InputPartition]:
        """List the sources and share the segments out by bytes."""
        found = find_segments(self._options.sources)
        segments = [segment for segment in found.segments if may_hold(self._filters, segment)]
        total = sum(segment.size_bytes for segment in segments)
        load = PartitionLoad(0, len(segments), total)
        tasks = self._options.tasks or count_tasks([load], cores=os.cpu_count() or 1)
        shares = _shared_out(segments, tasks)
        unlisted = [SegmentTask([], found.unlisted)] if found.unlisted else []
        return [*unlisted, *(SegmentTask(share, []) for share in shares)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Give the rows of a task's segments; a segment that cannot be read is one row."""
        if not isinstance(partition, SegmentTask):
            return
        arrow_schema = to_arrow_schema(self._schema, timezone="UTC")
        rows = _Rows(self._options, self._bounds, arrow_schema)
        for folder in partition.unlisted:
            yield rows.unlisted(folder)
        for segment in partition.segments:
            yield from rows.segment(segment)


def _shared_out(segments: list[SegmentFile], tasks: int) -> list[list[SegmentFile]]:
    """Cut the list where equal pieces of its bytes end; no piece is empty."""
    weights = [segment.size_bytes + OPEN_COST_BYTES for segment in segments]
    total, before = sum(weights), 0
    shares: dict[int, list[SegmentFile]] = {}
    for segment, weight in zip(segments, weights, strict=True):
        shares.setdefault((2 * before + weight) * tasks // (2 * total), []).append(segment)
        before += weight
    return list(shares.values())


class _Rows:
    """Makes the rows of one task."""

    def __init__(self, options: ReadOptions, bounds: Bounds, arrow_schema: pa.Schema) -> None:
        self._schema = arrow_schema
        self._records = (
            RecordRows(arrow_schema, max_batch_bytes=options.max_batch_bytes)
            if options.is_records
            else None
        )
        self._reader = ChunkReader(
            ChunkOptions(
                needs_body=options.is_records,
                check_crc=options.check_crc,
                max_batch_bytes=options.max_batch_bytes,
                bounds=bounds,
            )
        )

    def segment(self, segment: SegmentFile) -> Iterator[pa.RecordBatch]:
        position = 0
        try:
            with open_segment(place(segment.source).child(segment.relative_path, segment.name)) as file:
                for chunk in self._reader.read(file.read_into, size_bytes=file.size_bytes):
                    yield from self._chunk(chunk, segment)
        except FileNotFoundError:
            yield self._error(segment, "listed, but gone when it was to be read", position)
        except FileChangedError as error:
            yield self._error(segment, str(error), error.position)
        except OSError as error:
            yield self._error(segment, first_line(error), position)

    def _chunk(self, chunk: Chunk, segment: SegmentFile) -> Iterator[pa.RecordBatch]:
        if self._records is not None:
            yield from self._records.rows(chunk, segment)
        elif chunk.batches.shape[1]:
            yield self._batches(chunk, segment)
        if chunk.end_reason is not None:
            yield self._error(segment, chunk.end_reason, chunk.end_position)

    def _batches(self, chunk: Chunk, segment: SegmentFile) -> pa.RecordBatch:
        headers, count = HeaderColumns(chunk.batches), chunk.batches.shape[1]
        arrays = [
            headers.column(column.name, column.type)
            if column.name in headers
            else segment_column(column.name, segment, count, column.type)
            for column in self._schema
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def unlisted(self, folder: UnlistedFolder) -> pa.RecordBatch:
        values = {
            "path": folder.path,
            "topic": folder.topic,
            "partition": folder.partition,
            "error": folder.reason,
        }
        return self._row(values)

    def _error(self, segment: SegmentFile, reason: str, position: int) -> pa.RecordBatch:
        values = {
            "path": segment.path,
            "topic": segment.topic,
            "partition": segment.partition,
            "segment_base_offset": segment.base_offset,
            "position": position,
            "batch_position": position,
            "error": f"{reason} (at byte {position})",
        }
        return self._row(values)

    def _row(self, values: dict[str, str | int | None]) -> pa.RecordBatch:
        arrays = [pa.array([values.get(column.name)], type=column.type) for column in self._schema]
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)


def register(spark: SparkSession) -> None:
    """Make the format known to a session and let it hand filters to Python data sources."""
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    spark.dataSource.register(KafkaSegmentsDataSource)
