"""The compiled walk over a segment: batch headers, checksums, index entries.

One call consumes one buffer; what must outlive a call is in ``state``. A batch that does not
fit into what is left of a buffer is checksummed piece by piece, so memory stays bounded
whatever a length field says. The rules, and their order, are LogSegment.recover's and
FileLogInputStream.nextBatch's; ``recovery.py`` says them in words.
"""

from typing import Any

import numpy as np
from numba import njit

from kafka_segments.index.markers import (
    COORDINATOR_EPOCH,
    DATA,
    EMPTY_CONTROL,
    IS_CORRUPT,
    IS_MARKER,
    KIND,
    TIMESTAMP,
    TRANSACTIONAL_DATA,
    UNUSUAL,
    read_marker,
    store_batch,
)
from kafka_segments.wire import ends
from kafka_segments.wire.crc import CRC_START, crc32_update, crc32c_update
from kafka_segments.wire.native import load_i32, load_i64, load_u32

# The slots of ``state`` (int64).
POSITION = 0  # of the batch under the walk; when the walk ends: valid bytes
END = 1  # size of the file
BASE_OFFSET = 2
INTERVAL_BYTES = 3
MAX_OFFSET_ENTRIES = 4
MAX_TIME_ENTRIES = 5
CHECK_CRC = 6
BY_INSTRUCTION = 7
STATUS = 8
FOUND = 9  # what a failed check found ...
EXPECTED = 10  # ... and what it expected
LAST_INDEXED_POSITION = 11
OFFSET_ENTRY_COUNT = 12
TIME_ENTRY_COUNT = 13
LAST_INDEXED_OFFSET = 14
LAST_TIME_ENTRY_TIMESTAMP = 15
LAST_TIME_ENTRY_OFFSET = 16
MAX_TIMESTAMP = 17
OFFSET_OF_MAX_TIMESTAMP = 18
FIRST_BATCH_TIMESTAMP = 19
MIN_TIMESTAMP = 20
NEXT_OFFSET = 21
BATCH_COUNT = 22
RECORD_COUNT = 23
UNCOUNTED_BATCH_COUNT = 24  # compressed legacy entries: their records are not counted
CONTROL_BATCH_COUNT = 25
TRANSACTIONAL_BATCH_COUNT = 26
MAGIC_BITS = 27  # bit magic + 1, for -1 ... 3
CODEC_BITS = 28
TIMESTAMP_TYPE_BITS = 29  # bit 0 none, 1 CreateTime, 2 LogAppendTime
LATEST_EPOCH = 30
BODY_POSITION = 31  # next byte to checksum of a batch that spans buffers, -1: none
BODY_CRC = 32
DECODED_POSITION = 33  # of a marker decoded outside, -1: none; and what it is
DECODED_END = 34
DECODED_KIND = 35
DECODED_COORDINATOR_EPOCH = 36
DECODED_TIMESTAMP = 37
PRODUCER_END_OFFSET = 38  # next offset after the last batch of magic 2 or more
ANY_OFFSET = 39  # 1: offsets need not fit the base offset
HAS_WRAPPER_AT_END = 40  # 1: a compressed legacy entry stands at or after the last index entry
HAS_BAD_FIRST_MAGIC = 41  # 1: the first batch's magic is below 0
WENT_BACK_POSITION = 42  # the first batch that does not begin where the one before ends or above
WENT_BACK_OFFSET = 43
STATE_SIZE = 44

# Values of STATUS, beside those of ``ends``.
RUNNING = 0
OFFSET_OVERFLOW = 6
OFFSET_INDEX_FULL = 7
TIME_INDEX_FULL = 8
OFFSET_INDEX_GOES_BACK = 9
TIME_INDEX_GOES_BACK = 10
WANTS_EPOCH_SPACE = 11
WANTS_MARKER = 12  # the control batch at POSITION, FOUND bytes long, is to be decoded
BAD_MARKER = 13
REFUSED_MARKER = 14

NO_TIMESTAMP = -1
HEADER_ROOM = 64  # kept free in front of a buffer's bytes
MIN_ENTRY_BYTES = 26  # 12 + the smallest legal size field
MAX_RELATIVE_OFFSET = 2**31 - 1
_UP_TO_MAGIC = 17
_LOG_OVERHEAD = 12
_MAGIC_ABOVE_2 = 3
_CONTROL = 0x20


