"""Headers of batches of every format, and the compiled walk that makes columns of them.

A batch is a record batch v2, or a message v0 or v1 (a compressed one holds a message set).
The byte at 16 tells which::

    at  v2                                   v0, v1
     0  baseOffset            int64          offset       int64  (of the last inner message)
     8  batchLength           int32          size         int32  bytes after this field
    12  partitionLeaderEpoch  int32          crc          uint32 CRC-32 of byte 16 to the end
    16  magic                 int8           magic        int8
    17  crc                   uint32 CRC-32C attributes   int8
    18                        of byte 21     timestamp    int64  ms, v1 only
    21  attributes            int16  to end  keyLength    int32  at 18 in v0, at 26 in v1
    23  lastOffsetDelta       int32
    27  baseTimestamp         int64  ms; the delete horizon where attributes say so
    35  maxTimestamp          int64  ms
    43  producerId            int64
    51  producerEpoch         int16
    53  baseSequence          int32
    57  recordCount           int32
    61  records

Source: FileLogInputStream.nextBatch, DefaultRecordBatch, LegacyRecord.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

from kafka_segments.wire import ends
from kafka_segments.wire.crc import CRC_START, HAS_CPU_CRC, crc32_update, crc32c_update
from kafka_segments.wire.native import load_i32, load_i64, load_u32

LOG_OVERHEAD = 12  # offset and size, which the size does not count
UP_TO_MAGIC = 17
MIN_BATCH_BYTES = LOG_OVERHEAD + ends.MIN_SIZE
MAX_FILE_BYTES = 2**31 - 1
MAGIC_V2 = 2
NO_TIMESTAMP = -1

CODEC_MASK = 0x07
LOG_APPEND_TIME = 0x08
TRANSACTIONAL = 0x10
CONTROL = 0x20
DELETE_HORIZON = 0x40
CODECS = ("none", "gzip", "snappy", "lz4", "zstd", "unknown-5", "unknown-6", "unknown-7")
TIMESTAMP_TYPES = ("NoTimestampType", "CreateTime", "LogAppendTime")

# Rows of the ``batches`` array (int64); a column of it is a batch. What a message v0 or v1 does
# not have is -1.
POSITION = 0
SIZE_BYTES = 1
MAGIC = 2
CRC = 3
ATTRIBUTES = 4  # the low byte, the only one in use
BASE_OFFSET = 5  # of a compressed message: its last inner offset, the first is not in the header
LAST_OFFSET = 6
LEADER_EPOCH = 7
BASE_TIMESTAMP = 8
MAX_TIMESTAMP = 9
PRODUCER_ID = 10
PRODUCER_EPOCH = 11
BASE_SEQUENCE = 12
RECORD_COUNT = 13  # of a compressed message -1: not in the header
BATCH_FIELDS = 14

# Slots of ``walk`` (int64): what a walk needs and how it ended.
NEXT_POSITION = 0  # the first batch not walked yet; at the end of the walk: valid bytes
END = 1  # size of the file
CHECK_CRC = 2
NEEDS_BODY = 3  # a batch is given only when all its bytes are in the buffer
LOW_OFFSET = 4  # batches that cannot hold anything in these bounds are passed over
HIGH_OFFSET = 5
LOW_TIMESTAMP = 6
HIGH_TIMESTAMP = 7
BY_INSTRUCTION = 8
STATUS = 9
FOUND = 10  # what a failed check found, or how many bytes are wanted ...
EXPECTED = 11  # ... and what it expected
WALK_SLOTS = 12

# Values of STATUS, beside those of ``ends``.
ROOM_FULL = 0  # as many batches as the array takes
WANTS_BYTES = 6  # FOUND bytes from NEXT_POSITION on

Batches = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]
Walk = npt.NDArray[np.int64]


def new_walk(*, size_bytes: int, check_crc: bool, needs_body: bool) -> Walk:
    """Make the state of a walk that begins at byte 0, with open bounds."""
    walk = np.zeros(WALK_SLOTS, dtype=np.int64)
    limits = np.iinfo(np.int64)
    walk[END] = size_bytes
    walk[CHECK_CRC] = check_crc
    walk[NEEDS_BODY] = needs_body
    walk[LOW_OFFSET] = walk[LOW_TIMESTAMP] = limits.min
    walk[HIGH_OFFSET] = walk[HIGH_TIMESTAMP] = limits.max
    walk[BY_INSTRUCTION] = HAS_CPU_CRC
    return walk


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def crc_piece(data: Any, start: Any, end: Any, crc: Any, is_v2: Any, by_instruction: Any) -> Any:
    """Go on with a batch's checksum register over ``data[start:end]``."""
    register = np.uint64(crc)
    if is_v2:
        return crc32c_update(data, start, end, register, by_instruction)
    return crc32_update(data, start, end, register)


@njit(inline="always")  # type: ignore[untyped-decorator]
def _check_size(walk: Any, size_bytes: Any, remaining: Any, magic: Any) -> Any:
    """Tell whether the batch can have its size; sets STATUS where it cannot."""
    if size_bytes < MIN_BATCH_BYTES:
        walk[STATUS] = ends.BAD_SIZE
        walk[FOUND] = size_bytes - LOG_OVERHEAD
        return False
    walk[FOUND] = size_bytes
    if size_bytes > remaining:
        walk[STATUS] = ends.PARTIAL_BATCH
        walk[EXPECTED] = remaining
        return False
    if magic >= 2 and size_bytes < ends.HEADER_BYTES:
        walk[STATUS] = ends.BAD_SIZE_FOR_MAGIC
        walk[EXPECTED] = magic
        return False
    return True


