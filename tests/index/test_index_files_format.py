"""The bytes of ``.index`` and ``.timeindex``, lookups, truncation and Kafka's sanity checks."""

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_segments.errors import CorruptIndexError
from kafka_segments.kafka.broker_rules import lookups, truncation
from kafka_segments.kafka.index.segment import offset_index, time_index
from support.logs.strategies import MAX_INT32, MAX_INT64

BASE = 1000
OFFSET_INDEX = bytes.fromhex("00000005 00000125 00000007 0000020d 00000009 00000332")
TIME_INDEX = bytes.fromhex("0000000000001b5a 00000005 0000000000002328 00000009")
OFFSET_ENTRIES = [(1005, 293), (1007, 525), (1009, 818)]
TIME_ENTRIES = [(7002, 1005), (9000, 1009)]

CORRUPT = "org.apache.kafka.storage.internals.log.CorruptIndexException: "

base_offsets = st.sampled_from([0, 1000, 2**62])
relative_offsets = st.integers(0, MAX_INT32)


def rows(pairs):
    return np.array(pairs, dtype=np.int64).reshape(-1, 2)


def pairs(entries):
    return [tuple(row) for row in entries.tolist()]


@st.composite
def offset_entries(draw):
    """Draw (base offset, entries): offsets rise, positions rise."""
    base_offset = draw(base_offsets)
    offsets = sorted(draw(st.sets(st.one_of(st.integers(0, 40), relative_offsets), max_size=20)))
    positions = sorted(
        draw(st.lists(relative_offsets, min_size=len(offsets), max_size=len(offsets)))
    )
    return base_offset, [
        (base_offset + offset, at) for offset, at in zip(offsets, positions, strict=True)
    ]


@st.composite
def time_entries(draw):
    """Draw (base offset, entries): timestamps rise, offsets do not fall."""
    base_offset = draw(base_offsets)
    times = st.one_of(st.integers(0, 40), st.integers(0, MAX_INT64))
    timestamps = sorted(draw(st.sets(times, max_size=20)))
    offsets = sorted(
        draw(
            st.lists(
                st.one_of(st.integers(0, 5), relative_offsets),
                min_size=len(timestamps),
                max_size=len(timestamps),
            )
        )
    )
    return base_offset, [
        (time, base_offset + offset) for time, offset in zip(timestamps, offsets, strict=True)
    ]


def test_e1_entries_are_written_as_kafkas_bytes():
    offset_bytes = offset_index.encode_offset_index(rows(OFFSET_ENTRIES), base_offset=BASE)
    time_bytes = time_index.encode_time_index(rows(TIME_ENTRIES), base_offset=BASE)

    assert offset_bytes == OFFSET_INDEX
    assert time_bytes == TIME_INDEX


def test_e1_bytes_are_read_as_entries():
    from_offset_index = offset_index.decode_offset_index(OFFSET_INDEX, base_offset=BASE)
    from_time_index = time_index.decode_time_index(TIME_INDEX, base_offset=BASE)

    assert pairs(from_offset_index) == OFFSET_ENTRIES
    assert pairs(from_time_index) == TIME_ENTRIES


@given(offset_entries())
def test_an_offset_index_reads_back_as_it_was_written(drawn):
    base_offset, entries = drawn
    expected = b"".join(struct.pack(">ii", offset - base_offset, at) for offset, at in entries)

    data = offset_index.encode_offset_index(rows(entries), base_offset=base_offset)

    assert data == expected
    assert pairs(offset_index.decode_offset_index(data, base_offset=base_offset)) == entries


@given(time_entries())
def test_a_time_index_reads_back_as_it_was_written(drawn):
    base_offset, entries = drawn
    expected = b"".join(struct.pack(">qi", time, offset - base_offset) for time, offset in entries)

    data = time_index.encode_time_index(rows(entries), base_offset=base_offset)

    assert data == expected
    assert pairs(time_index.decode_time_index(data, base_offset=base_offset)) == entries


@pytest.mark.parametrize("extra_bytes", range(1, 8))
def test_a_partial_last_offset_entry_is_left_out(extra_bytes):
    entries = offset_index.decode_offset_index(OFFSET_INDEX + bytes(extra_bytes), base_offset=BASE)

    assert pairs(entries) == OFFSET_ENTRIES