@njit  # type: ignore[untyped-decorator]
def append_time_entry(state: Any, entries: Any, count: Any, at_close: Any) -> Any:
    """Append (max timestamp, its offset) where the maximum grew; gives the new count.

    ``entries[count]`` takes it. Sets STATUS where TimeIndex.maybeAppend throws.
    """
    total = state[TIME_ENTRY_COUNT]
    limit = state[MAX_TIME_ENTRIES]
    offset = state[OFFSET_OF_MAX_TIMESTAMP]
    if not at_close and total >= limit - 1:
        state[STATUS] = TIME_INDEX_FULL
        return count
    if total > 0 and offset < state[LAST_TIME_ENTRY_OFFSET]:
        state[STATUS] = TIME_INDEX_GOES_BACK
        state[FOUND] = offset
        state[EXPECTED] = state[LAST_TIME_ENTRY_OFFSET]
        return count
    if state[MAX_TIMESTAMP] <= state[LAST_TIME_ENTRY_TIMESTAMP]:
        return count
    if total >= limit:
        state[STATUS] = TIME_INDEX_FULL
        return count
    entries[count, 0] = state[MAX_TIMESTAMP]
    entries[count, 1] = offset
    state[TIME_ENTRY_COUNT] = total + 1
    state[LAST_TIME_ENTRY_TIMESTAMP] = state[MAX_TIMESTAMP]
    state[LAST_TIME_ENTRY_OFFSET] = offset
    return count + 1


@njit  # type: ignore[untyped-decorator]
def _append_offset_entry(state: Any, entries: Any, count: Any, last_offset: Any) -> Any:
    total = state[OFFSET_ENTRY_COUNT]
    if total >= state[MAX_OFFSET_ENTRIES]:
        state[STATUS] = OFFSET_INDEX_FULL
        return count
    if total > 0 and last_offset <= state[LAST_INDEXED_OFFSET]:
        state[STATUS] = OFFSET_INDEX_GOES_BACK
        state[FOUND] = last_offset
        state[EXPECTED] = state[LAST_INDEXED_OFFSET]
        return count
    entries[count, 0] = last_offset
    entries[count, 1] = state[POSITION]
    state[OFFSET_ENTRY_COUNT] = total + 1
    state[LAST_INDEXED_OFFSET] = last_offset
    return count + 1


