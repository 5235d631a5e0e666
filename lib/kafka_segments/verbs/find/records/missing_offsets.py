"""Offsets of a log that are in none of its segments: an answer may have been there."""

from collections.abc import Mapping, Sequence

from kafka_segments.files.folders.listing_rows import Listed
from kafka_segments.files.folders.log_dir_folder import NotedOffsets, noted_offsets
from kafka_segments.files.folders.walk import ListedSegment
from kafka_segments.kafka.broker_rules.gaps import LACKS_END, Cleaned, told_gap
from kafka_segments.kafka.text.names import LOG_SUFFIX, file_name
from kafka_segments.verbs.find.records.decide import Query


class NotedLogs:
    """What the brokers of log directories noted of their logs.

    Args:
        log_dirs: the rows of the directories.
    """

    def __init__(self, log_dirs: Sequence[Listed]) -> None:
        self._by_uri: dict[str, tuple[bool, NotedOffsets]] = {
            row.log_dir: (bool((row.meta or {}).get("has_cleaner_offsets")), noted_offsets(row))
            for row in log_dirs
            if row.log_dir is not None
        }

    def of(self, segment: ListedSegment) -> tuple[bool, Mapping[str, int]]:
        """Return whether the cleaner's checkpoint is at hand, and what is noted of a log."""
        log_dir = segment.path.rsplit("/", 2)[0]
        is_noted, offsets = self._by_uri.get(log_dir, (False, {}))
        return is_noted, offsets.get((segment.topic, segment.partition), {})


def may_be_missing(segment: ListedSegment, query: Query, noted: Mapping[str, int]) -> bool:
    """Tell whether offsets that are asked for may lie behind a segment, and in no other.

    Of an object of tiered storage it is not asked.
    """
    if segment.name != file_name(segment.base_offset, LOG_SUFFIX):
        return False
    behind = segment.next_base_offset
    if behind is None:
        behind = noted.get("high_watermark", 0)
    return segment.base_offset <= query.high_offset and behind > query.low_offset


def missing_behind(
    segment: ListedSegment,
    next_offset: int | None,
    records: int,
    query: Query,
    noted: tuple[bool, Mapping[str, int]],
) -> str | None:
    """Return in words which offsets that are asked for are missing behind a segment; None: none.

    Args:
        segment: One that was read to its end.
        next_offset: The offset behind its last batch; None: it has none.
        records: How many it has, those of control batches too.
        query: What is asked for.
        noted: See ``NotedLogs.of``.
    """
    is_noted, offsets = noted
    start = offsets.get("log_start_offset", 0)
    end = segment.base_offset if next_offset is None else next_offset
    path = segment.path
    if segment.next_base_offset is None:
        high_watermark = offsets.get("high_watermark", 0)
        is_asked = max(end, start) <= query.high_offset and high_watermark > query.low_offset
        if high_watermark > max(end, start) and is_asked:
            return f"{path}: not known: {LACKS_END % (end, high_watermark)}"
        return None
    told = told_gap(
        segment.topic,
        segment.base_offset,
        end,
        segment.next_base_offset,
        records=records,
        by=Cleaned(is_noted, offsets.get("cleaner_offset")),
        log_start=start,
    )
    if told is None or told.gap.first > query.high_offset or told.gap.end <= query.low_offset:
        return None
    return f"{path.rpartition('/')[0]}/{told.gap.file}: not known: {told.found}"
