"""Producer snapshots and leader epochs: worked examples, order, and what is refused."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_segments.errors import CorruptIndexError
from kafka_segments.kafka.broker_rules.lookups import aborted_in
from kafka_segments.kafka.index.log.leader_epochs import (
    encode_leader_epochs,
    fold_epochs,
    truncate_epochs_from_end,
    truncate_epochs_from_start,
)
from kafka_segments.kafka.index.log.producer_state import NewestBatch, ProducerEntry, ProducerState
from kafka_segments.kafka.index.log.snapshots import decode_snapshot, encode_snapshot
from kafka_segments.kafka.index.segment.transaction_index import (
    AbortedTransaction,
    decode_transaction_index,
    encode_transaction_index,
)
from kafka_segments.kafka.text.checkpoints import EpochStart, parse_leader_epochs
from support.logs.strategies import crc32c

EXAMPLE = ProducerState(
    {
        7: ProducerEntry(0, NewestBatch(1, 1, 1), 1030, 11),
        9: ProducerEntry(1, NewestBatch(6, 12, 1), 1040, 12),
    },
    {9: 11},
    {11: 9},
)
int64s, int32s = st.integers(-(2**63), 2**63 - 1), st.integers(-(2**31), 2**31 - 1)
offsets = st.integers(0, 2**63 - 1)


def test_a_snapshot_without_producers_is_ten_bytes() -> None:
    assert encode_snapshot(ProducerState()) == bytes.fromhex("000148674bc700000000")


def test_a_snapshot_of_two_producers() -> None:
    data = encode_snapshot(EXAMPLE)

    covered = struct.pack(">i", 2)
    covered += struct.pack(">qhiqiqiq", 7, 0, 1, 1, 1, 1030, 11, -1)
    covered += struct.pack(">qhiqiqiq", 9, 1, 6, 12, 1, 1040, 12, 11)
    assert data == struct.pack(">hI", 1, crc32c(covered)) + covered
    assert decode_snapshot(data) == EXAMPLE


def test_the_order_is_that_of_a_java_hash_map() -> None:
    producer_ids = [1000, 17, 16, 1, 5000000000, 33, 2, 64, 48, 4, 5, 6, 7, 8]

    data = encode_snapshot(ProducerState(dict.fromkeys(producer_ids, ProducerEntry())))

    found = [struct.unpack_from(">q", data, at)[0] for at in range(10, len(data), 46)]
    assert found == [64, 1, 33, 2, 5000000000, 4, 5, 6, 7, 1000, 8, 16, 48, 17]


@pytest.mark.parametrize(
    ("producers", "buckets"), [(11, 16), (12, 16), (13, 32), (24, 32), (25, 64)]
)
def test_the_table_doubles_when_it_is_more_than_three_quarters_full(
    producers: int, buckets: int
) -> None:
    producer_ids = [5 * number * 2**31 + 5 * number for number in range(producers)]

    data = encode_snapshot(ProducerState(dict.fromkeys(producer_ids, ProducerEntry())))

    def bucket(producer_id: int) -> int:
        low = (producer_id ^ producer_id >> 32) % 2**32
        return (low ^ low >> 16) % buckets

    found = [struct.unpack_from(">q", data, at)[0] for at in range(10, len(data), 46)]
    assert found == sorted(producer_ids, key=bucket)


@pytest.mark.parametrize(("silent_ms", "is_kept"), [(0, True), (99, True), (100, False)])
def test_a_producer_expires_unless_its_transaction_is_open(silent_ms: int, is_kept: bool) -> None:
    entries = {7: ProducerEntry(timestamp=1_000), 9: ProducerEntry(timestamp=-1)}
    state = ProducerState(entries, {9: 3}, {3: 9})

    kept = state.without_expired(now_ms=1_000 + silent_ms, expiration_ms=100)

    assert list(kept.entries) == ([7, 9] if is_kept else [9])
    assert (kept.open, kept.ongoing) == ({9: 3}, {3: 9})
    assert list(state.entries) == [7, 9]


@given(
    st.dictionaries(
        offsets,
        st.builds(
            ProducerEntry,
            st.integers(-1, 2**15 - 1),
            st.builds(NewestBatch, int32s, int64s, int32s),
            int64s,
            int32s,
        ),
    )
)
def test_what_is_written_is_read(entries: dict[int, ProducerEntry]) -> None:
    state = ProducerState(entries)

    assert decode_snapshot(encode_snapshot(state)) == state


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "0 bytes"),
        (b"\x00\x02" + bytes(8), "version is 2"),
        (bytes.fromhex("000148674bc800000000"), "checksum"),
        (struct.pack(">hIi", 1, crc32c(struct.pack(">i", 1)), 1), "1 entries in 0 bytes"),
        (struct.pack(">hIi", 1, crc32c(struct.pack(">i", -1)), -1), "-1 entries"),
    ],
)
def test_a_corrupt_snapshot_says_what_is_wrong(data: bytes, reason: str) -> None:
    with pytest.raises(CorruptIndexError, match=reason):
        decode_snapshot(data)


def test_the_transaction_index_of_the_worked_example() -> None:
    aborted = [AbortedTransaction(7, 0, 6, 2), AbortedTransaction(9, 8, 10, 11)]

    data = encode_transaction_index(aborted)

    assert data == b"".join(struct.pack(">hqqqq", 0, *entry) for entry in aborted)
    assert decode_transaction_index(data + b"partial") == aborted
    assert encode_transaction_index([]) is None


def test_a_fetch_takes_the_aborted_transactions_that_touch_it() -> None:
    aborted = [AbortedTransaction(7, 0, 6, 2), AbortedTransaction(9, 8, 10, 11)]

    assert aborted_in(aborted, fetch_offset=0, upper_bound=8) == (aborted[:1], True)
    assert aborted_in(aborted, fetch_offset=7, upper_bound=20) == (aborted[1:], False)


def test_an_epoch_not_above_the_latest_is_passed_over() -> None:
    known = [EpochStart(2, 1000)]

    folded = fold_epochs(known, [EpochStart(1, 1003), EpochStart(2, 1004), EpochStart(5, 1006)])

    assert folded == [EpochStart(2, 1000), EpochStart(5, 1006)]


def test_an_epoch_whose_offset_goes_back_removes_those_that_begin_later() -> None:
    known = [EpochStart(1, 10), EpochStart(2, 20), EpochStart(3, 30)]

    assert fold_epochs(known, [EpochStart(4, 20)]) == [EpochStart(1, 10), EpochStart(4, 20)]


def test_epochs_are_cut_at_both_ends() -> None:
    epochs = [EpochStart(1, 10), EpochStart(2, 20), EpochStart(3, 30)]

    assert truncate_epochs_from_end(epochs, 30) == epochs[:2]
    assert truncate_epochs_from_start(epochs, 25) == [EpochStart(2, 25), EpochStart(3, 30)]
    assert truncate_epochs_from_start(epochs, 9) == epochs


def test_the_leader_epoch_file_of_the_worked_example() -> None:
    epochs = [EpochStart(3, 1000), EpochStart(5, 1006)]

    data = encode_leader_epochs(epochs)

    assert data == b"0\n2\n3 1000\n5 1006\n"
    assert parse_leader_epochs(data.decode()) == epochs


def test_a_timestamp_near_the_least_does_not_expire_as_javas_long_wraps() -> None:
    state = ProducerState({7: ProducerEntry(timestamp=-(2**63))})

    assert state.without_expired(now_ms=1_700_000_000_000, expiration_ms=1).entries
