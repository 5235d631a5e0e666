"""What the cleaner makes of a compacted log: where it begins, how far it goes, which one is next.

1. It begins at the log's entry in ``cleaner-offset-checkpoint``; without one at the log's start,
   and also where the entry lies before the start or behind the end.
2. It goes no further than the active segment, the last stable offset (the high watermark, or an
   open transaction before it), and the first segment younger than ``min.compaction.lag.ms``.
3. The ratio is that of the bytes up to there to these and the clean ones. A log is cleaned if its
   ratio is above ``min.cleanable.dirty.ratio``, or if its first dirty batch is older than
   ``max.compaction.lag.ms`` and there is something to clean.
4. Of these the one with the greatest ratio is next.

Source: LogCleanerManager.grabFilthiestCompactedLog, cleanableOffsets, calculateCleanableBytes,
maxCompactionDelay; LogToClean; LogSegments.values (4.3.1).
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple, TypeVar

_MAX_INT64 = 2**63 - 1
_Key = TypeVar("_Key")


class CleanerConfig(NamedTuple):
    """The settings of a topic that its cleaning depends on; defaults are Kafka's."""

    min_cleanable_dirty_ratio: float = 0.5
    min_compaction_lag_ms: int = 0
    max_compaction_lag_ms: int = _MAX_INT64
    delete_retention_ms: int = 86_400_000

    @property
    def needs_timestamps(self) -> bool:
        """Tell whether it depends on the timestamps of segments."""
        return self.min_compaction_lag_ms > 0

    @property
    def needs_first_batches(self) -> bool:
        """Tell whether it depends on the first batch of dirty segments."""
        return self.max_compaction_lag_ms < _MAX_INT64


class CleanedSegment(NamedTuple):
    """A segment. Timestamps are in ms; None: not asked for.

    ``largest_timestamp``: of its records, or where these have none of its file.
    ``first_batch_timestamp``: the greatest one of its first batch.
    """

    base_offset: int
    size_bytes: int
    largest_timestamp: int | None = None
    first_batch_timestamp: int | None = None


class CleanedLog(NamedTuple):
    """A log as the cleaner finds it.

    Attributes:
        segments: In order; there is one at least.
        start: Its first offset.
        end: The offset behind its last one.
        high_watermark: As a replica knows it.
        first_unstable: Where the first open transaction begins; None: none is open.
        checkpoint: Its entry in ``cleaner-offset-checkpoint``; None: there is none.
    """

    segments: Sequence[CleanedSegment]
    start: int
    end: int
    high_watermark: int
    first_unstable: int | None
    checkpoint: int | None


class Checkpoint(StrEnum):
    """What a log's entry in ``cleaner-offset-checkpoint`` is."""

    SOUND = "sound"
    NONE = "none"
    BEFORE_START = "before the log's start"
    BEHIND_END = "behind the log's end"


class Bound(StrEnum):
    """What keeps the cleaner from going further."""

    ACTIVE = "the active segment"
    TRANSACTION = "an open transaction"
    HIGH_WATERMARK = "the high watermark"
    YOUNG = "min.compaction.lag.ms"


class Cleanable(NamedTuple):
    """What of a log can be cleaned.

    Attributes:
        checkpoint: What its entry in the checkpoint is.
        first_dirty: The offset from which on it is dirty.
        until: The offset that the cleaner does not go beyond.
        bound: Why.
        end: The first offset of the segment with that one: it cleans whole segments.
        clean_bytes: Of the segments that begin before the first dirty offset.
        cleanable_bytes: Of those from there on that can be cleaned.
        dirty_bytes: Of all those that begin there or later, or have dirty offsets.
        overdue_ms: For how long the first dirty batch has been older than max.compaction.lag.ms.
    """

    checkpoint: Checkpoint
    first_dirty: int
    until: int
    bound: Bound
    end: int
    clean_bytes: int
    cleanable_bytes: int
    dirty_bytes: int
    overdue_ms: int

    @property
    def is_empty(self) -> bool:
        """Tell whether there is neither a clean nor a cleanable byte: the log is passed over."""
        return self.clean_bytes + self.cleanable_bytes == 0

    @property
    def ratio(self) -> float:
        """Return the share of what can be cleaned."""
        total = self.clean_bytes + self.cleanable_bytes
        return self.cleanable_bytes / total if total else 0.0

    def is_due(self, config: CleanerConfig) -> bool:
        """Tell whether the log is one of those that are cleaned."""
        if self.is_empty:
            return False
        is_overdue = self.overdue_ms > 0 and self.cleanable_bytes > 0
        return is_overdue or self.ratio > config.min_cleanable_dirty_ratio


