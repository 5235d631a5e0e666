"""The compiled walk over a segment: batch headers, checksums, index entries.

One call takes one buffer; what must outlive a call is in ``walk``. A batch that does not fit into
what is left of a buffer is checksummed piece by piece, so memory stays bounded whatever a length
field says. The rules and their order are those of LogSegment.recover and
FileLogInputStream.nextBatch; ``recovery.py`` says them in words.

Batches that are like the one before are walked over in runs (``alike``), most of them; the rules
here are for all. The steps of the walk are functions of numbers, inlined. What needs an array of
rows is done in ``scan_buffer`` itself: where an array is handed to a function with more than one
way out, numba counts references to it for every batch.
"""

from typing import Any, NamedTuple

import numpy as np

from kafka_segments.compiling import njit
from kafka_segments.kafka.index.segment.appending import append_entries
from kafka_segments.kafka.index.segment.batch_runs import Outputs, Run, begins_run, walk_run
from kafka_segments.kafka.index.segment.markers import (
    IS_CORRUPT,
    IS_MARKER,
    read_marker,
    store_batch,
)
from kafka_segments.kafka.index.segment.producer_batches import (
    COORDINATOR_EPOCH,
    DATA,
    EMPTY_CONTROL,
    KIND,
    TIMESTAMP,
    TRANSACTIONAL_DATA,
    UNUSUAL,
)
from kafka_segments.kafka.index.segment.relative import MAX_RELATIVE_OFFSET
from kafka_segments.kafka.index.segment.tally import (
    counted,
    counts_of,
    measured,
    store_counts,
    store_timestamps,
    timestamps_of,
)
from kafka_segments.kafka.index.segment.walk import (
    BAD_MARKER,
    NOWHERE,
    OFFSET_OVERFLOW,
    READ_ON,
    REFUSED_MARKER,
    WANTS_EPOCH_SPACE,
    WANTS_MARKER,
    SegmentWalk,
)
from kafka_segments.kafka.wire import ends
from kafka_segments.kafka.wire import header_layout as layout
from kafka_segments.kafka.wire.crc import CRC_START
from kafka_segments.kafka.wire.ends import SOUND
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
from kafka_segments.kafka.wire.native import address_of, byte_at, store_u8

HEADER_ROOM = 64  # bytes kept free in front of a buffer's bytes
_SEGMENT_WALK = SegmentWalk.dtype


class _Marker(NamedTuple):
    """What a control batch of a producer is, and whether Kafka can read it (``end``)."""

    end: Any
    kind: Any
    coordinator_epoch: Any
    timestamp: Any


@njit(forceinline=True)  # type: ignore[untyped-decorator]
def _is_marker(header: Any) -> Any:
    return header.producer_id >= 0 and header.attributes & layout.CONTROL != 0


@njit(forceinline=True)  # type: ignore[untyped-decorator]
def _check_room(remaining: Any, here: Any) -> Any:
    """Return SOUND where a batch can begin, and the ``here`` bytes in the buffer hold its header.

    ``remaining`` is how many bytes the file has from there on.
    """
    if remaining <= layout.UP_TO_MAGIC:
        return ends.AT_END
    return READ_ON if here < min(remaining, layout.HEADER_BYTES) else SOUND


@njit(forceinline=True)  # type: ignore[untyped-decorator]
def _keep_header(data: Any, at: Any, size_bytes: Any) -> None:
    """Copy a header into the room in front of the buffer, for the next call."""
    for i in range(min(size_bytes, layout.HEADER_BYTES)):
        store_u8(data, i, byte_at(data, at + i))


@njit(forceinline=True)  # type: ignore[untyped-decorator]
def _piece_to_checksum(
    walk: Any, position: Any, size_bytes: Any, magic: Any, data_position: Any, data_end: Any
) -> Any:
    """Return (register, start, stop): the checksum so far, and the bytes it takes next in ``data``.

    They are what the buffer has of the batch.
    """
    register = np.uint64(CRC_START)
    start = position + crc_from(magic)
    if position < data_position:
        register = np.uint64(walk.body_crc)
        start = walk.body_position
    stop = min(position + size_bytes, data_end)
    room = HEADER_ROOM - data_position
    return register, room + start, room + stop


