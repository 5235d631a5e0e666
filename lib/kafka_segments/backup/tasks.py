"""Look up the timestamp of the first batch from an offset on, in the executors."""

from collections.abc import Iterable, Iterator

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import LongType, StringType, StructField, StructType

from kafka_segments.divergence.log_files import open_sized
from kafka_segments.segments.bounds import Bounds
from kafka_segments.segments.chunks import ChunkOptions, ChunkReader
from kafka_segments.spark.few_rows import map_few
from kafka_segments.tables.keys import Transform
from kafka_segments.wire import batches as wire

FOUND = StructType(
    [
        StructField("path", StringType()),
        StructField("offset", LongType()),
        StructField("timestamp_ms", LongType()),
    ]
)


def find_timestamps() -> Transform:
    """Find the greatest timestamp of the first batch that reaches an offset, by headers alone.

    Needs: path, size_bytes, offset.
    Gives: path, offset, timestamp_ms (ms since 1970, -1: the batch has none; null: the file has no
        such batch, or cannot be read).
    """

    def on_task(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        arrow_schema = to_arrow_schema(FOUND)
        for batch in batches:
            rows = [
                {
                    "path": row["path"],
                    "offset": row["offset"],
                    "timestamp_ms": _timestamp(row["path"], row["size_bytes"], row["offset"]),
                }
                for row in batch.to_pylist()
            ]
            yield pa.RecordBatch.from_pylist(rows, schema=arrow_schema)

    return lambda asked: map_few(asked.select("path", "size_bytes", "offset"), on_task, FOUND)


def _timestamp(path: str, size_bytes: int, offset: int) -> int | None:
    options = ChunkOptions(needs_body=False, check_crc=False, bounds=Bounds(low_offset=offset))
    try:
        with open_sized(path, size_bytes) as (read_into, log_bytes):
            for chunk in ChunkReader(options).read(read_into, size_bytes=log_bytes):
                if chunk.batches.shape[1]:
                    return int(chunk.batches[wire.MAX_TIMESTAMP, 0])
    except OSError:
        return None
    return None
