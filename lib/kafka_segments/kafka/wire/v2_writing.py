"""Messages v0 and v1 written anew as batches v2, compiled; as Kafka's log cleaner writes them.

A message that is not compressed becomes a batch of its own, a compressed set one batch. Offsets,
keys, values and nulls stay; there were no headers. Leader epoch, producer id, producer epoch and
sequence are -1.

Source: MemoryRecords.filterTo, MemoryRecordsBuilder, DefaultRecord.writeTo,
DefaultRecordBatch.writeHeader (4.0 and later).
"""

from typing import Any

import numpy as np

from kafka_segments.compiling import njit
from kafka_segments.kafka.wire import batches as wire
from kafka_segments.kafka.wire import header_layout as layout
from kafka_segments.kafka.wire.crc import CRC_START, HAS_CPU_CRC, crc32c_update
from kafka_segments.kafka.wire.failures import OK
from kafka_segments.kafka.wire.headers import size_at
from kafka_segments.kafka.wire.messages import check_plain_message, key_length_at
from kafka_segments.kafka.wire.native import load_i32, load_i64
from kafka_segments.kafka.wire.varints import varint_bytes, write_varint

MOST_RECORD_OVERHEAD = 32  # length, attributes, two deltas, three more lengths at their longest
MAX_OFFSET_DELTA = 2**31 - 1

# Slots of ``state`` (int64): what the writing asks and what it has done.
NO_TIMESTAMP_AS = 0  # the timestamp of messages that have none
BY_INSTRUCTION = 1  # CRC-32C by the CPU's instruction
MOST_BATCH_BYTES = 2  # batches above it are counted
USED = 3  # bytes in the output
BATCHES = 4
RECORDS = 5
LARGEST = 6  # bytes of the largest batch
ABOVE_MOST = 7
FIRST_ABOVE_MOST = 8  # position of the first of these in the source, -1: none
STATE_SLOTS = 9

# Slots of ``facts`` (int64): what a batch's header needs to know of its records.
BASE_OFFSET = 0
LAST_OFFSET = 1
BASE_TIMESTAMP = 2
MAX_TIMESTAMP = 3
COUNT = 4
END = 5  # of the records in the output
AGELESS = 6  # messages v0 in a set with LogAppendTime: as v2 they have its timestamp
LAST_MESSAGE = 7  # offset of the last message, which a set's own should be
FACT_SLOTS = 8

# What writing a batch gives.
WRITTEN = 0
UNDECODABLE = 1
NO_ROOM = 2
OFFSET_ORDER = 3
OFFSET_SPAN = 4
NEGATIVE_TIMESTAMP = 5


def new_state(*, no_timestamp_as: int, most_batch_bytes: int) -> Any:
    """Make the state of a segment's conversion: nothing written yet."""
    state = np.zeros(STATE_SLOTS, dtype=np.int64)
    state[NO_TIMESTAMP_AS] = no_timestamp_as
    state[BY_INSTRUCTION] = HAS_CPU_CRC
    state[MOST_BATCH_BYTES] = most_batch_bytes
    state[FIRST_ABOVE_MOST] = -1
    return state


@njit(forceinline=True)  # type: ignore[untyped-decorator]
def _copy_field(data: Any, at: Any, length: Any, out: Any, to: Any) -> Any:
    """Write a length (negative: null) and the key or value; return where it ends."""
    to = write_varint(out, to, max(length, -1))
    source, sink = np.uintp(at), np.uintp(to)  # unsigned: an index from the end needs no test
    for k in range(np.uintp(max(length, 0))):
        out[sink + k] = data[source + k]
    return to + max(length, 0)


@njit(forceinline=True)  # type: ignore[untyped-decorator]
def _write_record(
    data: Any, at: Any, offset_delta: Any, timestamp_delta: Any, out: Any, to: Any
) -> Any:
    """Write the checked message at ``at`` as a record; return where it ends."""
    key_at = key_length_at(data, at) + 4
    key_length = load_i32(data, key_at - 4)
    value_at = key_at + max(key_length, 0) + 4
    value_length = load_i32(data, value_at - 4)
    size = 2 + varint_bytes(timestamp_delta) + varint_bytes(offset_delta)
    for length in (key_length, value_length):
        size += varint_bytes(max(length, -1)) + max(length, 0)
    to = write_varint(out, to, size)
    out[to] = 0  # attributes
    to = write_varint(out, to + 1, timestamp_delta)
    to = write_varint(out, to, offset_delta)
    to = _copy_field(data, key_at, key_length, out, to)
    to = _copy_field(data, value_at, value_length, out, to)
    out[to] = 0  # headers
    return to + 1


