"""Arrow columns of batch headers and of decoded records, without a Python loop a row."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kafka_segments.files.folders.walk import ListedSegment
from kafka_segments.kafka.wire import batches as wire
from kafka_segments.kafka.wire import header_layout as layout
from kafka_segments.kafka.wire.filling import Bytes

Int64s = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


def segment_column(
    name: str, segment: ListedSegment, rows: int, arrow_type: pa.DataType
) -> pa.Array:
    """Build a column that is the same for all rows of a segment; other names give nulls."""
    values = {
        "topic": segment.topic,
        "partition": segment.partition,
        "segment_base_offset": segment.base_offset,
        "path": segment.path,
    }
    if name not in values:
        return pa.nulls(rows, arrow_type)
    return pa.repeat(pa.scalar(values[name], arrow_type), rows)


def numbers(values: Int64s, arrow_type: pa.DataType, is_null: Bools | None = None) -> pa.Array:
    """Build a column of integers of any width; a copy, for the values' buffer is used again."""
    return pa.array(values.astype(arrow_type.to_pandas_dtype()), mask=is_null)


def byte_strings(column: Bytes, rows: int) -> pa.Array:
    """Copy the first rows of a column of byte strings out of its buffers."""
    is_null = column.is_null[:rows]
    nulls = np.packbits(~is_null, bitorder="little").tobytes() if is_null.any() else None
    buffers = [
        None if nulls is None else pa.py_buffer(nulls),
        pa.py_buffer(column.ends[: rows + 1].tobytes()),
        pa.py_buffer(column.data[: column.ends[rows]].tobytes()),
    ]
    return pa.Array.from_buffers(pa.binary(), rows, buffers)


def strings(column: Bytes, rows: int) -> pa.Array:
    """Build strings of UTF-8 bytes; bytes that are not get U+FFFD, as in Kafka's clients."""
    array = byte_strings(column, rows)
    try:
        return array.cast(pa.string())
    except pa.ArrowInvalid:
        return pa.array([value.decode("utf-8", "replace") for value in array.to_pylist()])


class HeaderColumns:
    """Columns of the batches' headers: one row a batch, or a row for each of ``index``."""

    def __init__(self, batches: wire.Batches, index: Int64s | None = None) -> None:
        self._batches = batches
        self._index = index
        magic = self._field(wire.BATCH_MAGIC)
        self._attributes = self._field(wire.BATCH_ATTRIBUTES)
        self._is_legacy = magic < layout.MAGIC_V2
        self._is_wrapper = self._is_legacy & (self._attributes & layout.CODEC_MASK != 0)
        self._has_type = magic != 0

    def __contains__(self, name: str) -> bool:
        return name in _FIELDS or name in _BUILT

    def column(self, name: str, arrow_type: pa.DataType) -> pa.Array:
        """Build a column by its name."""
        if name in _FIELDS:
            field, is_v2_only = _FIELDS[name]
            return numbers(self._field(field), arrow_type, self._is_legacy if is_v2_only else None)
        return _BUILT[name](self, arrow_type)

    def _field(self, field: int) -> Int64s:
        row: Int64s = self._batches[field]
        return row if self._index is None else row[self._index]

    def _bit(self, bit: int) -> pa.Array:
        return pa.array(self._attributes & bit != 0, mask=self._is_legacy)

    def _codec(self, _: pa.DataType) -> pa.Array:
        return pa.array(wire.CODECS).take(pa.array(self._attributes & layout.CODEC_MASK))

    def _timestamp_type(self, _: pa.DataType) -> pa.Array:
        is_append_time = self._attributes & layout.LOG_APPEND_TIME != 0
        types = np.where(self._has_type, 1 + is_append_time.astype(np.int64), 0)
        return pa.array(wire.TIMESTAMP_TYPES).take(pa.array(types))

    def _base_offset(self, arrow_type: pa.DataType) -> pa.Array:
        return numbers(self._field(wire.BATCH_BASE_OFFSET), arrow_type, self._is_wrapper)

    def _record_count(self, arrow_type: pa.DataType) -> pa.Array:
        return numbers(self._field(wire.BATCH_RECORD_COUNT), arrow_type, self._is_wrapper)

    def _last_offset_delta(self, arrow_type: pa.DataType) -> pa.Array:
        delta = self._field(wire.BATCH_LAST_OFFSET) - self._field(wire.BATCH_BASE_OFFSET)
        return numbers(delta, arrow_type, self._is_legacy)

    def _is_transactional(self, _: pa.DataType) -> pa.Array:
        return self._bit(layout.TRANSACTIONAL)

    def _is_control(self, _: pa.DataType) -> pa.Array:
        return self._bit(layout.CONTROL)

    def _has_delete_horizon(self, _: pa.DataType) -> pa.Array:
        return self._bit(layout.DELETE_HORIZON)


_FIELDS = {  # column -> (row of the batches array, whether only v2 has it)
    "position": (wire.BATCH_POSITION, False),
    "batch_position": (wire.BATCH_POSITION, False),
    "size_bytes": (wire.BATCH_SIZE_BYTES, False),
    "last_offset": (wire.BATCH_LAST_OFFSET, False),
    "partition_leader_epoch": (wire.BATCH_LEADER_EPOCH, True),
    "magic": (wire.BATCH_MAGIC, False),
    "crc": (wire.BATCH_CRC, False),
    "attributes": (wire.BATCH_ATTRIBUTES, False),
    "base_timestamp_ms": (wire.BATCH_BASE_TIMESTAMP, True),
    "max_timestamp_ms": (wire.BATCH_MAX_TIMESTAMP, False),
    "producer_id": (wire.BATCH_PRODUCER_ID, True),
    "producer_epoch": (wire.BATCH_PRODUCER_EPOCH, True),
    "base_sequence": (wire.BATCH_BASE_SEQUENCE, True),
}
_BUILT: dict[str, Callable[[HeaderColumns, Any], pa.Array]] = {
    "base_offset": HeaderColumns._base_offset,
    "last_offset_delta": HeaderColumns._last_offset_delta,
    "record_count": HeaderColumns._record_count,
    "codec": HeaderColumns._codec,
    "timestamp_type": HeaderColumns._timestamp_type,
    "is_transactional": HeaderColumns._is_transactional,
    "is_control": HeaderColumns._is_control,
    "has_delete_horizon": HeaderColumns._has_delete_horizon,
}
