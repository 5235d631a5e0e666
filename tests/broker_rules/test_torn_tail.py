"""A torn tail told from damage with sound batches behind it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_segments.errors import FileChangedError
from kafka_segments.kafka.broker_rules.start import torn_tail
from kafka_segments.kafka.broker_rules.start.torn_tail import Tail, read_tail, records_by_headers
from kafka_segments.kafka.wire.header_layout import HEADER_BYTES, RECORD_COUNT
from kafka_segments.kafka.wire.reading import ReadInto
from support.logs.strategies import v2_batch

RECORDS = [(1_700_000_000_000, b"key", b"value" * 20)] * 3
FIRST, SECOND, THIRD = (v2_batch(offset, RECORDS) for offset in (100, 103, 106))


def _reader(log: bytes) -> ReadInto:
    def read_into(position: int, into: memoryview) -> int:
        data = log[position : position + len(into)]
        into[: len(data)] = data
        return len(data)

    return read_into


def _tail(log: bytes, *, start: int = len(FIRST), next_offset: int = 103) -> Tail:
    return read_tail(_reader(log), start=start, end=len(log), next_offset=next_offset)


def _told(log: bytes, next_offset: int | None = None) -> int | None:
    return records_by_headers(_reader(log), start=0, end=len(log), next_offset=next_offset)


@pytest.mark.parametrize(
    ("behind", "records"),
    [
        (SECOND[:16], 0),
        (SECOND[: HEADER_BYTES - 1], 0),
        (SECOND[:HEADER_BYTES], 3),
        (SECOND[:-1], 3),
        (SECOND[:100] + bytes(len(SECOND) - 100), 3),
        (SECOND[:-1] + b"?", 3),
        (SECOND[:-1] + b"?" + THIRD[:-1], 6),
        (bytes(5000), 0),
        (b"\x02" * 5000, 0),
        (FIRST, 0),
    ],
    ids=[
        *("no magic", "most of a header", "a header", "all but a byte", "zeros within"),
        *("a checksum", "two torn batches", "zeros", "noise", "a batch of before"),
    ],
)
def test_a_tail_without_a_sound_batch_is_torn_and_its_headers_tell_the_records(
    behind: bytes, records: int
) -> None:
    assert _tail(FIRST + behind) == Tail(records, None)


def test_headers_tell_records_of_any_offset_unless_they_have_to_go_on_from_one() -> None:
    far = v2_batch(100 + 2**31, RECORDS)

    assert _told(SECOND + FIRST[:HEADER_BYTES]) == 6
    assert _told(SECOND + FIRST[:HEADER_BYTES], 103) == 3
    assert _told(SECOND + FIRST[:HEADER_BYTES], 104) is None
    assert [_told(far, offset) for offset in (None, 100, 101)] == [3, None, 3]


def test_what_is_no_header_tells_no_records_and_not_none_of_them() -> None:
    negative = SECOND[:RECORD_COUNT] + b"\xff" * 4
    empty = SECOND[:RECORD_COUNT] + bytes(4)

    assert [_told(data) for data in (b"", bytes(5000), negative, empty)] == [None, None, None, 0]
    assert _told(SECOND + negative) == 3


def test_no_more_headers_are_followed_than_a_million(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torn_tail, "_MOST_HEADERS", 2)

    assert _told(FIRST + SECOND + THIRD) == 6


@pytest.mark.parametrize("window", [64, 100, 4096])
def test_a_sound_batch_is_found_wherever_it_begins(
    monkeypatch: pytest.MonkeyPatch, window: int
) -> None:
    monkeypatch.setattr(torn_tail, "_WINDOW_BYTES", window)
    for gap in range(0, 200, 7):
        log = FIRST + SECOND[:-1] + b"?" + bytes(gap) + THIRD

        assert _tail(log).sound_at == len(log) - len(THIRD)


@given(st.binary(max_size=300))
def test_noise_is_no_sound_batch(noise: bytes) -> None:
    assert _tail(FIRST + noise).sound_at is None


def test_a_file_that_became_shorter_is_told() -> None:
    with pytest.raises(FileChangedError):
        read_tail(lambda *_: 0, start=0, end=100, next_offset=0)
    with pytest.raises(FileChangedError):
        records_by_headers(_reader(SECOND[:30]), start=0, end=len(SECOND))
