"""Read segments that the tables name, whole, in the executors; see the data source for the rows."""

from collections.abc import Callable, Iterable, Iterator

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kafka_segments.engine.frames.local_rows import arrow_schema
from kafka_segments.engine.frames.map_segments import map_segments
from kafka_segments.engine.frames.packing import TellLoad, tell_nobody
from kafka_segments.engine.rows.read_options import parse_options
from kafka_segments.files.folders.walk import ListedSegment
from kafka_segments.files.segments.bounds import Bounds

_OPENED_BY = ("path", "topic", "partition", "base_offset", "size_bytes")
_FIRST = "first_batch_timestamp_ms"


def read_segments(
    *, rows: str, columns: tuple[str, ...], check: str, tell: TellLoad = tell_nobody
) -> Callable[..., DataFrame]:
    """Read all batches or records of segments.

    ``rows``, ``columns`` and ``check`` mean what they mean to the data source. ``tell``: as of
    ``map_segments``.

    Needs: rows of ``segments``.
    Gives: the columns of ``kafka_segments_batches`` or ``kafka_segments_records`` asked for; of a
        file that is another one than the tables tell of only a row with ``error``.
    """
    options = parse_options(
        {"path": "/", "rows": rows, "columns": ",".join(columns), "check": check}
    )
    row_type = options.schema()

    def on_task(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from kafka_segments.engine.rows.segment_rows import SegmentRows  # noqa: PLC0415

        reader = SegmentRows(options, Bounds(), arrow_schema(row_type))
        for batch in batches:
            names = (*_OPENED_BY, _FIRST)
            for *file, first in zip(
                *(batch.column(name).to_pylist() for name in names), strict=True
            ):
                yield from reader.segment(_segment_file(*file), first_timestamp_ms=first)

    def transform(segments: DataFrame) -> DataFrame:
        has_first = F.col("valid_bytes") > 0
        first = F.when(has_first, F.col(_FIRST)).alias(_FIRST)
        asked = segments.select(*_OPENED_BY, first)
        return map_segments(asked, on_task, row_type, size="size_bytes", tell=tell)

    return transform


def _segment_file(
    path: str, topic: str, partition: int, base_offset: int, size_bytes: int
) -> ListedSegment:
    folder, _, name = path.rpartition("/")
    return ListedSegment(folder, "", name, topic, partition, base_offset, None, size_bytes)
