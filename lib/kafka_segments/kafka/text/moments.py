"""Moments as a person writes them: Kafka's names, ms, ISO 8601 with a zone, a span back from now.

The names and their numbers are those of ListOffsets. Source: ListOffsetsRequest, OffsetSpec.
"""

import re
from datetime import datetime, timedelta

from kafka_segments.errors import UsageError

LATEST, EARLIEST, MAX_TIMESTAMP = -1, -2, -3
EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING_UPLOAD = -4, -5, -6
NAMED = {
    "LATEST": LATEST,
    "EARLIEST": EARLIEST,
    "MAX_TIMESTAMP": MAX_TIMESTAMP,
    "EARLIEST_LOCAL": EARLIEST_LOCAL,
    "LATEST_TIERED": LATEST_TIERED,
    "EARLIEST_PENDING_UPLOAD": EARLIEST_PENDING_UPLOAD,
}
_MS = {
    "ms": 1,
    "s": 1_000,
    "m": 60_000,
    "h": 3_600_000,
    "d": 86_400_000,
    "w": 604_800_000,
}
_SPAN = re.compile(r"([0-9]{1,15})(ms|s|m|h|d|w)", re.ASCII)
_EPOCH = datetime.fromisoformat("1970-01-01T00:00:00+00:00")
_MAX_INT64 = 2**63 - 1
YEAR_2000_S, YEAR_2100_S = 946_684_800, 4_102_444_800
PER_SECOND = {"s": 1, "us": 1_000_000, "ns": 1_000_000_000}
"""Units that are taken for ms by mistake. No number falls into these years in two of them."""
_UNIT_NAMES = {"s": "seconds", "us": "microseconds", "ns": "nanoseconds"}
END_OF_TIME_MS = 253_402_300_799_999
"""The end of the year 9999: Spark's and Python's timestamps hold no later moment."""


def moment_text(ms: int) -> str:
    """Return a moment of ms since 1970, or before it, as a time of UTC to the ms.

    The number itself is returned where it lies beyond the years 1 to 9999.
    """
    try:
        moment = _EPOCH + timedelta(milliseconds=ms)
    except OverflowError:
        return f"{ms} ms"
    return f"{moment:%Y-%m-%d %H:%M:%S}.{ms % 1000:03d} UTC"


def mtime_text(ns: int) -> str:
    """Return an mtime of ns since 1970 as a time of UTC to the ns: two may differ in the last."""
    moment = moment_text(ns // 1_000_000)
    if not moment.endswith(" UTC"):
        return f"{ns} ns"
    return f"{moment.removesuffix(' UTC')}{ns % 1_000_000:06d} UTC"


def parse_span(text: str) -> int:
    """Return a length of time such as ``90s``, ``5m``, ``2h``, ``3d``, ``1w``, ``250ms``, in ms.

    Raises:
        UsageError: the text is not a length of time, or is longer than 1970 to 9999.
    """
    match = _SPAN.fullmatch(text)
    if match is None:
        raise UsageError(f"{text!r} is no length of time: 250ms, 90s, 5m, 2h, 3d or 1w expected")
    span_ms = int(match[1]) * _MS[match[2]]
    if span_ms > END_OF_TIME_MS:
        raise UsageError(f"{text!r} is longer than the time from 1970 to the end of the year 9999")
    return span_ms


def parse_moment(text: str, *, now_ms: int) -> int:
    """Return a moment in ms since 1970, or the negative number of one of Kafka's names.

    Raises:
        UsageError: the text is not a moment, has no zone, or lies before 1970.
    """
    if text.upper() in NAMED:
        return NAMED[text.upper()]
    if re.fullmatch("[0-9]{1,19}", text, re.ASCII) and int(text) <= _MAX_INT64:
        return int(text)
    if text in map(str, NAMED.values()):
        return int(text)
    if text.startswith("-"):
        return _not_before_1970(text, now_ms - parse_span(text[1:]))
    if text.lower() == "now":
        return now_ms
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(
            f"{text!r} is no moment: ms since 1970, 2026-01-31T14:00:00+01:00, -2h, now,"
            f" or one of {', '.join(NAMED)} expected"
        ) from None
    if moment.tzinfo is None:
        raise UsageError(f"{text!r} has no zone: end it with Z or +01:00")
    return _not_before_1970(text, (moment - _EPOCH) // timedelta(milliseconds=1))


def parse_point(option: str, text: str, *, now_ms: int) -> int:
    """Return a moment in ms since 1970, written in any way but one of Kafka's names.

    Raises:
        UsageError: it is one of the names, not a moment, or after the year 9999. The message names
            ``option``.
    """
    moment_ms = parse_moment(text, now_ms=now_ms)
    if not 0 <= moment_ms <= END_OF_TIME_MS:
        likely = likely_unit(text)
        told = f"; were it {likely[0]}, it would be {option} {likely[1]}" if likely else ""
        raise UsageError(
            f"{option} {text}: a moment up to the year 9999 expected, not a name{told}"
        )
    return moment_ms


def likely_unit(text: str) -> tuple[str, int] | None:
    """Return the unit of a number that as ms lies near 1970 or far beyond, and the ms that it is.

    None: it is no number, or none of the units makes it a moment of the years 2000 to 2100.
    """
    if not re.fullmatch("[0-9]{9,19}", text, re.ASCII):
        return None
    for unit, per_second in PER_SECOND.items():
        if YEAR_2000_S * per_second <= int(text) < YEAR_2100_S * per_second:
            return _UNIT_NAMES[unit], int(text) * 1000 // per_second
    return None


def _not_before_1970(text: str, moment_ms: int) -> int:
    if moment_ms < 0:
        raise UsageError(f"{text!r} lies before 1970, at {moment_text(moment_ms)}")
    return moment_ms
