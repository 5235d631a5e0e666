"""What recovery says of a whole log: the words of all that folds segments or reads its files."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from kafka_segments.kafka.index.segment.producer_summary import ProducerSummary
from kafka_segments.kafka.index.segment.recovered_segment import Damage, SegmentSummary
from kafka_segments.kafka.index.segment.transaction_index import AbortedTransaction

DEFAULT_EXPIRATION_MS = 86_400_000  # producer.id.expiration.ms


class RecoveryMode(StrEnum):
    """How much of a log is recovered together."""

    SEGMENT = "segment"
    LOADER_UNCLEAN = "loader-unclean"
    LOADER_MISSING = "loader-missing"


class SegmentVerdict(NamedTuple):
    """What the fold says of a segment.

    ``damage`` is damage that only the whole log shows: the segment then has no index files.
    ``snapshot`` holds the bytes of the snapshot file at the segment's base offset, None where there
    is no such file.
    """

    aborted: Sequence[AbortedTransaction] = ()
    damage: Damage | None = None
    snapshot: bytes | None = None


class LogFiles(NamedTuple):
    """The files of a log that a load leaves beside those of its segments.

    ``snapshots`` has the bytes by offset. ``leader_epochs`` is None where the log did not load, and
    ``refused`` says why where it failed after its last segment was taken. ``begins_at``: the log
    ends below this offset, where it starts; all segments go, and an empty one begins there.
    """

    snapshots: dict[int, bytes]
    leader_epochs: bytes | None
    refused: Damage | None = None
    begins_at: int | None = None


@dataclass(frozen=True)
class LoadOptions:
    """The broker's clock and settings: ``now_ms`` since 1970, ``expiration_ms`` of producers.

    ``log_start_offset`` is the one in the broker's checkpoint file, 0 where there is none.
    """

    now_ms: int
    expiration_ms: int = DEFAULT_EXPIRATION_MS
    log_start_offset: int = 0


Reread = Callable[[SegmentSummary, int, int | None], ProducerSummary]
"""Reads producers of a segment again: from an offset on, up to another or, None, to the end."""

Reaches = Callable[[SegmentSummary, int | None], bool]
"""Looks up an offset in a segment, or, None, its end; tells whether a batch reaches it."""
