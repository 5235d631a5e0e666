"""What comes of a pass of the cleaner."""

from dataclasses import dataclass
from typing import NamedTuple

from kafka_segments.kafka.broker_rules.cleaner.sample import Estimate


@dataclass
class PassCounts:
    """What a pass makes of a log.

    Attributes:
        bytes_before: Of the batches that it comes by, in ``.log`` files.
        bytes_after: Of what it keeps.
        estimated_bytes: Of these, those of compressed batches that are written anew.
        records_before: Data records that it comes by.
        records_after: Those that it keeps.
        null_keys: Records that it takes out since they have no key.
        tombstones_before: Records without a value that it reads.
        tombstones_after: Those that it keeps.
        markers_before: Control batches that it comes by.
        markers_after: Those that it keeps.
        next_horizon_ms: When the first of the tombstones and markers kept may go; None: never.
    """

    bytes_before: int = 0
    bytes_after: int = 0
    estimated_bytes: int = 0
    records_before: int = 0
    records_after: int = 0
    null_keys: int = 0
    tombstones_before: int = 0
    tombstones_after: int = 0
    markers_before: int = 0
    markers_after: int = 0
    next_horizon_ms: int | None = None


class LogPass(NamedTuple):
    """What a pass would make of a log.

    ``clean_until``: up to which offset it is clean then. ``counts``: of the segments that were
    read; ``unread``: what is freed in the others, None: all were. ``throws``: where and why the
    cleaner throws, and gives the log up; ``unknown``: why that, and what it keeps, is not known.
    """

    clean_until: int | None = None
    counts: PassCounts | None = None
    unread: Estimate | None = None
    throws: str = ""
    unknown: str = ""

    @property
    def freed_bytes(self) -> int | None:
        """How many bytes go; None: not known, or it throws."""
        if self.counts is None:
            return None
        here = self.counts.bytes_before - self.counts.bytes_after
        return here if self.unread is None else here + self.unread.freed_bytes


class CleanerThrowsError(Exception):
    """The cleaner throws at a batch, and gives the log up."""

    def __init__(self, position: int, reason: str) -> None:
        super().__init__(reason)
        self.position = position
