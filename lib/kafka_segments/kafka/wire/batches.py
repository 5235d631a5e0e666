"""The compiled walk that makes columns of a log's batch headers, of every format.

The fields of a header lie as in ``header_layout``. Source: FileLogInputStream.nextBatch.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from kafka_segments.compiling import njit
from kafka_segments.kafka.wire import ends
from kafka_segments.kafka.wire import header_layout as layout
from kafka_segments.kafka.wire.crc import CRC_START, HAS_CPU_CRC
from kafka_segments.kafka.wire.headers import (
    check_crc,
    check_size,
    crc_from,
    crc_update,
    magic_at,
    read_header,
    size_at,
    stored_crc,
)
from kafka_segments.kafka.wire.shared_record import SharedRecord, Slot

CODECS = ("none", "gzip", "snappy", "lz4", "zstd", "unknown-5", "unknown-6", "unknown-7")
TIMESTAMP_TYPES = ("NoTimestampType", "CreateTime", "LogAppendTime")

# Rows of the ``batches`` array (int64); a column of it is a batch. What a message v0 or v1 does
# not have is -1. Where the same fields lie in a header, ``header_layout`` says.
BATCH_POSITION = 0
BATCH_SIZE_BYTES = 1
BATCH_MAGIC = 2
BATCH_CRC = 3
BATCH_ATTRIBUTES = 4  # the low byte, the only one in use
BATCH_BASE_OFFSET = 5  # of a compressed message: its last inner one, its header has no other
BATCH_LAST_OFFSET = 6
BATCH_LEADER_EPOCH = 7
BATCH_BASE_TIMESTAMP = 8
BATCH_MAX_TIMESTAMP = 9
BATCH_PRODUCER_ID = 10
BATCH_PRODUCER_EPOCH = 11
BATCH_BASE_SEQUENCE = 12
BATCH_RECORD_COUNT = 13  # of a compressed message -1: not in the header
BATCH_FIELDS = 14

_LEAST, _GREATEST = -(2**63), 2**63 - 1

# Values of ``status``, beside those of ``ends``.
ROOM_FULL = 0  # as many batches as the array takes
WANTS_BYTES = 6  # ``found`` bytes from ``next_position`` on

Batches = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]


def read_only(data: Bytes) -> Bytes:
    """Return the bytes as an array that cannot be written to, whether ``data`` can or not.

    So a compiled function that only reads them is compiled once, for one type.
    """
    view = data.view()
    view.flags.writeable = False
    return view


class BatchWalk(SharedRecord):
    """A walk over the batches of a file: what it is asked, where it stands, how it ended."""

    next_position = Slot()  # of the first batch not walked yet; when it ends: valid bytes
    end = Slot()  # bytes of the file
    checks_crc = Slot()  # 1 or 0
    needs_body = Slot()  # 1: a batch is given only when all its bytes are in the buffer
    low_offset = Slot()  # batches that cannot hold anything in these bounds are passed over
    high_offset = Slot()
    low_timestamp = Slot()  # ms
    high_timestamp = Slot()
    by_instruction = Slot()  # 1: CRC-32C by the CPU's instruction
    status = Slot()
    found = Slot()  # what a failed check found, or how many bytes are wanted ...
    expected = Slot()  # ... and what it expected


_BATCH_WALK = BatchWalk.dtype


def new_walk(*, size_bytes: int, check_crc: bool, needs_body: bool) -> BatchWalk:
    """Return the record of a walk that begins at byte 0 of a file, with open bounds."""
    walk = BatchWalk()
    walk.end = size_bytes
    walk.checks_crc = check_crc
    walk.needs_body = needs_body
    walk.low_offset = walk.low_timestamp = _LEAST
    walk.high_offset = walk.high_timestamp = _GREATEST
    walk.by_instruction = HAS_CPU_CRC
    return walk


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def crc_piece(data: Any, start: Any, end: Any, crc: Any, is_v2: Any, by_instruction: Any) -> Any:
    """Return the register of a batch's checksum after the bytes ``data[start:end]``."""
    magic = layout.MAGIC_V2 if is_v2 else 0
    return crc_update(data, start, end, np.uint64(crc), magic, by_instruction)


@njit  # type: ignore[untyped-decorator]
def _check_whole(walk: Any, data: Any, at: Any, size_bytes: Any, magic: Any) -> Any:
    """Return SOUND, or BAD_CRC where the batch at ``at`` has another checksum than it says."""
    start = at + crc_from(magic)
    by_instruction = walk.by_instruction != 0
    register = crc_update(data, start, at + size_bytes, np.uint64(CRC_START), magic, by_instruction)
    return check_crc(walk, register, stored_crc(data, at, magic))


