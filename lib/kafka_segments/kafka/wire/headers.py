"""Headers of batches of every format, decoded and checked in one place, compiled.

Both walks over a log ask here: recovery's (``index.kernel``) and the one that makes columns of
batches (``wire.batches``). A ``walk`` is any numpy record with the int64 fields ``found`` and
``expected``: a check that fails puts there what it found and what it expected.

A function here that takes an array has one way out, or only loads: else numba would count
references to the array for every batch.

Source: FileLogInputStream.nextBatch, DefaultRecordBatch, LegacyRecord.
"""

from typing import Any, NamedTuple

import numpy as np

from kafka_segments.compiling import njit
from kafka_segments.kafka.wire import ends
from kafka_segments.kafka.wire import header_layout as layout
from kafka_segments.kafka.wire.crc import CRC_START, crc32_update, crc32c_update
from kafka_segments.kafka.wire.native import byte_at, load_i16, load_i32, load_i64, load_u32


class Header(NamedTuple):
    """What the header of a batch says, every field an int64.

    A field that a message v0 or v1 does not have is -1. The offsets of a compressed message are
    both that of its last inner message, and its ``record_count`` is -1: its header says neither
    where the set begins nor how many messages it holds. Timestamps are in ms, -1 for none;
    ``attributes`` is the low byte; ``crc`` is the checksum that the header holds.
    """

    magic: Any
    attributes: Any
    base_offset: Any
    last_offset: Any
    leader_epoch: Any
    base_timestamp: Any
    max_timestamp: Any
    producer_id: Any
    producer_epoch: Any
    base_sequence: Any
    record_count: Any
    crc: Any


@njit(forceinline=True)  # type: ignore[untyped-decorator]
def size_at(data: Any, at: Any) -> Any:
    """Return how many bytes the batch at ``at`` has by its header, which can say anything."""
    return layout.LOG_OVERHEAD + load_i32(data, at + layout.LENGTH)


@njit(forceinline=True)  # type: ignore[untyped-decorator]
def magic_at(data: Any, at: Any) -> Any:
    """Return the magic of the batch at ``at``: -128 to 127."""
    return np.int64(np.int8(byte_at(data, at + layout.MAGIC)))


@njit(forceinline=True)  # type: ignore[untyped-decorator]
def read_header(data: Any, at: Any, magic: Any) -> Any:
    """Return the header of the batch at ``at``, of which 61 bytes or all are in ``data``."""
    absent = np.int64(layout.ABSENT)
    base_offset = load_i64(data, at + layout.BASE_OFFSET)
    if magic >= layout.MAGIC_V2:
        return Header(
            magic=magic,
            attributes=np.int64(byte_at(data, at + layout.ATTRIBUTES)),
            base_offset=base_offset,
            last_offset=base_offset + load_i32(data, at + layout.LAST_OFFSET_DELTA),
            leader_epoch=load_i32(data, at + layout.LEADER_EPOCH),
            base_timestamp=load_i64(data, at + layout.BASE_TIMESTAMP),
            max_timestamp=load_i64(data, at + layout.MAX_TIMESTAMP),
            producer_id=load_i64(data, at + layout.PRODUCER_ID),
            producer_epoch=load_i16(data, at + layout.PRODUCER_EPOCH),
            base_sequence=load_i32(data, at + layout.BASE_SEQUENCE),
            record_count=load_i32(data, at + layout.RECORD_COUNT),
            crc=np.int64(load_u32(data, at + layout.CRC)),
        )
    attributes = np.int64(byte_at(data, at + layout.LEGACY_ATTRIBUTES))
    timestamp = np.int64(layout.NO_TIMESTAMP)
    if magic != 0:
        timestamp = load_i64(data, at + layout.LEGACY_TIMESTAMP)
    return Header(
        magic=magic,
        attributes=attributes,
        base_offset=base_offset,
        last_offset=base_offset,
        leader_epoch=absent,
        base_timestamp=absent,
        max_timestamp=timestamp,
        producer_id=absent,
        producer_epoch=absent,
        base_sequence=absent,
        record_count=np.int64(1) if attributes & layout.CODEC_MASK == 0 else absent,
        crc=np.int64(load_u32(data, at + layout.LEGACY_CRC)),
    )


@njit(forceinline=True)  # type: ignore[untyped-decorator]
def check_size(walk: Any, size_bytes: Any, remaining: Any, magic: Any) -> Any:
    """Return SOUND, or which status of ``ends`` a batch of this size has.

    ``remaining`` is how many bytes the file has from the start of the batch on.
    """
    if size_bytes < layout.MIN_BATCH_BYTES:
        walk.found = size_bytes - layout.LOG_OVERHEAD
        return ends.BAD_SIZE
    if size_bytes > remaining:
        walk.found = size_bytes
        walk.expected = remaining
        return ends.PARTIAL_BATCH
    if magic >= layout.MAGIC_V2 and size_bytes < layout.HEADER_BYTES:
        walk.found = size_bytes
        walk.expected = magic
        return ends.BAD_SIZE_FOR_MAGIC
    return ends.SOUND


@njit(forceinline=True)  # type: ignore[untyped-decorator]
def crc_from(magic: Any) -> Any:
    """Return the place in a batch from which on its checksum covers every byte."""
    return layout.CRC_FROM if magic >= layout.MAGIC_V2 else layout.LEGACY_CRC_FROM


@njit(forceinline=True)  # type: ignore[untyped-decorator]
def crc_update(
    data: Any, start: Any, end: Any, register: Any, magic: Any, by_instruction: Any
) -> Any:
    """Return the register of a batch's checksum after the bytes ``data[start:end]``."""
    if magic >= layout.MAGIC_V2:
        register = crc32c_update(data, start, end, register, by_instruction)
    else:
        register = crc32_update(data, start, end, register)
    return register


@njit(forceinline=True)  # type: ignore[untyped-decorator]
def stored_crc(data: Any, at: Any, magic: Any) -> Any:
    """Return the checksum that the header at ``at`` holds."""
    return load_u32(data, at + (layout.CRC if magic >= layout.MAGIC_V2 else layout.LEGACY_CRC))


@njit(forceinline=True)  # type: ignore[untyped-decorator]
def check_crc(walk: Any, register: Any, stored: Any) -> Any:
    """Return SOUND, or BAD_CRC where a register's checksum is not the stored one."""
    computed = register ^ np.uint64(CRC_START)
    if computed == stored:
        return ends.SOUND
    walk.found = np.int64(computed)
    walk.expected = np.int64(stored)
    return ends.BAD_CRC


@njit(forceinline=True)  # type: ignore[untyped-decorator]
def least_timestamp(header: Any) -> Any:
    """Return the least timestamp (ms) of a batch's records, as far as its header says it.

    The greatest one must not be negative. A v2 header has the first record's, unless LogAppendTime
    or a delete horizon took its place; where that is negative or above the greatest, it tells none.
    """
    replaced = layout.LOG_APPEND_TIME | layout.DELETE_HORIZON
    least = header.max_timestamp
    if header.magic >= layout.MAGIC_V2 and header.attributes & replaced == 0:
        # unsigned, so that a negative one is above all others
        least = np.int64(min(np.uint64(header.base_timestamp), np.uint64(least)))
    return least
