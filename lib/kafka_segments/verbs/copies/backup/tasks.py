"""Look up the timestamp of a batch, in the executors."""

from collections.abc import Iterable, Iterator

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from kafka_segments.engine.frames.map_rows import map_rows
from kafka_segments.engine.frames.row_types import row_fields
from kafka_segments.engine.tables.keys import Transform
from kafka_segments.errors import FileChangedError
from kafka_segments.files.segments.chunks import ChunkOptions, ChunkReader
from kafka_segments.kafka.index.segment.splitting import shifted
from kafka_segments.kafka.wire import batches as wire
from kafka_segments.kafka.wire import header_layout as layout
from kafka_segments.verbs.copies.divergence.log_reading.log_files import open_sized

_ROWS = [wire.BATCH_LAST_OFFSET, wire.BATCH_MAX_TIMESTAMP, wire.BATCH_ATTRIBUTES]
_OF_BROKER = layout.LOG_APPEND_TIME | layout.CONTROL

FOUND = StructType(
    row_fields(
        "path string, offset long, timestamp_ms long, is_of_broker boolean, producer_ms long"
    )
)


def find_timestamps() -> Transform:
    """Find the greatest timestamp of the first batch that reaches an offset, by headers alone.

    Needs: path, size_bytes, position (of a batch in front of it), offset.
    Gives: path, offset, timestamp_ms (ms since 1970, -1: the batch has none; null: the file has no
        such batch, or cannot be read), is_of_broker (a broker's clock gave it), producer_ms (that
        of the last batch from position on, up to this one, that a producer stamped; null: none).
    """

    def on_task(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        arrow_schema = to_arrow_schema(FOUND)
        for batch in batches:
            rows = [
                {"path": row["path"], "offset": row["offset"], **_found(**row)}
                for row in batch.to_pylist()
            ]
            yield pa.RecordBatch.from_pylist(rows, schema=arrow_schema)

    needed = ("path", "size_bytes", "position", "offset")
    return lambda asked: map_rows(asked.select(*needed), on_task, FOUND)


def _found(path: str, size_bytes: int, position: int, offset: int) -> dict[str, int | bool | None]:
    options = ChunkOptions(needs_body=False, check_crc=False)
    producer_ms = None
    try:
        with open_sized(path, size_bytes) as (read_into, log_bytes):
            rest = shifted(read_into, position)
            for chunk in ChunkReader(options).read(rest, size_bytes=log_bytes - position):
                for last, timestamp, attributes in chunk.batches[_ROWS].T.tolist():
                    is_of_broker = bool(attributes & _OF_BROKER)
                    if not is_of_broker:
                        producer_ms = timestamp
                    if last >= offset:
                        return {
                            "timestamp_ms": timestamp,
                            "is_of_broker": is_of_broker,
                            "producer_ms": producer_ms,
                        }
    except (OSError, FileChangedError):
        return {}
    return {}