@pytest.mark.parametrize("extra_bytes", range(1, 12))
def test_a_partial_last_time_entry_is_left_out(extra_bytes):
    entries = time_index.decode_time_index(TIME_INDEX + bytes(extra_bytes), base_offset=BASE)

    assert pairs(entries) == TIME_ENTRIES


def test_zero_padding_is_read_as_entries_as_kafka_reads_it():
    from_offset_index = offset_index.decode_offset_index(OFFSET_INDEX + bytes(16), base_offset=BASE)
    from_time_index = time_index.decode_time_index(TIME_INDEX + bytes(12), base_offset=BASE)

    assert pairs(from_offset_index) == [*OFFSET_ENTRIES, (1000, 0), (1000, 0)]
    assert pairs(from_time_index) == [*TIME_ENTRIES, (0, 1000)]


@given(offset_entries(), st.data())
def test_an_offset_lookup_finds_what_a_plain_scan_finds(drawn, data):
    base_offset, entries = drawn
    near = [offset + step for offset, _ in entries for step in (-1, 0, 1)]
    target = data.draw(st.sampled_from([*near, base_offset - 1, base_offset, MAX_INT64]))
    expected = max((entry for entry in entries if entry[0] <= target), default=(base_offset, 0))

    found = offset_index.lookup_offset(rows(entries), target, base_offset=base_offset)

    assert found == expected


@given(time_entries(), st.data())
def test_a_timestamp_lookup_finds_what_a_plain_scan_finds(drawn, data):
    base_offset, entries = drawn
    near = [min(time + step, MAX_INT64) for time, _ in entries for step in (-1, 0, 1)]
    target = data.draw(st.sampled_from([*near, -2, -1, 0, MAX_INT64]))
    expected = max((entry for entry in entries if entry[0] <= target), default=(-1, base_offset))

    found = lookups.lookup_timestamp(rows(entries), target, base_offset=base_offset)

    assert found == expected


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        (999, (1000, 0)),
        (1000, (1000, 0)),
        (1004, (1000, 0)),
        (1005, (1005, 293)),
        (1006, (1005, 293)),
        (1007, (1007, 525)),
        (1009, (1009, 818)),
        (5000, (1009, 818)),
    ],
)
def test_e1_offset_lookups(target, expected):
    found = offset_index.lookup_offset(rows(OFFSET_ENTRIES), target, base_offset=BASE)

    assert found == expected


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        (-1, (-1, 1000)),
        (7001, (-1, 1000)),
        (7002, (7002, 1005)),
        (7003, (7002, 1005)),
        (9000, (9000, 1009)),
        (9001, (9000, 1009)),
    ],
)
def test_e1_timestamp_lookups(target, expected):
    found = lookups.lookup_timestamp(rows(TIME_ENTRIES), target, base_offset=BASE)

    assert found == expected


def test_lookups_in_empty_indexes_give_the_start_of_the_segment():
    offset = offset_index.lookup_offset(rows([]), 5, base_offset=BASE)
    timestamp = lookups.lookup_timestamp(rows([]), 5, base_offset=BASE)

    assert offset == offset_index.OffsetPosition(1000, 0)
    assert timestamp == time_index.TimestampOffset(-1, 1000)


@given(offset_entries(), st.data())
def test_truncation_of_an_offset_index_keeps_what_lies_below(drawn, data):
    base_offset, entries = drawn
    near = [offset + step for offset, _ in entries for step in (0, 1)]
    offset = data.draw(st.sampled_from([*near, base_offset, MAX_INT64]))

    kept = truncation.truncate_offset_index(rows(entries), offset)

    assert pairs(kept) == [entry for entry in entries if entry[0] < offset]


@given(time_entries(), st.data())
def test_truncation_of_a_time_index_keeps_what_lies_below(drawn, data):
    base_offset, entries = drawn
    near = [offset + step for _, offset in entries for step in (0, 1)]
    offset = data.draw(st.sampled_from([*near, base_offset, MAX_INT64]))

    kept = truncation.truncate_time_index(rows(entries), offset)

    assert pairs(kept) == [entry for entry in entries if entry[1] < offset]


@pytest.mark.parametrize(
    ("offset", "offsets_kept", "times_kept"),
    [
        (1004, [], []),
        (1006, [(1005, 293)], [(7002, 1005)]),
        (1009, [(1005, 293), (1007, 525)], [(7002, 1005)]),
        (1010, OFFSET_ENTRIES, TIME_ENTRIES),
    ],
)
def test_e1_truncations(offset, offsets_kept, times_kept):
    offsets = truncation.truncate_offset_index(rows(OFFSET_ENTRIES), offset)
    times = truncation.truncate_time_index(rows(TIME_ENTRIES), offset)

    assert pairs(offsets) == offsets_kept
    assert pairs(times) == times_kept


