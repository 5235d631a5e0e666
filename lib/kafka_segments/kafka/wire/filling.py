"""Decodes the records of many batches into columns, compiled.

The columns are laid out as Arrow's: the bytes of all rows, and where those of each row end. A batch
is checked whole before anything of it is copied, so it is decoded whole or not at all.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kafka_segments.compiling import njit
from kafka_segments.kafka.wire import batches as wire
from kafka_segments.kafka.wire import header_layout as layout
from kafka_segments.kafka.wire.failures import FAILURE_SLOTS, OK
from kafka_segments.kafka.wire.headers import size_at
from kafka_segments.kafka.wire.messages import (
    check_messages,
    check_plain_message,
    key_length_at,
)
from kafka_segments.kafka.wire.native import load_i32, load_i64
from kafka_segments.kafka.wire.records import check_records
from kafka_segments.kafka.wire.varints import read_varint, read_varlong

# Slots of ``fill`` (int64): where filling stands, and the rows and headers in use.
BATCH = 0  # under decoding
LEFT = 1  # records left in it, -1: not begun
AT = 2  # the next record's place in the data
SHIFT = 3  # what is added to the offsets of inner messages
ROWS = 4
HEADERS = 5
NEEDED_BYTES = 6  # of the record that did not fit
NEEDED_HEADERS = 7
FILL_SLOTS = 8

# What ``fill_columns`` gives.
DONE = 0
NO_ROOM = 1
FAILED = 2

# Rows of ``Columns.rows`` (int64).
ROW_BATCH, ROW_OFFSET, ROW_TIMESTAMP = 0, 1, 2


class Bytes(NamedTuple):
    """A column of byte strings: row i is ``data[ends[i]:ends[i + 1]]``."""

    data: npt.NDArray[np.uint8]
    ends: npt.NDArray[np.int32]
    is_null: npt.NDArray[np.bool_]


class Columns(NamedTuple):
    """What records are decoded into; a column that is not wanted stays as it is."""

    rows: npt.NDArray[np.int64]
    key: Bytes
    value: Bytes
    header_ends: npt.NDArray[np.int32]
    header_key: Bytes
    header_value: Bytes
    wants: npt.NDArray[np.bool_]  # key, value, headers


def _new_bytes(rows: int, data_bytes: int) -> Bytes:
    return Bytes(
        np.empty(data_bytes, dtype=np.uint8),
        np.zeros(rows + 1, dtype=np.int32),
        np.zeros(rows, dtype=np.bool_),
    )


def new_columns(
    *, rows: int, data_bytes: int, headers: int, wants: tuple[bool, bool, bool]
) -> Columns:
    """Make empty columns for so many rows, bytes a column, and headers."""
    has_key, has_value, has_headers = wants
    headers = headers if has_headers else 0
    return Columns(
        rows=np.zeros((3, rows), dtype=np.int64),
        key=_new_bytes(rows, data_bytes if has_key else 0),
        value=_new_bytes(rows, data_bytes if has_value else 0),
        header_ends=np.zeros(rows + 1, dtype=np.int32),
        header_key=_new_bytes(headers, data_bytes if has_headers else 0),
        header_value=_new_bytes(headers, data_bytes if has_headers else 0),
        wants=np.array(wants, dtype=np.bool_),
    )


def new_fill() -> npt.NDArray[np.int64]:
    """Make the state of filling: nothing begun, no rows."""
    fill = np.zeros(FILL_SLOTS, dtype=np.int64)
    fill[LEFT] = -1
    return fill


def new_failure() -> npt.NDArray[np.int64]:
    """Make room for the note of a failed check."""
    return np.zeros(FAILURE_SLOTS, dtype=np.int64)


@njit(forceinline=True)  # type: ignore[untyped-decorator]
def _append(data: Any, at: Any, length: Any, target: Any, ends: Any, is_null: Any, row: Any) -> Any:
    """Append ``data[at:at + length]`` to a column, null where negative."""
    used = np.int64(ends[row])
    is_null[row] = length < 0
    source, sink = np.uintp(at), np.uintp(used)  # unsigned: an index from the end needs no test
    for k in range(np.uintp(max(length, 0))):
        target[sink + k] = data[source + k]
    ends[row + 1] = used + max(length, 0)


@njit  # type: ignore[untyped-decorator]
def _append_headers(data: Any, at: Any, end: Any, columns: Any, entry: Any, count: Any) -> None:
    keys, values = columns.header_key, columns.header_value
    for i in range(entry, entry + count):
        length, at = read_varint(data, at, end)
        _append(data, at, length, keys.data, keys.ends, keys.is_null, i)
        length, at = read_varint(data, at + length, end)
        _append(data, at, length, values.data, values.ends, values.is_null, i)
        at += max(length, 0)


@njit  # type: ignore[untyped-decorator]
def _headers_fit(columns: Any, entry: Any, count: Any, length: Any) -> Any:
    keys, values = columns.header_key, columns.header_value
    return (
        entry + count < len(keys.ends)
        and keys.ends[entry] + length <= len(keys.data)
        and values.ends[entry] + length <= len(values.data)
    )


@njit  # type: ignore[untyped-decorator]
def _copy_records(data: Any, end: Any, batches: Any, columns: Any, fill: Any) -> Any:
    """Copy the checked records of a v2 batch from AT on; return whether all had room.

    Whatever a record's fields are, none is longer than the record, so that much room will do.
    """
    batch = fill[BATCH]
    base_offset = batches[wire.BATCH_BASE_OFFSET, batch]
    base_timestamp = batches[wire.BATCH_BASE_TIMESTAMP, batch]
    max_timestamp = batches[wire.BATCH_MAX_TIMESTAMP, batch]
    is_append_time = batches[wire.BATCH_ATTRIBUTES, batch] & layout.LOG_APPEND_TIME != 0
    rows, header_ends = columns.rows, columns.header_ends
    keys, key_ends, key_is_null = columns.key.data, columns.key.ends, columns.key.is_null
    values, value_ends, value_is_null = (
        columns.value.data,
        columns.value.ends,
        columns.value.is_null,
    )
    wants_key, wants_value, wants_headers = columns.wants[0], columns.wants[1], columns.wants[2]
    row, left, record_at, entry = fill[ROWS], fill[LEFT], fill[AT], fill[HEADERS]
    while left > 0:
        length, at = read_varint(data, record_at, end)
        stop = at + length
        timestamp_delta, at = read_varlong(data, at + 1, stop)
        offset_delta, at = read_varint(data, at, stop)
        key_length, key_at = read_varint(data, at, stop)
        value_length, value_at = read_varint(data, key_at + max(key_length, 0), stop)
        count = np.int64(0)
        if wants_headers:
            count, at = read_varint(data, value_at + max(value_length, 0), stop)
        if (
            row >= rows.shape[1]
            or (wants_key and key_ends[row] + length > len(keys))
            or (wants_value and value_ends[row] + length > len(values))
            or (count > 0 and not _headers_fit(columns, entry, count, length))
        ):
            fill[NEEDED_BYTES] = length
            fill[NEEDED_HEADERS] = count
            break
        if wants_key:
            _append(data, key_at, key_length, keys, key_ends, key_is_null, row)
        if wants_value:
            _append(data, value_at, value_length, values, value_ends, value_is_null, row)
        if count > 0:
            _append_headers(data, at, stop, columns, entry, count)
            entry += count
        rows[ROW_BATCH, row] = batch
        rows[ROW_OFFSET, row] = base_offset + offset_delta
        rows[ROW_TIMESTAMP, row] = (
            max_timestamp if is_append_time else base_timestamp + timestamp_delta
        )
        row += 1
        header_ends[row] = entry
        record_at = stop
        left -= 1
    fill[ROWS], fill[LEFT], fill[AT], fill[HEADERS] = row, left, record_at, entry
    return left == 0


@njit(forceinline=True)  # type: ignore[untyped-decorator]
def message_timestamp(data: Any, at: Any, batches: Any, batch: Any) -> Any:
    """Return the timestamp (ms) of the checked message at ``at``, which is of a batch.

    With LogAppendTime an inner message has its wrapper's; magic 0 never has one.
    """
    is_append_time = batches[wire.BATCH_ATTRIBUTES, batch] & layout.LOG_APPEND_TIME != 0
    timestamp = np.int64(layout.NO_TIMESTAMP)
    if data[at + layout.MAGIC] != 0:
        timestamp = load_i64(data, at + layout.LEGACY_TIMESTAMP)
        if is_append_time and batches[wire.BATCH_MAGIC, batch] == 1:
            timestamp = batches[wire.BATCH_MAX_TIMESTAMP, batch]
    return timestamp


@njit  # type: ignore[untyped-decorator]
def _copy_messages(data: Any, batches: Any, columns: Any, fill: Any) -> Any:
    """Copy checked messages from AT on; return whether all had room."""
    batch = fill[BATCH]
    rows, key, value = columns.rows, columns.key, columns.value
    wants_key, wants_value = columns.wants[0], columns.wants[1]
    while fill[LEFT] > 0:
        at, row = fill[AT], fill[ROWS]
        length = size_at(data, at)
        if (
            row >= rows.shape[1]
            or (wants_key and key.ends[row] + length > len(key.data))
            or (wants_value and value.ends[row] + length > len(value.data))
        ):
            fill[NEEDED_BYTES] = length
            return False
        key_at = key_length_at(data, at) + 4
        key_length = load_i32(data, key_at - 4)
        value_at = key_at + max(key_length, 0) + 4
        if wants_key:
            _append(data, key_at, key_length, key.data, key.ends, key.is_null, row)
        if wants_value:
            value_length = load_i32(data, value_at - 4)
            _append(data, value_at, value_length, value.data, value.ends, value.is_null, row)
        rows[ROW_BATCH, row] = batch
        rows[ROW_OFFSET, row] = load_i64(data, at) + fill[SHIFT]
        rows[ROW_TIMESTAMP, row] = message_timestamp(data, at, batches, batch)
        columns.header_ends[row + 1] = fill[HEADERS]
        fill[ROWS] = row + 1
        fill[AT] = at + length
        fill[LEFT] -= 1
    return True


@njit  # type: ignore[untyped-decorator]
def check_batch(data: Any, start: Any, end: Any, batches: Any, batch: Any, failure: Any) -> Any:
    """Check the records of a batch of any magic; return (code, records, shift of their offsets)."""
    magic = batches[wire.BATCH_MAGIC, batch]
    count = batches[wire.BATCH_RECORD_COUNT, batch]
    shift = np.int64(0)
    if magic >= layout.MAGIC_V2:
        code = check_records(data, start, end, count, failure)
    elif count < 0:
        wrapper_offset = batches[wire.BATCH_LAST_OFFSET, batch]
        code, count, shift = check_messages(data, start, end, magic, wrapper_offset, failure)
    else:
        code = check_plain_message(data, start, end, failure)
    return code, count, shift


@njit  # type: ignore[untyped-decorator]
def _begin(data: Any, start: Any, end: Any, batches: Any, fill: Any, failure: Any) -> Any:
    """Check the batch under decoding and make it ready to be copied."""
    code, count, shift = check_batch(data, start, end, batches, fill[BATCH], failure)
    fill[LEFT] = count if code == OK else -1
    fill[AT] = start
    fill[SHIFT] = shift
    return code


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def fill_columns(
    data: Any,
    starts: Any,
    ends: Any,
    stop: Any,
    batches: Any,
    columns: Any,
    fill: Any,
    failure: Any,
) -> Any:
    """Decode the batches from BATCH up to ``stop`` into the columns.

    The records of batch i are ``data[starts[i]:ends[i]]``, not compressed: the records section
    of a v2 batch, a message as it stands in the log, or an inner message set.

    Return DONE, NO_ROOM or FAILED. After NO_ROOM the caller empties the columns, or enlarges them
    where they are empty, and calls again. After FAILED nothing of batch BATCH is in the columns,
    and ``failure`` says why.
    """
    while fill[BATCH] < stop:
        batch = fill[BATCH]
        start, end = starts[batch], ends[batch]
        if fill[LEFT] < 0 and _begin(data, start, end, batches, fill, failure) != OK:
            return FAILED
        if batches[wire.BATCH_MAGIC, batch] >= layout.MAGIC_V2:
            is_done = _copy_records(data, end, batches, columns, fill)
        else:
            is_done = _copy_messages(data, batches, columns, fill)
        if not is_done:
            return NO_ROOM
        fill[BATCH] += 1
        fill[LEFT] = -1
    return DONE