@njit(forceinline=True)  # type: ignore[untyped-decorator]
def _timestamp(data: Any, at: Any, batches: Any, batch: Any, no_timestamp_as: Any) -> Any:
    """Return a message's timestamp: its own, or with LogAppendTime its set's; v0 has none."""
    is_v0 = data[at + layout.MAGIC] == 0
    is_append_time = batches[wire.BATCH_ATTRIBUTES, batch] & layout.LOG_APPEND_TIME != 0
    if is_append_time and batches[wire.BATCH_MAGIC, batch] == 1:
        return np.int64(layout.NO_TIMESTAMP) if is_v0 else batches[wire.BATCH_MAX_TIMESTAMP, batch]
    timestamp = np.int64(layout.NO_TIMESTAMP)
    if not is_v0:
        timestamp = load_i64(data, at + layout.LEGACY_TIMESTAMP)
    return no_timestamp_as if timestamp == layout.NO_TIMESTAMP else timestamp


@njit(forceinline=True)  # type: ignore[untyped-decorator]
def _check(offset: Any, last_offset: Any, base_offset: Any, timestamp: Any) -> Any:
    """Say why Kafka would not append a record after the one before; WRITTEN: it would."""
    if timestamp < layout.NO_TIMESTAMP:
        return NEGATIVE_TIMESTAMP
    if offset <= last_offset:
        return OFFSET_ORDER
    return OFFSET_SPAN if offset - base_offset > MAX_OFFSET_DELTA else WRITTEN


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def write_records(
    data: Any,
    start: Any,
    end: Any,
    shift: Any,
    batches: Any,
    batch: Any,
    no_timestamp_as: Any,
    out: Any,
    to: Any,
    facts: Any,
) -> Any:
    """Write the checked messages ``data[start:end]`` of a batch as records from ``to`` on.

    The room must be the messages' bytes and ``MOST_RECORD_OVERHEAD`` each. ``shift`` makes their
    offsets absolute. Gives WRITTEN and the facts, or why Kafka would not write such a batch.
    """
    is_append_time = (
        batches[wire.BATCH_MAGIC, batch] == 1
        and batches[wire.BATCH_ATTRIBUTES, batch] & layout.LOG_APPEND_TIME != 0
    )
    base_offset = base_timestamp = last_offset = count = ageless = np.int64(0)
    max_timestamp = np.int64(layout.NO_TIMESTAMP)
    at = start
    while at < end:
        offset = load_i64(data, at) + shift
        timestamp = _timestamp(data, at, batches, batch, no_timestamp_as)
        if count == 0:
            base_offset, base_timestamp, last_offset = offset, timestamp, offset - 1
        status = _check(offset, last_offset, base_offset, timestamp)
        if status != WRITTEN:
            return status
        if is_append_time and data[at + layout.MAGIC] == 0:
            ageless += 1
        to = _write_record(data, at, offset - base_offset, timestamp - base_timestamp, out, to)
        last_offset = offset
        max_timestamp = max(max_timestamp, timestamp)
        count += 1
        at += size_at(data, at)
    facts[LAST_MESSAGE] = last_offset
    last_offset = max(last_offset, batches[wire.BATCH_LAST_OFFSET, batch])
    if last_offset - base_offset > MAX_OFFSET_DELTA:
        return OFFSET_SPAN
    facts[BASE_OFFSET], facts[LAST_OFFSET], facts[COUNT] = base_offset, last_offset, count
    facts[BASE_TIMESTAMP], facts[END], facts[AGELESS] = base_timestamp, to, ageless
    facts[MAX_TIMESTAMP] = (
        batches[wire.BATCH_MAX_TIMESTAMP, batch] if is_append_time else max_timestamp
    )
    return WRITTEN


