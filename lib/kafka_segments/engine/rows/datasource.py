"""``spark.read.format("kafka_segments")``: batches or records of raw segments as rows.

Options:
    path: what ``load`` takes: a log directory, a folder of several, or one partition's folder,
        as a path or URI; or a list of these.
    rows: ``batches`` (default), one row a batch, or ``records``, one row a record.
    columns: names, separated by commas; only these columns are made. Spark does not tell a
        Python data source which columns a query uses, so this (or ``.schema(...)``) is how to
        spare keys, values and headers that are not needed.
    topic, partition, segment_base_offset: lists, separated by commas; only these are read.
    min_offset, max_offset, min_timestamp_ms, max_timestamp_ms: only records within these bounds,
        both included, or batches that may hold such records.
    index_dir: folder of index files that `kafka-segments build` made of the same sources; with a
        lower bound of timestamps, segments that they prove to be older are not read.
    check: ``full`` (default) verifies checksums, ``headers`` does not and jumps over what a
        query does not need.
    max_batch_bytes: a batch that is larger, compressed or not, is a row with ``error``.
    tasks: number of Spark tasks; by default some a core of the driver, more for much data.
    follow_links: ``true`` follows symbolic links below the sources, not out of them; by default
        a segment or a log that is a link is a row with ``error``, which says where it leads.
    pushdown: ``true`` lets ``.where(...)`` narrow what is read, as the options above do.
        ``false`` (default), because Spark 4.2.0 keeps the filters that it pushed into a Python data
        source, and wrongly reuses them for all queries and branches of a query that go back
        to the same ``load``. With ``true``, load anew for every query and every branch.

What options and pushed filters spare:
    Segments are left out by topic, partition and segment_base_offset, and by offset where their
    range, up to the next segment's base offset, does not meet the one asked for. Batches are
    passed over undecoded by their offsets and greatest timestamp. With ``index_dir`` whole
    segments are left out by the last timestamp of their .timeindex, where the end of the .log,
    from the last indexed batch on, shows that the file tells all of the log as it is.

Sources are listed once a ``load``; what a broker adds or deletes later takes a new one.
Damage is rows: ``error`` says why a segment ends before its file does, cannot be read, or why a
batch cannot be decoded; it is null in all other rows.
"""

import os
from collections.abc import Iterable, Iterator

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, Filter, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from kafka_segments.engine.frames.packing import count_tasks
from kafka_segments.engine.limits import OPEN_COST_BYTES, Load
from kafka_segments.engine.rows.pushdown import batch_bounds, may_hold, record_bounds
from kafka_segments.engine.rows.read_options import ReadOptions, parse_options
from kafka_segments.engine.rows.workers import take_own_python
from kafka_segments.errors import UsageError
from kafka_segments.files.changes.index_files import IndexOutput
from kafka_segments.files.folders.walk import ListedSegment, UnlistedFolder, find_segments
from kafka_segments.files.storage.uris import folders_below


class SegmentTask(InputPartition):
    """The segments that one Spark task reads, and folders that could not be listed."""

    def __init__(self, segments: list[ListedSegment], unlisted: list[UnlistedFolder]) -> None:
        super().__init__(len(segments))
        self.segments = segments
        self.unlisted = unlisted


class KafkaSegmentsDataSource(DataSource):
    """Data source ``kafka_segments``; see the module for options and columns."""

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return "kafka_segments"

    def schema(self) -> StructType:
        """Return the columns that the options ask for."""
        return parse_options(dict(self.options)).schema()

    def reader(self, schema: StructType) -> "SegmentsReader":
        """Return the reader of the schema's columns."""
        options = parse_options(dict(self.options))
        known = {field.name: field.dataType.simpleString() for field in options.schema()}
        for field in schema:
            found = field.dataType.simpleString()
            if known.get(field.name) != found:
                expected = known.get(field.name, f"one of {', '.join(known)}")
                raise UsageError(f"column {field.name} is {found}, {expected} expected")
        return (PushdownReader if options.has_pushdown else SegmentsReader)(options, schema)


class SegmentsReader(DataSourceReader):
    """Plans tasks from the sources and the options, and reads a task's segments."""

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema
        self._filters = list(options.filters)
        self._bounds = record_bounds(options.filters)

    def partitions(self) -> list[InputPartition]:
        """List the sources, and return tasks with about equal shares of the segments' bytes."""
        found = find_segments(self._options.sources, follow_links=self._options.follow_links)
        segments = [segment for segment in found.segments if may_hold(self._filters, segment)]
        if self._options.index_dir is not None:
            from kafka_segments.engine.rows.time_bounds import without_older  # noqa: PLC0415

            sources = self._options.sources
            output = IndexOutput(self._options.index_dir, "", folders_below(sources))
            segments = without_older(segments, output, self._bounds.low_timestamp)
        total = sum(segment.size_bytes for segment in segments)
        load = Load(len(segments), total)
        tasks = self._options.tasks or count_tasks(load, cores=os.cpu_count() or 1)
        shares = _shared_out(segments, tasks)
        unlisted = [SegmentTask([], found.unlisted)] if found.unlisted else []
        return [*unlisted, *(SegmentTask(share, []) for share in shares)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a task's segments; a segment that cannot be read is one row."""
        if not isinstance(partition, SegmentTask):
            return
        # Imported where it is used: the processes that only plan a query start in half the time.
        from kafka_segments.engine.rows.segment_rows import SegmentRows  # noqa: PLC0415

        arrow_schema = to_arrow_schema(self._schema, timezone="UTC")
        rows = SegmentRows(self._options, self._bounds, arrow_schema)
        for folder in partition.unlisted:
            yield rows.unlisted(folder)
        for segment in partition.segments:
            yield from rows.segment(segment)


class PushdownReader(SegmentsReader):
    """A reader that filters narrow; see option ``pushdown``."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802
        """Note what need not be read; Spark evaluates all filters again."""
        filters = list(filters)
        self._filters += filters
        find = record_bounds if self._options.is_records else batch_bounds
        self._bounds = self._bounds.narrowed(find(filters))
        return filters


def load_of(options: dict[str, str]) -> tuple[Load, int]:
    """List the sources of a read; return how much it reads, and in how many tasks."""
    parsed = parse_options(options)
    tasks = SegmentsReader(parsed, parsed.schema()).partitions()
    sizes = [
        segment.size_bytes
        for task in tasks
        if isinstance(task, SegmentTask)
        for segment in task.segments
    ]
    return Load(len(sizes), sum(sizes)), len(tasks)


def _shared_out(segments: list[ListedSegment], tasks: int) -> list[list[ListedSegment]]:
    """Cut the list into pieces of about equal bytes; no piece is empty."""
    weights = [segment.size_bytes + OPEN_COST_BYTES for segment in segments]
    total, before = sum(weights), 0
    shares: dict[int, list[ListedSegment]] = {}
    for segment, weight in zip(segments, weights, strict=True):
        shares.setdefault((2 * before + weight) * tasks // (2 * total), []).append(segment)
        before += weight
    return list(shares.values())


def register(spark: SparkSession) -> None:
    """Make the format known to a session, and option ``pushdown`` possible.

    Tasks run the workers' Python: in a local session the driver's own, unless PYSPARK_PYTHON names
    another; ``workers.require_package`` tells whether another one has this package.
    """
    take_own_python(spark)
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    spark.dataSource.register(KafkaSegmentsDataSource)
