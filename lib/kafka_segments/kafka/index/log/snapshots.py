"""The producer snapshot file: the producer state of a log up to the offset in the file's name.

``version`` int16 = 1, ``crc`` uint32 (CRC-32C of byte 6 to the end), ``count`` int32, then 46
bytes a producer: ``producerId`` int64, ``producerEpoch`` int16, ``lastSequence`` int32,
``lastOffset`` int64, ``offsetDelta`` int32, ``timestamp`` int64 (ms), ``coordinatorEpoch`` int32,
``currentTxnFirstOffset`` int64 (-1: none). Big-endian.

The entries stand in the order of Java's HashMap, in which brokers of 3.5 and later keep them. The
entries of other brokers' files can only be compared as sets.

Source: ProducerStateManager.writeSnapshot, readSnapshot; java.util.HashMap.
"""

import struct

import numpy as np

from kafka_segments.errors import CorruptIndexError
from kafka_segments.kafka.index.log.producer_state import (
    NO_OFFSET,
    NewestBatch,
    ProducerEntry,
    ProducerState,
    in_hash_order,
)
from kafka_segments.kafka.wire.crc import crc32c

SNAPSHOT_HEADER_BYTES = 10
SNAPSHOT_ENTRY_BYTES = 46
_VERSION = 1
_CRC_FROM = 6
_ENTRY = np.dtype(
    [
        ("producer_id", ">i8"),
        ("producer_epoch", ">i2"),
        ("last_sequence", ">i4"),
        ("last_offset", ">i8"),
        ("offset_delta", ">i4"),
        ("timestamp", ">i8"),
        ("coordinator_epoch", ">i4"),
        ("current_txn_first_offset", ">i8"),
    ]
)


def encode_snapshot(state: ProducerState) -> bytes:
    """Write the bytes of a ``.snapshot`` file."""
    rows = np.array(
        [
            (
                producer_id,
                entry.epoch,
                *entry.batch,
                entry.timestamp,
                entry.coordinator_epoch,
                state.open.get(producer_id, NO_OFFSET),
            )
            for producer_id, entry in in_hash_order(state.entries)
        ],
        dtype=_ENTRY,
    )
    covered = struct.pack(">i", len(rows)) + rows.tobytes()
    return struct.pack(">hI", _VERSION, crc32c(covered)) + covered


def decode_snapshot(data: bytes) -> ProducerState:
    """Read a ``.snapshot`` file.

    Raises:
        CorruptIndexError: a broker would delete the file, and read an older one.
    """
    if len(data) < SNAPSHOT_HEADER_BYTES:
        raise CorruptIndexError(
            f"{len(data)} bytes, a snapshot has {SNAPSHOT_HEADER_BYTES} or more"
        )
    version, crc, count = struct.unpack_from(">hIi", data)
    if version != _VERSION:
        raise CorruptIndexError(f"version is {version}, {_VERSION} expected")
    found = crc32c(data[_CRC_FROM:])
    if found != crc:
        raise CorruptIndexError(f"checksum is {found:#010x}, the snapshot says {crc:#010x}")
    left = len(data) - SNAPSHOT_HEADER_BYTES
    if not 0 <= count * SNAPSHOT_ENTRY_BYTES <= left:
        raise CorruptIndexError(f"{count} entries in {left} bytes")
    state = ProducerState()
    for row in np.frombuffer(data, _ENTRY, count, SNAPSHOT_HEADER_BYTES).tolist():
        producer_id, epoch, *batch, timestamp, coordinator_epoch, first_offset = row
        state.entries[producer_id] = ProducerEntry(
            epoch, NewestBatch(*batch), timestamp, coordinator_epoch
        )
        if first_offset != NO_OFFSET:
            state.open[producer_id] = first_offset
            state.ongoing[first_offset] = producer_id
    return state
