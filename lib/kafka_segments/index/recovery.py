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
   broker cut the segment to its base offset, which mostly empties it (``emptied``).
7. A marker of a transaction that cannot be parsed ends the walk after its batch; one of another
   type fails the load. What else the producers' batches say is summarised (``producer_summary``).
8. The next offset is read back from the log as Kafka does (``log_end``), and so is the first
   batch's timestamp: a batch that recovery keeps can make Kafka throw there.

Source: LogSegment.recover, FileLogInputStream.nextBatch, OffsetIndex.append,
TimeIndex.maybeAppend (2.0 and later; the bytes have not changed since).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kafka_segments.errors import (
    FileChangedError,
    InvalidTransactionError,
    UnreadableBatchError,
)
from kafka_segments.index import kernel, markers
from kafka_segments.index.emptied import Left, truncated_to_base
from kafka_segments.index.log_end import BatchSearch
from kafka_segments.index.producer_summary import ProducerSummary, Summarizer, empty_summary
from kafka_segments.wire import ends
from kafka_segments.wire.checkpoints import EpochStart
from kafka_segments.wire.crc import HAS_CPU_CRC
from kafka_segments.wire.reading import ReadInto

Entries = npt.NDArray[np.int64]

MAX_FILE_BYTES = 2**31 - 1
OFFSET_ENTRY_BYTES = 8
TIME_ENTRY_BYTES = 12
_BUFFER_BYTES = 1024 * 1024  # fits the second-level cache: reading and checksumming meet there
_HEADERS_BUFFER_BYTES = 64 * 1024
_MOST_MARKER_BYTES = 64 * 1024 * 1024


class DamageKind(StrEnum):
    """Why a segment ends before its file does, or has no indexes."""

    PARTIAL_BATCH = "partial_batch"
    PREALLOCATED_TAIL = "preallocated_tail"
    CORRUPT_BATCH = "corrupt_batch"
    OFFSET_OVERFLOW = "offset_overflow"
    OFFSET_GOES_BACK = "offset_goes_back"
    INDEX_FULL = "index_full"
    BAD_MARKER = "bad_marker"
    INVALID_TRANSACTION = "invalid_transaction"
    UNREADABLE_CUT = "unreadable_cut"
    UNREADABLE_END = "unreadable_end"
    UNREADABLE_FIRST = "unreadable_first_batch"
    UNREADABLE_AGAIN = "unreadable_again"
    REMOVED = "removed_after_truncation"
    NOT_LOADED = "log_not_loaded"
    NEGATIVE_EPOCH_START = "negative_epoch_start"
    TOO_LARGE = "too_large"
    CHANGED = "changed_while_read"
    VANISHED = "vanished_while_read"
    UNREADABLE = "unreadable"
    UNDECODABLE = "undecodable_batch"
    NOT_INDEXABLE = "not_indexable"


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
    is_load: bool = False
    """The segment is recovered as part of its log's load, which does not read all of it back."""


class SegmentSummary(NamedTuple):
    """What of a recovered segment matters to those after it (``log_recovery``).

    ``has_wrappers``: some batches are compressed messages v0 or v1.
    """

    base_offset: int
    next_offset: int
    producer_end_offset: int
    valid_bytes: int
    truncated_bytes: int
    damage_kind: DamageKind | None
    leader_epochs: Sequence[EpochStart]
    producers: ProducerSummary
    has_wrappers: bool = False