ACCEPTED_OFFSET_INDEXES = {
    "e1": OFFSET_INDEX,
    "empty": b"",
    "last offset is the base offset": bytes(8),
    "zero padding": OFFSET_INDEX + bytes(80),
}
REFUSED_OFFSET_INDEXES = {
    "length": (OFFSET_INDEX + b"\0", "length is 25 bytes, no multiple of 8"),
    "last offset": (
        OFFSET_INDEX + struct.pack(">ii", -1, 900),
        "last offset is 999, below the base offset 1000",
    ),
}
ACCEPTED_TIME_INDEXES = {
    "e1": TIME_INDEX,
    "empty": b"",
    "all zeros": bytes(120),
    "equal timestamps": struct.pack(">qiqi", 5, 3, 5, 0),
}
REFUSED_TIME_INDEXES = {
    "length": (TIME_INDEX + b"\0", "length is 25 bytes, no multiple of 12"),
    "zero padding": (TIME_INDEX + bytes(12), "last timestamp is 0, below the first, 7002"),
    "last offset": (
        TIME_INDEX + struct.pack(">qi", 9001, -2),
        "last offset is 998, below the base offset 1000",
    ),
}


def sanity_by_kafka(referee, folder, *, offsets=b"", times=b""):
    """Give what Kafka's sanity checks of both index files throw, None where they pass."""
    (folder / f"{BASE:020d}.index").write_bytes(offsets)
    (folder / f"{BASE:020d}.timeindex").write_bytes(times)
    answer = referee.lookup(folder, BASE)
    return answer["offset_index_sanity"], answer["time_index_sanity"]


@pytest.mark.parametrize("name", ACCEPTED_OFFSET_INDEXES)
def test_kafka_accepts_these_offset_indexes_and_so_do_we(referee, tmp_path, name):
    data = ACCEPTED_OFFSET_INDEXES[name]

    offset_index.check_offset_index(data, base_offset=BASE)

    assert sanity_by_kafka(referee, tmp_path, offsets=data) == (None, None)


@pytest.mark.parametrize("name", REFUSED_OFFSET_INDEXES)
def test_kafka_refuses_these_offset_indexes_and_so_do_we(referee, tmp_path, name):
    data, message = REFUSED_OFFSET_INDEXES[name]

    with pytest.raises(CorruptIndexError) as raised:
        offset_index.check_offset_index(data, base_offset=BASE)

    assert str(raised.value) == message
    by_kafka, _ = sanity_by_kafka(referee, tmp_path, offsets=data)
    assert by_kafka.startswith(CORRUPT)


@pytest.mark.parametrize("name", ACCEPTED_TIME_INDEXES)
def test_kafka_accepts_these_time_indexes_and_so_do_we(referee, tmp_path, name):
    data = ACCEPTED_TIME_INDEXES[name]

    time_index.check_time_index(data, base_offset=BASE)

    assert sanity_by_kafka(referee, tmp_path, times=data) == (None, None)


@pytest.mark.parametrize("name", REFUSED_TIME_INDEXES)
def test_kafka_refuses_these_time_indexes_and_so_do_we(referee, tmp_path, name):
    data, message = REFUSED_TIME_INDEXES[name]

    with pytest.raises(CorruptIndexError) as raised:
        time_index.check_time_index(data, base_offset=BASE)

    assert str(raised.value) == message
    _, by_kafka = sanity_by_kafka(referee, tmp_path, times=data)
    assert by_kafka.startswith(CORRUPT)


@pytest.mark.parametrize("timestamp", [-(2**63), -1, 0, 2**63 - 1])
@pytest.mark.parametrize("relative", [-(2**31), -1, 0, 2**31 - 1, 2**32 + 7])
def test_a_time_entry_alone_has_the_bytes_that_it_has_among_others(
    timestamp: int, relative: int
) -> None:
    twice = np.array([(timestamp, 2**40 + relative)] * 2, dtype=np.int64)

    alone = time_index.encode_time_index(twice[:1], base_offset=2**40)

    assert 2 * alone == time_index.encode_time_index(twice, base_offset=2**40)
