"""A torn tail told from damage with sound batches behind it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_segments.errors import FileChangedError
from kafka_segments.recovery import torn_tail
from kafka_segments.recovery.torn_tail import Tail, read_tail
from kafka_segments.wire.header_layout import HEADER_BYTES
from strategies import v2_batch

RECORDS = [(1_700_000_000_000, b"key", b"value" * 20)] * 3
FIRST, SECOND, THIRD = (v2_batch(offset, RECORDS) for offset in (100, 103, 106))


def _tail(log: bytes, *, start: int = len(FIRST), next_offset: int = 103) -> Tail:
    def read_into(position: int, into: memoryview) -> int:
        data = log[position : position + len(into)]
        into[: len(data)] = data
        return len(data)

    return read_tail(read_into, start=start, end=len(log), next_offset=next_offset)


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
