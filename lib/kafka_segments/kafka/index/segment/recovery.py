"""What Kafka's recovery makes of one segment: valid bytes, index entries, timestamps, damage.

1. Batches are walked from byte 0. The walk ends quietly where 17 bytes or fewer are left, or
   where a batch reaches past the end of the file; it ends as corrupt at a size below 14, at a v2
   batch below 61 bytes, or at a checksum that does not fit.
2. A last offset below the base offset or more than 2^31 - 1 above it is an overflow: Kafka
   splits the segment, or fails to load the log.
3. The greatest batch timestamp so far is kept, and the last offset of the first batch that has it.
4. Where more than ``index_interval_bytes`` lie between a batch and the one that got the last
   entry, the batch gets an offset entry (last offset, position) and, if the greatest timestamp
   grew since the last one, a time entry. The batch at position 0 gets none.
5. The end of the segment gets a last time entry, under the same condition.
6. Where a full index refuses an entry, the load fails. An entry whose offset goes back makes the
   broker cut the segment to its base offset, which mostly empties it (``cut_to_base``).
7. A transaction marker that cannot be parsed ends the walk after its batch. A marker of another
   type makes the load fail. What else the producers' batches say is summarised
   (``producer_summary``).
8. The next offset is read back from the log as Kafka does (``log_end``), and so is the first
   batch's timestamp: a batch that recovery keeps can make Kafka throw there.

Source: LogSegment.recover, FileLogInputStream.nextBatch, OffsetIndex.append,
TimeIndex.maybeAppend (2.0 and later; the bytes have not changed since).
"""

from functools import lru_cache
from typing import Any

from kafka_segments.errors import InvalidTransactionError, UnreadableBatchError
from kafka_segments.kafka.index.segment import damages
from kafka_segments.kafka.index.segment import walk as walks
from kafka_segments.kafka.index.segment.cut_to_base import Left, truncated_to_base
from kafka_segments.kafka.index.segment.end_lookups import damage_at_end
from kafka_segments.kafka.index.segment.producer_summary import ProducerSummary, empty_summary
from kafka_segments.kafka.index.segment.recovered_segment import (
    TIME_ENTRY_BYTES,
    Damage,
    DamageKind,
    SegmentRecovery,
    joined,
    unread_segment,
)
from kafka_segments.kafka.index.segment.recovery_options import RecoveryOptions
from kafka_segments.kafka.index.segment.segment_walker import SegmentWalker, WalkedSegment
from kafka_segments.kafka.index.segment.walk import SegmentWalk
from kafka_segments.kafka.wire.crc import HAS_CPU_CRC
from kafka_segments.kafka.wire.header_layout import NO_TIMESTAMP
from kafka_segments.kafka.wire.reading import MAX_FILE_BYTES, FetchedAt, ReadInto

_UNREADABLE = (
    DamageKind.UNREADABLE_CUT,
    DamageKind.UNREADABLE_END,
    DamageKind.UNREADABLE_FIRST,
)
_of_the_walk = SegmentWalk.named(SegmentRecovery._fields)