@njit(forceinline=True)  # type: ignore[untyped-decorator]
def _store_header(batches: Any, column: Any, header: Any) -> None:
    batches[BATCH_MAGIC, column] = header.magic
    batches[BATCH_CRC, column] = header.crc
    batches[BATCH_ATTRIBUTES, column] = header.attributes
    batches[BATCH_BASE_OFFSET, column] = header.base_offset
    batches[BATCH_LAST_OFFSET, column] = header.last_offset
    batches[BATCH_LEADER_EPOCH, column] = header.leader_epoch
    batches[BATCH_BASE_TIMESTAMP, column] = header.base_timestamp
    batches[BATCH_MAX_TIMESTAMP, column] = header.max_timestamp
    batches[BATCH_PRODUCER_ID, column] = header.producer_id
    batches[BATCH_PRODUCER_EPOCH, column] = header.producer_epoch
    batches[BATCH_BASE_SEQUENCE, column] = header.base_sequence
    batches[BATCH_RECORD_COUNT, column] = header.record_count


@njit(forceinline=True)  # type: ignore[untyped-decorator]
def _may_match(walk: Any, header: Any) -> Any:
    """Tell whether a record of the batch can lie within the bounds.

    A header does not say the first offset of a compressed message, nor always the least timestamp
    of a batch. With LogAppendTime all records of a batch v2 have the greatest.
    """
    is_v2 = header.magic >= layout.MAGIC_V2
    is_wrapper = not is_v2 and header.attributes & layout.CODEC_MASK != 0
    if header.last_offset < walk.low_offset:
        return False
    if header.base_offset > walk.high_offset and not is_wrapper:
        return False
    if header.max_timestamp < walk.low_timestamp:
        return False
    is_exact = is_v2 and header.attributes & layout.LOG_APPEND_TIME != 0
    return not (is_exact and header.max_timestamp > walk.high_timestamp)


def walk_batches(
    data: Bytes,
    length: int,
    data_position: int,
    batches: Batches,
    first: int,
    walk: BatchWalk,
) -> int:
    """Walk the batches in ``data[:length]``, the file from ``data_position`` on.

    They go to ``batches`` from column ``first`` on. Return the column after the last.

    1. Where 17 bytes or fewer are left, or the batch reaches past the end of the file, the walk
       ends.
    2. At a size below 14, a v2 batch below 61 bytes or a checksum that does not fit it ends, too:
       the batch is corrupt.
    3. Bounds pass batches over after these checks, so they never change where a walk ends.
    4. Without ``checks_crc`` only headers need to be in the buffer, and with ``needs_body`` the
       whole of the batches within the bounds. ``next_position`` may then lie behind the buffer.

    Source: FileLogInputStream.nextBatch.
    """
    return int(_walk_batches(data, length, data_position, batches, first, walk.values))


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _walk_batches(
    data: Any, length: Any, data_position: Any, batches: Any, first: Any, values: Any
) -> Any:
    walk = values.view(_BATCH_WALK)[0]
    count = first
    data_end = data_position + length
    walk.status = ROOM_FULL
    while count < batches.shape[1]:
        position = walk.next_position
        remaining = walk.end - position
        if remaining <= layout.UP_TO_MAGIC:
            walk.status = ends.AT_END
            break
        wanted = min(remaining, layout.HEADER_BYTES)
        if data_end - position < wanted:
            walk.status, walk.found = WANTS_BYTES, wanted
            break
        at = position - data_position
        size_bytes, magic = size_at(data, at), magic_at(data, at)
        walk.status = check_size(walk, size_bytes, remaining, magic)
        if walk.status != ends.SOUND:
            break
        is_here = size_bytes <= data_end - position
        header = read_header(data, at, magic)
        is_wanted = _may_match(walk, header)
        if not is_here and (walk.checks_crc != 0 or (is_wanted and walk.needs_body != 0)):
            walk.status, walk.found = WANTS_BYTES, size_bytes
            break
        if walk.checks_crc != 0:
            walk.status = _check_whole(walk, data, at, size_bytes, magic)
            if walk.status != ends.SOUND:
                break
        if is_wanted:
            _store_header(batches, count, header)
            batches[BATCH_POSITION, count] = position
            batches[BATCH_SIZE_BYTES, count] = size_bytes
            count += 1
        walk.next_position = position + size_bytes
    return count
