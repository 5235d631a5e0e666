"""The account of a log directory: its bytes by what they are, and by topic."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import NamedTuple

from kafka_segments.verbs.find.disk.decide.growth import DAY_MS, SPANS_MS, Growth
from kafka_segments.verbs.find.disk.decide.kinds import What

DAYS = 7


@dataclass
class Account:
    """What bytes of one kind take below a log directory.

    Attributes:
        log_dir: The log directory.
        what: What the bytes are.
        files: How many files, or folders.
        used_bytes: Of their blocks.
        size_bytes: Of their sizes; of preallocated files more than of their blocks.
        shared_bytes: Blocks of files that have another name: without these names none is freed.
        oldest_ms: When the first of them was renamed or changed, in ms since 1970.
    """

    log_dir: str
    what: What
    files: int = 0
    used_bytes: int = 0
    size_bytes: int = 0
    shared_bytes: int = 0
    oldest_ms: int | None = None


@dataclass
class TopicUse:
    """What a topic takes below a log directory, all of its files together.

    ``growth``: what was written of it within each of ``SPANS_MS``.
    """

    log_dir: str
    topic: str
    partitions: int = 0
    segments: int = 0
    used_bytes: int = 0
    growth: tuple[Growth, ...] = (Growth(),) * len(SPANS_MS)


class DayGrowth(NamedTuple):
    """What a topic got on a day of UTC, by the tables, and is still there.

    Attributes:
        log_dir: The log directory.
        topic: The topic.
        day_ms: When the day begins, in ms since 1970.
        written_bytes: Of the segments whose last record is of that day.
        by_file_bytes: The part of it that no record's timestamp dates: the file's time does.
    """

    log_dir: str
    topic: str
    day_ms: int
    written_bytes: int
    by_file_bytes: int


class BlockedLog(NamedTuple):
    """What has expired of a log, and is kept because of an older segment."""

    log_dir: str
    topic: str
    partition: int
    blocked_by_base_offset: int
    segments: int
    size_bytes: int


@dataclass(frozen=True)
class TableGrowth:
    """What the tables say of the growth of log directories.

    Attributes:
        warehouse: Where the tables lie.
        built_ms: When the last build of each log directory began that the tables know.
        unknown: Why the tables do not tell of one, by log directory.
        first_day_ms: When the first of ``DAYS`` days begins; None: no log directory is known.
        days: What each topic got on each day; one on which it got nothing is no row.
        blocked: What is kept by older segments, the most bytes first.
        decided_ms: When `retention` decided; None: it has not.
    """

    warehouse: str
    built_ms: dict[str, int]
    unknown: dict[str, str]
    first_day_ms: int | None
    days: list[DayGrowth]
    blocked: list[BlockedLog]
    decided_ms: int | None

    def day_starts(self) -> list[int]:
        """Return when each day begins."""
        first = self.first_day_ms
        return [] if first is None else [first + k * DAY_MS for k in range(DAYS)]

    def bytes_by_day(self, log_dirs: Collection[str]) -> list[int]:
        """Return what log directories got together on each day."""
        by_day = dict.fromkeys(self.day_starts(), 0)
        for one in self.days:
            if one.log_dir in log_dirs:
                by_day[one.day_ms] += one.written_bytes
        return list(by_day.values())