@njit(forceinline=True)  # type: ignore[untyped-decorator]
def _compare_crc(walk: Any, register: Any, stored: Any, batch_end: Any, data_end: Any) -> Any:
    """Return (status, next byte to checksum): at the batch's end SOUND or BAD_CRC, and NOWHERE."""
    if batch_end <= data_end:
        return check_crc(walk, register, stored), np.int64(NOWHERE)
    walk.body_crc = np.int64(register)
    return READ_ON, data_end


@njit  # type: ignore[untyped-decorator]
def _marker_of(
    walk: Any, header: Any, data: Any, at: Any, size_bytes: Any, position: Any, is_here: Any
) -> Any:
    """Return what the control batch of a producer is; UNUSUAL: it must be decoded outside."""
    absent = np.int64(-1)
    if walk.decoded_position == position:
        return _Marker(
            walk.decoded_end,
            walk.decoded_kind,
            walk.decoded_coordinator_epoch,
            walk.decoded_timestamp,
        )
    if header.record_count == 0:
        return _Marker(np.int64(IS_MARKER), np.int64(EMPTY_CONTROL), absent, absent)
    if not is_here:
        return _Marker(np.int64(IS_MARKER), np.int64(UNUSUAL), absent, absent)
    kind, coordinator_epoch, timestamp = read_marker(data, at, at + size_bytes)
    return _Marker(np.int64(IS_MARKER), kind, coordinator_epoch, timestamp)


@njit(forceinline=True)  # type: ignore[untyped-decorator]
def _check_batch(walk: Any, header: Any, marker: Any, size_bytes: Any, epoch_rows: Any) -> Any:
    """Return SOUND where the segment can take the batch and this call has room for it."""
    relative_offset = header.last_offset - walk.base_offset
    fits = 0 <= relative_offset <= MAX_RELATIVE_OFFSET
    if not fits and walk.takes_any_offset == 0:
        walk.found = header.last_offset
        walk.expected = walk.base_offset
        return OFFSET_OVERFLOW
    if header.leader_epoch > walk.latest_epoch and walk.new_epochs == epoch_rows:
        return WANTS_EPOCH_SPACE
    if marker.kind == UNUSUAL and marker.end == IS_MARKER:
        walk.found = size_bytes
        return WANTS_MARKER
    return SOUND


@njit(forceinline=True)  # type: ignore[untyped-decorator]
def _note_order(walk: Any, header: Any, position: Any, next_offset: Any, epochs: Any) -> None:
    """Note the first batch whose offsets go back, and give a new leader epoch a row of ``epochs``.

    ``next_offset`` follows the batches before.
    """
    goes_back = header.base_offset < next_offset or header.last_offset < header.base_offset
    if goes_back and walk.went_back_position < 0:
        walk.went_back_position = position
        walk.went_back_offset = header.base_offset
    if header.leader_epoch > walk.latest_epoch:
        epochs[walk.new_epochs, 0] = header.leader_epoch
        epochs[walk.new_epochs, 1] = header.base_offset
        walk.new_epochs += 1
        walk.latest_epoch = header.leader_epoch


@njit(forceinline=True)  # type: ignore[untyped-decorator]
def _store_producer(walk: Any, header: Any, marker: Any, rows: Any, position: Any) -> Any:
    """Store a batch with a producer id as a row; return SOUND, or how Kafka ends at its marker."""
    if header.producer_id < 0:
        return SOUND
    if marker.end == IS_CORRUPT:
        return BAD_MARKER
    if marker.end != IS_MARKER:
        return REFUSED_MARKER
    row = walk.new_producer_batches
    store_batch(rows, row, header, position)
    if header.attributes & layout.CONTROL != 0:
        rows[row, KIND] = marker.kind
        rows[row, COORDINATOR_EPOCH] = marker.coordinator_epoch
        rows[row, TIMESTAMP] = marker.timestamp
    else:
        is_transactional = header.attributes & layout.TRANSACTIONAL != 0
        rows[row, KIND] = TRANSACTIONAL_DATA if is_transactional else DATA
    walk.new_producer_batches = row + 1
    return SOUND


