"""What a reader may leave out because of the filters that Spark pushes down.

Spark evaluates every filter again. So nothing that passes may be left out, but what does not pass
may be kept.
"""

from collections.abc import Iterable
from typing import Any

from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    LessThan,
    LessThanOrEqual,
    Not,
    StringContains,
    StringEndsWith,
    StringStartsWith,
)

from kafka_segments.files.folders.walk import ListedSegment
from kafka_segments.files.segments.bounds import Bounds

_MIN, _MAX = -(2**63), 2**63 - 1
_OFFSETS = ("offset", "base_offset", "last_offset")


def may_hold(filters: Iterable[Filter], segment: ListedSegment) -> bool:
    """Tell whether a segment can hold a row that passes all filters.

    1. Its topic, partition, base offset and path decide on filters of these columns.
    2. A range of offsets that does not meet [base offset, next segment's base offset) rules it
       out: Kafka writes no other offsets into a segment.
    """
    values = {
        "topic": segment.topic,
        "partition": segment.partition,
        "segment_base_offset": segment.base_offset,
        "path": segment.path,
    }
    filters = list(filters)
    for condition in filters:
        column = _column(condition)
        if column in values and not _passes(condition, values[column]):
            return False
    low, high = _range(filters, _OFFSETS)
    ends_before = segment.next_base_offset is not None and segment.next_base_offset <= low
    return not ends_before and segment.base_offset <= high


def record_bounds(filters: Iterable[Filter]) -> Bounds:
    """Return the bounds of the offsets and timestamps that filters on records leave."""
    filters = list(filters)
    return Bounds(*_range(filters, ("offset",)), *_range(filters, ("timestamp_ms",)))


def batch_bounds(filters: Iterable[Filter]) -> Bounds:
    """Return the bounds of the timestamps that filters on batches leave."""
    low, high = _range(list(filters), ("max_timestamp_ms",))
    return Bounds(low_timestamp=low, high_timestamp=high)


def _column(condition: Filter) -> str:
    if isinstance(condition, Not):
        return _column(condition.child)
    path: tuple[str, ...] = getattr(condition, "attribute", ())
    return path[0] if len(path) == 1 else ""


def _passes(condition: Filter, value: Any) -> bool:
    """Decide a filter for a value that is not null; what is not known here passes."""
    match condition:
        case Not(child) if _is_known(child):
            return not _passes(child, value)
        case EqualTo(_, other) | EqualNullSafe(_, other) if other is not None:
            return bool(value == other)
        case In(_, others) if None not in others:
            return value in others
        case GreaterThan(_, other) if isinstance(other, type(value)):
            return bool(value > other)
        case GreaterThanOrEqual(_, other) if isinstance(other, type(value)):
            return bool(value >= other)
        case LessThan(_, other) if isinstance(other, type(value)):
            return bool(value < other)
        case LessThanOrEqual(_, other) if isinstance(other, type(value)):
            return bool(value <= other)
        case StringStartsWith(_, text):
            return bool(str(value).startswith(text))
        case StringEndsWith(_, text):
            return bool(str(value).endswith(text))
        case StringContains(_, text):
            return text in str(value)
    return True


def _is_known(child: Filter) -> bool:
    match child:
        case EqualTo(_, other) | EqualNullSafe(_, other):
            return other is not None
        case In(_, others):
            return None not in others
        case StringStartsWith() | StringEndsWith() | StringContains():
            return True
    return False


def _range(filters: Iterable[Filter], columns: tuple[str, ...]) -> tuple[int, int]:
    """Return the least and the greatest value that the filters on some columns leave."""
    low, high = _MIN, _MAX
    for condition in filters:
        if isinstance(condition, Not) or _column(condition) not in columns:
            continue
        least, greatest = _interval(condition)
        low, high = max(low, least), min(high, greatest)
    return low, high


def _interval(condition: Filter) -> tuple[int, int]:
    match condition:
        case EqualTo(_, int(value)) | EqualNullSafe(_, int(value)):
            return value, value
        case In(_, values) if values and all(isinstance(value, int) for value in values):
            return min(values), max(values)
        case GreaterThan(_, int(value)):
            return min(value + 1, _MAX), _MAX
        case GreaterThanOrEqual(_, int(value)):
            return value, _MAX
        case LessThan(_, int(value)):
            return _MIN, max(value - 1, _MIN)
        case LessThanOrEqual(_, int(value)):
            return _MIN, value
    return _MIN, _MAX
