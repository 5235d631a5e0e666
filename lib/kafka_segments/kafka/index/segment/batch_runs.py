"""The common path of the walk, compiled: a run of batches that are like the one before them.

Most batches have the format and the attributes of the one before, or batches v2 another codec at
most, lie wholly in the buffer, go on in offsets and bring no new leader epoch: nothing can be wrong
with such a batch but its checksum.
One that differs or whose checksum is bad ends the run, and is left to the walk. Neither compressed
messages v0 or v1 nor control batches are in a run.
"""

from typing import Any, NamedTuple

import numpy as np

from kafka_segments.compiling import njit
from kafka_segments.kafka.index.segment.appending import append_entries
from kafka_segments.kafka.index.segment.markers import store_batch
from kafka_segments.kafka.index.segment.producer_batches import DATA, KIND, TRANSACTIONAL_DATA
from kafka_segments.kafka.index.segment.relative import MAX_RELATIVE_OFFSET
from kafka_segments.kafka.index.segment.tally import (
    counted_run,
    store_timestamps,
    summed,
    sums_of,
    with_timestamps_of,
)
from kafka_segments.kafka.index.segment.walk import NOWHERE
from kafka_segments.kafka.wire import header_layout as layout
from kafka_segments.kafka.wire.crc import CRC_START
from kafka_segments.kafka.wire.ends import SOUND
from kafka_segments.kafka.wire.headers import (
    crc_from,
    crc_update,
    magic_at,
    read_header,
    size_at,
    stored_crc,
)


class Outputs(NamedTuple):
    """The arrays of index entries and of batches with a producer id; ``walk`` counts their rows."""

    offset_entries: Any
    time_entries: Any
    producer_batches: Any


class Run(NamedTuple):
    """The position after a run, and what the batches up to there add up to.

    ``status`` is SOUND, or why an index refuses the batch at the position.
    """

    status: Any
    position: Any
    last_indexed_position: Any
    timestamps: Any
    counts: Any


@njit(forceinline=True)  # type: ignore[untyped-decorator]
def begins_run(header: Any) -> Any:
    """Tell whether the batches after the one with this header can be a run."""
    rare = layout.CONTROL if header.magic == layout.MAGIC_V2 else layout.CODEC_MASK
    return 0 <= header.magic <= layout.MAGIC_V2 and header.attributes & rare == 0


@njit(forceinline=True)  # type: ignore[untyped-decorator]
def _is_alike(walk: Any, header: Any, magic: Any, attributes: Any, next_offset: Any) -> Any:
    """``magic`` and ``attributes`` are those of the run."""
    may_differ = layout.CODEC_MASK if magic == layout.MAGIC_V2 else 0
    relative_offset = np.uint64(header.last_offset - walk.base_offset)
    return (
        header.attributes | may_differ == attributes | may_differ
        and header.leader_epoch <= walk.latest_epoch
        and next_offset <= header.base_offset <= header.last_offset
        and relative_offset <= np.uint64(MAX_RELATIVE_OFFSET)
    )


@njit(forceinline=True)  # type: ignore[untyped-decorator]
def _is_sound(file: Any, position: Any, size_bytes: Any, magic: Any, by_instruction: Any) -> Any:
    start, end = position + crc_from(magic), position + size_bytes
    register = crc_update(file, start, end, np.uint64(CRC_START), magic, by_instruction)
    return register ^ np.uint64(CRC_START) == stored_crc(file, position, magic)


@njit(forceinline=True)  # type: ignore[untyped-decorator]
def _store(rows: Any, row: Any, kind: Any, header: Any, position: Any) -> Any:
    """Store a batch with a producer id as a row, unless it is ``NOWHERE``; return the next row."""
    if position == NOWHERE:
        return row
    store_batch(rows, row, header, position)
    rows[row, KIND] = kind
    return row + 1


@njit(forceinline=True)  # type: ignore[untyped-decorator]
def _walk_run(
    walk: Any,
    file: Any,
    stop: Any,
    magic: Any,
    has_producers: Any,
    header: Any,
    begun: Any,
    outputs: Any,
) -> Any:
    """Walk a run of batches of one magic, with or without producer ids.

    Where both are constants, much of this goes away.

    Of batches of one producer and epoch that follow each other, the first and the last get a row:
    the first may begin something, and of the others the producer's state remembers the last alone.
    """
    attributes = header.attributes
    status, position, last_indexed_position, timestamps, counts = begun
    checks_crc, by_instruction = walk.checks_crc != 0, walk.by_instruction != 0
    sums = sums_of(counts)
    least_bytes = layout.HEADER_BYTES if magic == layout.MAGIC_V2 else layout.MIN_BATCH_BYTES
    kind = DATA if attributes & layout.TRANSACTIONAL == 0 else TRANSACTIONAL_DATA
    rows, row = outputs.producer_batches, walk.new_producer_batches
    producer_id, epoch = np.int64(layout.ABSENT), np.int64(layout.ABSENT)
    newest, newest_at = header, np.int64(NOWHERE)
    while position <= stop - layout.HEADER_BYTES:
        size_bytes = size_at(file, position)
        if not least_bytes <= size_bytes <= stop - position or magic_at(file, position) != magic:
            break
        header = read_header(file, position, magic)
        if not _is_alike(walk, header, magic, attributes, sums.next_offset):
            break
        if (header.producer_id >= 0) != has_producers:
            break
        if checks_crc and not _is_sound(file, position, size_bytes, magic, by_instruction):
            break
        timestamps = with_timestamps_of(timestamps, header)
        if position - last_indexed_position > walk.index_interval_bytes:
            store_timestamps(walk, timestamps)
            offset_entries, time_entries, _ = outputs
            status = append_entries(
                walk, offset_entries, time_entries, header.last_offset, position
            )
            if status != SOUND:
                break
            last_indexed_position = position
        if has_producers:
            if header.producer_id == producer_id and header.producer_epoch == epoch:
                newest, newest_at = header, position
            else:
                row = _store(rows, row, kind, newest, newest_at)
                row = _store(rows, row, kind, header, position)
                producer_id, epoch = header.producer_id, header.producer_epoch
                newest_at = np.int64(NOWHERE)
        sums = summed(sums, header, size_bytes)
        position += size_bytes
    walk.new_producer_batches = _store(rows, row, kind, newest, newest_at)
    counts = counted_run(walk, counts, sums, magic, attributes)
    return Run(status, position, last_indexed_position, timestamps, counts)


@njit  # type: ignore[untyped-decorator]
def walk_run(walk: Any, file: Any, stop: Any, header: Any, begun: Any, outputs: Any) -> Any:
    """Walk the batches like the one with ``header``, which is the last before them.

    ``file`` is the address of byte 0 of the file, if all of it lay in memory in front of the
    buffer. The bytes of the buffer end at the position ``stop``. ``begun`` is the ``Run`` so far:
    where the batches begin, and what those before add up to. Return the ``Run`` with those of this
    call.
    """
    magic = np.int64(layout.MAGIC_V2)
    if header.magic != layout.MAGIC_V2:
        run = _walk_run(walk, file, stop, header.magic, False, header, begun, outputs)
    elif header.producer_id >= 0:
        run = _walk_run(walk, file, stop, magic, True, header, begun, outputs)
    else:
        run = _walk_run(walk, file, stop, magic, False, header, begun, outputs)
    return run
