"""What recovery says of a whole log: the words of all that folds segments or reads its files."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from kafka_segments.index.producer_summary import ProducerSummary
from kafka_segments.index.segment import Damage, SegmentSummary
from kafka_segments.index.transactions import AbortedTransaction

DEFAULT_EXPIRATION_MS = 86_400_000  # producer.id.expiration.ms


class RecoveryMode(StrEnum):
    """How much of a log is recovered together."""

    SEGMENT = "segment"
    LOADER_UNCLEAN = "loader-unclean"
    LOADER_MISSING = "loader-missing"


class Verdict(NamedTuple):
    """What the fold says of a segment.

    ``damage`` is what only the log shows: the segment then has no index files. ``snapshot`` is
    the file at the segment's base offset, None: none is there.
    """

    aborted: Sequence[AbortedTransaction] = ()
    damage: Damage | None = None
    snapshot: bytes | None = None


class LogFiles(NamedTuple):
    """The files that a load leaves beside those of its segments; None: the log did not load.

    ``refused``: what makes the load fail after its last segment was taken.
    """

    snapshots: dict[int, bytes]
    leader_epochs: bytes | None
    refused: Damage | None = None


@dataclass(frozen=True)
class LoadOptions:
    """The broker's clock and settings; ``log_start_offset`` as in its checkpoint, 0: none."""

    now_ms: int
    expiration_ms: int = DEFAULT_EXPIRATION_MS
    log_start_offset: int = 0


Reread = Callable[[SegmentSummary, int, int | None], ProducerSummary]
"""Reads producers of a segment again: from an offset on, up to another or, None, to the end."""

Reaches = Callable[[SegmentSummary, int], bool]
"""Looks up an offset in a segment; tells whether a batch reaches it."""
