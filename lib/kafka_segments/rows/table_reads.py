"""Read segments that the tables name, whole, in the executors; see the data source for the rows."""

from collections.abc import Callable, Iterable, Iterator

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema

from kafka_segments.rows.read_options import parse_options
from kafka_segments.segments.bounds import Bounds
from kafka_segments.sources.walk import SegmentFile

_OPENED_BY = ("path", "topic", "partition", "base_offset", "size_bytes")


def read_segments(*, rows: str, columns: tuple[str, ...], check: str) -> Callable[..., DataFrame]:
    """Read all batches or records of segments.

    ``rows``, ``columns`` and ``check`` mean what they mean to the data source.

    Needs: rows of ``segments``.
    Gives: the columns of ``kafka_segments_batches`` or ``kafka_segments_records`` asked for.
    """
    options = parse_options(
        {"path": "/", "rows": rows, "columns": ",".join(columns), "check": check}
    )
    row_type = options.schema()

    def on_task(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from kafka_segments.rows.segment_rows import SegmentRows  # noqa: PLC0415

        reader = SegmentRows(options, Bounds(), to_arrow_schema(row_type, timezone="UTC"))
        for batch in batches:
            for file in zip(*(batch.column(name).to_pylist() for name in _OPENED_BY), strict=True):
                yield from reader.segment(_segment_file(*file))

    def transform(segments: DataFrame) -> DataFrame:
        spread = segments.select(*_OPENED_BY).repartition("path")
        return spread.mapInArrow(on_task, row_type)

    return transform


def _segment_file(
    path: str, topic: str, partition: int, base_offset: int, size_bytes: int
) -> SegmentFile:
    folder, _, name = path.rpartition("/")
    return SegmentFile(folder, "", name, topic, partition, base_offset, None, size_bytes)
