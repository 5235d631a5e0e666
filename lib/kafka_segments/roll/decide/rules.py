"""When a broker rolls a segment, by release and by the texts of KIP-33."""

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
        time: What the time rule counts from and to. ``first-batch``: from the first batch's
            greatest timestamp to the append's (0.10.1 and later). ``first-message``: KIP-33 as
            accepted, from the first message's. ``largest-timestamp``: KIP-33's first text, from
            the greatest seen to now. ``create-time``: from the segment's creation to now
            (before 0.10.1); the others fall back to it where there is no timestamp.
        has_time_index: A full time index rolls (0.10.1 and later).
        has_overflow: An offset out of the index's reach rolls (0.10.2 and later).
        has_compaction_lag: max.compaction.lag.ms shortens segment.ms (2.3 and later).

    Source: LogSegment.shouldRoll and timeWaitedForRoll of the releases, KIP-33.
    """

    time: str = FIRST_BATCH
    has_time_index: bool = True
    has_overflow: bool = True
    has_compaction_lag: bool = True

    @classmethod
    def of(cls, release: tuple[int, ...], time: str | None = None) -> Self:
        """Give the rules of a release such as (4, 3), with another time rule where one is named.

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
