"""Read the create times inside compressed batches v1 that a broker stamped, in the executors."""

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from kafka_segments.engine.frames.map_segments import map_segments
from kafka_segments.engine.frames.packing import TellLoad, tell_nobody
from kafka_segments.engine.frames.row_types import row_fields
from kafka_segments.errors import FileChangedError, FileReplacedError
from kafka_segments.files.segments.chunks import Chunk, ChunkOptions, ChunkReader
from kafka_segments.files.storage.files import open_segment, place
from kafka_segments.kafka.wire import batches as wire
from kafka_segments.kafka.wire import header_layout as layout
from kafka_segments.kafka.wire.record_times import RecordTimesReader

_MAX_BATCH_BYTES = 256 * 1024 * 1024
_ROW = StructType(row_fields("path string, base_timestamp_ms long, max_timestamp_ms long"))
_Times = tuple[int, int]


def read_wrapper_times(segments: DataFrame, *, tell: TellLoad = tell_nobody) -> DataFrame:
    """Read the append time of each compressed batch v1, and the create time of its first message.

    With LogAppendTime the broker writes its clock into the wrapper, and leaves the messages in it
    as the producer made them. Batches that cannot be decoded are left out, and so is the rest of
    a segment that cannot be read on. ``tell``: is told how much tasks read.

    Needs: rows of ``segments``.
    Gives: path, base_timestamp_ms (create time; -1: none), max_timestamp_ms (append time).
    Source: LogValidator.validateMessagesAndAssignOffsetsCompressed, setMaxTimestamp.
    """

    def on_task(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        arrow_schema = to_arrow_schema(_ROW)
        wrappers = WrapperTimes()
        for batch in batches:
            files = zip(*(batch.column(name).to_pylist() for name in _OPENED_BY), strict=True)
            for path, size_bytes in files:
                times = wrappers.of(path, size_bytes)
                columns = [pa.array([path] * len(times), pa.string())]
                columns += [pa.array([row[k] for row in times], pa.int64()) for k in range(2)]
                yield pa.RecordBatch.from_arrays(columns, schema=arrow_schema)

    asked = segments.select(*_OPENED_BY)
    return map_segments(asked, on_task, _ROW, size="valid_bytes", tell=tell)


_OPENED_BY = ("path", "valid_bytes")


class WrapperTimes:
    """Reads the messages inside wrappers; a task makes one."""

    def __init__(self) -> None:
        options = ChunkOptions(needs_body=True, check_crc=False, max_batch_bytes=_MAX_BATCH_BYTES)
        self._chunks = ChunkReader(options)
        self._records = RecordTimesReader(max_batch_bytes=_MAX_BATCH_BYTES)

    def of(self, path: str, size_bytes: int | None) -> list[_Times]:
        """Return create and append time (ms) of each wrapper, as far as a segment can be read.

        Of an object that was replaced meanwhile nothing is returned: it may be a mixture.
        """
        folder, _, name = path.rpartition("/")
        times: list[_Times] = []
        try:
            with open_segment(place(folder).child(name)) as file:
                for chunk in self._chunks.read(file.read_into, size_bytes=size_bytes or 0):
                    times += self._in_chunk(chunk)
                file.check_unchanged()
        except FileReplacedError:
            return []
        except (OSError, FileChangedError):
            pass
        return times

    def _in_chunk(self, chunk: Chunk) -> Iterator[_Times]:
        attributes = chunk.batches[wire.BATCH_ATTRIBUTES]
        is_wrapper = (
            (chunk.batches[wire.BATCH_MAGIC] == 1)
            & (attributes & layout.CODEC_MASK != 0)
            & (attributes & layout.LOG_APPEND_TIME != 0)
        )
        for index in np.flatnonzero(is_wrapper):
            wrapper = chunk.batches[:, [index]].copy()
            wrapper[wire.BATCH_ATTRIBUTES] &= ~layout.LOG_APPEND_TIME  # the messages' own times
            self._records.undecodable = None
            parts = list(self._records.read(wrapper, chunk.data, chunk.data_position))
            if parts and self._records.undecodable is None:
                yield int(parts[0].timestamp[0]), int(wrapper[wire.BATCH_MAX_TIMESTAMP, 0])
