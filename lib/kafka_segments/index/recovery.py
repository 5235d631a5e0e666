"""What Kafka's recovery makes of one segment: valid bytes, index entries, timestamps, damage.

1. Batches are walked from byte 0. The walk ends quietly where 17 bytes or fewer are left, or
   where a batch reaches past the end of the file; it ends as corrupt at a size below 14, a v2
   batch below 61 bytes, or a checksum that does not fit.
2. A last offset below the base offset or more than 2^31 - 1 above it is an overflow: Kafka
   splits the segment, or fails to load the log.
3. The greatest batch timestamp so far and the last offset of the first batch that has it go on.
4. Where more than ``index_interval_bytes`` lie between a batch and the one that got the last
   entry, the batch gets an offset entry (last offset, position) and, if the greatest timestamp
   grew since the last one, a time entry. The batch at position 0 gets none.
5. The end of the segment gets a last time entry, under the same condition.
6. An entry that a full index refuses fails the load; one whose offset goes back makes the
   broker empty the segment.

Source: LogSegment.recover, FileLogInputStream.nextBatch, OffsetIndex.append,
TimeIndex.maybeAppend (2.0 and later; the bytes have not changed since).
"""

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import numpy.typing as npt

from kafka_segments.errors import FileChangedError
from kafka_segments.index import kernel
from kafka_segments.wire.crc import HAS_CPU_CRC
from kafka_segments.wire.reading import ReadInto

Entries = npt.NDArray[np.int64]

MAX_FILE_BYTES = 2**31 - 1
OFFSET_ENTRY_BYTES = 8
TIME_ENTRY_BYTES = 12
_BUFFER_BYTES = 1024 * 1024  # fits the second-level cache: reading and checksumming meet there
_HEADERS_BUFFER_BYTES = 64 * 1024
_FIRST_PRODUCERS = 1024


class DamageKind(StrEnum):
    """Why a segment ends before its file does, or has no indexes."""

    PARTIAL_BATCH = "partial_batch"
    PREALLOCATED_TAIL = "preallocated_tail"
    CORRUPT_BATCH = "corrupt_batch"
    OFFSET_OVERFLOW = "offset_overflow"
    OFFSET_GOES_BACK = "offset_goes_back"
    INDEX_FULL = "index_full"
    TOO_LARGE = "too_large"
    CHANGED = "changed_while_read"
    VANISHED = "vanished_while_read"
    UNREADABLE = "unreadable"


@dataclass(frozen=True)
class Damage:
    """One finding in a segment, at a byte position of its file."""

    kind: DamageKind
    position: int
    message: str


@dataclass(frozen=True)
class RecoveryOptions:
    """The broker settings that recovery depends on, and how much to verify."""

    index_interval_bytes: int = 4096
    segment_index_bytes: int = 10 * 1024 * 1024
    check_crc: bool = True
    by_instruction: bool = HAS_CPU_CRC


@dataclass(frozen=True)
class SegmentRecovery:
    """A recovered segment.

    ``offset_entries`` has rows (offset, position), ``time_entries`` (timestamp ms, offset),
    ``leader_epochs`` (epoch, start offset), all int64 and absolute. Both indexes are None
    where Kafka leaves none. Timestamps are -1 where no batch has one.
    """

    valid_bytes: int
    truncated_bytes: int
    next_offset: int
    batch_count: int
    record_count: int | None
    first_batch_timestamp: int
    min_timestamp: int
    max_timestamp: int
    offset_of_max_timestamp: int
    magics: tuple[int, ...]
    codecs: tuple[int, ...]
    timestamp_types: tuple[int, ...]
    leader_epochs: Entries
    producer_count: int
    control_batch_count: int
    transactional_batch_count: int
    offset_entries: Entries | None
    time_entries: Entries | None
    damage: Damage | None


def _bits(mask: int) -> tuple[int, ...]:
    return tuple(bit for bit in range(mask.bit_length()) if mask >> bit & 1)


