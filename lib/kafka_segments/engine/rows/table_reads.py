"""Read segments that the tables name, whole, in the executors; see the data source for the rows."""

from collections.abc import Callable, Iterable, Iterator

import pyarrow as pa
from pyspark.sql import DataFrame

from kafka_segments.engine.frames.local_rows import arrow_schema
from kafka_segments.engine.frames.map_segments import map_segments
from kafka_segments.engine.frames.packing import TellLoad, tell_nobody
from kafka_segments.engine.rows.read_options import parse_options
from kafka_segments.files.folders.walk import ListedSegment
from kafka_segments.files.segments.bounds import Bounds

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


def _segment_file(
    path: str, topic: str, partition: int, base_offset: int, size_bytes: int
) -> ListedSegment:
    folder, _, name = path.rpartition("/")
    return ListedSegment(folder, "", name, topic, partition, base_offset, None, size_bytes)
