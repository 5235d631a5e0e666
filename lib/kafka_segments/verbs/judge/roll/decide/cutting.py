"""Cut a log at known points as a broker would, with bounds for what lies between them."""

from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Longs = npt.NDArray[np.int64]
_FIRST_STEP = 256
_FILES = 3  # .log, .index, .timeindex; a roll leaves a .snapshot, too
_ENTRY_BYTES, _TIME_ENTRY_BYTES = 8, 12


@dataclass(frozen=True)
class Points:
    """Batches of a log whose place is known. Positions ascend; the last is the log's end.

    ``timestamps`` are the greatest up to each point in its segment. ``gap_bytes`` is the greatest
    distance of two neighbours, before points were left out; so no batch is larger.
    """

    positions: Longs
    timestamps: Longs
    gap_bytes: int
    batch_count: int
    segments_today: int
    is_in_order: bool

    @classmethod
    def of(cls, table: pa.Table) -> Self:
        """Read the rows of one log; of two at one position that of the later segment counts."""
        table = table.sort_by([("position", "ascending"), ("base_offset", "ascending")])
        positions = table["position"].to_numpy()
        is_last = np.append(positions[1:] != positions[:-1], True)
        return cls(
            positions[is_last],
            table["timestamp_ms"].to_numpy()[is_last],
            gap_bytes=max(table["gap_bytes"].to_pylist()),
            batch_count=table["batch_count"][0].as_py() or 0,
            segments_today=table["segments_today"][0].as_py(),
            is_in_order=table["is_in_order"][0].as_py(),
        )


class _Walk(NamedTuple):
    """The number of segments of a walk, how many it can be at most, and the largest segment."""

    segments: int
    most: int
    largest_bytes: int
    longest_ms: int


def cut(
    points: Points, *, segment_bytes: int, segment_ms: int, index_interval_bytes: int
) -> dict[str, int | bool]:
    """Count the segments that a log would have, and their files and indexes.

    1. One walk cuts at the last point that surely is within the limits. None of its cuts is later
       than the broker's, so it has as many segments or more.
    2. The other walk cuts at the point after that one. None of its cuts is earlier than the
       broker's, so it has as many segments or fewer.
    """
    total = int(points.positions[-1])
    sure = _walk(points, segment_bytes, segment_ms, is_late=False)
    least = _walk(points, segment_bytes, segment_ms, is_late=True).segments
    most = sure.most
    by_bytes = -(-total // max(segment_bytes, points.gap_bytes))
    if not points.is_in_order:
        least, most = by_bytes, points.batch_count
    least = max(least, by_bytes, 1)
    most = max(min(most, points.batch_count), least)
    segments = min(max(sure.segments, least), most)
    entries = total // (index_interval_bytes + max(1, points.gap_bytes // 2))
    entries_most = min(total // (index_interval_bytes + 1), points.batch_count)
    entries_least = max(0, total // (index_interval_bytes + max(1, points.gap_bytes)) - 2 * most)
    both = _ENTRY_BYTES + _TIME_ENTRY_BYTES
    return {
        "segments_today": points.segments_today,
        "segments": segments,
        "segments_least": least,
        "segments_most": most,
        "files": _FILES * segments + segments - 1,
        "memory_maps": 2 * segments,
        "index_bytes": both * min(max(entries, entries_least), entries_most)
        + _TIME_ENTRY_BYTES * segments,
        "index_bytes_least": _ENTRY_BYTES * entries_least,
        "index_bytes_most": both * entries_most + _TIME_ENTRY_BYTES * most,
        "retention_overshoot_bytes": sure.largest_bytes,
        "retention_overshoot_ms": sure.longest_ms,
        "cut_error_bytes": int(np.diff(points.positions).max(initial=0)),
        "is_in_order": points.is_in_order,
    }


def _walk(points: Points, segment_bytes: int, segment_ms: int, *, is_late: bool) -> _Walk:
    positions, timestamps = points.positions, points.timestamps
    start, end = 0, len(positions) - 1
    segments = most = largest_bytes = longest_ms = 0
    while start < end:
        reach = int(positions[start]) + segment_bytes
        last = int(np.searchsorted(positions, reach, side="right")) - 1
        last = _before_timeout(timestamps, start, last, segment_ms)
        inside = 1
        if last == start:  # no point tells where the broker cuts before the next one
            inside += _cuts_between(points, start, segment_bytes, segment_ms)
        stop = last + 1 if is_late or last == start else last
        stop = min(stop, end)
        largest_bytes = max(largest_bytes, int(positions[stop] - positions[start]))
        longest_ms = max(longest_ms, int(timestamps[stop]) - int(timestamps[start]))
        segments, most, start = segments + 1, most + inside, stop
    return _Walk(segments, most, min(largest_bytes, segment_bytes), min(longest_ms, 2**63 - 1))


def _before_timeout(timestamps: Longs, start: int, last: int, segment_ms: int) -> int:
    """Return the last point up to ``last`` that comes before the first one past the time limit."""
    first = int(timestamps[start])
    limit = first + segment_ms
    if first < 0 or limit > 2**63 - 1:
        return last
    begin, step = start + 1, _FIRST_STEP
    while begin <= last:
        is_past = timestamps[begin : min(begin + step, last + 1)] > limit
        if is_past.any():
            return begin + int(is_past.argmax()) - 1
        begin, step = begin + step, step * 2
    return last


def _cuts_between(points: Points, start: int, segment_bytes: int, segment_ms: int) -> int:
    """Return how many cuts can lie between a point and the next.

    Two cuts by bytes take more than ``segment_bytes``, one by time more than ``segment_ms``.
    """
    size = int(points.positions[start + 1]) - int(points.positions[start])
    span = int(points.timestamps[start + 1]) - int(points.timestamps[start])
    return 2 * size // segment_bytes + max(span, 0) // (segment_ms + 1)