class SegmentRecoverer:
    """Recovers segments one after another, with buffers that are made once."""

    def __init__(self, options: RecoveryOptions) -> None:
        self._options = options
        size = _BUFFER_BYTES if options.check_crc else _HEADERS_BUFFER_BYTES
        most_entries = size // kernel.MIN_ENTRY_BYTES + 2
        self._buffer = np.zeros(kernel.HEADER_ROOM + size, dtype=np.uint8)
        self._bytes = self._buffer[kernel.HEADER_ROOM :]
        self._view = memoryview(self._bytes)
        self._offset_out = np.empty((most_entries, 2), dtype=np.int64)
        self._time_out = np.empty((most_entries, 2), dtype=np.int64)
        self._epochs_out = np.empty((1024, 2), dtype=np.int64)
        self._counts = np.zeros(3, dtype=np.int64)

    def recover(self, read_into: ReadInto, *, size_bytes: int, base_offset: int) -> SegmentRecovery:
        """Recover one segment from its bytes.

        Raises:
            FileChangedError: the file ended before ``size_bytes``.
            OSError: whatever ``read_into`` raises.
        """
        if size_bytes > MAX_FILE_BYTES:
            message = f"{size_bytes} bytes, Kafka opens at most {MAX_FILE_BYTES}"
            damage = Damage(DamageKind.TOO_LARGE, 0, message)
            return unread_segment(size_bytes=size_bytes, base_offset=base_offset, damage=damage)
        state = self._fresh_state(size_bytes, base_offset)
        offset_parts, time_parts, epoch_parts = self._walk(read_into, state)
        if state[kernel.STATUS] in _ENDS_OF_WALK:
            self._close_time_index(state, time_parts)
        status = int(state[kernel.STATUS])
        if status in (kernel.OFFSET_INDEX_GOES_BACK, kernel.TIME_INDEX_GOES_BACK):
            damage = Damage(
                DamageKind.OFFSET_GOES_BACK, int(state[kernel.POSITION]), _went_back(state, status)
            )
            return _emptied(size_bytes=size_bytes, base_offset=base_offset, damage=damage)
        return _recovered(
            state,
            damage=self._damage(read_into, state),
            offset_entries=_joined(offset_parts),
            time_entries=_joined(time_parts),
            leader_epochs=_joined(epoch_parts),
        )

    def _fresh_state(self, size_bytes: int, base_offset: int) -> npt.NDArray[np.int64]:
        options = self._options
        state = np.zeros(kernel.STATE_SIZE, dtype=np.int64)
        state[kernel.END] = size_bytes
        state[kernel.BASE_OFFSET] = base_offset
        state[kernel.INTERVAL_BYTES] = options.index_interval_bytes
        state[kernel.MAX_OFFSET_ENTRIES] = options.segment_index_bytes // OFFSET_ENTRY_BYTES
        state[kernel.MAX_TIME_ENTRIES] = options.segment_index_bytes // TIME_ENTRY_BYTES
        state[kernel.CHECK_CRC] = options.check_crc
        state[kernel.BY_INSTRUCTION] = options.by_instruction
        state[kernel.LAST_TIME_ENTRY_TIMESTAMP] = kernel.NO_TIMESTAMP
        state[kernel.MAX_TIMESTAMP] = kernel.NO_TIMESTAMP
        state[kernel.OFFSET_OF_MAX_TIMESTAMP] = base_offset
        state[kernel.FIRST_BATCH_TIMESTAMP] = kernel.NO_TIMESTAMP
        state[kernel.MIN_TIMESTAMP] = kernel.NO_TIMESTAMP
        state[kernel.NEXT_OFFSET] = base_offset
        state[kernel.LATEST_EPOCH] = -1
        state[kernel.LAST_PRODUCER_ID] = -1
        state[kernel.BODY_POSITION] = -1
        return state

    def _walk(
        self, read_into: ReadInto, state: npt.NDArray[np.int64]
    ) -> tuple[list[Entries], list[Entries], list[Entries]]:
        parts: tuple[list[Entries], list[Entries], list[Entries]] = ([], [], [])
        outputs = (self._offset_out, self._time_out, self._epochs_out)
        producers = np.full(_FIRST_PRODUCERS, -1, dtype=np.int64)
        size_bytes = int(state[kernel.END])
        position = 0
        while True:
            length = min(len(self._bytes), size_bytes - position)
            read = read_into(position, self._view[:length]) if length else 0
            if read < length:
                raise FileChangedError(position + read, size_bytes)
            position = int(
                kernel.scan_buffer(
                    self._buffer,
                    length,
                    position,
                    state,
                    *outputs,
                    producers,
                    self._counts,
                )
            )
            for part, output, count in zip(parts, outputs, self._counts.tolist(), strict=True):
                if count:
                    part.append(output[:count].copy())
            status = state[kernel.STATUS]
            if status == kernel.WANTS_PRODUCER_SPACE:
                larger = np.full(4 * len(producers), -1, dtype=np.int64)
                kernel.rehash_producers(producers, larger)
                producers = larger
            elif status not in (kernel.RUNNING, kernel.WANTS_EPOCH_SPACE):
                return parts

    def _close_time_index(self, state: npt.NDArray[np.int64], parts: list[Entries]) -> None:
        ended_with = state[kernel.STATUS]
        found, expected = state[kernel.FOUND], state[kernel.EXPECTED]
        state[kernel.STATUS] = kernel.RUNNING
        if kernel.append_time_entry(state, self._time_out, 0, True):
            parts.append(self._time_out[:1].copy())
        if state[kernel.STATUS] == kernel.RUNNING:
            state[kernel.STATUS] = ended_with
            state[kernel.FOUND], state[kernel.EXPECTED] = found, expected

    def _damage(self, read_into: ReadInto, state: npt.NDArray[np.int64]) -> Damage | None:
        status, position = int(state[kernel.STATUS]), int(state[kernel.POSITION])
        left = int(state[kernel.END]) - position
        if status == kernel.AT_END and left == 0:
            return None
        has_no_size = status == kernel.BAD_SIZE and state[kernel.FOUND] == 0
        if has_no_size and self._only_zeros(read_into, position, int(state[kernel.END])):
            message = f"{left} zero bytes after the last batch, as preallocation leaves them"
            return Damage(DamageKind.PREALLOCATED_TAIL, position, message)
        kind, message = _describe(state, status, left)
        return Damage(kind, position, message)

    def _only_zeros(self, read_into: ReadInto, position: int, end: int) -> bool:
        while position < end:
            length = min(len(self._bytes), end - position)
            read = read_into(position, self._view[:length])
            if read < length:
                raise FileChangedError(position + read, end)
            if self._bytes[:length].any():
                return False
            position += length
        return True