class SegmentRecoverer:
    """Recovers segments one after another, with buffers that are made once."""

    def __init__(self, options: RecoveryOptions) -> None:
        self._options = options
        self._walker = SegmentWalker(check_crc=options.check_crc, digest_bits=options.digest_bits)
        by_instruction = options.by_instruction
        self._blank = walks.new_walk(
            index_interval_bytes=options.index_interval_bytes,
            segment_index_bytes=options.segment_index_bytes,
            check_crc=options.check_crc,
            by_instruction=HAS_CPU_CRC if by_instruction is None else by_instruction,
        )

    @property
    def index_interval_bytes(self) -> int:
        """Return the least bytes between two index entries."""
        return self._options.index_interval_bytes

    def recover(
        self,
        read_into: ReadInto,
        *,
        size_bytes: int,
        base_offset: int,
        fetched_at: FetchedAt | None = None,
        written_bytes: int | None = None,
    ) -> SegmentRecovery:
        """Recover one segment from its bytes; those that ``fetched_at`` gives are not copied.

        Behind ``written_bytes`` of the file there are only zeros, which are not read; None: that is
        not known.

        Raises:
            FileChangedError: the file ended before ``size_bytes``.
            OSError: whatever ``read_into`` raises.
        """
        if size_bytes > MAX_FILE_BYTES:
            message = f"{size_bytes} bytes, Kafka opens at most {MAX_FILE_BYTES}"
            damage = Damage(DamageKind.TOO_LARGE, 0, message)
            return unread_segment(size_bytes=size_bytes, base_offset=base_offset, damage=damage)
        walk = self._blank.begun(size_bytes=size_bytes, base_offset=base_offset)
        walked = self._walker.walk(read_into, walk, fetched_at if self._options.check_crc else None)
        if walk.status in walks.ENDS_OF_LOG:
            last = self._walker.last_time_entry(walk)
            walked = walked._replace(time_entries=joined([walked.time_entries, last]))
        goes_back = walk.status in (walks.OFFSET_INDEX_GOES_BACK, walks.TIME_INDEX_GOES_BACK)
        if goes_back and self._no_index(walk) is None:
            return self._cut_to_base(read_into, walk, walked)
        is_load = self._options.is_load
        written = size_bytes if written_bytes is None else min(written_bytes, size_bytes)
        found = self._no_index(walk) or self._damage(read_into, walk, written)
        found = damage_at_end(read_into, walk, found, walked.offset_entries, is_load=is_load)
        return _recovered(walk, walked, found, is_load=is_load)

    def producers(self, read_into: ReadInto, *, size_bytes: int) -> ProducerSummary:
        """Summarise the producers of batches that are sound, whatever their offsets.

        Raises:
            InvalidTransactionError: a marker that Kafka throws at.
            FileChangedError: the file ended before ``size_bytes``.
            OSError: whatever ``read_into`` raises.
        """
        walk = self._blank.begun(size_bytes=size_bytes, base_offset=0)
        walk.takes_any_offset = 1
        walk.index_interval_bytes = MAX_FILE_BYTES
        walked = self._walker.walk(read_into, walk)
        if walk.status in (walks.BAD_MARKER, walks.REFUSED_MARKER):
            raise InvalidTransactionError(walk.decoded_position, self._walker.marker_message)
        return walked.producers

    def _no_index(self, walk: SegmentWalk) -> Damage | None:
        """Return the damage where no index file can be made. Source: AbstractIndex."""
        options = self._options
        if options.finds_indexes or options.segment_index_bytes >= TIME_ENTRY_BYTES:
            return None
        message = (
            f"segment.index.bytes is {options.segment_index_bytes}, below one entry of"
            f" {TIME_ENTRY_BYTES} bytes: a broker makes no time index, and would not start"
        )
        return Damage(DamageKind.INDEX_FULL, 0, message)

    def _damage(self, read_into: ReadInto, walk: SegmentWalk, written: int) -> Damage | None:
        is_tail = damages.has_no_size(walk) and self._walker.only_zeros(
            read_into, walk.position, written
        )
        if is_tail:
            return damages.preallocated_tail(walk)
        return damages.damage_of(walk, self._walker.marker_message)

    def _cut_to_base(
        self, read_into: ReadInto, walk: SegmentWalk, walked: WalkedSegment
    ) -> SegmentRecovery:
        """Recover what is left of a segment that a broker cuts to its base offset."""
        left, unread = _truncated_to_base(read_into, walk, walked)
        found = self._left_of(read_into, left, walk.base_offset)
        damage = self._cut_damage(unread or found.damage, walk)
        is_kept = self._options.is_load or damage.kind == DamageKind.OFFSET_GOES_BACK
        return found._replace(
            truncated_bytes=walk.end - left.log_bytes,
            leader_epochs=walked.leader_epochs,
            producers=walked.producers,
            damage=damage,
            offset_entries=found.offset_entries if is_kept else None,
            time_entries=found.time_entries if is_kept else None,
        )

    def _cut_damage(self, of_rest: Damage | None, walk: SegmentWalk) -> Damage:
        """Return why a segment is cut to its base offset, or that Kafka throws at what is left."""
        cut = Damage(DamageKind.OFFSET_GOES_BACK, walk.position, damages.went_back(walk))
        if of_rest is None:
            return cut
        is_first = of_rest.kind == DamageKind.UNREADABLE_FIRST
        if is_first and self._options.is_load:
            return cut
        kind = of_rest.kind if is_first else DamageKind.UNREADABLE_CUT
        return Damage(kind, of_rest.position, f"{of_rest.message}{damages.with_also(cut)}")

    def _left_of(self, read_into: ReadInto, left: Left, base_offset: int) -> SegmentRecovery:
        """Measure what is left of a segment that was cut to its base offset."""
        walk = self._blank.begun(size_bytes=left.log_bytes, base_offset=base_offset)
        walk.index_interval_bytes = MAX_FILE_BYTES
        self._walker.walk(read_into, walk)
        walk.position = left.log_bytes
        walk.last_time_entry_timestamp = NO_TIMESTAMP
        walk.time_entry_count = len(left.time_entries)
        if len(left.time_entries):
            walk.last_time_entry_timestamp, walk.last_time_entry_offset = left.time_entries[-1]
        walk.max_timestamp = left.max_timestamp
        walk.offset_of_max_timestamp = left.offset_of_max_timestamp
        times = joined([left.time_entries, self._walker.last_time_entry(walk)])
        walk.offset_entry_count = len(left.offset_entries)
        walk.last_indexed_offset = left.end_target
        walk.last_indexed_position = left.end_start
        walk.has_wrapper_at_end = 1  # there may be one: the end is looked up
        is_load = self._options.is_load
        damage = damage_at_end(read_into, walk, None, left.offset_entries, is_load=is_load)
        kept = WalkedSegment(left.offset_entries, times, joined([]), empty_summary())
        return _recovered(walk, kept, damage, is_load=True)


