"""Records in one form whatever their batches are, compiled: what a digest of them is made of.

Each record, numbers big-endian, a length of -1 for null::

    offset       int64
    timestamp    int64  ms, where it is asked for
    keyLength    int32
    key
    valueLength  int32
    value
    headerCount  int32
    headers      each: keyLength int32, key, valueLength int32, value

Batches, producers and compression are not in it. A timestamp is that which clients get: with
LogAppendTime the batch's, -1 for none.
"""

from typing import Any

import numpy as np

from kafka_segments.compiling import njit
from kafka_segments.kafka.wire import batches as wire
from kafka_segments.kafka.wire import header_layout as layout
from kafka_segments.kafka.wire.failures import OK
from kafka_segments.kafka.wire.filling import check_batch, message_timestamp
from kafka_segments.kafka.wire.headers import size_at
from kafka_segments.kafka.wire.messages import key_length_at
from kafka_segments.kafka.wire.native import load_i32, load_i64
from kafka_segments.kafka.wire.varints import read_varint, read_varlong

# Slots of ``form`` (int64).
BATCH = 0  # the next batch
LEFT = 1  # records left in it, -1: not begun
AT = 2  # the next record's place in the data
SHIFT = 3  # what is added to the offsets of its messages
USED = 4  # bytes in the output
NEEDED = 5  # room that the record which did not fit may need
RECORDS = 6  # written so far
STAMPED = 7  # 1: with timestamps
FORM_SLOTS = 8

# What ``form_batches`` gives.
WRITTEN = 0
NO_ROOM = 1
FAILED = 2

MOST_GROWTH = 4  # a header of 2 bytes takes 8
FIXED_BYTES = 28  # of a record without key, value and headers


@njit(forceinline=True)  # type: ignore[untyped-decorator]
def _store(out: Any, at: Any, width: Any, value: Any) -> Any:
    for k in range(width):
        out[at + k] = np.uint8((np.int64(value) >> (8 * (width - 1 - k))) & 0xFF)
    return at + width


@njit(forceinline=True)  # type: ignore[untyped-decorator]
def _field(data: Any, at: Any, length: Any, out: Any, to: Any) -> Any:
    to = _store(out, to, 4, max(length, -1))
    source, sink = np.uintp(at), np.uintp(to)  # unsigned: an index from the end needs no test
    for k in range(np.uintp(max(length, 0))):
        out[sink + k] = data[source + k]
    return to + max(length, 0)


@njit(forceinline=True)  # type: ignore[untyped-decorator]
def _has_room(form: Any, out: Any, record_bytes: Any) -> Any:
    form[NEEDED] = MOST_GROWTH * record_bytes + FIXED_BYTES
    return len(out) - form[USED] >= form[NEEDED]


@njit(forceinline=True)  # type: ignore[untyped-decorator]
def _begin_record(out: Any, form: Any, offset: Any, timestamp: Any) -> Any:
    to = _store(out, form[USED], 8, offset)
    if form[STAMPED] != 0:
        to = _store(out, to, 8, timestamp)
    return to


@njit  # type: ignore[untyped-decorator]
def _form_records(data: Any, end: Any, batches: Any, out: Any, form: Any) -> Any:
    """Write the checked records of a batch v2 from AT on; return whether all had room."""
    batch = form[BATCH]
    base_offset = batches[wire.BATCH_BASE_OFFSET, batch]
    base_timestamp = batches[wire.BATCH_BASE_TIMESTAMP, batch]
    append_timestamp = batches[wire.BATCH_MAX_TIMESTAMP, batch]
    is_append_time = batches[wire.BATCH_ATTRIBUTES, batch] & layout.LOG_APPEND_TIME != 0
    while form[LEFT] > 0:
        length, at = read_varint(data, form[AT], end)
        stop = at + length
        if not _has_room(form, out, length):
            return False
        timestamp_delta, at = read_varlong(data, at + 1, stop)
        delta, at = read_varint(data, at, stop)
        timestamp = append_timestamp if is_append_time else base_timestamp + timestamp_delta
        to = _begin_record(out, form, base_offset + delta, timestamp)
        for _ in range(2):
            size, at = read_varint(data, at, stop)
            to = _field(data, at, size, out, to)
            at += max(size, 0)
        count, at = read_varint(data, at, stop)
        to = _store(out, to, 4, count)
        for _ in range(2 * count):
            size, at = read_varint(data, at, stop)
            to = _field(data, at, size, out, to)
            at += max(size, 0)
        form[USED], form[AT] = to, stop
        form[LEFT] -= 1
        form[RECORDS] += 1
    return True


@njit  # type: ignore[untyped-decorator]
def _form_messages(data: Any, batches: Any, out: Any, form: Any) -> Any:
    """Write checked messages v0 and v1 from AT on; return whether all had room."""
    while form[LEFT] > 0:
        at = form[AT]
        length = size_at(data, at)
        if not _has_room(form, out, length):
            return False
        timestamp = message_timestamp(data, at, batches, form[BATCH])
        to = _begin_record(out, form, load_i64(data, at) + form[SHIFT], timestamp)
        field = key_length_at(data, at)
        for _ in range(2):
            size = load_i32(data, field)
            to = _field(data, field + 4, size, out, to)
            field += 4 + max(size, 0)
        form[USED], form[AT] = _store(out, to, 4, np.int64(0)), at + length
        form[LEFT] -= 1
        form[RECORDS] += 1
    return True


@njit  # type: ignore[untyped-decorator]
def _begin(data: Any, start: Any, end: Any, batches: Any, form: Any, failure: Any) -> Any:
    """Check the batch that is next and make it ready to be written."""
    code, count, shift = check_batch(data, start, end, batches, form[BATCH], failure)
    form[LEFT] = count if code == OK else -1
    form[AT], form[SHIFT] = start, shift
    return code


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def form_batches(
    data: Any, starts: Any, ends: Any, stop: Any, batches: Any, out: Any, form: Any, failure: Any
) -> Any:
    """Write the records of the batches from BATCH up to ``stop`` to ``out`` from USED on.

    The records of batch i are ``data[starts[i]:ends[i]]``, not compressed (``fill_columns``).

    Gives WRITTEN, NO_ROOM (empty the output, enlarge it below NEEDED, and call again), or FAILED:
    nothing of batch BATCH is written, ``failure`` says why.
    """
    while form[BATCH] < stop:
        batch = form[BATCH]
        if form[LEFT] < 0:
            code = _begin(data, starts[batch], ends[batch], batches, form, failure)
            if code != OK:
                return FAILED
        if batches[wire.BATCH_MAGIC, batch] >= layout.MAGIC_V2:
            is_done = _form_records(data, ends[batch], batches, out, form)
        else:
            is_done = _form_messages(data, batches, out, form)
        if not is_done:
            return NO_ROOM
        form[BATCH] += 1
        form[LEFT] = -1
    return WRITTEN
