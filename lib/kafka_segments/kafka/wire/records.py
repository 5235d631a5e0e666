"""The compiled check of the records in a batch v2: do they have the form that the batch says?

All numbers are zig-zag varints::

    length          bytes after this field
    attributes      int8, unused
    timestampDelta  64 bits
    offsetDelta
    keyLength       negative: null
    key
    valueLength     negative: null
    value
    headerCount
    headers         each: keyLength, key (UTF-8), valueLength (negative: null), value

Source: DefaultRecord.readFrom, DefaultRecordBatch.RecordIterator.
"""

from typing import Any

import numpy as np

from kafka_segments.compiling import njit
from kafka_segments.kafka.wire.failures import (
    ATTRIBUTES_PAST_END,
    BAD_COUNT,
    COUNT_TOO_GREAT,
    HEADER_COUNT_NEGATIVE,
    HEADER_COUNT_TOO_GREAT,
    HEADER_KEY_NEGATIVE,
    HEADER_PAST_END,
    KEY_PAST_END,
    LEFT_IN_BATCH,
    LEFT_IN_RECORD,
    OK,
    RECORD_NEGATIVE,
    RECORD_PAST_END,
    VALUE_PAST_END,
    VARINT_PAST_END,
    VARINT_TOO_LONG,
    fail,
)
from kafka_segments.kafka.wire.varints import TOO_LONG, read_varint, read_varlong

MIN_RECORD_BYTES = 7
MIN_HEADER_BYTES = 2


@njit(forceinline=True)  # type: ignore[untyped-decorator]
def _bad_varint(failure: Any, next_at: Any, at: Any, most: Any) -> Any:
    code = VARINT_TOO_LONG if next_at == TOO_LONG else VARINT_PAST_END
    return fail(failure, code, 0, most, at)


@njit  # type: ignore[untyped-decorator]
def _check_headers(data: Any, at: Any, end: Any, failure: Any) -> Any:
    """Check the headers of a record; ``failure[1]`` is then the position behind them."""
    count, next_at = read_varint(data, at, end)
    if next_at < 0:
        return _bad_varint(failure, next_at, at, 5)
    if count < 0:
        return fail(failure, HEADER_COUNT_NEGATIVE, count, 0, at)
    if count > (end - next_at) // MIN_HEADER_BYTES:
        room = (end - next_at) // MIN_HEADER_BYTES
        return fail(failure, HEADER_COUNT_TOO_GREAT, count, room, at)
    at = next_at
    for i in range(2 * count):
        length, next_at = read_varint(data, at, end)
        if next_at < 0:
            return _bad_varint(failure, next_at, at, 5)
        if length < 0 and i & 1 == 0:
            return fail(failure, HEADER_KEY_NEGATIVE, length, 0, at)
        if length > end - next_at:
            return fail(failure, HEADER_PAST_END, length, end - next_at, at)
        at = next_at + max(length, 0)
    failure[1] = at
    return np.int64(OK)


@njit(forceinline=True)  # type: ignore[untyped-decorator]
def _check_record(data: Any, at: Any, end: Any, failure: Any) -> Any:
    """Check the record at ``at``; if it is good, ``failure[1]`` is the position behind it."""
    length, next_at = read_varint(data, at, end)
    if next_at < 0:
        return _bad_varint(failure, next_at, at, 5)
    if length < 0:
        return fail(failure, RECORD_NEGATIVE, length, 0, at)
    if length > end - next_at:
        return fail(failure, RECORD_PAST_END, length, end - next_at, at)
    if length == 0:
        return fail(failure, ATTRIBUTES_PAST_END, length, 1, at)
    first, stop = next_at, next_at + length
    field = next_at + 1
    _, next_at = read_varlong(data, field, stop)
    if next_at < 0:
        return _bad_varint(failure, next_at, field, 10)
    field = next_at
    _, next_at = read_varint(data, field, stop)
    if next_at < 0:
        return _bad_varint(failure, next_at, field, 5)
    for code in (KEY_PAST_END, VALUE_PAST_END):
        field = next_at
        size, next_at = read_varint(data, field, stop)
        if next_at < 0:
            return _bad_varint(failure, next_at, field, 5)
        if size > stop - next_at:
            return fail(failure, code, size, stop - next_at, field)
        next_at += max(size, 0)
    if next_at == stop - 1 and data[next_at] == 0:
        failure[1] = stop
        return np.int64(OK)
    if _check_headers(data, next_at, stop, failure) != OK:
        return np.int64(failure[0])
    if failure[1] != stop:
        return fail(failure, LEFT_IN_RECORD, length, failure[1] - first, at)
    return np.int64(OK)


@njit(cache=True)  # type: ignore[untyped-decorator]
def check_records(data: Any, start: Any, end: Any, count: Any, failure: Any) -> Any:
    """Check that ``data[start:end]`` holds ``count`` records and nothing else.

    Return ``OK``, or the code of the first failure; ``failure`` then says what was found and where.
    """
    if count < 0:
        return fail(failure, BAD_COUNT, count, 0, start)
    if count > (end - start) // MIN_RECORD_BYTES:
        return fail(failure, COUNT_TOO_GREAT, count, (end - start) // MIN_RECORD_BYTES, start)
    at = start
    for _ in range(count):
        if _check_record(data, at, end, failure) != OK:
            return np.int64(failure[0])
        at = failure[1]
    if at != end:
        return fail(failure, LEFT_IN_BATCH, end - at, count, at)
    return np.int64(OK)
