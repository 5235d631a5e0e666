"""What filters let a reader leave out: never a row that passes them."""

import operator
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringContains,
    StringEndsWith,
    StringStartsWith,
)

from kafka_segments.engine.rows.pushdown import batch_bounds, may_hold, record_bounds
from kafka_segments.files.folders.walk import ListedSegment
from kafka_segments.files.segments.bounds import Bounds

Value = int | str
_COMPARISONS: dict[type[Filter], Callable[[Value, Value], bool]] = {
    EqualTo: operator.eq,
    EqualNullSafe: operator.eq,
    GreaterThan: operator.gt,
    GreaterThanOrEqual: operator.ge,
    LessThan: operator.lt,
    LessThanOrEqual: operator.le,
}
_TEXTS: dict[type[Filter], Callable[[str, str], bool]] = {
    StringStartsWith: str.startswith,
    StringEndsWith: str.endswith,
    StringContains: operator.contains,
}


def segment(
    topic: str = "t", partition: int = 0, base_offset: int = 100, next_base_offset: int | None = 200
) -> ListedSegment:
    name = f"{base_offset:020d}.log"
    return ListedSegment(
        "/logs", f"{topic}-{partition}", name, topic, partition, base_offset, next_base_offset, 9
    )


def _holds(condition: Filter, row: dict[str, Value]) -> bool:
    """Evaluate a filter as Spark does, for columns without nulls."""
    if isinstance(condition, Not):
        return not _holds(condition.child, row)
    if isinstance(condition, IsNotNull):
        return True
    value = row[condition.attribute[0]]  # type: ignore[attr-defined]
    if isinstance(condition, In):
        return value in condition.value
    kind, other = type(condition), condition.value  # type: ignore[attr-defined]
    return (_COMPARISONS | _TEXTS)[kind](value, other)  # type: ignore[operator]


_numbers = st.one_of(st.integers(-2, 12), st.sampled_from([-(2**63), 2**63 - 1]))
_texts = st.sampled_from(["t", "u", "tu", "t-u", ""])
_columns = st.sampled_from(["offset", "timestamp_ms", "partition", "segment_base_offset"])


@st.composite
def _filters(draw: st.DrawFn) -> Filter:
    if draw(st.booleans()):
        column, values = (draw(_columns),), _numbers
        kind = draw(st.sampled_from([*_COMPARISONS, In, IsNotNull]))
    else:
        column, values = ("topic",), _texts
        kind = draw(st.sampled_from([*_COMPARISONS, *_TEXTS, In]))
    if kind is IsNotNull:
        return IsNotNull(column)
    value = tuple(draw(st.lists(values, max_size=3))) if kind is In else draw(values)
    condition = kind(column, value)  # type: ignore[call-arg]
    return Not(condition) if draw(st.booleans()) else condition


@given(
    filters=st.lists(_filters(), max_size=4),
    topic=_texts,
    partition=st.integers(0, 3),
    base_offset=st.integers(0, 5),
    length=st.one_of(st.none(), st.integers(1, 6)),
    data=st.data(),
)
def test_no_row_that_passes_all_filters_is_left_out(
    filters: list[Filter],
    topic: str,
    partition: int,
    base_offset: int,
    length: int | None,
    data: st.DataObject,
) -> None:
    end = None if length is None else base_offset + length
    offset = data.draw(st.integers(base_offset, base_offset + 20 if end is None else end - 1))
    timestamp = data.draw(_numbers)
    row: dict[str, Value] = {
        "topic": topic,
        "partition": partition,
        "segment_base_offset": base_offset,
        "offset": offset,
        "timestamp_ms": timestamp,
    }
    passes = all(_holds(condition, row) for condition in filters)

    bounds = record_bounds(filters)

    if passes:
        assert may_hold(filters, segment(topic, partition, base_offset, end))
        assert bounds.low_offset <= offset <= bounds.high_offset
        assert bounds.low_timestamp <= timestamp <= bounds.high_timestamp


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (EqualTo(("topic",), "t"), True),
        (EqualTo(("topic",), "u"), False),
        (In(("topic",), ("u", "v")), False),
        (Not(EqualTo(("topic",), "t")), False),
        (StringStartsWith(("topic",), "u"), False),
        (EqualTo(("partition",), 1), False),
        (GreaterThan(("partition",), 0), False),
        (EqualTo(("segment_base_offset",), 100), True),
        (LessThan(("segment_base_offset",), 100), False),
        (StringEndsWith(("path",), "/00000000000000000100.log"), True),
        (StringContains(("path",), "elsewhere"), False),
        (EqualTo(("offset",), 99), False),
        (EqualTo(("offset",), 100), True),
        (EqualTo(("offset",), 199), True),
        (EqualTo(("offset",), 200), False),
        (In(("offset",), (1, 300)), True),
        (GreaterThanOrEqual(("last_offset",), 200), False),
        (LessThan(("base_offset",), 100), False),
        (LessThanOrEqual(("timestamp_ms",), 5), True),
        (EqualTo(("value",), b"x"), True),
        (EqualTo(("topic",), None), True),
        (Not(EqualTo(("topic",), None)), True),
        (GreaterThan(("partition",), 0.5), True),
    ],
)
def test_a_segment_is_left_out_where_its_name_or_range_says_so(
    condition: Filter, expected: bool
) -> None:
    assert may_hold([condition], segment()) is expected


def test_the_last_segment_has_no_end() -> None:
    assert may_hold([EqualTo(("offset",), 10**15)], segment(next_base_offset=None))


def test_bounds_are_where_all_ranges_meet() -> None:
    filters = [
        GreaterThan(("timestamp_ms",), 10),
        LessThan(("timestamp_ms",), 30),
        GreaterThanOrEqual(("offset",), 5),
        In(("offset",), (9, 3, 7)),
        EqualTo(("max_timestamp_ms",), 1),
    ]

    assert record_bounds(filters) == Bounds(5, 9, 11, 29)
    assert batch_bounds(filters) == Bounds(low_timestamp=1, high_timestamp=1)