@dataclass(frozen=True)
class SegmentRecovery:
    """A recovered segment.

    ``offset_entries`` has rows (offset, position), ``time_entries`` (timestamp ms, offset),
    ``leader_epochs`` (epoch, start offset), all int64 and absolute. Both indexes are None
    where Kafka leaves none. Timestamps are -1 where no batch has one. ``producer_end_offset`` is
    how far the producer state reaches: the next offset after the last batch that is no message
    v0 or v1.
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
    producers: ProducerSummary
    producer_end_offset: int
    offset_entries: Entries | None
    time_entries: Entries | None
    damage: Damage | None

    def summary(self, base_offset: int) -> SegmentSummary:
        """Give what matters to later segments."""
        return SegmentSummary(
            base_offset=base_offset,
            next_offset=self.next_offset,
            producer_end_offset=self.producer_end_offset,
            valid_bytes=self.valid_bytes,
            truncated_bytes=self.truncated_bytes,
            damage_kind=None if self.damage is None else self.damage.kind,
            leader_epochs=[EpochStart(*entry) for entry in self.leader_epochs.tolist()],
            producers=self.producers,
            has_wrappers=self.record_count is None,
        )


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
        most_batches = size // ends.HEADER_BYTES + 2
        self._producers_out = np.empty((most_batches, markers.BATCH_COLUMNS), dtype=np.int64)
        self._marker_message = ""
        self._counts = np.zeros(4, dtype=np.int64)

    @property
    def index_interval_bytes(self) -> int:
        """Give the least bytes between two index entries."""
        return self._options.index_interval_bytes

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
        (offset_parts, time_parts, epoch_parts), producers = self._walk(read_into, state)
        if state[kernel.STATUS] in _ENDS_OF_WALK:
            self._close_time_index(state, time_parts)
        status = int(state[kernel.STATUS])
        offsets, times, epochs = _joined(offset_parts), _joined(time_parts), _joined(epoch_parts)
        if status in (kernel.OFFSET_INDEX_GOES_BACK, kernel.TIME_INDEX_GOES_BACK):
            left, unread = self._truncated_to_base(read_into, state, offsets, times)
            found = self._left_of(read_into, left, base_offset)
            damage = self._cut_damage(unread or found.damage, state, status)
            is_kept = self._options.is_load or damage.kind == DamageKind.OFFSET_GOES_BACK
            return replace(
                found,
                truncated_bytes=size_bytes - left.log_bytes,
                leader_epochs=epochs,
                producers=producers,
                damage=damage,
                offset_entries=found.offset_entries if is_kept else None,
                time_entries=found.time_entries if is_kept else None,
            )
        return _recovered(
            state,
            damage=self._end_damage(read_into, state, self._damage(read_into, state), offsets),
            offset_entries=offsets,
            time_entries=times,
            leader_epochs=epochs,
            producers=producers,
            is_load=self._options.is_load,
        )

    def _cut_damage(
        self, of_rest: Damage | None, state: npt.NDArray[np.int64], status: int
    ) -> Damage:
        """Say why a segment is cut to its base offset, or that Kafka throws at what is left."""
        position, message = int(state[kernel.POSITION]), _went_back(state, status)
        is_first = of_rest is not None and of_rest.kind == DamageKind.UNREADABLE_FIRST
        if of_rest is None or (is_first and self._options.is_load):
            return Damage(DamageKind.OFFSET_GOES_BACK, position, message)
        said = f"{of_rest.message}; besides, at byte {position}: {message}"
        return Damage(
            of_rest.kind if is_first else DamageKind.UNREADABLE_CUT, of_rest.position, said
        )

    def producers(self, read_into: ReadInto, *, size_bytes: int) -> ProducerSummary:
        """Summarise the producers of batches that are sound, whatever their offsets.

        Raises:
            InvalidTransactionError: a marker that Kafka throws at.
        """
        state = self._fresh_state(size_bytes, 0)
        state[kernel.ANY_OFFSET] = 1
        state[kernel.INTERVAL_BYTES] = MAX_FILE_BYTES
        _, summary = self._walk(read_into, state)
        if int(state[kernel.STATUS]) in (kernel.BAD_MARKER, kernel.REFUSED_MARKER):
            position = int(state[kernel.DECODED_POSITION])
            raise InvalidTransactionError(position, self._marker_message)
        return summary

    def _truncated_to_base(
        self,
        read_into: ReadInto,
        state: npt.NDArray[np.int64],
        offsets: Entries,
        times: Entries,
    ) -> tuple[Left, Damage | None]:
        """Cut a segment to its base offset; nothing is left where Kafka throws at that."""
        size_bytes, base_offset = int(state[kernel.END]), int(state[kernel.BASE_OFFSET])
        try:
            left = truncated_to_base(
                read_into,
                size_bytes=size_bytes,
                base_offset=base_offset,
                offset_entries=offsets,
                time_entries=times,
                max_timestamp=int(state[kernel.MAX_TIMESTAMP]),
            )
        except UnreadableBatchError as error:
            none = offsets[:0]
            nothing = Left(0, none, none, kernel.NO_TIMESTAMP, base_offset, base_offset, 0)
            message = f"Kafka throws when it cuts the segment: {error.reason}"
            return nothing, Damage(DamageKind.UNREADABLE_CUT, error.position, message)
        return left, None

    def _left_of(self, read_into: ReadInto, left: Left, base_offset: int) -> SegmentRecovery:
        """Measure what is left of a segment that was cut to its base offset."""
        state = self._fresh_state(left.log_bytes, base_offset)
        state[kernel.INTERVAL_BYTES] = MAX_FILE_BYTES
        self._walk(read_into, state)
        state[kernel.POSITION] = left.log_bytes
        state[kernel.LAST_TIME_ENTRY_TIMESTAMP] = kernel.NO_TIMESTAMP
        state[kernel.TIME_ENTRY_COUNT] = len(left.time_entries)
        if len(left.time_entries):
            state[kernel.LAST_TIME_ENTRY_TIMESTAMP] = left.time_entries[-1, 0]
            state[kernel.LAST_TIME_ENTRY_OFFSET] = left.time_entries[-1, 1]
        state[kernel.MAX_TIMESTAMP] = left.max_timestamp
        state[kernel.OFFSET_OF_MAX_TIMESTAMP] = left.offset_of_max_timestamp
        times = [left.time_entries]
        self._close_time_index(state, times)
        state[kernel.OFFSET_ENTRY_COUNT] = len(left.offset_entries)
        state[kernel.LAST_INDEXED_OFFSET] = left.end_target
        state[kernel.LAST_INDEXED_POSITION] = left.end_start
        state[kernel.HAS_WRAPPER_AT_END] = 1  # whatever it is: look
        damage = self._end_damage(read_into, state, None, left.offset_entries)
        return _recovered(
            state,
            damage=damage,
            offset_entries=left.offset_entries,
            time_entries=_joined(times),
            leader_epochs=_joined([]),
            producers=empty_summary(),
            is_load=True,
        )

    def _end_damage(
        self,
        read_into: ReadInto,
        state: npt.NDArray[np.int64],
        damage: Damage | None,
        offsets: Entries,
    ) -> Damage | None:
        """Read the next offset back into ``state``; gives the damage, or what Kafka throws at."""
        found = self._damage_at_end(read_into, state, damage)
        is_known = found is not None and found.kind in (*_FAILING, DamageKind.BAD_MARKER)
        has_wrappers = state[kernel.UNCOUNTED_BATCH_COUNT] > 0
        if is_known or not has_wrappers or not self._options.is_load:
            return found
        is_reached = state[kernel.PRODUCER_END_OFFSET] >= state[kernel.NEXT_OFFSET]
        if is_reached and found is not None and found.kind == DamageKind.UNREADABLE_END:
            return found  # it fails where it is the last segment, though nothing is read again
        again = _read_again_damage(read_into, state, offsets)
        if again is None or damage is None:
            return again or found
        message = f"{again.message}; besides, at byte {damage.position}: {damage.message}"
        return replace(again, message=message)

    def _damage_at_end(
        self, read_into: ReadInto, state: npt.NDArray[np.int64], damage: Damage | None
    ) -> Damage | None:
        if damage is not None and damage.kind in _FAILING:
            return damage
        also = "" if damage is None else f"; besides, at byte {damage.position}: {damage.message}"
        if state[kernel.HAS_BAD_FIRST_MAGIC]:
            message = f"{_BAD_FIRST_MAGIC}{also}"
            damage = Damage(DamageKind.UNREADABLE_FIRST, 0, message)
        base_offset = int(state[kernel.BASE_OFFSET])
        target, start = base_offset, 0
        if state[kernel.OFFSET_ENTRY_COUNT]:
            target = int(state[kernel.LAST_INDEXED_OFFSET])
            start = int(state[kernel.LAST_INDEXED_POSITION])
        is_plain = not state[kernel.HAS_WRAPPER_AT_END]
        if is_plain and target < state[kernel.NEXT_OFFSET]:
            return damage
        search = BatchSearch(read_into, end=int(state[kernel.POSITION]))
        try:
            found = search.next_offset(base_offset, target=target, start=start)
        except UnreadableBatchError as error:
            message = f"Kafka throws when it reads the end of the log: {error.reason}{also}"
            return Damage(DamageKind.UNREADABLE_END, error.position, message)
        state[kernel.NEXT_OFFSET] = found
        return damage

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
        state[kernel.PRODUCER_END_OFFSET] = base_offset
        state[kernel.LATEST_EPOCH] = -1
        state[kernel.BODY_POSITION] = -1
        state[kernel.WENT_BACK_POSITION] = -1
        state[kernel.DECODED_POSITION] = -1
        return state

    def _walk(
        self, read_into: ReadInto, state: npt.NDArray[np.int64]
    ) -> tuple[tuple[list[Entries], list[Entries], list[Entries]], ProducerSummary]:
        parts: tuple[list[Entries], list[Entries], list[Entries]] = ([], [], [])
        outputs = (self._offset_out, self._time_out, self._epochs_out)
        summarizer: Summarizer | None = None
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
                    self._producers_out,
                    self._counts,
                )
            )
            *counts, producer_batches = self._counts.tolist()
            for part, output, count in zip(parts, outputs, counts, strict=True):
                if count:
                    part.append(output[:count].copy())
            if producer_batches:
                summarizer = summarizer or Summarizer(keeps_all=bool(state[kernel.ANY_OFFSET]))
                summarizer.add(self._producers_out[:producer_batches])
            status = state[kernel.STATUS]
            if status == kernel.WANTS_MARKER:
                self._decode_marker(read_into, state)
            elif status not in (kernel.RUNNING, kernel.WANTS_EPOCH_SPACE):
                return parts, _summary(summarizer, state)

    def _decode_marker(self, read_into: ReadInto, state: npt.NDArray[np.int64]) -> None:
        """Decode the marker that the kernel could not, for its next call."""
        position, length = int(state[kernel.POSITION]), int(state[kernel.FOUND])
        state[kernel.DECODED_POSITION] = position
        if length > _MOST_MARKER_BYTES:
            state[kernel.DECODED_END] = markers.IS_REFUSED
            self._marker_message = f"a marker of {length} bytes"
            return
        batch = np.empty(length, dtype=np.uint8)
        read = read_into(position, memoryview(batch))
        if read < length:
            raise FileChangedError(position + read, int(state[kernel.END]))
        decoded = markers.decode_marker(batch)
        self._marker_message = decoded.message
        state[kernel.DECODED_END] = decoded.end
        state[kernel.DECODED_KIND] = decoded.kind
        state[kernel.DECODED_COORDINATOR_EPOCH] = decoded.coordinator_epoch
        state[kernel.DECODED_TIMESTAMP] = decoded.timestamp

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
        if status == ends.AT_END and left == 0:
            return None
        has_no_size = status == ends.BAD_SIZE and state[kernel.FOUND] == 0
        if has_no_size and self._only_zeros(read_into, position, int(state[kernel.END])):
            message = f"{left} zero bytes after the last batch, as preallocation leaves them"
            return Damage(DamageKind.PREALLOCATED_TAIL, position, message)
        if status in (kernel.BAD_MARKER, kernel.REFUSED_MARKER):
            return self._marker_damage(state, status)
        kind, message = _describe(state, status, left)
        return Damage(kind, position, message)

    def _marker_damage(self, state: npt.NDArray[np.int64], status: int) -> Damage:
        position = int(state[kernel.DECODED_POSITION])
        if status == kernel.BAD_MARKER:
            message = f"{self._marker_message}: recovery keeps its batch and ends there"
            return Damage(DamageKind.BAD_MARKER, position, message)
        message = f"{self._marker_message}: a broker would not start"
        return Damage(DamageKind.INVALID_TRANSACTION, position, message)

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


_FAILING = (
    DamageKind.OFFSET_OVERFLOW,
    DamageKind.INDEX_FULL,
    DamageKind.INVALID_TRANSACTION,
)


def _read_again_damage(
    read_into: ReadInto, state: npt.NDArray[np.int64], offsets: Entries
) -> Damage | None:
    """Look up the two offsets that a load looks up to rebuild the producer state.

    The first from which on it reads the segment, and, of its last one, the log's end. Where the
    producer state reaches as far it looks up neither. Source: UnifiedLog.rebuildProducerState.
    """
    search = BatchSearch(read_into, end=int(state[kernel.POSITION]))
    producer_end, end = int(state[kernel.PRODUCER_END_OFFSET]), int(state[kernel.NEXT_OFFSET])
    lookups = [(DamageKind.UNREADABLE_AGAIN, max(producer_end, int(state[kernel.BASE_OFFSET])))]
    if producer_end < end:
        lookups.append((DamageKind.UNREADABLE_END, end))
    for kind, offset in lookups:
        below = offsets[offsets[:, 0] <= offset]
        try:
            search.position_of(offset, start=int(below[-1, 1]) if len(below) else 0)
        except UnreadableBatchError as error:
            return Damage(kind, error.position, f"Kafka throws when it reads on: {error.reason}")
    return None


_UNREADABLE = (
    DamageKind.UNREADABLE_CUT,
    DamageKind.UNREADABLE_END,
    DamageKind.UNREADABLE_FIRST,
)
_BAD_FIRST_MAGIC = (
    "the first batch has a negative magic: a load keeps it, and Kafka throws when it reads the"
    " timestamp of the segment's first batch"
)
_ENDS_OF_WALK = (
    ends.AT_END,
    ends.PARTIAL_BATCH,
    ends.BAD_SIZE,
    ends.BAD_SIZE_FOR_MAGIC,
    ends.BAD_CRC,
    kernel.BAD_MARKER,
)


def _summary(summarizer: Summarizer | None, state: npt.NDArray[np.int64]) -> ProducerSummary:
    found = empty_summary() if summarizer is None else summarizer.summary()
    position = int(state[kernel.WENT_BACK_POSITION])
    if position < 0:
        return found
    return found.gone_back(position, int(state[kernel.WENT_BACK_OFFSET]))


def _went_back(state: npt.NDArray[np.int64], status: int) -> str:
    which = "offset" if status == kernel.OFFSET_INDEX_GOES_BACK else "time"
    return (
        f"offset {state[kernel.FOUND]} after offset {state[kernel.EXPECTED]} in the {which} index:"
        " an unclean start cuts this segment to its base offset, which mostly empties it, a start"
        " without index files fails"
    )


def _describe(state: npt.NDArray[np.int64], status: int, left: int) -> tuple[DamageKind, str]:
    found, expected = int(state[kernel.FOUND]), int(state[kernel.EXPECTED])
    reason = ends.describe_end(status, found=found, expected=expected, left=left)
    if reason is not None:
        is_cut = status in (ends.AT_END, ends.PARTIAL_BATCH)
        return DamageKind.PARTIAL_BATCH if is_cut else DamageKind.CORRUPT_BATCH, reason
    if status == kernel.OFFSET_OVERFLOW:
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
    producers: ProducerSummary,
    is_load: bool,
) -> SegmentRecovery:
    kind = None if damage is None else damage.kind
    fails = kind in _FAILING or (kind in _UNREADABLE and not is_load)
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
        producer_count=len(producers.producers),
        control_batch_count=int(state[kernel.CONTROL_BATCH_COUNT]),
        transactional_batch_count=int(state[kernel.TRANSACTIONAL_BATCH_COUNT]),
        producers=producers,
        producer_end_offset=int(state[kernel.PRODUCER_END_OFFSET]),
        offset_entries=None if fails else offset_entries,
        time_entries=None if fails else time_entries,
        damage=damage,
    )


def unread_segment(*, size_bytes: int, base_offset: int, damage: Damage) -> SegmentRecovery:
    """Give the row of a segment that could not be read: no indexes, nothing known."""
    return SegmentRecovery(
        valid_bytes=0,
        truncated_bytes=size_bytes,
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
        producers=empty_summary(),
        producer_end_offset=base_offset,
        offset_entries=None,
        time_entries=None,
        damage=damage,
    )
