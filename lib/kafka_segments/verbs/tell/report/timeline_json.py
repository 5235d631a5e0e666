"""The lanes of the page for its script: compact JSON that has each name once."""

from collections.abc import Sequence
from typing import Any

from pyspark.sql import Row

from kafka_segments.kafka.text.plain_text import plain
from kafka_segments.verbs.tell.report.decide.overview import DAY_MS, KINDS, YEAR_10000_MS
from kafka_segments.verbs.tell.report.run import ReportData
from kafka_segments.verbs.tell.report.time_axis import time_marks

_EXACT = 2**53  # greater numbers are no numbers in JavaScript, they go as text
_LEAST_MARGIN_MS = 1000
_COUNTS = ("segments", "size_bytes", "damaged", "in_future", "by_mtime", "oldest_ms", "newest_ms")


def timeline_of_page(data: ReportData) -> dict[str, Any]:
    """Return the lanes, their spans, and two ranges of time to show them in."""
    topics, places = _Names(), _Names()
    spans: list[list[list[Any]]] = [[] for _ in data.lanes]
    for span in data.spans:
        spans[span["lane"]].append(_span(span))
    ranges = {"usual": usual_range(data), "all": whole_range(data)}
    return {
        "now": data.now_ms,
        "lanes": [
            [
                topics.number(lane["topic"]),
                lane["partition"],
                places.number(_place(lane)),
                *(_exact(lane[name]) for name in _COUNTS),
            ]
            for lane in data.lanes
        ],
        "topics": topics.names,
        "places": places.names,
        "spans": spans,
        "ranges": {
            name: {"from": since, "to": until, "marks": time_marks(since, until)}
            for name, (since, until) in ranges.items()
        },
    }


class _Names:
    """Gives each name a number, counting from 0."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    @property
    def names(self) -> list[str]:
        return list(map(plain, self._numbers))

    def number(self, name: str) -> int:
        return self._numbers.setdefault(name, len(self._numbers))


def _place(lane: Row) -> str:
    return f"{lane['cluster'] or '-'} / {lane['broker_id']} / {lane['log_dir']}"


def _span(span: Row) -> list[Any]:
    return [
        _exact(span["base_offset"]),
        span["start_ms"],
        span["end_ms"] - span["start_ms"],
        span["segments"],
        span["size_bytes"],
        KINDS.index(span["kind"]),
    ]


def _exact(number: int | None) -> int | str | None:
    return number if number is None or abs(number) < _EXACT else str(number)


def whole_range(data: ReportData) -> tuple[int, int]:
    """Return the time that all spans cover, with a margin."""
    if not data.spans:
        return data.now_ms - DAY_MS, data.now_ms
    starts = [span["start_ms"] for span in data.spans]
    ends = [span["end_ms"] for span in data.spans]
    return _with_margin(min(starts), max(ends))


def usual_range(data: ReportData) -> tuple[int, int]:
    """Return the time that most spans cover: a few absurd timestamps do not flatten the others.

    It is the middle eight tenths of the spans, and as much again on either side.
    """
    if not data.spans:
        return whole_range(data)
    starts = sorted(span["start_ms"] for span in data.spans)
    ends = sorted(span["end_ms"] for span in data.spans)
    since, until = _at(starts, 0.1), _at(ends, 0.9)
    reach = max(until - since, DAY_MS)
    return _with_margin(max(starts[0], since - reach), min(ends[-1], until + reach))


def _at(ordered: Sequence[int], share: float) -> int:
    return ordered[round(share * (len(ordered) - 1))]


def _with_margin(since: int, until: int) -> tuple[int, int]:
    margin = max((until - since) // 50, _LEAST_MARGIN_MS)
    return max(0, since - margin), min(YEAR_10000_MS - 1, until + margin)