@njit  # type: ignore[untyped-decorator]
def _check_crc(walk: Any, data: Any, at: Any, size_bytes: Any, magic: Any) -> Any:
    """Tell whether the batch has its checksum; sets STATUS where it has not."""
    crc = np.uint64(CRC_START)
    if magic >= 2:
        crc = crc32c_update(data, at + 21, at + size_bytes, crc, walk[BY_INSTRUCTION] != 0)
        stored = load_u32(data, at + 17)
    else:
        crc = crc32_update(data, at + 16, at + size_bytes, crc)
        stored = load_u32(data, at + 12)
    found = crc ^ np.uint64(CRC_START)
    if found == stored:
        return True
    walk[STATUS] = ends.BAD_CRC
    walk[FOUND] = np.int64(found)
    walk[EXPECTED] = np.int64(stored)
    return False


@njit(inline="always")  # type: ignore[untyped-decorator]
def _store_header(batches: Any, count: Any, data: Any, at: Any, magic: Any) -> None:
    first = load_i64(data, at)
    batches[MAGIC, count] = magic
    batches[BASE_OFFSET, count] = first
    if magic >= 2:
        batches[CRC, count] = np.int64(load_u32(data, at + 17))
        batches[ATTRIBUTES, count] = data[at + 22]
        batches[LAST_OFFSET, count] = first + load_i32(data, at + 23)
        batches[LEADER_EPOCH, count] = load_i32(data, at + 12)
        batches[BASE_TIMESTAMP, count] = load_i64(data, at + 27)
        batches[MAX_TIMESTAMP, count] = load_i64(data, at + 35)
        batches[PRODUCER_ID, count] = load_i64(data, at + 43)
        epoch = (np.int64(data[at + 51]) << 8) | np.int64(data[at + 52])
        batches[PRODUCER_EPOCH, count] = epoch - 65536 if epoch >= 32768 else epoch
        batches[BASE_SEQUENCE, count] = load_i32(data, at + 53)
        batches[RECORD_COUNT, count] = load_i32(data, at + 57)
        return
    attributes = np.int64(data[at + 17])
    batches[CRC, count] = np.int64(load_u32(data, at + 12))
    batches[ATTRIBUTES, count] = attributes
    batches[LAST_OFFSET, count] = first
    batches[LEADER_EPOCH, count] = -1
    batches[BASE_TIMESTAMP, count] = -1
    batches[MAX_TIMESTAMP, count] = NO_TIMESTAMP if magic == 0 else load_i64(data, at + 18)
    batches[PRODUCER_ID, count] = -1
    batches[PRODUCER_EPOCH, count] = -1
    batches[BASE_SEQUENCE, count] = -1
    batches[RECORD_COUNT, count] = 1 if attributes & CODEC_MASK == 0 else -1


@njit(inline="always")  # type: ignore[untyped-decorator]
def _may_match(walk: Any, batches: Any, count: Any) -> Any:
    """Tell whether a record of the batch can lie within the bounds.

    The first offset of a compressed message and the least timestamp of a batch are unknown;
    with LogAppendTime all records have the greatest.
    """
    attributes = batches[ATTRIBUTES, count]
    is_wrapper = batches[MAGIC, count] < 2 and attributes & CODEC_MASK != 0
    if batches[LAST_OFFSET, count] < walk[LOW_OFFSET]:
        return False
    if batches[BASE_OFFSET, count] > walk[HIGH_OFFSET] and not is_wrapper:
        return False
    if batches[MAX_TIMESTAMP, count] < walk[LOW_TIMESTAMP]:
        return False
    is_exact = attributes & LOG_APPEND_TIME != 0 and batches[MAGIC, count] >= 2
    return not (is_exact and batches[MAX_TIMESTAMP, count] > walk[HIGH_TIMESTAMP])


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def walk_batches(
    data: Any, length: Any, data_position: Any, batches: Any, first: Any, walk: Any
) -> Any:
    """Walk the batches in ``data[:length]``, the file from ``data_position`` on.

    They go to ``batches`` from column ``first`` on; gives the column after the last.

    1. 17 bytes or fewer are left, or the batch reaches past the end of the file: the end.
    2. A size below 14, a v2 batch below 61 bytes, a checksum that does not fit: corrupt, the end.
    3. Bounds pass batches over after these checks, so they never change where a walk ends.
    4. Without CHECK_CRC only headers need to be in the buffer, and with NEEDS_BODY the whole of
       the batches within the bounds: NEXT_POSITION may lie behind the buffer.
    """
    count = first
    data_end = data_position + length
    walk[STATUS] = ROOM_FULL
    while count < batches.shape[1]:
        position = walk[NEXT_POSITION]
        remaining = walk[END] - position
        if remaining <= UP_TO_MAGIC:
            walk[STATUS] = ends.AT_END
            break
        walk[FOUND] = min(remaining, ends.HEADER_BYTES)
        if data_end - position < walk[FOUND]:
            walk[STATUS] = WANTS_BYTES
            break
        at = position - data_position
        size_bytes = LOG_OVERHEAD + load_i32(data, at + 8)
        magic = np.int64(np.int8(data[at + 16]))
        if not _check_size(walk, size_bytes, remaining, magic):
            break
        is_here = size_bytes <= data_end - position
        if walk[CHECK_CRC] != 0:
            if not is_here:
                walk[STATUS] = WANTS_BYTES
                break
            if not _check_crc(walk, data, at, size_bytes, magic):
                break
        _store_header(batches, count, data, at, magic)
        if _may_match(walk, batches, count):
            if walk[NEEDS_BODY] != 0 and not is_here:
                walk[STATUS] = WANTS_BYTES
                break
            batches[POSITION, count] = position
            batches[SIZE_BYTES, count] = size_bytes
            count += 1
        walk[NEXT_POSITION] = position + size_bytes
    return count
