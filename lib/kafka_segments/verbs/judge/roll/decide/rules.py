"""The rules by which brokers roll segments, by release and by the texts of KIP-33."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Self

from kafka_segments.errors import UsageError

SIZE, TIME, INDEX_FULL = "segment_bytes", "segment_ms", "offset_index_full"
TIME_INDEX_FULL, OVERFLOW = "time_index_full", "offset_overflow"
FIRST_BATCH, FIRST_MESSAGE = "first-batch", "first-message"
LARGEST, CREATED = "largest-timestamp", "create-time"
TIME_RULES = (FIRST_BATCH, FIRST_MESSAGE, LARGEST, CREATED)


@dataclass(frozen=True)
class RollRules:
    """The rules of one release.

    Attributes:
        time: what the time rule counts from, and to. ``first-batch``: from the greatest timestamp
            of the first batch to that of the append (0.10.1 and later). ``first-message``: from
            the first message's to the append's, as KIP-33 was accepted. ``largest-timestamp``:
            from the greatest seen to now, the first text of KIP-33. ``create-time``: from the
            segment's creation to now (before 0.10.1). Without a timestamp ``create-time`` holds.
        has_time_index: a full time index rolls the segment (0.10.1 and later).
        has_overflow: an offset out of the index's reach rolls the segment (0.10.2 and later).
        has_compaction_lag: max.compaction.lag.ms shortens segment.ms (2.3 and later).

    Source: LogSegment.shouldRoll and timeWaitedForRoll of the releases, KIP-33.
    """

    time: str = FIRST_BATCH
    has_time_index: bool = True
    has_overflow: bool = True
    has_compaction_lag: bool = True

    @classmethod
    def of(cls, release: tuple[int, ...], time: str | None = None) -> Self:
        """Return the rules of a release such as (4, 3), with the time rule that is named, if any.

        Raises:
            UsageError: no rule of that name, or a release before 0.8.
        """
        if release < (0, 8):
            raise UsageError(f"release {'.'.join(map(str, release))}: 0.8 and later are known")
        if time is not None and time not in TIME_RULES:
            raise UsageError(f"rule {time}: one of {', '.join(TIME_RULES)} expected")
        return cls(
            time=time or (FIRST_BATCH if release >= (0, 10, 1) else CREATED),
            has_time_index=release >= (0, 10, 1),
            has_overflow=release >= (0, 10, 2),
            has_compaction_lag=release >= (2, 3),
        )


class IndexSource(StrEnum):
    """Where the entries of a segment's indexes were counted."""

    BESIDE = "beside"
    BUILT = "built"
    RECOUNTED = "recounted"
    BUILT_OTHERWISE = "built_otherwise"
