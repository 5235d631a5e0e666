"""Compacted index files answer as before; what cannot be judged stays as it is."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from kafka_segments.kafka.broker_rules.lookups import lookup_timestamp
from kafka_segments.kafka.index.segment.offset_index import (
    decode_offset_index,
    encode_offset_index,
    lookup_offset,
)
from kafka_segments.kafka.index.segment.recovered_segment import Entries
from kafka_segments.kafka.index.segment.time_index import decode_time_index, encode_time_index
from kafka_segments.verbs.change.compact.decide.thinning import IndexBytes, compact_files, trim

BASE = 1_000
Batch = tuple[int, int, int]  # last offset, position, greatest timestamp


@st.composite
def logs(draw: st.DrawFn) -> list[Batch]:
    """Draw the batches of a log, in order."""
    batches, offset, position = [], BASE - 1, 0
    for _ in range(draw(st.integers(1, 60))):
        offset += draw(st.integers(1, 5))
        batches.append((offset, position, draw(st.integers(-1, 40))))
        position += draw(st.integers(61, 3_000))
    return batches


def _built(batches: list[Batch], interval: int) -> IndexBytes:
    offsets: list[tuple[int, int]] = []
    times: list[tuple[int, int]] = []
    last, greatest, greatest_at = 0, -1, BASE
    for offset, position, timestamp in batches:
        if timestamp > greatest:
            greatest, greatest_at = timestamp, offset
        if position - last > interval:
            offsets.append((offset, position))
            last = position
            if greatest > (times[-1][0] if times else -1):
                times.append((greatest, greatest_at))
    if greatest > (times[-1][0] if times else -1):
        times.append((greatest, greatest_at))
    return IndexBytes(
        encode_offset_index(_array(offsets), base_offset=BASE),
        encode_time_index(_array(times), base_offset=BASE),
    )


def _array(rows: list[tuple[int, int]]) -> Entries:
    return np.array(rows, dtype=np.int64).reshape(-1, 2)


def _read(files: IndexBytes) -> tuple[Entries, Entries]:
    assert files.offset_index is not None and files.time_index is not None
    return (
        decode_offset_index(files.offset_index, base_offset=BASE),
        decode_time_index(files.time_index, base_offset=BASE),
    )


def _first_at(batches: list[Batch], offsets: Entries, target: int) -> Batch | None:
    """Find the batch of an offset as a broker does: from where the index says."""
    start = lookup_offset(offsets, target, base_offset=BASE).position
    return next((b for b in batches if b[1] >= start and b[0] >= target), None)


def _first_since(batches: list[Batch], files: IndexBytes, timestamp: int) -> Batch | None:
    offsets, times = _read(files)
    found = lookup_timestamp(times, timestamp, base_offset=BASE).offset
    start = lookup_offset(offsets, found, base_offset=BASE).position
    return next((b for b in batches if b[1] >= start and b[2] >= timestamp), None)


@given(logs(), st.sampled_from([0, 200, 4_096]), st.sampled_from([4_096, 10_000, 10**6]))
def test_lookups_in_thinned_files_answer_as_a_scan_of_the_log(
    batches: list[Batch], interval: int, coarser: int
) -> None:
    built = _built(batches, interval)

    thinned = compact_files(built, base_offset=BASE, index_interval_bytes=coarser)

    offsets, times = _read(thinned)
    for target in range(BASE, batches[-1][0] + 2):
        expected = next((batch for batch in batches if batch[0] >= target), None)
        assert _first_at(batches, offsets, target) == expected
    for timestamp in range(42):
        expected = next((batch for batch in batches if batch[2] >= timestamp), None)
        assert _first_since(batches, thinned, timestamp) == expected
    assert times[-1:].tolist() == _read(built)[1][-1:].tolist()
    assert set(map(tuple, offsets)) <= set(map(tuple, _read(built)[0]))
    assert all(step > coarser for step in np.diff(offsets[:, 1], prepend=0))


@given(logs(), st.integers(0, 50))
def test_trimming_gives_the_bytes_that_recovery_writes(batches: list[Batch], zeros: int) -> None:
    built = _built(batches, 200)
    assert built.offset_index is not None and built.time_index is not None
    assume(built.time_index != bytes(12))  # timestamp 0 alone looks like a file never written
    padded = IndexBytes(
        built.offset_index + bytes(8 * (zeros + 2)), built.time_index + bytes(12 * (zeros + 2))
    )

    trimmed = compact_files(padded, base_offset=BASE, index_interval_bytes=None)

    assert trimmed == built


def test_an_entry_that_repeats_the_one_before_goes() -> None:
    doubled = encode_offset_index(_array([(1005, 300), (1005, 300), (1009, 800)]), base_offset=BASE)

    compacted = compact_files(
        IndexBytes(doubled, None), base_offset=BASE, index_interval_bytes=None
    )

    assert compacted.offset_index == doubled[8:]


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"\1" * 9, id="length"),
        pytest.param(b"\0\0\0\5\0\0\1\0" + b"\0\0\0\4\0\0\2\0", id="out of order"),
    ],
)
def test_what_cannot_be_judged_stays_as_it_is(data: bytes) -> None:
    files = IndexBytes(data, None)

    assert compact_files(files, base_offset=BASE, index_interval_bytes=10**6) == files


def test_one_entry_of_zeros_may_be_true_more_were_never_written() -> None:
    assert trim(bytes(12), 12) == bytes(12)
    assert trim(bytes(10_485_760), 8) == b""


def _compacted(
    offsets: list[tuple[int, int]], times: list[tuple[int, int]], interval: int | None
) -> tuple[list[list[int]], list[list[int]]]:
    files = IndexBytes(
        encode_offset_index(_array(offsets), base_offset=BASE),
        encode_time_index(_array(times), base_offset=BASE),
    )
    compacted = compact_files(files, base_offset=BASE, index_interval_bytes=interval)
    left_offsets, left_times = _read(compacted)
    return left_offsets.tolist(), left_times.tolist()


def test_an_entry_stays_where_more_than_the_interval_lies_before_it() -> None:
    offsets = [(1001, 100), (1002, 101), (1003, 201), (1004, 202), (1005, 303)]

    left, times = _compacted(offsets, [], 100)

    assert (left, times) == ([[1002, 101], [1004, 202], [1005, 303]], [])


def test_of_the_times_up_to_an_entry_the_last_stays() -> None:
    offsets = [(1002, 500), (1004, 600), (1009, 1_200)]
    times = [(10, 1000), (20, 1002), (30, 1003), (40, 1004), (50, 1009), (60, 1010), (70, 1011)]

    left, left_times = _compacted(offsets, times, 499)

    assert left == [[1002, 500], [1009, 1_200]]
    assert left_times == [[20, 1002], [50, 1009], [70, 1011]]


def test_the_first_time_entry_stays_where_it_is_the_last_up_to_an_entry() -> None:
    assert _compacted([(1002, 500)], [(10, 1001), (20, 1005)], 100)[1] == [[10, 1001], [20, 1005]]
    assert _compacted([(1002, 500)], [(10, 1004), (20, 1005)], 100)[1] == [[20, 1005]]
    assert _compacted([], [(10, 1004)], 100)[1] == [[10, 1004]]


def test_repeats_go_from_both_files_and_equal_second_values_are_no_repeat() -> None:
    offsets = [(1005, 300), (1005, 300)]
    times = [(10, 1005), (20, 1005), (20, 1005)]

    assert _compacted(offsets, times, None) == ([[1005, 300]], [[10, 1005], [20, 1005]])
    assert _compacted([(1005, 300), (1006, 300)], [], None)[0] == [[1005, 300], [1006, 300]]


@pytest.mark.parametrize(
    "time_index",
    [
        encode_time_index(_array([(20, 1005), (10, 1006)]), base_offset=BASE),
        encode_time_index(_array([(10, 1006), (20, 1005)]), base_offset=BASE),
        encode_time_index(_array([(10, 1006), (10, 1007)]), base_offset=BASE),
        encode_time_index(_array([(10, 1006)]), base_offset=BASE) + bytes(13),
    ],
)
def test_a_time_index_that_cannot_be_judged_stays_beside_one_that_can(time_index: bytes) -> None:
    offset_index = encode_offset_index(_array([(1001, 100), (1002, 300)]), base_offset=BASE)
    files = IndexBytes(offset_index, time_index)

    compacted = compact_files(files, base_offset=BASE, index_interval_bytes=200)

    assert compacted == IndexBytes(offset_index[8:], time_index)


@pytest.mark.parametrize(
    ("data", "trimmed_bytes"),
    [
        (b"", 0),
        (bytes(7), 7),
        (bytes(8), 8),
        (bytes(9), 9),
        (bytes(16), 0),
        (b"\1" + bytes(15), 8),
        (bytes(7) + b"\1" + bytes(8), 8),
        (bytes(8) + b"\1" + bytes(15), 16),
        (b"\1" + bytes(16), 17),
        (bytes(16) + b"\1", 17),
    ],
)
def test_whole_entries_of_zeros_are_trimmed(data: bytes, trimmed_bytes: int) -> None:
    assert trim(data, 8) == data[:trimmed_bytes]
