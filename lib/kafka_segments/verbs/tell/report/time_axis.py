"""Marks on an axis of time, at round moments of UTC."""

from datetime import UTC, datetime

from kafka_segments.verbs.tell.report.decide.overview import YEAR_10000_MS

_SECOND, _MINUTE, _HOUR, _DAY = 1000, 60_000, 3_600_000, 86_400_000
_STEPS_MS = (
    *(_SECOND, 5 * _SECOND, 15 * _SECOND, _MINUTE, 5 * _MINUTE, 15 * _MINUTE),
    *(_HOUR, 3 * _HOUR, 6 * _HOUR, 12 * _HOUR, _DAY, 2 * _DAY, 7 * _DAY, 14 * _DAY),
)
_STEPS_MONTHS = (
    1,
    3,
    6,
    *(12 * years for years in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000)),
)
_MONTH_MS = 30 * _DAY
_MOST = 7


def time_marks(from_ms: int, to_ms: int) -> list[tuple[int, str]]:
    """Return moments between two others, each with its text, seven at most.

    Both lie from 1970 to the end of the year 9999.
    """
    span_ms = to_ms - from_ms
    for step_ms in _STEPS_MS:
        if span_ms <= step_ms * _MOST:
            first = -(-from_ms // step_ms)
            moments = [at * step_ms for at in range(first, to_ms // step_ms + 1)]
            return [(at, _text(at, step_ms)) for at in moments[:_MOST]]
    fits = (months for months in _STEPS_MONTHS if span_ms <= months * _MONTH_MS * _MOST)
    return _by_months(from_ms, to_ms, next(fits, _STEPS_MONTHS[-1]))[:_MOST]


def _by_months(from_ms: int, to_ms: int, months: int) -> list[tuple[int, str]]:
    begin = datetime.fromtimestamp(from_ms / 1000, UTC)
    number = -(-(begin.year * 12 + begin.month - 1) // months) * months
    form = "%Y" if months % 12 == 0 else "%Y-%m"
    found = []
    while number < 12 * 10_000:
        moment = datetime(number // 12, number % 12 + 1, 1, tzinfo=UTC)
        at_ms = int(moment.timestamp()) * 1000
        if at_ms > min(to_ms, YEAR_10000_MS - 1):
            break
        if at_ms >= from_ms:
            found.append((at_ms, moment.strftime(form)))
        number += months
    return found


def _text(at_ms: int, step_ms: int) -> str:
    moment = datetime.fromtimestamp(at_ms / 1000, UTC)
    if step_ms >= _DAY:
        return moment.strftime("%Y-%m-%d")
    if step_ms >= _MINUTE:
        return moment.strftime("%m-%d %H:%M")
    return moment.strftime("%H:%M:%S")
