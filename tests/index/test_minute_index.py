"""The minute index: which entries, in which order, and searches that miss nothing."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_segments.errors import OffsetOverflowError
from kafka_segments.kafka.broker_rules.lookups import safe_start, search_literally
from kafka_segments.kafka.index.formats.minute_index import (
    FirstOfEach,
    MinuteVariant,
    derived_minute_entries,
    encode_minute_index,
)
from kafka_segments.kafka.index.segment.recovered_segment import Entries
from kafka_segments.kafka.index.segment.time_index import decode_time_index
from support.logs.log_reading import batches_of, record_times, recovered
from support.logs.strategies import DatedLog, dated_logs

MINUTE = 60_000
EXAMPLE = [(1000, 60500), (1001, 119999), (1002, 120000), (1003, 61000), (1004, 240010)]


def first_of_each(records: list[tuple[int, int]]) -> Entries:
    index = FirstOfEach()
    rows = np.array(records, dtype=np.int64).reshape(-1, 2)
    index.add(rows[:, 0], rows[:, 1])
    return index.entries()


def map_entries(log: bytes) -> Entries:
    index = FirstOfEach()
    for part in record_times(log):
        index.add(part.offset, part.timestamp)
    return index.entries()


def pairs(entries: Entries) -> list[tuple[int, int]]:
    return [tuple(row) for row in entries.tolist()]


def test_the_designs_example() -> None:
    entries = first_of_each(EXAMPLE)

    assert pairs(entries) == [(60000, 1000), (120000, 1002), (240000, 1004)]
    data = encode_minute_index(entries, base_offset=1000)
    assert data.hex(" ", 4) == (
        "00000000 0000ea60 00000000 00000000 0001d4c0 00000002 00000000 0003a980 00000004"
    )
    assert (decode_time_index(data, base_offset=1000) == entries).all()


def test_minutes_stand_in_the_order_in_which_they_first_appear() -> None:
    entries = first_of_each([(5, 600_000), (6, 10), (7, 599_999), (8, -1), (9, 600_001), (10, 20)])

    assert pairs(entries) == [(600_000, 5), (0, 6), (540_000, 7)]


@given(st.lists(st.integers(-1, 600_000)), st.integers(0, 5))
def test_records_may_come_in_parts(stamps: list[int], cut: int) -> None:
    records = list(enumerate(stamps))
    index = FirstOfEach()
    for part in (records[:cut], records[cut:]):
        rows = np.array(part, dtype=np.int64).reshape(-1, 2)
        index.add(rows[:, 0], rows[:, 1])
    expected: dict[int, int] = {}
    for offset, stamp in records:
        if stamp >= 0:
            expected.setdefault(stamp - stamp % MINUTE, offset)

    assert pairs(index.entries()) == list(expected.items())


def targets_near(drawn: DatedLog) -> st.SearchStrategy[int]:
    near = [max(stamp + step, 0) for _, stamp in drawn.records for step in (-1, 0, 1)]
    return st.sampled_from([0, 30_000, *near])


@given(dated_logs(), st.data())
def test_a_safe_search_of_the_map_misses_no_record(drawn: DatedLog, data: st.DataObject) -> None:
    target = data.draw(targets_near(drawn))
    late = [offset for offset, stamp in drawn.records if stamp >= target]

    start = safe_start(
        map_entries(drawn.log),
        target,
        base_offset=drawn.base_offset,
        variant=MinuteVariant.MAP,
    )

    assert not late or (start is not None and start <= late[0])
    if start is not None:
        assert any(stamp >= target - target % MINUTE for _, stamp in drawn.records)


@given(dated_logs(rising=True), st.sampled_from([0, 100]), st.data())
def test_a_safe_search_of_the_derived_index_misses_no_record(
    drawn: DatedLog, interval_bytes: int, data: st.DataObject
) -> None:
    target = data.draw(targets_near(drawn))
    recovery = recovered(drawn.log, base_offset=drawn.base_offset, interval_bytes=interval_bytes)
    assert recovery.offset_entries is not None
    batches = batches_of(drawn.log)
    indexed = np.isin(batches[0], recovery.offset_entries[:, 1])
    entries = derived_minute_entries(batches[6, indexed], batches[9, indexed])
    late = [offset for offset, stamp in drawn.records if stamp >= target]

    start = safe_start(
        entries, target, base_offset=drawn.base_offset, variant=MinuteVariant.DERIVED
    )

    assert (np.diff(entries[:, 0]) > 0).all()
    assert start is not None
    assert not late or start <= late[0]


def test_the_derived_index_looks_only_at_batches_with_an_offset_entry() -> None:
    entries = derived_minute_entries(
        np.array([10, 20, 30, 40, 50]), np.array([-1, 61_000, 62_000, 50_000, 180_000])
    )

    assert pairs(entries) == [(60_000, 20), (180_000, 50)]


@pytest.mark.parametrize(
    ("target", "literal", "safe"),
    [
        (59_999, 1000, 1000),
        (60_000, 1000, 1000),
        (119_999, 1000, 1000),
        (120_000, 1002, 1002),
        (200_000, 1002, 1004),
        (240_010, 1004, 1004),
        (400_000, 1004, None),
    ],
)
def test_searches_of_the_example(target: int, literal: int, safe: int | None) -> None:
    entries = first_of_each(EXAMPLE)

    assert search_literally(entries, target, base_offset=1000) == literal
    assert safe_start(entries, target, base_offset=1000, variant=MinuteVariant.MAP) == safe


def test_a_literal_search_can_miss_a_record_that_a_safe_one_finds() -> None:
    entries = first_of_each([(0, 300_000), (1, 60_000), (2, 120_000)])

    assert search_literally(entries, 61_000, base_offset=0) == 1
    assert safe_start(entries, 61_000, base_offset=0, variant=MinuteVariant.MAP) == 0


def test_an_index_without_entries() -> None:
    empty = first_of_each([(0, -1)])

    assert encode_minute_index(empty, base_offset=0) == b""
    assert search_literally(empty, 5, base_offset=7) == 7
    assert safe_start(empty, 5, base_offset=7, variant=MinuteVariant.MAP) is None
    assert safe_start(empty, 5, base_offset=7, variant=MinuteVariant.DERIVED) == 7


def test_an_offset_out_of_reach_is_an_error() -> None:
    with pytest.raises(OffsetOverflowError, match="offset 999 does not fit base offset 1000"):
        encode_minute_index(first_of_each([(999, 5)]), base_offset=1000)