def cleanable(log: CleanedLog, config: CleanerConfig, *, now_ms: int) -> Cleanable:
    """Say what of a log can be cleaned at a moment."""
    checkpoint, first_dirty = _first_dirty(log)
    segments = log.segments
    active = segments[-1].base_offset
    dirty = _inactive_from(segments, first_dirty)
    bounds = {Bound.ACTIVE: active, Bound.HIGH_WATERMARK: log.high_watermark}
    if log.first_unstable is not None and log.first_unstable < log.high_watermark:
        bounds = {Bound.ACTIVE: active, Bound.TRANSACTION: log.first_unstable}
    if config.min_compaction_lag_ms > 0:
        young = _first_young(dirty, now_ms - config.min_compaction_lag_ms)
        bounds |= {} if young is None else {Bound.YOUNG: young}
    bound = min(bounds, key=lambda one: bounds[one])  # the first of equals
    until = max(first_dirty, bounds[bound])
    stop = _inactive_from(segments, until)
    end = stop[0].base_offset if stop else active
    return Cleanable(
        checkpoint,
        first_dirty,
        until,
        bound,
        end,
        sum(one.size_bytes for one in segments if one.base_offset < first_dirty),
        sum(one.size_bytes for one in segments_between(segments, min(first_dirty, end), end)),
        sum(one.size_bytes for one in segments_between(segments, first_dirty, _MAX_INT64)),
        _overdue_ms(dirty, config, now_ms),
    )


def _first_dirty(log: CleanedLog) -> tuple[Checkpoint, int]:
    if log.checkpoint is None:
        return Checkpoint.NONE, log.start
    if log.checkpoint < log.start:
        return Checkpoint.BEFORE_START, log.start
    if log.checkpoint > log.end:
        return Checkpoint.BEHIND_END, log.start
    return Checkpoint.SOUND, log.checkpoint


def segments_between(
    segments: Sequence[CleanedSegment], start: int, end: int
) -> Sequence[CleanedSegment]:
    """Return the segments from that of an offset on, up to those that begin before another."""
    if start == end:
        return ()
    bases = [one.base_offset for one in segments]
    return segments[max(bisect_right(bases, start) - 1, 0) : bisect_left(bases, end)]


def _inactive_from(segments: Sequence[CleanedSegment], start: int) -> Sequence[CleanedSegment]:
    active = segments[-1].base_offset
    return () if start > active else segments_between(segments, start, active)


def _first_young(dirty: Iterable[CleanedSegment], since_ms: int) -> int | None:
    found = (
        one.base_offset
        for one in dirty
        if one.largest_timestamp is not None and one.largest_timestamp > since_ms
    )
    return next(found, None)


def _overdue_ms(dirty: Iterable[CleanedSegment], config: CleanerConfig, now_ms: int) -> int:
    first = [one.first_batch_timestamp or 0 for one in dirty]
    earliest = min((one for one in first if one > 0), default=_MAX_INT64)
    return max(now_ms - config.max_compaction_lag_ms - earliest, 0)


def next_cleaned(logs: Mapping[_Key, tuple[Cleanable, CleanerConfig]]) -> list[_Key]:
    """Return the log that is cleaned next; of several that are as dirty, any may be."""
    due = {key: found.ratio for key, (found, config) in logs.items() if found.is_due(config)}
    greatest = max(due.values(), default=0.0)
    return [key for key, ratio in due.items() if ratio == greatest]


def keys_of_a_pass(dedupe_buffer_bytes: int, threads: int, load_factor: float) -> int:
    """Return how many keys a cleaner thread can hold while it makes a pass.

    An entry takes 24 bytes: a hash of 16, and the offset. Source: SkimpyOffsetMap, LogCleaner.
    """
    of_thread = min(dedupe_buffer_bytes // max(threads, 1), 2**31 - 1)
    return int((of_thread // 24) * load_factor)