@njit(forceinline=True)  # type: ignore[untyped-decorator]
def _store_place(
    walk: Any, status: Any, position: Any, body_position: Any, last_indexed_position: Any
) -> None:
    walk.status = status
    walk.position = position
    walk.body_position = body_position
    walk.last_indexed_position = last_indexed_position


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def scan_buffer(  # noqa: PLR0912, PLR0915 - see the module: arrays stay in one function
    buffer: Any,
    length: Any,
    data_position: Any,
    values: Any,
    offset_entries: Any,
    time_entries: Any,
    epochs: Any,
    producer_batches: Any,
    recent_producers: Any,
) -> Any:
    """Walk the batches in ``buffer[HEADER_ROOM:][:length]``, the file from ``data_position`` on.

    The room in front holds the header of a batch that began in an earlier buffer. Entries go to
    the three arrays of two int64 columns, batches with a producer id to ``producer_batches``, whose
    columns the module of that name has; all behind the rows that the fields ``new_...`` of ``walk``
    count. There is room for all that the buffer can give, but of ``epochs``. Return the position to
    read on from.
    """
    data = address_of(buffer)
    outputs = Outputs(offset_entries, time_entries, producer_batches, recent_producers)
    walk = values.view(_SEGMENT_WALK)[0]
    data_end = data_position + length
    checks_crc, by_instruction = walk.checks_crc != 0, walk.by_instruction != 0
    end, index_interval_bytes = walk.end, walk.index_interval_bytes
    position, body_position = walk.position, walk.body_position
    last_indexed_position = walk.last_indexed_position
    timestamps, counts = timestamps_of(walk), counts_of(walk)
    status = SOUND
    while status == SOUND:
        is_begun = body_position >= 0
        at = np.int64(0) if is_begun else HEADER_ROOM + position - data_position
        remaining, here = end - position, data_end - position
        status = _check_room(remaining, here)
        if status != SOUND:
            break
        size_bytes, magic = size_at(data, at), magic_at(data, at)
        is_here = size_bytes <= here and not is_begun
        status = check_size(walk, size_bytes, remaining, magic)
        if status != SOUND:
            break
        may_be_moved = position > data_position and not is_here
        if may_be_moved and _is_marker(read_header(data, at, magic)):
            status = READ_ON  # from its first byte on: its body is needed, and most are small
            break
        if checks_crc:
            register, start, stop = _piece_to_checksum(
                walk, position, size_bytes, magic, data_position, data_end
            )
            register = crc_update(data, start, stop, register, magic, by_instruction)
            status, body_position = _compare_crc(
                walk, register, stored_crc(data, at, magic), position + size_bytes, data_end
            )
            if status == READ_ON and not is_begun:
                _keep_header(data, at, size_bytes)
            if status != SOUND:
                break
        header = read_header(data, at, magic)
        marker = _Marker(np.int64(IS_MARKER), np.int64(DATA), np.int64(-1), np.int64(-1))
        if _is_marker(header):
            marker = _marker_of(walk, header, data, at, size_bytes, position, is_here)
        status = _check_batch(walk, header, marker, size_bytes, len(epochs))
        if status != SOUND:
            break

        timestamps = measured(walk, timestamps, counts, header)
        if position - last_indexed_position > index_interval_bytes:
            store_timestamps(walk, timestamps)
            status = append_entries(
                walk, offset_entries, time_entries, header.last_offset, position
            )
            if status != SOUND:
                break
            last_indexed_position = position
        _note_order(walk, header, position, counts.next_offset, epochs)
        status = _store_producer(walk, header, marker, producer_batches, position)
        counts = counted(walk, counts, header, size_bytes, marker.end != IS_CORRUPT)
        if status != REFUSED_MARKER:
            position += size_bytes
        if status == SOUND and begins_run(walk, header):
            file = data + HEADER_ROOM - data_position
            begun = Run(status, position, last_indexed_position, timestamps, counts)
            status, position, last_indexed_position, timestamps, counts = walk_run(
                walk, file, data_end, header, begun, outputs
            )

    _store_place(walk, status, position, body_position, last_indexed_position)
    store_timestamps(walk, timestamps)
    store_counts(walk, counts)
    return data_end if body_position >= 0 else position
