"""Digests of ranges of offsets: the same wherever a segment begins, another for each change."""

import random
import struct

import numpy as np
import pytest

from kafka_segments.kafka.index.segment import offset_ranges as ranges
from kafka_segments.kafka.wire import batches as wire
from kafka_segments.kafka.wire.header_layout import HEADER_BYTES
from support.logs.log_reading import batches_of
from support.logs.sound_logs import sound_log
from support.logs.strategies import empty_batch, v2_batch

BITS = 4


def _folded(batches: wire.Batches, *, room: int = 200, next_offset: int = -1) -> np.ndarray:
    columns = np.empty((ranges.RANGE_FIELDS, room), dtype=np.int64)
    at, count = ranges.fold_ranges(batches, 0, next_offset, columns, 0, BITS)
    assert at == batches.shape[1]
    return columns[:, :count]


def _log(offsets: list[int], epoch: int = 0) -> bytes:
    return b"".join(
        v2_batch(offset, [(1, None, b"%d" % offset)], leader_epoch=epoch) for offset in offsets
    )


def test_a_range_says_what_its_batches_add_up_to() -> None:
    log = _log([5, 14, 15], epoch=1) + _log([16, 18], epoch=2)
    found = _folded(batches_of(log), next_offset=5)
    size = len(log) // 5

    assert found[ranges.RANGE].tolist() == [0, 1]
    assert found[ranges.BATCHES].tolist() == [3, 2]
    assert found[ranges.BASE_OFFSET].tolist() == [5, 16]
    assert found[ranges.LAST_OFFSET].tolist() == [15, 18]
    assert found[ranges.FIRST_EPOCH].tolist() == [1, 2]
    assert found[ranges.LAST_EPOCH].tolist() == [1, 2]
    assert found[ranges.POSITION].tolist()[0] == 0
    assert found[ranges.END_POSITION].tolist()[1] == len(log)
    assert found[ranges.POSITION, 1] == found[ranges.END_POSITION, 0] > size
    assert found[ranges.BYTES].sum() == len(log)
    assert found[ranges.THINNED].tolist() == [1, 1]  # the gaps in front of 14 and of 18


def test_pieces_of_a_range_combine_wherever_the_log_is_cut(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(30):
        log = b"".join(segment.log for segment in sound_log(rng))
        batches = batches_of(log)
        cut = rng.randint(0, batches.shape[1])
        whole = _folded(batches)
        parts = [_folded(np.ascontiguousarray(one)) for one in np.split(batches, [cut], axis=1)]
        combined: dict[int, int] = {}
        for column in np.concatenate(parts, axis=1).T.tolist():
            number = column[ranges.RANGE]
            combined[number] = combined.get(number, 0) ^ column[ranges.DIGEST]

        expected = dict(zip(*whole[[ranges.RANGE, ranges.DIGEST]].tolist(), strict=True))
        assert combined == expected


@pytest.mark.parametrize(
    "field",
    [
        wire.BATCH_BASE_OFFSET,
        wire.BATCH_LAST_OFFSET,
        wire.BATCH_LEADER_EPOCH,
        wire.BATCH_MAGIC,
        wire.BATCH_SIZE_BYTES,
        wire.BATCH_CRC,
    ],
)
def test_every_field_of_a_mark_changes_the_digest(field: int) -> None:
    batches = batches_of(_log([0, 1, 2]))
    other = batches.copy()
    other[field, 1] ^= 1

    assert (_folded(batches)[ranges.DIGEST] != _folded(other)[ranges.DIGEST]).any()


def test_a_position_does_not_change_the_digest() -> None:
    batches = batches_of(_log([0, 1, 2]))
    other = batches.copy()
    other[wire.BATCH_POSITION] += 1000

    assert (_folded(batches)[ranges.DIGEST] == _folded(other)[ranges.DIGEST]).all()


def test_batches_that_lost_records_tell_of_compaction_and_others_do_not() -> None:
    whole = v2_batch(0, [(1, b"a", b""), (1, b"b", b"")])
    thin = v2_batch(2, [(1, b"a", b"")], last_offset_delta=3)
    empty = empty_batch(6, last_offset_delta=1, max_timestamp=5)

    assert _folded(batches_of(whole))[ranges.THINNED].tolist() == [0]
    assert _folded(batches_of(whole + thin + empty))[ranges.THINNED].tolist() == [2]


def test_where_there_is_no_room_the_fold_stops_at_a_batch() -> None:
    batches = batches_of(_log([0, 16, 32]))
    columns = np.empty((ranges.RANGE_FIELDS, 2), dtype=np.int64)

    assert ranges.fold_ranges(batches, 0, 0, columns, 0, BITS) == (2, 2)
    assert ranges.fold_ranges(batches, 2, 17, columns, 0, BITS) == (3, 1)
    assert columns[ranges.RANGE, 0] == 2


def test_a_header_is_found_behind_what_is_none() -> None:
    log = np.frombuffer(bytes(100) + _log([7]) + bytes(50), dtype=np.uint8)
    left = len(log)

    assert ranges.find_header(log, left, 5, 9, left) == 100
    assert ranges.find_header(log, 100 + HEADER_BYTES, 5, 9, left) == 100
    assert ranges.find_header(log, left, 8, 9, left) == -1
    assert ranges.find_header(log, left, 5, 6, left) == -1
    spoiled = bytearray(log.tobytes())
    struct.pack_into(">i", spoiled, 108, left)
    data = np.frombuffer(bytes(spoiled), dtype=np.uint8)
    assert ranges.find_header(data, left, 5, 9, left) == -1