_ENDS_OF_WALK = (
    kernel.AT_END,
    kernel.PARTIAL_BATCH,
    kernel.BAD_SIZE,
    kernel.BAD_SIZE_FOR_MAGIC,
    kernel.BAD_CRC,
)


def _went_back(state: npt.NDArray[np.int64], status: int) -> str:
    which = "offset" if status == kernel.OFFSET_INDEX_GOES_BACK else "time"
    return (
        f"offset {state[kernel.FOUND]} after offset {state[kernel.EXPECTED]} in the {which} index:"
        " an unclean start empties this segment, a start without index files fails"
    )


def _describe(state: npt.NDArray[np.int64], status: int, left: int) -> tuple[DamageKind, str]:
    found, expected = int(state[kernel.FOUND]), int(state[kernel.EXPECTED])
    match status:
        case kernel.AT_END:
            return DamageKind.PARTIAL_BATCH, f"{left} bytes left, too few for a batch"
        case kernel.PARTIAL_BATCH:
            return (
                DamageKind.PARTIAL_BATCH,
                f"the batch says {found} bytes, {expected} are left in the file",
            )
        case kernel.BAD_SIZE:
            return DamageKind.CORRUPT_BATCH, f"batch length is {found}, the least is 14"
        case kernel.BAD_SIZE_FOR_MAGIC:
            return (
                DamageKind.CORRUPT_BATCH,
                f"the batch says {found} bytes, magic {expected} needs {kernel.HEADER_BYTES}",
            )
        case kernel.BAD_CRC:
            return (
                DamageKind.CORRUPT_BATCH,
                f"checksum is {found:#010x}, the batch says {expected:#010x}",
            )
        case kernel.OFFSET_OVERFLOW:
            return (
                DamageKind.OFFSET_OVERFLOW,
                f"last offset {found} does not fit base offset {expected}:"
                " it must lie 0 to 2147483647 above; Kafka splits such a segment or fails to load",
            )
    which = "offset" if status == kernel.OFFSET_INDEX_FULL else "time"
    limit_slot, count_slot = (
        (kernel.MAX_OFFSET_ENTRIES, kernel.OFFSET_ENTRY_COUNT)
        if status == kernel.OFFSET_INDEX_FULL
        else (kernel.MAX_TIME_ENTRIES, kernel.TIME_ENTRY_COUNT)
    )
    return (
        DamageKind.INDEX_FULL,
        f"the {which} index is full ({state[count_slot]} of {state[limit_slot]} entries):"
        " segment.index.bytes is too small for this segment, a broker would not start",
    )


