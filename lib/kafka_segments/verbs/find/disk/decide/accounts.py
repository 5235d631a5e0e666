"""The account of a log directory: its bytes by what they are, and by topic."""

from dataclasses import dataclass

from kafka_segments.verbs.find.disk.decide.growth import SPANS_MS, Growth
from kafka_segments.verbs.find.disk.decide.kinds import What


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