@njit(forceinline=True)  # type: ignore[untyped-decorator]
def _store(out: Any, at: Any, width: Any, value: Any) -> None:
    for k in range(width):
        out[at + k] = np.uint8((value >> (8 * (width - 1 - k))) & 0xFF)


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def write_header(out: Any, at: Any, end: Any, attributes: Any, facts: Any, state: Any) -> None:
    """Write the header of the batch ``out[at:end]`` whose records are in place, and count it."""
    absent = np.int64(layout.ABSENT)
    _store(out, at + layout.BASE_OFFSET, 8, facts[BASE_OFFSET])
    _store(out, at + layout.LENGTH, 4, end - at - layout.LOG_OVERHEAD)
    _store(out, at + layout.LEADER_EPOCH, 4, absent)
    out[at + layout.MAGIC] = layout.MAGIC_V2
    _store(out, at + layout.ATTRIBUTES_HIGH, 2, attributes)
    _store(out, at + layout.LAST_OFFSET_DELTA, 4, facts[LAST_OFFSET] - facts[BASE_OFFSET])
    _store(out, at + layout.BASE_TIMESTAMP, 8, facts[BASE_TIMESTAMP])
    _store(out, at + layout.MAX_TIMESTAMP, 8, facts[MAX_TIMESTAMP])
    _store(out, at + layout.PRODUCER_ID, 8, absent)
    _store(out, at + layout.PRODUCER_EPOCH, 2, absent)
    _store(out, at + layout.BASE_SEQUENCE, 4, absent)
    _store(out, at + layout.RECORD_COUNT, 4, facts[COUNT])
    start, by_instruction = at + layout.CRC_FROM, state[BY_INSTRUCTION] != 0
    crc = crc32c_update(out, start, end, np.uint64(CRC_START), by_instruction)
    _store(out, at + layout.CRC, 4, np.int64(crc ^ np.uint64(CRC_START)))
    state[BATCHES] += 1
    state[RECORDS] += facts[COUNT]


@njit(forceinline=True)  # type: ignore[untyped-decorator]
def _note_size(state: Any, size_bytes: Any, position: Any) -> None:
    state[LARGEST] = max(state[LARGEST], size_bytes)
    if size_bytes > state[MOST_BATCH_BYTES]:
        state[ABOVE_MOST] += 1
        if state[FIRST_ABOVE_MOST] < 0:
            state[FIRST_ABOVE_MOST] = position


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def note_sizes(batches: Any, first: Any, stop: Any, state: Any) -> None:
    """Take the sizes of batches that stay as they are into account."""
    for batch in range(first, stop):
        _note_size(
            state, batches[wire.BATCH_SIZE_BYTES, batch], batches[wire.BATCH_POSITION, batch]
        )


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def note_size(state: Any, size_bytes: Any, position: Any) -> None:
    """Take the size of one batch that was made into account."""
    _note_size(state, size_bytes, position)


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def convert_plain(
    data: Any,
    data_position: Any,
    batches: Any,
    first: Any,
    stop: Any,
    out: Any,
    state: Any,
    facts: Any,
    failure: Any,
) -> Any:
    """Write messages that are not compressed, each as a batch of its own, to ``out`` from USED on.

    They are the columns ``first`` to ``stop`` of ``batches``, their bytes in ``data``. Gives
    (WRITTEN, or why it stopped; the column after the last one written).
    """
    for batch in range(first, stop):
        start = batches[wire.BATCH_POSITION, batch] - data_position
        end = start + batches[wire.BATCH_SIZE_BYTES, batch]
        at = state[USED]
        if len(out) - at < layout.HEADER_BYTES + MOST_RECORD_OVERHEAD + end - start:
            return NO_ROOM, batch
        if check_plain_message(data, start, end, failure) != OK:
            return UNDECODABLE, batch
        status = write_records(
            data,
            start,
            end,
            np.int64(0),
            batches,
            batch,
            state[NO_TIMESTAMP_AS],
            out,
            at + layout.HEADER_BYTES,
            facts,
        )
        if status != WRITTEN:
            return status, batch
        is_append_time = batches[wire.BATCH_MAGIC, batch] == 1
        attributes = batches[wire.BATCH_ATTRIBUTES, batch] & layout.LOG_APPEND_TIME
        write_header(out, at, facts[END], attributes if is_append_time else 0, facts, state)
        _note_size(state, facts[END] - at, batches[wire.BATCH_POSITION, batch])
        state[USED] = facts[END]
    return WRITTEN, stop
