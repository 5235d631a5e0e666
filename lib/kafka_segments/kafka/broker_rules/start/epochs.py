"""What a start does with a log's leader epochs and producer snapshots, by their offsets alone.

1. A start takes leader epochs from their file. It reads no batches for them, but of the segments
   that it recovers. Entries that begin at the log's end or behind it are dropped; one that begins
   at the end belongs to a leader that wrote nothing yet.
2. Of the snapshots at no segment's base offset the newest is kept, if it lies behind the last
   segment's base, as the one that a clean stop writes. So a sound broker's starts delete some.
3. Snapshots at or below the log's start, and those behind its end, are deleted.
4. Those behind the base offset of a segment that is recovered are deleted, and made anew.

Source: LogLoader.load, LeaderEpochFileCache.truncateFromEnd, ProducerStateManager
.removeStraySnapshots, truncateAndReload (4.3.1).
"""

from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

from kafka_segments.kafka.text.checkpoints import EpochStart


class LogAtStart(NamedTuple):
    """A log as its start finds it.

    Attributes:
        bases: base offsets of its segments, rising.
        snapshots: offsets of its producer snapshots.
        start_offset: the noted log start; 0: none is noted.
        end_offset: where it ends once it is loaded; None: not known. Where segments are recovered
            it may end before.
        recovered_from: base offset of the first segment that is recovered after an unclean stop;
            None: none is.
    """

    bases: tuple[int, ...] = ()
    snapshots: tuple[int, ...] = ()
    start_offset: int = 0
    end_offset: int | None = None
    recovered_from: int | None = None


class SnapshotFate(StrEnum):
    """What becomes of a producer snapshot."""

    KEPT = "kept"
    MADE_ANEW = "made anew"
    STRAY = "at no segment's base offset, and not the newest such behind the last segment's"
    BELOW_START = "at or below the log's first offset"
    BEYOND_END = "behind the log's end"


def epochs_behind(epochs: Sequence[EpochStart], log: LogAtStart) -> list[EpochStart]:
    """Return the entries that begin behind the log's end, which a start drops (rule 1)."""
    end = log.end_offset
    return [] if end is None else [epoch for epoch in epochs if epoch.start_offset > end]


def snapshot_fate(offset: int, log: LogAtStart) -> SnapshotFate:
    """Say what becomes of the snapshot at an offset (rules 2 to 4)."""
    if not log.bases:
        return SnapshotFate.KEPT
    if log.recovered_from is not None and offset > log.recovered_from:
        return SnapshotFate.MADE_ANEW
    strays = set(log.snapshots) - set(log.bases)
    if offset in strays and (offset < max(strays) or offset < log.bases[-1]):
        return SnapshotFate.STRAY
    if offset <= max(log.start_offset, log.bases[0]):
        return SnapshotFate.BELOW_START
    if log.end_offset is not None and offset > log.end_offset:
        return SnapshotFate.BEYOND_END
    return SnapshotFate.KEPT
