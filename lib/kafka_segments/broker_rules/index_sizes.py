"""How large an index gets by how fine it is: figures of real segments, and of the texts.

Source: KIP-33 (an entry every second or minute, 3,500 partitions); an article on sparse indexes
(an entry every 100 messages, or every 4096 bytes).
"""

from collections.abc import Sequence
from typing import NamedTuple

from kafka_segments.index.recovery import OFFSET_ENTRY_BYTES, TIME_ENTRY_BYTES

GIB = 2**30
DAY_MS = 86_400_000
PARTITIONS = 3_500


class EntryCounts(NamedTuple):
    """How many entries a segment has in each kind of index; ``log`` names its partition."""

    log: str
    log_bytes: int
    seconds: int
    minutes: int
    offset_entries: int
    time_entries: int
    every_100: int


class IndexSize(NamedTuple):
    """The size of one kind of index.

    Means of the segments measured; ``bytes_per_gib`` is of log, ``bytes_of_partitions`` of
    ``PARTITIONS`` logs as large as the mean of those measured.
    """

    granularity: str
    entry_bytes: int
    entries_per_segment: float
    bytes_per_segment: float
    bytes_per_gib: float
    bytes_of_partitions: float


def sizes_by_granularity(segments: Sequence[EntryCounts]) -> list[IndexSize]:
    """Give the sizes of each kind of index, the finest by the clock first.

    Raises:
        ValueError: no segment, or none with a byte in it.
    """
    log_bytes = sum(segment.log_bytes for segment in segments)
    if not log_bytes:
        raise ValueError("no segments to measure, or only empty ones")
    logs = len({segment.log for segment in segments})
    kinds = {
        "second": (TIME_ENTRY_BYTES, [segment.seconds for segment in segments]),
        "minute": (TIME_ENTRY_BYTES, [segment.minutes for segment in segments]),
        "4096 bytes, .index": (OFFSET_ENTRY_BYTES, [s.offset_entries for s in segments]),
        "4096 bytes, .timeindex": (TIME_ENTRY_BYTES, [s.time_entries for s in segments]),
        "every 100 messages": (OFFSET_ENTRY_BYTES, [segment.every_100 for segment in segments]),
    }
    return [
        IndexSize(
            granularity=granularity,
            entry_bytes=entry_bytes,
            entries_per_segment=sum(entries) / len(segments),
            bytes_per_segment=entry_bytes * sum(entries) / len(segments),
            bytes_per_gib=entry_bytes * sum(entries) * GIB / log_bytes,
            bytes_of_partitions=entry_bytes * sum(entries) * PARTITIONS / logs,
        )
        for granularity, (entry_bytes, entries) in kinds.items()
    ]


def bytes_by_the_clock(span_ms: int, *, days: int = 1, partitions: int = PARTITIONS) -> int:
    """Give the bytes of an entry in every span of time for so many days: the KIP's reckoning."""
    return days * DAY_MS // span_ms * TIME_ENTRY_BYTES * partitions


def bytes_by_the_interval(
    interval_bytes: int, entry_bytes: int = OFFSET_ENTRY_BYTES, log_bytes: int = GIB
) -> int:
    """Give the bytes of an entry every so many bytes of log: the article's reckoning."""
    return log_bytes // interval_bytes * entry_bytes
