"""Offsets that are in no segment of a log, though segments before and after them are there.

Compaction alone leaves such a gap. It notes each log that it cleaned in the log directory's
``cleaner-offset-checkpoint``, with the offset up to which it came: behind that a segment is
missing. Without it that is not known; a segment in front of the gap that has fewer records than
offsets was compacted, here or on the broker it was copied from, and so is the log. Offsets below
the log's start are no gap.

Source: LogCleanerManager.doneCleaning; LogLoader.loadSegmentFiles compares no segments (4.3.1).
"""

from typing import NamedTuple

from kafka_segments.kafka.text.names import LOG_SUFFIX, METADATA_TOPIC, file_name

COMPACTED_BY_KAFKA = frozenset({"__consumer_offsets", "__transaction_state"})
"""Topics that Kafka itself makes as compacted ones.

Source: GroupCoordinator.groupMetadataTopicConfigs, TransactionCoordinator, TransactionLog.
"""
NEVER_COMPACTED = frozenset({METADATA_TOPIC, "__share_group_state", "__remote_log_metadata"})
"""Topics of which only the beginnings are removed.

Source: KafkaRaftLog, ShareCoordinatorService.shareGroupStateTopicConfigs,
TopicBasedRemoteLogMetadataManager.
"""


IN_NO_SEGMENT = "offsets %d to %d are in no segment: %s"
A_SEGMENT_IS_MISSING = "a segment is missing"
"""What is said of offsets, and why; gets the first and the last one."""

LACKS_END = (
    "the log ends at offset %d, below the high watermark %d that is checkpointed for it: its last"
    " segments are missing or damaged"
)
"""What is said of a log that ends below its high watermark; gets both offsets.

A checkpoint is never ahead of its log but where records are missing.

Source: ReplicaManager.checkpointHighWatermarks.
"""


class Gap(NamedTuple):
    """Offsets that are missing: the first one, and the one behind the last."""

    first: int
    end: int

    @property
    def file(self) -> str:
        """Return the name that the missing segment would have, or that the empty one has."""
        return file_name(self.first, LOG_SUFFIX)

    def found(
        self, *, is_empty: bool = False, is_folder: bool = False, is_certain: bool = True
    ) -> str:
        """Return what was found.

        Args:
            is_empty: a segment of that name is there, without a batch.
            is_folder: a folder of that name is there.
            is_certain: the log is known not to be compacted.
        """
        reason = f"{self.file} has no batch" if is_empty else A_SEGMENT_IS_MISSING
        if is_folder:
            reason = f"{self.file} is a folder"
        if not is_certain:
            reason += ", or compaction removed all of its records: no cleaner-offset-checkpoint"
            reason += " is at hand that tells"
        return IN_NO_SEGMENT % (self.first, self.end - 1, reason)


class Cleaned(NamedTuple):
    """What is known of a log's compaction on its broker.

    Attributes:
        is_noted: whether the log directory's cleaner-offset-checkpoint is at hand.
        offset: up to where the cleaner came, by that; None: it does not name the log.
    """

    is_noted: bool
    offset: int | None = None


def is_gap_told(
    topic: str, base_offset: int, next_base: int, *, records: int | None, offsets: int, by: Cleaned
) -> bool | None:
    """Tell whether a gap is lost records: True, or None where it is not certain.

    1. It is in topics that are never compacted.
    2. The cleaner has made no gap that ends behind where it came.
    3. A replica copies what the cleaner of another broker left: there the segment in front of the
       gap has fewer records than offsets, too, though the cleaner was not at it here.
    4. Where records were not counted, the checkpoint alone tells, but not of topics that each
       broker compacts.

    Args:
        topic: the log's.
        base_offset: of the segment in front of the gap.
        next_base: of the segment behind it.
        records: how many the segment in front of the gap has; None: not counted.
        offsets: how many offsets, from its base offset to its end.
        by: what is known of the cleaner.
    """
    if topic in NEVER_COMPACTED:
        return True
    if by.offset is not None and next_base <= by.offset:
        return False
    was_cleaned = by.offset is not None and base_offset < by.offset
    if records == offsets or was_cleaned:
        return True if by.is_noted else None
    return records is None and by.is_noted and topic not in COMPACTED_BY_KAFKA


class ToldGap(NamedTuple):
    """A gap behind a segment, and what was found, in words."""

    gap: Gap
    found: str


def told_gap(
    topic: str,
    base_offset: int,
    next_offset: int | None,
    next_base: int | None,
    *,
    records: int | None,
    by: Cleaned,
    log_start: int,
) -> ToldGap | None:
    """Return the gap behind a sound segment, if it is one to be told; else None.

    Args:
        topic: the log's.
        base_offset: the segment's.
        next_offset: see ``gap_behind``.
        next_base: see ``gap_behind``.
        records: see ``is_gap_told``.
        by: see ``is_gap_told``.
        log_start: the log's first offset.
    """
    gap = gap_behind(next_offset, next_base, log_start=log_start)
    if gap is None or next_offset is None:
        return None
    offsets = next_offset - base_offset
    is_told = is_gap_told(topic, base_offset, gap.end, records=records, offsets=offsets, by=by)
    if is_told is False:
        return None
    is_empty = gap.first == base_offset
    return ToldGap(gap, gap.found(is_empty=is_empty, is_certain=is_told is not None))


def gap_behind(next_offset: int | None, next_base: int | None, *, log_start: int = 0) -> Gap | None:
    """Return the gap between a segment and the next one; None: there is none, or it is not known.

    Args:
        next_offset: the offset behind the segment's last batch; None: it was not read to its end.
        next_base: the next segment's base offset; None: there is none.
        log_start: the log's first offset.
    """
    if next_offset is None or next_base is None or next_base <= max(next_offset, log_start):
        return None
    return Gap(max(next_offset, log_start), next_base)
