"""How much was written lately, by the times of files, and when a disk is full at that pace.

A segment's bytes were written between the last write of the segment before it and its own. So of
those whose time lies within a span, at least the ones that were begun in it count whole, and at
most all. What was deleted since is not seen; times of copied files are those of the copy.
"""

from collections.abc import Iterable
from typing import NamedTuple

HOUR_MS, DAY_MS = 3_600_000, 86_400_000
SPANS_MS = (HOUR_MS, DAY_MS)


class Written(NamedTuple):
    """A segment: its bytes, and when the last of them was written, in ms since 1970."""

    used_bytes: int
    mtime_ms: int


class Growth(NamedTuple):
    """Bytes that were written within a span and are still there: at least and at most."""

    least_bytes: int = 0
    most_bytes: int = 0

    def __add__(self, other: object) -> "Growth":
        """Return the sum of both."""
        assert isinstance(other, Growth)  # noqa: S101  a tuple's sum is none
        return Growth(self.least_bytes + other.least_bytes, self.most_bytes + other.most_bytes)


def growth_of(segments: Iterable[Written], *, now_ms: int, span_ms: int) -> Growth:
    """Return what was written of a log within the last ``span_ms``.

    ``segments``: of one log, by their base offsets.
    """
    since, before = now_ms - span_ms, None
    least = most = 0
    for one in segments:
        if since <= one.mtime_ms:
            most += one.used_bytes
            least += one.used_bytes if before is not None and before >= since else 0
        before = one.mtime_ms
    return Growth(least, most)


def sum_of(parts: Iterable[Growth]) -> Growth:
    """Return the sum of what several logs grew by."""
    return sum(parts, Growth())


def full_in_ms(free_bytes: int, growth: Growth, *, span_ms: int) -> tuple[int | None, int | None]:
    """Return after how many ms a disk is full at this pace: at the soonest and at the latest.

    None: at the pace of the other end of the range it never is.
    """
    return (
        _ms_to_fill(free_bytes, growth.most_bytes, span_ms),
        _ms_to_fill(free_bytes, growth.least_bytes, span_ms),
    )


def _ms_to_fill(free_bytes: int, written_bytes: int, span_ms: int) -> int | None:
    return None if written_bytes <= 0 else free_bytes * span_ms // written_bytes