@njit  # type: ignore[untyped-decorator]
def _is_marker(data: Any, at: Any, magic: Any) -> Any:
    return magic >= 2 and data[at + 22] & _CONTROL != 0 and load_i64(data, at + 43) >= 0


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def scan_buffer(
    data: Any,
    length: Any,
    data_position: Any,
    state: Any,
    offset_entries: Any,
    time_entries: Any,
    epochs: Any,
    producer_batches: Any,
    counts: Any,
) -> Any:
    """Walk the batches in ``data[HEADER_ROOM:][:length]``, the file from ``data_position`` on.

    The room in front holds the header of a batch that began in an earlier buffer. Gives the
    position to read on from. Entries go to the three arrays, of two int64 columns each, from
    row 0 on, batches with a producer id to ``producer_batches`` (``markers``); ``counts`` says how
    many there are (offset, time, epoch, producer batch).
    """
    offset_count = 0
    time_count = 0
    epoch_count = 0
    producer_count = 0
    end = state[END]
    base_offset = state[BASE_OFFSET]
    check_crc = state[CHECK_CRC] != 0
    by_instruction = state[BY_INSTRUCTION] != 0
    data_end = data_position + length
    resume = data_end
    status = RUNNING
    state[STATUS] = RUNNING
    # What every batch touches lives in registers during the call.
    position = state[POSITION]
    body = state[BODY_POSITION]
    last_indexed_position = state[LAST_INDEXED_POSITION]
    interval_bytes = state[INTERVAL_BYTES]
    max_timestamp = state[MAX_TIMESTAMP]
    offset_of_max_timestamp = state[OFFSET_OF_MAX_TIMESTAMP]
    min_timestamp = state[MIN_TIMESTAMP]
    next_offset = state[NEXT_OFFSET]
    producer_end_offset = state[PRODUCER_END_OFFSET]
    batch_count = state[BATCH_COUNT]
    record_count = state[RECORD_COUNT]
    latest_epoch = state[LATEST_EPOCH]
    magic_bits = state[MAGIC_BITS]
    codec_bits = state[CODEC_BITS]
    timestamp_type_bits = state[TIMESTAMP_TYPE_BITS]
    any_offset = state[ANY_OFFSET] != 0

    while True:
        remaining = end - position
        at = np.int64(0)
        if body < 0:
            at = HEADER_ROOM + position - data_position
            if remaining <= _UP_TO_MAGIC:
                status = ends.AT_END
                break
            if data_end - position < min(remaining, ends.HEADER_BYTES):
                resume = position
                break
        entry_bytes = _LOG_OVERHEAD + load_i32(data, at + 8)
        magic = np.int64(np.int8(data[at + 16]))
        if body < 0:
            if entry_bytes < _LOG_OVERHEAD + ends.MIN_SIZE:
                status = ends.BAD_SIZE
                state[FOUND] = entry_bytes - _LOG_OVERHEAD
                break
            if entry_bytes > remaining:
                status = ends.PARTIAL_BATCH
                state[FOUND] = entry_bytes
                state[EXPECTED] = remaining
                break
            if magic >= 2 and entry_bytes < ends.HEADER_BYTES:
                status = ends.BAD_SIZE_FOR_MAGIC
                state[FOUND] = entry_bytes
                state[EXPECTED] = magic
                break

            is_cut = entry_bytes > data_end - position and position > data_position
            if is_cut and _is_marker(data, at, magic):
                resume = position  # its body is needed, and most are small
                break

        if check_crc:
            crc_from = position + (21 if magic >= 2 else 16)
            crc = np.uint64(CRC_START)
            if body >= 0:
                crc_from = body
                crc = np.uint64(state[BODY_CRC])
            crc_to = min(position + entry_bytes, data_end)
            first = HEADER_ROOM + crc_from - data_position
            last = HEADER_ROOM + crc_to - data_position
            if magic >= 2:
                crc = crc32c_update(data, first, last, crc, by_instruction)
            else:
                crc = crc32_update(data, first, last, crc)
            if crc_to < position + entry_bytes:
                if body < 0:
                    for i in range(min(entry_bytes, ends.HEADER_BYTES)):
                        data[i] = data[at + i]
                body = crc_to
                state[BODY_CRC] = np.int64(crc)
                break
            stored = load_u32(data, at + (17 if magic >= 2 else 12))
            if (crc ^ np.uint64(CRC_START)) != stored:
                status = ends.BAD_CRC
                state[FOUND] = np.int64(crc ^ np.uint64(CRC_START))
                state[EXPECTED] = np.int64(stored)
                break

        last_offset = load_i64(data, at)
        epoch = np.int64(-1)
        producer_id = np.int64(-1)
        records = np.int64(1)
        is_control = False
        is_transactional = False
        if magic >= 2:
            first_offset = last_offset
            attributes = np.int64(data[at + 22])
            last_offset = first_offset + load_i32(data, at + 23)
            epoch = load_i32(data, at + 12)
            greatest = load_i64(data, at + 35)
            producer_id = load_i64(data, at + 43)
            records = load_i32(data, at + 57)
            is_transactional = attributes & 0x10 != 0
            is_control = attributes & 0x20 != 0
            timestamp_type = 2 if attributes & 0x08 != 0 else 1
            least = load_i64(data, at + 27)
            if least < 0 or attributes & 0x48 != 0 or greatest < least:
                least = greatest
        else:
            first_offset = last_offset
            attributes = np.int64(data[at + 17])
            greatest = np.int64(NO_TIMESTAMP)
            timestamp_type = 0
            if magic != 0:
                greatest = load_i64(data, at + 18)
                timestamp_type = 2 if attributes & 0x08 != 0 else 1
            least = greatest
            if attributes & 0x07 != 0:
                records = np.int64(0)

        relative = last_offset - base_offset
        if (relative < 0 or relative > MAX_RELATIVE_OFFSET) and not any_offset:
            status = OFFSET_OVERFLOW
            state[FOUND] = last_offset
            state[EXPECTED] = base_offset
            break
        new_epoch = magic >= 2 and epoch >= 0 and epoch > latest_epoch
        if new_epoch and epoch_count == len(epochs):
            status = WANTS_EPOCH_SPACE
            body = np.int64(-1)
            resume = position
            break
        kind = np.int64(DATA)
        coordinator_epoch = np.int64(-1)
        marker_timestamp = np.int64(-1)
        marker_end = np.int64(IS_MARKER)
        if producer_id >= 0 and is_control:
            kind = np.int64(EMPTY_CONTROL)
            if state[DECODED_POSITION] == position:
                marker_end = state[DECODED_END]
                kind = state[DECODED_KIND]
                coordinator_epoch = state[DECODED_COORDINATOR_EPOCH]
                marker_timestamp = state[DECODED_TIMESTAMP]
            elif records != 0:
                kind = np.int64(UNUSUAL)
                if body < 0 and entry_bytes <= data_end - position:
                    kind, coordinator_epoch, marker_timestamp = read_marker(
                        data, at, at + entry_bytes
                    )
                if kind == UNUSUAL:
                    status = WANTS_MARKER
                    state[FOUND] = entry_bytes
                    body = np.int64(-1)
                    resume = position
                    break

        if batch_count == 0:
            state[FIRST_BATCH_TIMESTAMP] = greatest
            state[HAS_BAD_FIRST_MAGIC] = magic < 0
        if greatest > max_timestamp:
            max_timestamp = greatest
            offset_of_max_timestamp = last_offset
        if least >= 0 and (least < min_timestamp or min_timestamp < 0):
            min_timestamp = least
        if position - last_indexed_position > interval_bytes:
            state[POSITION] = position
            state[MAX_TIMESTAMP] = max_timestamp
            state[OFFSET_OF_MAX_TIMESTAMP] = offset_of_max_timestamp
            offset_count = _append_offset_entry(state, offset_entries, offset_count, last_offset)
            if state[STATUS] == RUNNING:
                time_count = append_time_entry(state, time_entries, time_count, False)
            status = state[STATUS]
            if status != RUNNING:
                break
            last_indexed_position = position
            state[HAS_WRAPPER_AT_END] = 0

        if (first_offset < next_offset or last_offset < first_offset) and (
            state[WENT_BACK_POSITION] < 0
        ):
            state[WENT_BACK_POSITION] = position
            state[WENT_BACK_OFFSET] = first_offset
        if new_epoch:
            epochs[epoch_count, 0] = epoch
            epochs[epoch_count, 1] = first_offset
            epoch_count += 1
            latest_epoch = epoch
        if producer_id >= 0:
            if marker_end == IS_MARKER:
                store_batch(producer_batches, producer_count, data, at, position)
                if is_control:
                    producer_batches[producer_count, KIND] = kind
                    producer_batches[producer_count, COORDINATOR_EPOCH] = coordinator_epoch
                    producer_batches[producer_count, TIMESTAMP] = marker_timestamp
                else:
                    is_open = TRANSACTIONAL_DATA if is_transactional else DATA
                    producer_batches[producer_count, KIND] = is_open
                producer_count += 1
            elif marker_end == IS_CORRUPT:
                status = BAD_MARKER
            else:
                status = REFUSED_MARKER
        next_offset = last_offset + 1
        batch_count += 1
        record_count += records
        magic_bit = magic + 1 if magic < _MAGIC_ABOVE_2 else _MAGIC_ABOVE_2 + 1
        magic_bits |= 1 << (magic_bit if magic >= 0 else 0)
        codec_bits |= 1 << (attributes & 0x07)
        timestamp_type_bits |= 1 << timestamp_type
        if magic < 2 and attributes & 0x07 != 0:
            state[UNCOUNTED_BATCH_COUNT] += 1
            state[HAS_WRAPPER_AT_END] = 1
        if magic >= 2 and marker_end != IS_CORRUPT:
            producer_end_offset = next_offset
        if is_control:
            state[CONTROL_BATCH_COUNT] += 1
        if is_transactional:
            state[TRANSACTIONAL_BATCH_COUNT] += 1
        body = np.int64(-1)
        if status == REFUSED_MARKER:
            break
        position += entry_bytes
        if status == BAD_MARKER:
            break
        if not check_crc and position >= data_end:
            resume = position
            if resume < end:
                break

    state[STATUS] = status
    state[POSITION] = position
    state[LAST_INDEXED_POSITION] = last_indexed_position
    state[MAX_TIMESTAMP] = max_timestamp
    state[OFFSET_OF_MAX_TIMESTAMP] = offset_of_max_timestamp
    state[MIN_TIMESTAMP] = min_timestamp
    state[NEXT_OFFSET] = next_offset
    state[PRODUCER_END_OFFSET] = producer_end_offset
    state[BATCH_COUNT] = batch_count
    state[RECORD_COUNT] = record_count
    state[LATEST_EPOCH] = latest_epoch
    state[MAGIC_BITS] = magic_bits
    state[CODEC_BITS] = codec_bits
    state[TIMESTAMP_TYPE_BITS] = timestamp_type_bits
    state[BODY_POSITION] = body
    counts[0] = offset_count
    counts[1] = time_count
    counts[2] = epoch_count
    counts[3] = producer_count
    return resume
