"""What a migration is asked to do with segments, and a segment of its plan."""

from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple

from kafka_segments.index.kip33_index import WithoutTimestamps
from kafka_segments.index.log import DEFAULT_EXPIRATION_MS
from kafka_segments.index.recovery import RecoveryOptions
from kafka_segments.migrate.staged_log import StagedLog
from kafka_segments.segments.conversion_hazards import ConversionOptions
from kafka_segments.segments.format_files import Around

_NS_A_MS = 1_000_000


class Action(StrEnum):
    """What a migration does with a segment."""

    KEEP = "keep"
    """Its files go over as they are."""
    INDEXES = "indexes"
    """Its index files are made anew."""
    CONVERT = "convert"
    """Its messages v0 and v1 become batches v2, and its index files are made anew."""
    CUT = "cut"
    """What recovery would cut off stays behind, and its index files are made anew."""
    REFUSE = "refuse"
    """A broker would not load it, or would cut it: its log is left alone."""


@dataclass(frozen=True)
class MigrationRules:
    """How segments are migrated; the same for all replicas of a log.

    ``without_timestamps``: the time index of closed segments in which no record has a timestamp.
    ``mtime_for_none``: messages without a timestamp, as all of v0, get the mtime of their segment
    where they are converted, else they keep -1.
    ``cut_damaged``: bytes that recovery would cut off stay behind, else their log is refused.
    """

    without_timestamps: WithoutTimestamps = WithoutTimestamps.EMPTY
    convert: bool = False
    mtime_for_none: bool = False
    max_message_bytes: int | None = None
    index_interval_bytes: int = 4096
    segment_index_bytes: int = 10 * 1024 * 1024
    producer_id_expiration_ms: int = DEFAULT_EXPIRATION_MS
    cut_damaged: bool = False

    @property
    def recovery(self) -> RecoveryOptions:
        """Give the settings that recovery depends on."""
        return RecoveryOptions(self.index_interval_bytes, self.segment_index_bytes)

    @property
    def conversion(self) -> ConversionOptions:
        """Give the limits that conversion depends on."""
        return ConversionOptions(max_message_bytes=self.max_message_bytes)

    def described(self) -> dict[str, Any]:
        """Give the rules as JSON has them."""
        return asdict(self)

    @classmethod
    def of(cls, described: dict[str, Any]) -> "MigrationRules":
        """Read what ``described`` gave."""
        rule = WithoutTimestamps(described["without_timestamps"])
        return cls(**{**described, "without_timestamps": rule})


class PlannedSegment(NamedTuple):
    """A segment as it was planned; ``next_base_offset`` None: the active one.

    ``cut_bytes``: what of its end stays behind.
    """

    path: Path
    root: Path
    base_offset: int
    next_base_offset: int | None
    size_bytes: int
    mtime_ns: int
    action: Action
    cut_bytes: int = 0

    @property
    def valid_bytes(self) -> int:
        """Give the bytes that go over, as they are or converted."""
        return self.size_bytes - self.cut_bytes

    @property
    def log(self) -> StagedLog:
        """Give the log that it is part of."""
        return StagedLog(self.path.parent, self.root)

    @property
    def around(self) -> Around:
        """Give what its time index depends on besides its records."""
        return Around(self.next_base_offset, self.mtime_ns // _NS_A_MS)

    def timestamp_ms(self, rules: MigrationRules) -> int:
        """Give the timestamp that its messages without one get where they are converted."""
        return self.mtime_ns // _NS_A_MS if rules.mtime_for_none else -1
