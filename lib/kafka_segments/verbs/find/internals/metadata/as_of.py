"""Which version of the metadata is asked for: as of an offset of its log, or of a moment."""

from dataclasses import dataclass

from kafka_segments.console.moments import given_point
from kafka_segments.kafka.text.moments import moment_text

_MAX_INT64 = 2**63 - 1


@dataclass(frozen=True)
class AsOf:
    """An offset of the metadata log, or a moment in ms since 1970; the other one is None."""

    offset: int | None = None
    ms: int | None = None

    def __str__(self) -> str:
        return f"offset {self.offset}" if self.ms is None else moment_text(self.ms)


def parse_as_of(text: str, *, now_ms: int) -> AsOf:
    """Parse what ``--at`` takes: digits alone are an offset.

    Raises:
        UsageError: it is neither an offset nor a moment.
    """
    if text.isascii() and text.isdigit() and int(text) <= _MAX_INT64:
        return AsOf(offset=int(text))
    return AsOf(ms=given_point("--at", text, now_ms=now_ms))
