"""The record of a walk over one segment, which Python and the kernel share."""

from kafka_segments.kafka.index.segment.recovered_segment import (
    OFFSET_ENTRY_BYTES,
    TIME_ENTRY_BYTES,
)
from kafka_segments.kafka.wire import ends
from kafka_segments.kafka.wire.header_layout import ABSENT, NO_TIMESTAMP
from kafka_segments.kafka.wire.shared_record import SharedRecord, Slot

# Values of ``status``, beside those of ``ends``.
SOUND = ends.SOUND
OFFSET_OVERFLOW = 6
OFFSET_INDEX_FULL = 7
TIME_INDEX_FULL = 8
OFFSET_INDEX_GOES_BACK = 9
TIME_INDEX_GOES_BACK = 10
WANTS_EPOCH_SPACE = 11
WANTS_MARKER = 12  # the control batch at ``position``, ``found`` bytes long, is to be decoded
BAD_MARKER = 13
REFUSED_MARKER = 14
READ_ON = 15  # the walk has not ended: it wants the next buffer


NOWHERE = -1  # a position that there is not

ENDS_OF_LOG = (  # the batches before ``position`` stay, with a last time entry
    ends.AT_END,
    ends.PARTIAL_BATCH,
    ends.BAD_SIZE,
    ends.BAD_SIZE_FOR_MAGIC,
    ends.BAD_CRC,
    BAD_MARKER,
)


class SegmentWalk(SharedRecord):
    """A walk over one segment: what it is asked, where it stands, what it has found."""

    # What the walk is asked to do.
    end = Slot()  # bytes of the file
    base_offset = Slot()
    index_interval_bytes = Slot()
    max_offset_entries = Slot()
    max_time_entries = Slot()
    checks_crc = Slot()  # 1 or 0, as all flags here
    by_instruction = Slot()  # CRC-32C by the CPU's instruction
    takes_any_offset = Slot()  # offsets need not fit the base offset

    # Where it stands and how it ended.
    position = Slot()  # of the batch under the walk; when the walk has ended: valid bytes
    body_position = Slot()  # the next byte to checksum of a batch that spans buffers, -1: none
    body_crc = Slot()  # the checksum's register up to there
    status = Slot()
    found = Slot()  # what a failed check found ...
    expected = Slot()  # ... and what it expected

    # The index entries made so far.
    offset_entry_count = Slot()
    last_indexed_offset = Slot()
    last_indexed_position = Slot()
    time_entry_count = Slot()
    last_time_entry_timestamp = Slot()
    last_time_entry_offset = Slot()
    has_wrapper_at_end = Slot()  # 1: a compressed message v0 or v1 is at or after its last entry

    # What the batches say; timestamps in ms.
    first_batch_timestamp = Slot()
    has_bad_first_magic = Slot()  # the first batch's magic is below 0
    max_timestamp = Slot()
    offset_of_max_timestamp = Slot()
    min_timestamp = Slot()
    next_offset = Slot()
    producer_end_offset = Slot()  # the next offset after the last batch of magic 2 or more
    batch_count = Slot()
    record_count = Slot()
    max_batch_bytes = Slot()  # of a whole batch, its offset and length included
    uncounted_batch_count = Slot()  # compressed messages v0 or v1: their records are not counted
    control_batch_count = Slot()
    transactional_batch_count = Slot()
    magic_bits = Slot()  # bit magic + 1, for -1 to 3
    codec_bits = Slot()
    timestamp_type_bits = Slot()  # bit 0 none, 1 CreateTime, 2 LogAppendTime
    latest_epoch = Slot()
    went_back_position = Slot()  # of the first batch whose offsets go back, -1: none
    went_back_offset = Slot()

    # A marker that was decoded outside the kernel, and what it is.
    decoded_position = Slot()  # -1: none
    decoded_end = Slot()
    decoded_kind = Slot()
    decoded_coordinator_epoch = Slot()
    decoded_timestamp = Slot()

    # How many rows are in the outputs.
    new_offset_entries = Slot()
    new_time_entries = Slot()
    new_epochs = Slot()
    new_producer_batches = Slot()

    def begun(self, *, size_bytes: int, base_offset: int) -> "SegmentWalk":
        """Return a walk like this one, which has not begun, at byte 0 of a segment."""
        walk = self.copy()
        walk.end = size_bytes
        walk.base_offset = walk.offset_of_max_timestamp = base_offset
        walk.next_offset = walk.producer_end_offset = base_offset
        return walk


def new_walk(
    *,
    index_interval_bytes: int,
    segment_index_bytes: int,
    check_crc: bool,
    by_instruction: bool,
) -> SegmentWalk:
    """Return the record of walks by these settings (``begun``)."""
    walk = SegmentWalk()
    walk.index_interval_bytes = index_interval_bytes
    walk.max_offset_entries = segment_index_bytes // OFFSET_ENTRY_BYTES
    walk.max_time_entries = segment_index_bytes // TIME_ENTRY_BYTES
    walk.checks_crc = check_crc
    walk.by_instruction = by_instruction
    walk.first_batch_timestamp = walk.last_time_entry_timestamp = NO_TIMESTAMP
    walk.max_timestamp = walk.min_timestamp = NO_TIMESTAMP
    walk.latest_epoch = ABSENT
    walk.body_position = walk.went_back_position = walk.decoded_position = NOWHERE
    return walk
