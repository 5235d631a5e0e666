"""A segment that a load splits, and the index entries of a piece that keep it from that."""

import pytest

from kafka_segments.kafka.index.segment import batch_reading as log_end
from kafka_segments.kafka.index.segment.recovery import SegmentRecoverer
from kafka_segments.kafka.index.segment.recovery_options import RecoveryOptions
from kafka_segments.kafka.index.segment.splitting import split_overflowed
from support.logs.log_reading import reader_of
from support.logs.strategies import v1_message

FAR = 2**33
INTERVAL = 60  # a message of 35 bytes is indexed if the one before it is not


def _pieces(
    *messages: tuple[int, int], interval_bytes: int = INTERVAL, first_bytes: int = 100
) -> list[int] | None:
    """Split messages of (offset, timestamp) behind a larger first one; give the pieces' names."""
    log = v1_message(0, 1, None, bytes(first_bytes)) + b"".join(
        v1_message(offset, timestamp, None, b"v") for offset, timestamp in messages
    )
    recoverer = SegmentRecoverer(RecoveryOptions(index_interval_bytes=interval_bytes))
    found = split_overflowed(recoverer, reader_of(log), size_bytes=len(log), base_offset=0)
    if found is None:
        return None
    assert not [piece.recovery.damage for piece in found if piece.recovery.damage]
    ends = [piece.position + piece.recovery.valid_bytes for piece in found]
    assert ends == [*(piece.position for piece in found[1:]), len(log)]
    return [piece.base_offset for piece in found]


@pytest.mark.parametrize(
    "messages",
    [
        [(1, 0), (2, 0), (3, 0)],  # the greatest timestamp is at offset 0
        [(1, -1), (2, -1), (3, -1)],
        [(1, 5), (2, 5), (3, 5), (4, 5)],  # and here at 1, for all that follow
        [(1, 5), (2, 6), (3, 7), (4, 8)],
        [(9, 5), (9, 7), (12, 7)],
    ],
)
def test_a_segment_is_split_where_its_offsets_no_longer_fit(
    messages: list[tuple[int, int]],
) -> None:
    assert _pieces(*messages, (FAR, 1)) == [0, FAR]


def test_an_index_entry_that_goes_back_keeps_a_segment_from_being_split() -> None:
    time_goes_back = (9, 5), (4, 7), (12, 6)
    offset_goes_back = (9, 5), (4, 3), (8, 4)

    assert _pieces(*time_goes_back, (FAR, 1)) is None
    assert _pieces(*offset_goes_back, (FAR, 1)) is None
    assert _pieces(*time_goes_back, (FAR, 1), interval_bytes=4096) == [0, FAR]
    assert _pieces((1, 1), (2, 1)) is None


@pytest.mark.parametrize("window_bytes", [61, 62, 100, 512, 1024])
def test_a_segment_is_split_wherever_a_window_ends(
    monkeypatch: pytest.MonkeyPatch, window_bytes: int
) -> None:
    monkeypatch.setattr(log_end, "_WINDOW_BYTES", window_bytes)

    for size in range(100, 180):
        assert _pieces((3, 1), (9, 1), (FAR, 1), (FAR + 1, 1), first_bytes=size) == [0, FAR]
        assert _pieces((FAR, 1), (2 * FAR, 1), first_bytes=size) == [0, FAR, 2 * FAR]


def test_a_batch_as_long_as_a_window_may_stand_before_the_cut() -> None:
    assert [_pieces((FAR, 1), first_bytes=size) for size in (65_400, 65_502, 65_536, 200_000)] == [
        [0, FAR]
    ] * 4
