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
from kafka_segments.kafka.wire.crc import CRC_START, HAS_CPU_CRC
from kafka_segments.kafka.wire.ends import SOUND
from kafka_segments.kafka.wire.headers import (
    crc_from,
    crc_update,
    magic_at,
    read_header,
    size_at,
    stored_crc,
)

# Columns of ``recent_producers``: of the slot of a producer, and which slots a run has taken.
_ID = 0
_EPOCH = 1
_NEWEST = 2  # the position of its newest batch but the first, or ``NOWHERE``
_TAKEN = 3
RECENT_COLUMNS = 4
RECENT_SLOTS = 256
NO_EPOCH = 1 << 16  # of a slot that no producer has taken


class Outputs(NamedTuple):
    """The arrays of index entries and of batches with a producer id; ``walk`` counts their rows."""

    offset_entries: Any
    time_entries: Any
    producer_batches: Any
    recent_producers: Any


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
def begins_run(walk: Any, header: Any) -> Any:
    """Tell whether the batches after the one with this header can be a run.

    Where the CPU has an instruction for checksums, those by tables are for the walk.
    """
    if walk.checks_crc != 0 and (walk.by_instruction != 0) != HAS_CPU_CRC:
        return False
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
def _is_sound(file: Any, position: Any, size_bytes: Any, magic: Any) -> Any:
    start, end = position + crc_from(magic), position + size_bytes
    register = crc_update(file, start, end, np.uint64(CRC_START), magic, HAS_CPU_CRC)
    return register ^ np.uint64(CRC_START) == stored_crc(file, position, magic)


@njit  # type: ignore[untyped-decorator]
def _store_at(rows: Any, row: Any, kind: Any, file: Any, position: Any) -> Any:
    """Store the batch at a position as a row, unless it is ``NOWHERE``; return the next row."""
    if position == NOWHERE:
        return row
    store_batch(rows, row, read_header(file, position, np.int64(layout.MAGIC_V2)), position)
    rows[row, KIND] = kind
    return row + 1


@njit(forceinline=True)  # type: ignore[untyped-decorator]
def _note_producer(
    outputs: Any, row: Any, taken: Any, kind: Any, file: Any, slot: Any, header: Any, position: Any
) -> Any:
    """Note where the newest batch of a producer lies, or store its first one in the run as a row.

    Where another producer or epoch has the slot, the newest batch of that one is stored before.
    Return the next row, and how many slots the run has taken.
    """
    rows, recent = outputs.producer_batches, outputs.recent_producers
    is_known = recent[slot, _ID] == header.producer_id
    if is_known and recent[slot, _EPOCH] == header.producer_epoch:
        recent[slot, _NEWEST] = position
    else:
        if recent[slot, _EPOCH] == NO_EPOCH:
            recent[taken, _TAKEN] = slot
            taken += 1
        else:
            row = _store_at(rows, row, kind, file, recent[slot, _NEWEST])
        row = _store_at(rows, row, kind, file, position)
        recent[slot, _ID], recent[slot, _EPOCH] = header.producer_id, header.producer_epoch
        recent[slot, _NEWEST] = NOWHERE
    return row, taken


@njit(forceinline=True)  # type: ignore[untyped-decorator]
def _store_newest(outputs: Any, row: Any, taken: Any, kind: Any, file: Any) -> Any:
    """Store the newest batches of a run's producers, and free their slots; return the next row."""
    rows, recent = outputs.producer_batches, outputs.recent_producers
    for place in range(taken):
        slot = recent[place, _TAKEN]
        row = _store_at(rows, row, kind, file, recent[slot, _NEWEST])
        recent[slot, _EPOCH] = NO_EPOCH
    return row


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

    Of the batches of one producer and epoch the first and the newest get a row: the first may begin
    something, and of the others the producer's state remembers the newest alone. Its row may come
    after rows of batches behind it, but where data may lie in an open transaction: there a broker
    refuses the log, and what lies before counts alone. All producers share one slot then.
    """
    attributes = header.attributes
    status, position, last_indexed_position, timestamps, counts = begun
    checks_crc, sums = walk.checks_crc != 0, sums_of(counts)
    least_bytes = layout.HEADER_BYTES if magic == layout.MAGIC_V2 else layout.MIN_BATCH_BYTES
    kind = DATA if attributes & layout.TRANSACTIONAL == 0 else TRANSACTIONAL_DATA
    row, taken = walk.new_producer_batches, np.int64(0)
    may_be_refused = kind == DATA and walk.transactional_batch_count > 0
    slot_bits = np.int64(0 if may_be_refused else RECENT_SLOTS - 1)
    while position <= stop - layout.HEADER_BYTES:
        size_bytes = size_at(file, position)
        if not least_bytes <= size_bytes <= stop - position or magic_at(file, position) != magic:
            break
        header = read_header(file, position, magic)
        if not _is_alike(walk, header, magic, attributes, sums.next_offset):
            break
        if (header.producer_id >= 0) != has_producers:
            break
        if checks_crc and not _is_sound(file, position, size_bytes, magic):
            break
        header = read_header(file, position, magic)  # again: fewer values to keep meanwhile
        timestamps = with_timestamps_of(timestamps, header)
        if position - last_indexed_position > walk.index_interval_bytes:
            store_timestamps(walk, timestamps)
            offset_entries, time_entries, _, _ = outputs
            status = append_entries(
                walk, offset_entries, time_entries, header.last_offset, position
            )
            if status != SOUND:
                break
            last_indexed_position = position
        if has_producers:
            slot = header.producer_id & slot_bits
            row, taken = _note_producer(outputs, row, taken, kind, file, slot, header, position)
        sums = summed(sums, header, size_bytes)
        position += size_bytes
    if has_producers:
        walk.new_producer_batches = _store_newest(outputs, row, taken, kind, file)
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
        magic = min(header.magic, np.int64(1))  # tells the compiler: no CRC-32C
        run = _walk_run(walk, file, stop, magic, False, header, begun, outputs)
    elif header.producer_id >= 0:
        run = _walk_run(walk, file, stop, magic, True, header, begun, outputs)
    else:
        run = _walk_run(walk, file, stop, magic, False, header, begun, outputs)
    return run
