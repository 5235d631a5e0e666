"""Read segments that the tables name, whole, in the executors; see the data source for the rows."""

from collections.abc import Callable, Iterable, Iterator

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from kafka_segments.engine.rows.read_options import parse_options
from kafka_segments.engine.spark.few_rows import (
    MOST_IN_DRIVER,
    MOST_ROWS,
    can_work_in_driver,
    expect_many_rows,
)
from kafka_segments.engine.spark.local_rows import (
    arrow_rows,
    arrow_schema,
    computed_rows,
    frame_of_rows,
)
from kafka_segments.engine.spark.packing import Load, TellLoad, pack_by_bytes, tell_nobody
from kafka_segments.files.folders.walk import ListedSegment
from kafka_segments.files.segments.bounds import Bounds

OnTask = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]
_MOST_BYTES_HERE = 16 * 1024 * 1024
_OPENED_BY = ("path", "topic", "partition", "base_offset", "size_bytes")


def read_segments(
    *, rows: str, columns: tuple[str, ...], check: str, tell: TellLoad = tell_nobody
) -> Callable[..., DataFrame]:
    """Read all batches or records of segments.

    ``rows``, ``columns`` and ``check`` mean what they mean to the data source. ``tell``: as of
    ``map_segments``.

    Needs: rows of ``segments``.
    Gives: the columns of ``kafka_segments_batches`` or ``kafka_segments_records`` asked for.
    """
    options = parse_options(
        {"path": "/", "rows": rows, "columns": ",".join(columns), "check": check}
    )
    row_type = options.schema()

    def on_task(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from kafka_segments.engine.rows.segment_rows import SegmentRows  # noqa: PLC0415

        reader = SegmentRows(options, Bounds(), arrow_schema(row_type))
        for batch in batches:
            for file in zip(*(batch.column(name).to_pylist() for name in _OPENED_BY), strict=True):
                yield from reader.segment(_segment_file(*file))

    def transform(segments: DataFrame) -> DataFrame:
        asked = segments.select(*_OPENED_BY)
        return map_segments(asked, on_task, row_type, size="size_bytes", tell=tell)

    return transform


def map_segments(
    asked: DataFrame,
    on_task: OnTask,
    row_type: StructType,
    *,
    size: str,
    tell: TellLoad = tell_nobody,
) -> DataFrame:
    """Map rows that name segments to rows of what is in these; few small ones in the driver.

    Processes that read them have started later than it has read them. ``tell``: is told how much
    tasks read.

    Needs: path, and ``size``, a column of bytes that are read (null: none).
    Gives: ``row_type``.
    """
    spark, load = asked.sparkSession, None
    if can_work_in_driver(spark):
        found, kind = computed_rows(asked)
        size_bytes = sum(value or 0 for value in found[size].to_pylist())
        if len(found) <= MOST_IN_DRIVER and size_bytes <= _MOST_BYTES_HERE:
            rows = pa.Table.from_batches(on_task(found.to_batches()), schema=arrow_schema(row_type))
            if len(rows) <= MOST_ROWS:
                return frame_of_rows(spark, rows, row_type)
            expect_many_rows(spark)
            return arrow_rows(spark, rows, row_type)
        asked, load = arrow_rows(spark, found, kind), Load(len(found), size_bytes)
        expect_many_rows(spark)
    packed = pack_by_bytes(asked, by=size, load=load, tell=tell)
    return packed.mapInArrow(on_task, row_type)


def _segment_file(
    path: str, topic: str, partition: int, base_offset: int, size_bytes: int
) -> ListedSegment:
    folder, _, name = path.rpartition("/")
    return ListedSegment(folder, "", name, topic, partition, base_offset, None, size_bytes)
