"""KIP-33's time index: its entries, its guarantee, and segments without timestamps."""

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_segments.errors import OffsetOverflowError
from kafka_segments.kafka.broker_rules.lookups import lookup_kip33
from kafka_segments.kafka.broker_rules.truncation import truncate_kip33
from kafka_segments.kafka.index.formats.kip33_index import (
    SegmentPlace,
    WithoutTimestamps,
    encode_kip33_index,
    kip33_entries,
)
from kafka_segments.kafka.index.segment.recovered_segment import Entries
from kafka_segments.kafka.index.segment.time_index import decode_time_index
from support.logs.log_reading import batches_of, recovered
from support.logs.strategies import (
    MAX_INT32,
    DatedLog,
    dated_logs,
    example_e1,
    v0_message,
    v2_batch,
)

BASE, E1 = example_e1()


def place(base_offset: int, next_base_offset: int | None = None, **facts: int) -> SegmentPlace:
    known = {"log_end_offset": next_base_offset or 0, "last_modified_ms": 777, **facts}
    return SegmentPlace(base_offset, next_base_offset, **known)


def entries_of(
    log: bytes,
    where: SegmentPlace,
    rule: WithoutTimestamps = WithoutTimestamps.EMPTY,
    interval_bytes: int = 200,
) -> list[tuple[int, int]]:
    found = recovered(log, base_offset=where.base_offset, interval_bytes=interval_bytes)
    assert found.offset_entries is not None
    assert found.time_entries is not None
    entries = kip33_entries(
        found.offset_entries, found.time_entries, where, without_timestamps=rule
    )
    return pairs(entries)


def pairs(entries: Entries) -> list[tuple[int, int]]:
    return [tuple(row) for row in entries.tolist()]


def folded(log: bytes, closing_offset: int, interval_bytes: int) -> list[tuple[int, int]]:
    """Build the entries as the text says, batch by batch."""
    entries: dict[int, int] = {}
    greatest, last_indexed = -1, 0
    for position, last_offset, timestamp in batches_of(log)[[0, 6, 9]].T.tolist():
        greatest = max(greatest, timestamp)
        if position - last_indexed > interval_bytes:
            last_indexed = position
            if greatest > max(entries, default=-1):
                entries[greatest] = last_offset + 1
    if greatest >= 0:
        entries[greatest] = closing_offset
    return list(entries.items())


def test_e1_of_a_closed_segment() -> None:
    entries = entries_of(E1, place(BASE, 1010))

    assert entries == [(7002, 1006), (9000, 1010)]


def test_the_last_entry_of_a_closed_segment_points_to_the_next_segment() -> None:
    log = E1 + v2_batch(1010, [(8000, None, b"")])

    assert entries_of(log, place(BASE, 1050))[-1] == (9000, 1050)


def test_the_last_entry_of_the_active_segment_points_to_the_log_end() -> None:
    log = E1 + v2_batch(1010, [(8000, None, b"")])

    assert entries_of(log, place(BASE, log_end_offset=1011))[-1] == (9000, 1011)


def test_the_file_is_laid_out_as_kafkas() -> None:
    entries = np.array([(7002, 1006), (9000, 1010)], dtype=np.int64)

    data = encode_kip33_index(entries, base_offset=BASE)

    assert data == struct.pack(">qiqi", 7002, 6, 9000, 10)
    assert (decode_time_index(data, base_offset=BASE) == entries).all()


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        (7002, (-1, 1000)),
        (7003, (7002, 1006)),
        (9000, (7002, 1006)),
        (9001, (9000, 1010)),
    ],
)
def test_a_lookup_takes_an_entry_strictly_below(target: int, expected: tuple[int, int]) -> None:
    entries = np.array([(7002, 1006), (9000, 1010)], dtype=np.int64)

    assert lookup_kip33(entries, target, base_offset=BASE) == expected


intervals = st.sampled_from([0, 100, 4096])


@given(dated_logs(), intervals)
def test_entries_are_those_of_the_text(drawn: DatedLog, interval_bytes: int) -> None:
    end = recovered(drawn.log, base_offset=drawn.base_offset).next_offset
    where = place(drawn.base_offset, end + 3)

    entries = entries_of(drawn.log, where, interval_bytes=interval_bytes)

    assert entries == folded(drawn.log, end + 3, interval_bytes)


