"""Digests that a build keeps: what reading the segment once more would give, or nothing."""

import random
import struct

import numpy as np
import pytest

from kafka_segments.kafka.index.segment import segment_walker
from kafka_segments.kafka.index.segment.recovered_segment import Ranges
from kafka_segments.kafka.index.segment.recovery import SegmentRecoverer
from kafka_segments.kafka.index.segment.recovery_options import RecoveryOptions
from kafka_segments.verbs.copies.divergence.log_reading.segment_ranges import SegmentRangeReader
from kafka_segments.verbs.copies.divergence.log_reading.sound_batches import Stretch
from support.logs.log_reading import fetched_of, reader_of
from support.logs.sound_logs import STYLES, sound_log
from support.logs.strategies import v2_batch

BITS = 4


def _kept(
    data: bytes, base: int = 0, *, check_crc: bool = True, fetched_bytes: int | None = None
) -> Ranges | None:
    recoverer = SegmentRecoverer(RecoveryOptions(digest_bits=BITS, check_crc=check_crc))
    found = recoverer.recover(
        reader_of(data),
        size_bytes=len(data),
        base_offset=base,
        fetched_at=None if fetched_bytes is None else fetched_of(data, fetched_bytes),
    )
    return found.offset_ranges


def _read(data: bytes, base: int = 0) -> Ranges:
    found = SegmentRangeReader(range_bits=BITS).read(reader_of(data), Stretch(0, len(data), base))
    assert found.damages == ()
    return found.columns


@pytest.mark.parametrize("check_crc", [True, False])
@pytest.mark.parametrize("style", STYLES)
def test_what_is_kept_is_what_reading_again_gives(seed: int, style: str, check_crc: bool) -> None:
    rng = random.Random(f"{seed} {style}")
    for _ in range(10):
        for segment in sound_log(rng, style):
            kept = _kept(segment.log, segment.base_offset, check_crc=check_crc)

            assert kept is not None
            assert np.array_equal(kept, _read(segment.log, segment.base_offset))


@pytest.mark.parametrize("buffer_bytes", [64, 100, 257, 4096])
def test_batches_that_lie_across_buffers_count_once(
    monkeypatch: pytest.MonkeyPatch, buffer_bytes: int
) -> None:
    monkeypatch.setattr(segment_walker, "_BUFFER_BYTES", buffer_bytes)
    rng = random.Random(buffer_bytes)
    log = b"".join(
        v2_batch(offset, [(1, b"k", rng.randbytes(rng.choice([0, 30, 500])))])
        for offset in range(0, 90, 3)
    )

    assert np.array_equal(_kept(log), _read(log))
    assert np.array_equal(_kept(log, fetched_bytes=buffer_bytes), _read(log))


def test_more_ranges_than_are_folded_at_once() -> None:
    log = b"".join(v2_batch(offset, [(1, None, None)]) for offset in range(0, 50_000, 20))

    kept = _kept(log)

    assert kept is not None
    assert kept.shape[1] == 2500
    assert np.array_equal(kept, _read(log))


def test_nothing_is_kept_of_a_segment_that_is_not_sound_to_its_end() -> None:
    first, second = (v2_batch(offset, [(1, b"k", b"value")]) for offset in (5, 6))
    rotten = second[:-1] + bytes([second[-1] ^ 1])
    of_no_magic = second[:16] + b"\x03" + second[17:]
    wrapped = struct.pack(">q", -1) + second[8:]

    assert _kept(first + second, 5) is not None
    assert _kept(b"", 5) is not None
    for data in (
        first + rotten,
        first + second[:-1],
        first + bytes(100),
        first + b"\x00",
        second + first,
        first + first,
        first + wrapped,
    ):
        assert _kept(data, 5) is None, data
    assert _kept(first + of_no_magic, 5, check_crc=False) is None
    assert _kept(first, 6) is None
