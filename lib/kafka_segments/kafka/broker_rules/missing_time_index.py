"""What brokers of each release, and KIP-33's texts, do about a segment without its time index.

Source: Log.loadSegments of 0.10.1 and 0.10.2, LogLoader.loadSegmentFiles, LogSegment.sanityCheck;
KIP-33, "Startup" and "Migration".
"""

from enum import StrEnum

from kafka_segments.kafka.index.formats.kip33_index import WithoutTimestamps

Release = tuple[int, int, int]
TIME_INDEX_CAME = (0, 10, 1)
MISSING_IS_EMPTIED_FROM = (0, 10, 2)


class MissingTimeIndex(StrEnum):
    """What happens at start to a segment whose ``.timeindex`` is not there."""

    NOT_USED = "not_used"
    """No time indexes before 0.10.1."""
    RECOVERED = "recovered"
    """The ``.index`` is missing too: the segment is recovered, both are rebuilt."""
    FULL_OF_ZEROS = "full_of_zeros"
    """0.10.1: made at full size with no entries; a hard stop then leaves zeros that count."""
    EMPTY = "empty"
    """An empty file; the segment's largest timestamp is its file's mtime, for retention too."""


def on_missing_time_index(
    release: Release, *, has_offset_index: bool, is_active: bool, is_clean: bool
) -> MissingTimeIndex:
    """Return what a broker of a release does at start.

    1. Without the ``.index`` the segment is recovered, whatever else is there.
    2. After a hard stop the active segment is recovered: the recovery point lies in it. (A closed
       one is too, where the recovery point lies below its end: see ``startup``.)
    3. From 0.10.2 on the missing file becomes an empty one. It is never rebuilt; from 2.3 on not
       even looked at.
    """
    if release < TIME_INDEX_CAME:
        return MissingTimeIndex.NOT_USED
    if not has_offset_index or (is_active and not is_clean):
        return MissingTimeIndex.RECOVERED
    if release < MISSING_IS_EMPTIED_FROM:
        return MissingTimeIndex.FULL_OF_ZEROS
    return MissingTimeIndex.EMPTY


class Kip33Text(StrEnum):
    """The two places of KIP-33 that speak of missing time indexes."""

    STARTUP = "startup"
    MIGRATION = "migration"


def kip33_missing_time_index(text: Kip33Text, *, is_active: bool) -> WithoutTimestamps:
    """Return what the KIP's texts put into the time index that they create.

    The text on startup: (mtime -> base offset of the next segment). The text on migration:
    (mtime -> offset of the first message). The active segment gets an empty file in both. Shipped
    Kafka does neither.
    """
    if is_active:
        return WithoutTimestamps.EMPTY
    if text is Kip33Text.STARTUP:
        return WithoutTimestamps.MTIME_NEXT
    return WithoutTimestamps.MTIME_FIRST


def kip33_largest_timestamp_needs_scan(*, is_clean: bool, is_active: bool) -> bool:
    """Tell whether KIP-33 scans a segment at start for its largest timestamp.

    After a clean stop the last time entry has it; after a hard stop the active segment is scanned
    to its end. Time indexes are rebuilt only then.
    """
    return is_active and not is_clean