def _truncated_to_base(
    read_into: ReadInto, walk: SegmentWalk, walked: WalkedSegment
) -> tuple[Left, Damage | None]:
    """Cut a segment to its base offset; nothing is left where Kafka throws at that."""
    base_offset = walk.base_offset
    try:
        left = truncated_to_base(
            read_into,
            size_bytes=walk.end,
            base_offset=base_offset,
            offset_entries=walked.offset_entries,
            time_entries=walked.time_entries,
            max_timestamp=walk.max_timestamp,
        )
    except UnreadableBatchError as error:
        none = joined([])
        nothing = Left(0, none, none, NO_TIMESTAMP, base_offset, base_offset, 0)
        message = f"Kafka throws when it cuts the segment: {error.reason}"
        return nothing, Damage(DamageKind.UNREADABLE_CUT, error.position, message)
    return left, None


def _recovered(
    walk: SegmentWalk, walked: WalkedSegment, damage: Damage | None, *, is_load: bool
) -> SegmentRecovery:
    kind = None if damage is None else damage.kind
    fails = kind in damages.FAILING or (kind in _UNREADABLE and not is_load)
    of_the_walk: dict[str, Any] = _of_the_walk(walk)
    if walk.uncounted_batch_count:
        of_the_walk["record_count"] = None
    return SegmentRecovery(
        **of_the_walk,
        valid_bytes=walk.position,
        truncated_bytes=walk.end - walk.position,
        magics=_bits(walk.magic_bits, -1),
        codecs=_bits(walk.codec_bits, 0),
        timestamp_types=_bits(walk.timestamp_type_bits, -1),
        leader_epochs=walked.leader_epochs,
        producer_count=len(walked.producers.producers),
        producers=walked.producers,
        offset_entries=None if fails else walked.offset_entries,
        time_entries=None if fails else walked.time_entries,
        damage=damage,
        offset_ranges=walked.ranges if damage is None and walk.position == walk.end else None,
    )


@lru_cache
def _bits(mask: int, first: int) -> tuple[int, ...]:
    """Return the numbers of the bits that are set; ``first`` is the lowest bit's."""
    return tuple(first + bit for bit in range(mask.bit_length()) if mask >> bit & 1)