def _joined(parts: list[Entries]) -> Entries:
    return np.concatenate(parts) if parts else np.empty((0, 2), dtype=np.int64)


def _recovered(
    state: npt.NDArray[np.int64],
    *,
    damage: Damage | None,
    offset_entries: Entries,
    time_entries: Entries,
    leader_epochs: Entries,
) -> SegmentRecovery:
    fails = damage is not None and damage.kind in (
        DamageKind.OFFSET_OVERFLOW,
        DamageKind.INDEX_FULL,
    )
    uncounted = state[kernel.UNCOUNTED_BATCH_COUNT] > 0
    return SegmentRecovery(
        valid_bytes=int(state[kernel.POSITION]),
        truncated_bytes=int(state[kernel.END] - state[kernel.POSITION]),
        next_offset=int(state[kernel.NEXT_OFFSET]),
        batch_count=int(state[kernel.BATCH_COUNT]),
        record_count=None if uncounted else int(state[kernel.RECORD_COUNT]),
        first_batch_timestamp=int(state[kernel.FIRST_BATCH_TIMESTAMP]),
        min_timestamp=int(state[kernel.MIN_TIMESTAMP]),
        max_timestamp=int(state[kernel.MAX_TIMESTAMP]),
        offset_of_max_timestamp=int(state[kernel.OFFSET_OF_MAX_TIMESTAMP]),
        magics=tuple(bit - 1 for bit in _bits(int(state[kernel.MAGIC_BITS]))),
        codecs=_bits(int(state[kernel.CODEC_BITS])),
        timestamp_types=tuple(bit - 1 for bit in _bits(int(state[kernel.TIMESTAMP_TYPE_BITS]))),
        leader_epochs=leader_epochs,
        producer_count=int(state[kernel.PRODUCER_COUNT]),
        control_batch_count=int(state[kernel.CONTROL_BATCH_COUNT]),
        transactional_batch_count=int(state[kernel.TRANSACTIONAL_BATCH_COUNT]),
        offset_entries=None if fails else offset_entries,
        time_entries=None if fails else time_entries,
        damage=damage,
    )


def _emptied(*, size_bytes: int, base_offset: int, damage: Damage) -> SegmentRecovery:
    return _nothing(
        truncated_bytes=size_bytes, base_offset=base_offset, damage=damage, entries=_joined([])
    )


def unread_segment(*, size_bytes: int, base_offset: int, damage: Damage) -> SegmentRecovery:
    """Give the row of a segment that could not be read: no indexes, nothing known."""
    return _nothing(
        truncated_bytes=size_bytes, base_offset=base_offset, damage=damage, entries=None
    )


def _nothing(
    *, truncated_bytes: int, base_offset: int, damage: Damage, entries: Entries | None
) -> SegmentRecovery:
    return SegmentRecovery(
        valid_bytes=0,
        truncated_bytes=truncated_bytes,
        next_offset=base_offset,
        batch_count=0,
        record_count=0,
        first_batch_timestamp=kernel.NO_TIMESTAMP,
        min_timestamp=kernel.NO_TIMESTAMP,
        max_timestamp=kernel.NO_TIMESTAMP,
        offset_of_max_timestamp=base_offset,
        magics=(),
        codecs=(),
        timestamp_types=(),
        leader_epochs=_joined([]),
        producer_count=0,
        control_batch_count=0,
        transactional_batch_count=0,
        offset_entries=entries,
        time_entries=entries,
        damage=damage,
    )
