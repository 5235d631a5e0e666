"""How large records of batches v2 are when they are written. Source: DefaultRecord.sizeInBytes."""

import numpy as np
import numpy.typing as npt

from kafka_segments.kafka.wire import filling

Int64s = npt.NDArray[np.int64]
_VARINT_STEPS = np.array([1 << (7 * k) for k in range(1, 10)], dtype=np.uint64)


def bytes_but_times(columns: filling.Columns, rows: int, offset_deltas: Int64s) -> Int64s:
    """Return the bytes of decoded records of batches v2 but for their length and timestamp.

    Args:
        columns: the records, with keys, values and headers.
        rows: how many there are.
        offset_deltas: of each, from its batch's first offset.
    """
    size = 1 + varint_bytes(offset_deltas)
    size += _field_bytes(columns.key, rows) + _field_bytes(columns.value, rows)
    ends = columns.header_ends[: rows + 1].astype(np.int64)
    size += varint_bytes(np.diff(ends))
    headers = int(ends[-1])
    if headers:
        each = _field_bytes(columns.header_key, headers)
        each += _field_bytes(columns.header_value, headers)
        before = np.concatenate([[0], np.cumsum(each)])
        size += before[ends[1:]] - before[ends[:-1]]
    return size


def _field_bytes(column: filling.Bytes, rows: int) -> Int64s:
    lengths = np.diff(column.ends[: rows + 1]).astype(np.int64)
    return lengths + varint_bytes(np.where(column.is_null[:rows], -1, lengths))


def varint_bytes(values: Int64s) -> Int64s:
    """Return how many bytes each number takes as a varint or varlong."""
    zigzag = ((values << 1) ^ (values >> 63)).astype(np.uint64)
    return np.searchsorted(_VARINT_STEPS, zigzag, side="right") + 1