@given(dated_logs(), intervals, st.data())
def test_every_record_later_than_an_entry_lies_at_or_after_its_offset(
    drawn: DatedLog, interval_bytes: int, data: st.DataObject
) -> None:
    base_offset, records = drawn.base_offset, drawn.records
    end = recovered(drawn.log, base_offset=base_offset).next_offset
    entries = entries_of(drawn.log, place(base_offset, end), interval_bytes=interval_bytes)
    near = [max(stamp, 0) + step for _, stamp in records for step in (0, 1)]
    target = data.draw(st.sampled_from([0, *near]))

    start = lookup_kip33(rows(entries), target, base_offset=base_offset).offset

    for timestamp, entry_offset in entries:
        assert all(offset >= entry_offset for offset, stamp in records if stamp > timestamp)
    assert all(offset >= start for offset, stamp in records if stamp >= target)


def rows(entries: list[tuple[int, int]]) -> Entries:
    return np.array(entries, dtype=np.int64).reshape(-1, 2)


NO_TIMES = v0_message(1003, None, b"old") + v0_message(1004, None, b"older")


@pytest.mark.parametrize(
    ("rule", "closed"),
    [
        (WithoutTimestamps.EMPTY, []),
        (WithoutTimestamps.MTIME_NEXT, [(777, 1010)]),
        (WithoutTimestamps.MTIME_FIRST, [(777, 1003)]),
    ],
)
def test_a_segment_without_timestamps(
    rule: WithoutTimestamps, closed: list[tuple[int, int]]
) -> None:
    active = place(BASE, log_end_offset=1005, first_offset=1003)

    assert entries_of(NO_TIMES, place(BASE, 1010, first_offset=1003), rule) == closed
    assert entries_of(NO_TIMES, active, rule) == []


def test_a_segment_without_records_has_no_first_message() -> None:
    assert entries_of(b"", place(BASE, 1000), WithoutTimestamps.MTIME_FIRST) == []


def test_a_next_segment_out_of_reach_is_an_error() -> None:
    entries = entries_of(E1, place(BASE, BASE + MAX_INT32 + 1))

    with pytest.raises(OffsetOverflowError) as raised:
        encode_kip33_index(rows(entries), base_offset=BASE)

    assert str(raised.value) == (
        "offset 2147484648 does not fit base offset 1000:"
        " an index entry holds 0 to 2147483647 above it"
    )


def test_offsets_that_go_back_between_index_points_do_no_harm() -> None:
    log = b"".join(
        v2_batch(base, [(stamp, None, bytes(50))])
        for base, stamp in [(1000, 5), (1001, 6), (1090, 9), (1002, 1), (1003, 1), (1200, 10)]
    )

    entries = entries_of(log, place(BASE, 1300), interval_bytes=300)

    assert entries == [(9, 1091), (10, 1300)]


@pytest.mark.parametrize(
    ("offset", "left"),
    [(1005, []), (1006, [(7002, 1006)]), (1009, [(7002, 1006)]), (1010, None), (1000, [])],
)
def test_truncation_drops_what_speaks_of_removed_records(
    offset: int, left: list[tuple[int, int]] | None
) -> None:
    entries = entries_of(E1, place(BASE, 1010))

    assert pairs(truncate_kip33(rows(entries), offset)) == (entries if left is None else left)


@given(dated_logs(), intervals, st.data())
def test_every_entry_left_by_truncation_has_its_record(
    drawn: DatedLog, interval_bytes: int, data: st.DataObject
) -> None:
    base_offset = drawn.base_offset
    end = recovered(drawn.log, base_offset=base_offset).next_offset
    offset = data.draw(st.integers(base_offset, end))
    entries = entries_of(drawn.log, place(base_offset, end), interval_bytes=interval_bytes)

    left = pairs(truncate_kip33(rows(entries), offset))

    remaining = {stamp for at, stamp in drawn.records if at < offset}
    assert {timestamp for timestamp, _ in left} <= remaining
