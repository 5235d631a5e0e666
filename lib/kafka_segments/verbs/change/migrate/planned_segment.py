"""What a migration is asked to do, and a segment of its plan."""

import json
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, ClassVar, NamedTuple

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from kafka_segments.errors import SetAsideError
from kafka_segments.files.changes.manifests import first_error
from kafka_segments.files.segments.conversion import ConversionOptions
from kafka_segments.files.segments.format_files import Around
from kafka_segments.kafka.index.formats.kip33_index import WithoutTimestamps
from kafka_segments.kafka.index.log.loading import DEFAULT_EXPIRATION_MS
from kafka_segments.kafka.index.segment.recovery_options import RecoveryOptions
from kafka_segments.verbs.change.migrate.decide.actions import SegmentAction
from kafka_segments.verbs.change.migrate.staged_log import StagedLog

_NS_A_MS = 1_000_000
_MOST = 2**31 - 1


@dataclass(frozen=True)
class MigrationRules:
    """How segments are migrated; the same for all segments of a log on a broker.

    Attributes:
        without_timestamps: The time index of closed segments in which no record has a timestamp.
        convert: Messages v0 and v1 become batches v2.
        mtime_for_none: Converted messages without a timestamp, as all of v0, get the mtime of their
            segment; else they keep -1.
        max_message_bytes: The brokers' limit on a batch; None: not checked.
        index_interval_bytes: Kafka's setting.
        segment_index_bytes: Kafka's setting.
        producer_id_expiration_ms: Kafka's setting.
        cut_damaged: Bytes that recovery would cut off stay behind; else their log is refused.
    """

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    without_timestamps: WithoutTimestamps = WithoutTimestamps.EMPTY
    convert: bool = False
    mtime_for_none: bool = False
    max_message_bytes: Annotated[int, Field(ge=0, le=_MOST)] | None = None
    index_interval_bytes: Annotated[int, Field(ge=0, le=_MOST)] = 4096
    segment_index_bytes: Annotated[int, Field(ge=4, le=_MOST)] = 10 * 1024 * 1024
    producer_id_expiration_ms: Annotated[int, Field(ge=1, le=_MOST)] = DEFAULT_EXPIRATION_MS
    cut_damaged: bool = False

    @property
    def recovery(self) -> RecoveryOptions:
        """Return the settings that recovery depends on."""
        return RecoveryOptions(self.index_interval_bytes, self.segment_index_bytes)

    @property
    def conversion(self) -> ConversionOptions:
        """Return the limits of a conversion."""
        return ConversionOptions(max_message_bytes=self.max_message_bytes)

    @property
    def text(self) -> str:
        """Return the rules as a plan keeps them, JSON."""
        return json.dumps(asdict(self))

    @classmethod
    @cache
    def of(cls, text: str) -> "MigrationRules":
        """Return the rules that a plan keeps.

        Raises:
            SetAsideError: they are none.
        """
        try:
            return TypeAdapter(cls).validate_json(text, strict=True)
        except ValidationError as error:
            reason = f"{first_error(error)}; plan again"
            raise SetAsideError("column rules of the plan", reason) from None


class PlannedSegment(NamedTuple):
    """A segment as it was planned.

    ``next_base_offset`` None: it is the active segment. ``cut_bytes``: bytes at its end that are
    not taken over.
    """

    path: Path
    root: Path
    base_offset: int
    next_base_offset: int | None
    size_bytes: int
    mtime_ns: int
    action: SegmentAction
    cut_bytes: int = 0

    @property
    def valid_bytes(self) -> int:
        """Return the number of bytes that are taken over, as they are or converted."""
        return self.size_bytes - self.cut_bytes

    @property
    def log(self) -> StagedLog:
        """Return the log that the segment is part of."""
        return StagedLog(self.path.parent, self.root)

    @property
    def around(self) -> Around:
        """Return what the time index depends on besides the records."""
        return Around(self.next_base_offset, self.mtime_ns // _NS_A_MS)

    def timestamp_ms(self, rules: MigrationRules) -> int:
        """Return the timestamp that messages without one get when they are converted."""
        return self.mtime_ns // _NS_A_MS if rules.mtime_for_none else -1
