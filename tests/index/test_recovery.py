"""Recovery against a plain loop written from the rules alone, and against worked examples."""

import binascii
import struct
from typing import NamedTuple
from unittest import mock

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from kafka_segments.errors import FileChangedError
from kafka_segments.kafka.index.log.producer_state import NewestBatch, ProducerState
from kafka_segments.kafka.index.segment import segment_walker
from kafka_segments.kafka.index.segment.offset_index import encode_offset_index
from kafka_segments.kafka.index.segment.recovered_segment import Damage, DamageKind, SegmentRecovery
from kafka_segments.kafka.index.segment.recovery import SegmentRecoverer
from kafka_segments.kafka.index.segment.recovery_options import RecoveryOptions
from kafka_segments.kafka.index.segment.time_index import encode_time_index
from kafka_segments.kafka.index.segment.transaction_index import AbortedTransaction
from kafka_segments.kafka.wire.crc import HAS_CPU_CRC
from support.logs.log_reading import fetched_of, reader_of
from support.logs.strategies import (
    CONTROL,
    DELETE_HORIZON,
    GZIP,
    LOG_APPEND_TIME,
    MAX_INT32,
    NO_TIMESTAMP,
    TRANSACTIONAL,
    Segment,
    crc32c,
    damaged,
    empty_batch,
    example_e1,
    gzip_wrapper,
    segments,
    transaction_marker,
    v0_message,
    v1_message,
    v2_batch,
)

V0_HEX = "0000000000000005 00000010 fd6ebddb 00 00 ffffffff 00000002 6869"
V1_HEX = "0000000000000006 00000018 06614b6d 01 00 00000000000003e8 ffffffff 00000002 6869"
V2_HEX = (
    "0000000000000007 00000043 00000003 02 28ffdfc5 0000 00000001 00000000000007d0"
    " 00000000000007d5 ffffffffffffffff ffff ffffffff 00000002 100000000104686900"
    " 10000a020104796f00"
)
ENOUGH_BYTES = 1024 * 1024
LOAD_FAILS = (DamageKind.OFFSET_OVERFLOW, DamageKind.INDEX_FULL)


# --- the plain loop: semantics 2.4, 2.5, 3.2, 3.4, 4.2 and 6.5 ---


class Plain(NamedTuple):
    valid_bytes: int
    next_offset: int
    max_timestamp: int
    offset_of_max_timestamp: int
    offset_entries: list[tuple[int, int]] | None
    time_entries: list[tuple[int, int]] | None
    damage: str | None


class IndexFullError(Exception):
    pass


class OffsetGoesBackError(Exception):
    pass


class PlainIndexes:
    def __init__(self, index_bytes: int) -> None:
        self.most_offset_entries = index_bytes // 8
        self.most_time_entries = index_bytes // 12
        self.offset_entries: list[tuple[int, int]] = []
        self.time_entries: list[tuple[int, int]] = []

    def append(self, offset: int, position: int) -> None:
        if len(self.offset_entries) >= self.most_offset_entries:
            raise IndexFullError
        if self.offset_entries and offset <= self.offset_entries[-1][0]:
            raise OffsetGoesBackError
        self.offset_entries.append((offset, position))

    def maybe_append(self, timestamp: int, offset: int, *, at_close: bool) -> None:
        if not at_close and len(self.time_entries) >= self.most_time_entries - 1:
            raise IndexFullError
        if self.time_entries and offset < self.time_entries[-1][1]:
            raise OffsetGoesBackError
        last_timestamp = self.time_entries[-1][0] if self.time_entries else -1
        if timestamp > last_timestamp:
            if len(self.time_entries) >= self.most_time_entries:
                raise IndexFullError
            self.time_entries.append((timestamp, offset))


def as_int64(value: int) -> int:
    return (value + 2**63) % 2**64 - 2**63


class PlainEntry(NamedTuple):
    size: int
    last_offset: int
    timestamp: int


def plain_entry(log: bytes, position: int) -> PlainEntry | str | None:
    """Read the entry at a position; a text names the damage there, None is the end."""
    left = len(log) - position
    if left <= 17:
        return "partial_batch" if left else None
    (size,) = struct.unpack_from(">i", log, position + 8)
    if size < 14:
        return "corrupt_batch" if any(log[position:]) else "preallocated_tail"
    if 12 + size > left:
        return "partial_batch"
    entry = log[position : position + 12 + size]
    (magic,) = struct.unpack_from(">b", entry, 16)
    is_v2 = magic >= 2
    (stored,) = struct.unpack_from(">I", entry, 17 if is_v2 else 12)
    actual = crc32c(entry[21:]) if is_v2 else binascii.crc32(entry[16:])
    if stored != actual or (is_v2 and len(entry) < 61):
        return "corrupt_batch"
    (offset,) = struct.unpack_from(">q", entry, 0)
    if not is_v2:
        timestamp = -1 if magic == 0 else struct.unpack_from(">q", entry, 18)[0]
        return PlainEntry(len(entry), offset, timestamp)
    (last_delta,) = struct.unpack_from(">i", entry, 23)
    (timestamp,) = struct.unpack_from(">q", entry, 35)
    return PlainEntry(len(entry), as_int64(offset + last_delta), timestamp)


def plain_recovery(
    log: bytes, *, base_offset: int, interval: int, index_bytes: int = 10485760
) -> Plain:
    indexes = PlainIndexes(index_bytes)
    position = last_position = 0
    next_offset = base_offset
    max_timestamp, offset_of_max = -1, base_offset
    try:
        while isinstance(entry := plain_entry(log, position), PlainEntry):
            if not 0 <= as_int64(entry.last_offset - base_offset) <= 2147483647:
                return Plain(position, next_offset, -1, -1, None, None, "offset_overflow")
            if entry.timestamp > max_timestamp:
                max_timestamp, offset_of_max = entry.timestamp, entry.last_offset
            if position - last_position > interval:
                indexes.append(entry.last_offset, position)
                indexes.maybe_append(max_timestamp, offset_of_max, at_close=False)
                last_position = position
            position += entry.size
            next_offset = as_int64(entry.last_offset + 1)
        indexes.maybe_append(max_timestamp, offset_of_max, at_close=True)
    except IndexFullError:
        return Plain(position, next_offset, -1, -1, None, None, "index_full")
    except OffsetGoesBackError:
        return Plain(0, base_offset, -1, base_offset, [], [], "offset_goes_back")
    return Plain(
        position,
        next_offset,
        max_timestamp,
        offset_of_max,
        indexes.offset_entries,
        indexes.time_entries,
        entry,
    )


# --- the thing under test, asked the same ---


def recover(
    log: bytes,
    *,
    base_offset: int = 0,
    buffer_bytes: int = ENOUGH_BYTES,
    fetched_bytes: int | None = None,
    **options,
) -> SegmentRecovery:
    sizes = {"_BUFFER_BYTES": buffer_bytes, "_HEADERS_BUFFER_BYTES": buffer_bytes}
    with mock.patch.multiple(segment_walker, **sizes):
        recoverer = SegmentRecoverer(RecoveryOptions(finds_indexes=True, **options))
    return recoverer.recover(
        reader_of(log),
        size_bytes=len(log),
        base_offset=base_offset,
        fetched_at=None if fetched_bytes is None else fetched_of(log, fetched_bytes),
    )


def pairs(entries) -> list[tuple[int, int]] | None:
    return None if entries is None else [tuple(row) for row in entries.tolist()]


def as_plain(found: SegmentRecovery) -> Plain:
    """Give what the plain loop gives; where a load fails Kafka has no greatest timestamp."""
    kind = found.damage.kind if found.damage else None
    fails = kind in LOAD_FAILS
    return Plain(
        found.valid_bytes,
        found.next_offset,
        -1 if fails else found.max_timestamp,
        -1 if fails else found.offset_of_max_timestamp,
        pairs(found.offset_entries),
        pairs(found.time_entries),
        kind,
    )


intervals = st.sampled_from([0, 0, 1, 100, 100, 4096])
LARGE, SMALL = 10485760, [4, 8, 12, 16, 24, 25, 36, 48, 80]
index_sizes = st.sampled_from([LARGE] * 12 + SMALL)
E1_BASE, E1_LOG = example_e1()
E1 = Segment(E1_BASE, E1_LOG, [0, 175, 293, 525, 700, 818, 936])


@pytest.mark.slow
@settings(max_examples=230)
@given(data=st.data(), segment=segments(), interval=intervals, index_bytes=st.just(LARGE))
def test_recovery_gives_what_the_plain_loop_gives(data, segment, interval, index_bytes):
    _hold_against_the_plain_loop(data.draw(damaged(segment)), segment, interval, index_bytes)


@pytest.mark.slow
@settings(max_examples=170)
@given(data=st.data(), segment=segments(), interval=intervals, index_bytes=st.sampled_from(SMALL))
def test_where_an_index_is_full_recovery_gives_what_the_plain_loop_gives(
    data, segment, interval, index_bytes
):
    _hold_against_the_plain_loop(data.draw(damaged(segment)), segment, interval, index_bytes)


def _hold_against_the_plain_loop(log, segment, interval, index_bytes):
    expected = plain_recovery(
        log, base_offset=segment.base_offset, interval=interval, index_bytes=index_bytes
    )

    found = recover(
        log,
        base_offset=segment.base_offset,
        index_interval_bytes=interval,
        segment_index_bytes=index_bytes,
    )

    if found.valid_bytes and expected.damage == DamageKind.OFFSET_GOES_BACK:
        # What stands before an entry at the base offset stays: test_golden.py has Kafka's.
        assert plain_entry(log, found.valid_bytes).last_offset == segment.base_offset
        return
    assert as_plain(found) == expected
    assert found.valid_bytes + found.truncated_bytes == len(log)


@pytest.mark.slow
@settings(max_examples=200)
@given(
    data=st.data(),
    segment=segments(),
    interval=intervals,
    buffer_bytes=st.sampled_from([61, 70, 97, 200, 1000]),
    by_instruction=st.booleans(),
)
def test_batches_that_span_buffers_change_nothing(
    data, segment, interval, buffer_bytes, by_instruction
):
    assume(HAS_CPU_CRC or not by_instruction)
    log = data.draw(damaged(segment))
    options = {"base_offset": segment.base_offset, "index_interval_bytes": interval}
    whole = recover(log, **options)

    found = recover(log, buffer_bytes=buffer_bytes, by_instruction=by_instruction, **options)

    assert as_comparable(found) == as_comparable(whole)


@pytest.mark.slow
@settings(max_examples=200)
@given(
    data=st.data(),
    segment=segments(),
    interval=intervals,
    fetched_bytes=st.sampled_from([61, 70, 97, 200, 1000, ENOUGH_BYTES]),
)
@example(segment=E1, interval=200, fetched_bytes=70, data=None)
def test_what_was_fetched_is_walked_where_it_is(data, segment, interval, fetched_bytes):
    log = data.draw(damaged(segment)) if data else segment.log
    options = {"base_offset": segment.base_offset, "index_interval_bytes": interval}
    whole = recover(log, **options)

    found = recover(log, fetched_bytes=fetched_bytes, **options)

    assert as_comparable(found) == as_comparable(whole)


def test_a_marker_too_large_for_the_room_in_front_is_copied():
    marker = v2_batch(1, [(1, bytes(4), bytes(9000))], flags=CONTROL | TRANSACTIONAL, producer_id=7)
    log = v2_batch(0, [(1, None, b"v")]) + marker + v2_batch(2, [(3, None, bytes(9000))])
    whole = recover(log)

    for fetched_bytes in (100, 3000, 5000):
        found = recover(log, fetched_bytes=fetched_bytes)
        assert as_comparable(found) == as_comparable(whole)


def as_comparable(found: SegmentRecovery) -> dict:
    arrays = {
        name: pairs(getattr(found, name))
        for name in ("offset_entries", "time_entries", "leader_epochs")
    }
    producers = [pairs(table) for table in found.producers]
    return {**found._asdict(), **arrays, "producers": producers}


@settings(max_examples=150)
@given(
    segment=segments(),
    interval=intervals,
    buffer_bytes=st.sampled_from([ENOUGH_BYTES, 61, 97, 1000]),
)
@example(segment=E1, interval=200, buffer_bytes=61)
def test_headers_alone_give_the_same_of_an_undamaged_segment(segment, interval, buffer_bytes):
    options = {"base_offset": segment.base_offset, "index_interval_bytes": interval}
    checked = recover(segment.log, **options)

    found = recover(segment.log, check_crc=False, buffer_bytes=buffer_bytes, **options)

    assert as_comparable(found) == as_comparable(checked)


@settings(max_examples=50)
@given(first=segments(max_batches=8), second=segments(max_batches=8))
def test_a_recoverer_keeps_nothing_of_the_segment_before(first, second):
    recoverer = SegmentRecoverer(RecoveryOptions(index_interval_bytes=0))
    alone = recover(second.log, base_offset=second.base_offset, index_interval_bytes=0)
    recoverer.recover(
        reader_of(first.log), size_bytes=len(first.log), base_offset=first.base_offset
    )

    found = recoverer.recover(
        reader_of(second.log), size_bytes=len(second.log), base_offset=second.base_offset
    )

    assert as_comparable(found) == as_comparable(alone)


# --- captured bytes and worked examples ---


def test_the_builders_of_these_tests_write_captured_bytes():
    v0 = v0_message(5, None, b"hi")
    v1 = v1_message(6, 1000, None, b"hi")
    v2 = v2_batch(7, [(2000, None, b"hi"), (2005, None, b"yo")], leader_epoch=3)

    assert v0 == bytes.fromhex(V0_HEX)
    assert v1 == bytes.fromhex(V1_HEX)
    assert v2 == bytes.fromhex(V2_HEX)


def test_one_file_of_three_formats_gives_the_entries_of_the_test_vectors():
    log = bytes.fromhex(V0_HEX + V1_HEX + V2_HEX)

    found = recover(log, index_interval_bytes=0)

    assert pairs(found.offset_entries) == [(6, 28), (8, 64)]
    assert pairs(found.time_entries) == [(1000, 6), (2005, 8)]
    assert pairs(found.leader_epochs) == [(3, 7)]
    assert (found.valid_bytes, found.next_offset, found.damage) == (143, 9, None)
    assert (found.batch_count, found.record_count, found.max_batch_bytes) == (3, 4, 79)
    assert found.magics == (0, 1, 2)
    assert found.codecs == (0,)
    assert found.timestamp_types == (-1, 0)


def test_example_e1_gives_kafkas_bytes():
    found = recover(E1_LOG, base_offset=E1_BASE, index_interval_bytes=200)

    assert encode_offset_index(found.offset_entries, base_offset=E1_BASE) == bytes.fromhex(
        "00000005 00000125 00000007 0000020d 00000009 00000332"
    )
    assert encode_time_index(found.time_entries, base_offset=E1_BASE) == bytes.fromhex(
        "0000000000001b5a 00000005 0000000000002328 00000009"
    )
    assert pairs(found.leader_epochs) == [(3, 1000), (5, 1006)]
    assert (found.next_offset, found.max_timestamp, found.offset_of_max_timestamp) == (
        1010,
        9000,
        1009,
    )
    assert (found.first_batch_timestamp, found.min_timestamp) == (5001, 4000)


@pytest.mark.parametrize(
    ("log_bytes", "offset_entries", "time_entries", "next_offset"),
    [
        pytest.param(293, [], [(5001, 1001)], 1003, id="to 1004"),
        pytest.param(525, [(1005, 293)], [(7002, 1005)], 1006, id="to 1006"),
    ],
)
def test_e1_truncated_recovers_to_what_truncation_leaves(
    log_bytes, offset_entries, time_entries, next_offset
):
    found = recover(E1_LOG[:log_bytes], base_offset=E1_BASE, index_interval_bytes=200)

    assert pairs(found.offset_entries) == offset_entries
    assert pairs(found.time_entries) == time_entries
    assert found.next_offset == next_offset


def test_an_empty_batch_counts_like_any_other():
    first = v2_batch(0, [(1000, None, bytes(10))] * 3)
    log = first + empty_batch(3, last_offset_delta=6, max_timestamp=8888)

    found = recover(log, index_interval_bytes=0)

    assert pairs(found.offset_entries) == [(9, len(first))]
    assert pairs(found.time_entries) == [(8888, 9)]
    assert found.record_count == 3


def test_an_empty_segment_has_empty_indexes():
    found = recover(b"", base_offset=1000)

    assert as_plain(found) == Plain(0, 1000, -1, 1000, [], [], None)


def test_a_batch_exactly_the_interval_after_the_last_entry_gets_none():
    batches = [v2_batch(offset, [(offset, None, bytes(39))]) for offset in range(3)]
    size = len(batches[0])

    at_interval = recover(b"".join(batches), index_interval_bytes=size)
    below_interval = recover(b"".join(batches), index_interval_bytes=size - 1)

    assert pairs(at_interval.offset_entries) == [(2, 2 * size)]
    assert pairs(below_interval.offset_entries) == [(1, size), (2, 2 * size)]


def test_the_first_of_several_batches_with_the_greatest_timestamp_names_its_offset():
    log = b"".join(v2_batch(offset, [(7, None, b"v")]) for offset in range(4))

    found = recover(log, index_interval_bytes=0)

    assert pairs(found.time_entries) == [(7, 0)]
    assert found.offset_of_max_timestamp == 0


def test_timestamp_0_gets_a_time_entry_and_minus_1_none():
    without = recover(v2_batch(0, [(NO_TIMESTAMP, None, b"v")]))
    with_zero = recover(v2_batch(0, [(0, None, b"v")]))

    assert pairs(without.time_entries) == []
    assert pairs(with_zero.time_entries) == [(0, 0)]


# --- what a recovery counts besides ---


def test_a_compressed_wrapper_leaves_the_record_count_unknown():
    inner = [v1_message(delta, 5, None, b"v") for delta in range(3)]

    found = recover(gzip_wrapper(inner, offset=2, timestamp=5))

    assert found.record_count is None
    assert found.codecs == (GZIP,)
    assert found.next_offset == 3


def test_batches_of_other_codecs_between_like_ones_are_counted_with_their_codecs():
    batches = [v2_batch(n, [(n, None, b"v")]) for n in range(4)]
    batches.insert(2, v2_batch(2, [], payload=b"", codec=3, record_count=1, last_offset_delta=0))
    renumbered = [n.to_bytes(8, "big") + batch[8:] for n, batch in enumerate(batches)]

    found = recover(b"".join(renumbered))

    assert (found.codecs, found.batch_count, found.record_count) == ((0, 3), 5, 5)
    assert (found.next_offset, found.damage) == (5, None)


def test_a_compressed_wrapper_between_plain_messages_leaves_the_record_count_unknown():
    plain = [v1_message(n, 5, None, b"v") for n in (0, 1, 3)]
    plain.insert(2, gzip_wrapper([v1_message(0, 5, None, b"v")], offset=2, timestamp=5))

    found = recover(b"".join(plain))

    assert (found.record_count, found.codecs, found.batch_count) == (None, (0, GZIP), 4)


@pytest.mark.parametrize("buffer_bytes", [ENOUGH_BYTES, 97])
@pytest.mark.parametrize("large", range(4))
def test_the_largest_batch_is_found_wherever_it_lies(large, buffer_bytes):
    batches = [v2_batch(n, [(n, None, bytes(200 if n == large else n))]) for n in range(4)]

    found = recover(b"".join(batches), buffer_bytes=buffer_bytes)

    assert found.max_batch_bytes == len(batches[large]) == max(map(len, batches))


def test_the_largest_message_of_an_old_format_may_be_a_compressed_set():
    wrapper = gzip_wrapper([v1_message(0, 5, None, bytes(range(64)))], offset=1, timestamp=5)

    found = recover(v1_message(0, 5, None, b"v") + wrapper + v1_message(2, 5, None, b"v"))

    assert found.max_batch_bytes == len(wrapper)


def test_a_batch_that_is_cut_off_is_not_the_largest():
    small, large = v2_batch(0, [(1, None, b"v")]), v2_batch(1, [(1, None, bytes(99))])

    assert recover(small + large[:-1]).max_batch_bytes == len(small)
    assert recover(small + large[:-1] + b"x").max_batch_bytes == len(small)
    assert recover(b"").max_batch_bytes == 0


def test_control_and_transactional_batches_and_producers_are_counted():
    log = b"".join(
        [
            v2_batch(0, [(1, None, b"v")], producer_id=7, flags=0x10),
            v2_batch(1, [(1, None, b"v")], producer_id=8, flags=0x10),
            v2_batch(2, [(1, None, b"v")], producer_id=7),
            transaction_marker(3, timestamp=1, producer_id=7),
            v2_batch(4, [(1, None, b"v")]),
        ]
    )

    found = recover(log)

    assert found.producer_count == 2
    assert found.control_batch_count == 1
    assert found.transactional_batch_count == 3


def test_the_least_timestamp_of_log_append_time_is_the_brokers():
    log = v2_batch(0, [(5, None, b"v")], flags=LOG_APPEND_TIME, max_timestamp=900)

    found = recover(log)

    assert found.min_timestamp == 900
    assert found.timestamp_types == (1,)


@pytest.mark.parametrize(
    ("flags", "base_timestamp", "max_timestamp", "least"),
    [
        (0, 900, 2000, 900),
        (0, 0, 2000, 0),
        (0, -1, 2000, 2000),  # an empty batch
        (0, 2001, 2000, 2000),
        (DELETE_HORIZON, 900, 2000, 2000),  # the base timestamp is the horizon
        (LOG_APPEND_TIME, 900, 2000, 2000),
        (TRANSACTIONAL, 900, 2000, 900),
        (DELETE_HORIZON, 900, -1, -1),
    ],
)
def test_the_least_timestamp_of_a_batch(flags, base_timestamp, max_timestamp, least):
    batch = v2_batch(
        0,
        [(900, None, b"v")],
        flags=flags,
        base_timestamp=base_timestamp,
        max_timestamp=max_timestamp,
    )

    assert recover(batch).min_timestamp == least
    later = v2_batch(1, [(1500, None, b"v")])
    assert recover(batch + later).min_timestamp == (1500 if least < 0 else min(least, 1500))


@pytest.mark.parametrize(
    ("first", "delta", "last"),
    [
        (0, 0, 0),
        (5, 3, 8),
        (-1, 3, -1),  # none
        (MAX_INT32 - 3, 3, MAX_INT32),
        (MAX_INT32 - 2, 3, 0),
        (MAX_INT32, 1, 0),
        (MAX_INT32, 2, 1),
        (MAX_INT32, MAX_INT32, MAX_INT32 - 1),
        (0, MAX_INT32, MAX_INT32),
        (1, MAX_INT32, 0),
    ],
)
def test_after_the_greatest_sequence_comes_0(first, delta, last):
    batch = v2_batch(
        0, [], last_offset_delta=delta, producer_id=7, producer_epoch=3, base_sequence=first
    )
    state = ProducerState()

    state.apply(recover(batch).producers)

    assert state.entries[7].batch == NewestBatch(last, delta, delta)
    assert (state.entries[7].epoch, state.entries[7].coordinator_epoch) == (3, -1)


@pytest.mark.parametrize("kind", [0, 1])
@pytest.mark.parametrize("codec", [0, GZIP])
def test_a_marker_of_whatever_form_tells_its_coordinator_epoch_and_its_time(codec, kind):
    records = [(1500, struct.pack(">hh", 0, kind), struct.pack(">hi", 0, 70_000))]
    log = v2_batch(0, [(1000, None, b"v")], producer_id=7, flags=TRANSACTIONAL, producer_epoch=0)
    log += v2_batch(
        1,
        records,
        producer_id=7,
        flags=CONTROL | TRANSACTIONAL,
        producer_epoch=0,
        codec=codec,
        base_timestamp=1400,
        max_timestamp=1600,
    )
    state = ProducerState()

    aborted = state.apply(recover(log).producers)

    assert aborted == ([] if kind else [AbortedTransaction(7, 0, 1, 2)])
    assert state.entries[7].coordinator_epoch == 70_000
    assert state.entries[7].timestamp == 1500
    assert state.open == {}


def test_a_marker_that_cannot_be_read_stays_and_closes_the_time_index():
    marker = v2_batch(
        1, [(3000, b"\0", None)], producer_id=7, flags=CONTROL | TRANSACTIONAL, producer_epoch=0
    )
    before = v2_batch(0, [(1000, None, b"v")])
    log = before + marker
    after = v2_batch(2, [(9000, None, b"v")])

    found = recover(log + after, index_interval_bytes=4096)

    assert (found.damage.kind, found.damage.position) == (
        DamageKind.BAD_MARKER,
        len(before),
    )
    assert (found.valid_bytes, found.truncated_bytes) == (len(log), len(after))
    assert pairs(found.offset_entries) == []
    assert pairs(found.time_entries) == [(3000, 1)]
    assert (found.next_offset, found.batch_count, found.control_batch_count) == (2, 2, 1)


@pytest.mark.parametrize(
    ("offset", "goes_back"), [(3, True), (1, True), (5, True), (6, False), (9, False)]
)
def test_the_summary_tells_whether_offsets_go_back(offset, goes_back):
    fields = {"producer_id": 7, "producer_epoch": 0}
    log = v2_batch(1, [(1, None, b"v")], **fields) + v2_batch(4, [(1, None, b"v")] * 2, **fields)

    found = recover(log + v2_batch(offset, [(1, None, b"v")], **fields))

    assert found.producers.goes_back() == goes_back
    assert not recover(log, base_offset=1).producers.goes_back()


def test_leader_epochs_begin_where_a_greater_epoch_is_first_seen():
    epochs = [-1, 0, 0, 3, 2, 3, 4]
    log = b"".join(
        v2_batch(10 * number, [(1, None, b"v")], leader_epoch=epoch)
        for number, epoch in enumerate(epochs)
    )

    found = recover(log)

    assert pairs(found.leader_epochs) == [(0, 10), (3, 30), (4, 60)]


@pytest.mark.parametrize("check_crc", [True, False])
def test_more_epochs_than_one_call_holds_are_all_kept(check_crc):
    log = b"".join(empty_batch_of_epoch(epoch) for epoch in range(3000))

    found = recover(log, check_crc=check_crc)

    assert pairs(found.leader_epochs) == [(epoch, epoch) for epoch in range(3000)]
    assert found.batch_count == 3000


def empty_batch_of_epoch(epoch: int) -> bytes:
    return v2_batch(epoch, [], base_timestamp=NO_TIMESTAMP, leader_epoch=epoch)


@pytest.mark.parametrize("check_crc", [True, False])
def test_more_than_100000_producers_are_counted_each_once(check_crc):
    count = 110_000
    log = b"".join(
        empty_batch(offset, last_offset_delta=0, max_timestamp=offset, producer_id=offset % count)
        for offset in range(count + 500)
    )

    found = recover(log, check_crc=check_crc, index_interval_bytes=0)

    assert found.producer_count == count
    assert found.batch_count == count + 500
    assert len(found.offset_entries) == count + 499
    assert len(found.time_entries) == count + 499


# --- where the walk ends ---


def test_a_magic_above_2_is_read_as_2():
    found = recover(v2_batch(0, [(9, None, b"v")], magic=127))

    assert found.damage is None
    assert found.magics == (3,)


@pytest.mark.parametrize("tail_bytes", [1, 11, 12, 16, 17, 18, 60, 61])
def test_a_cut_batch_is_truncated(tail_bytes):
    whole = v2_batch(0, [(1, None, bytes(20))])
    log = whole + v2_batch(1, [(2, None, bytes(20))])[:tail_bytes]

    found = recover(log)

    assert found.damage.kind == DamageKind.PARTIAL_BATCH
    assert (found.valid_bytes, found.truncated_bytes) == (len(whole), tail_bytes)


def test_zeros_to_the_end_are_a_preallocated_tail():
    whole = v2_batch(0, [(1, None, b"v")])

    found = recover(whole + bytes(5000), buffer_bytes=200)

    assert found.damage == Damage(
        DamageKind.PREALLOCATED_TAIL,
        len(whole),
        "5000 zero bytes after the last batch, as preallocation leaves them",
    )


def test_zeros_with_something_behind_them_are_corruption():
    whole = v2_batch(0, [(1, None, b"v")])

    found = recover(whole + bytes(5000) + b"x", buffer_bytes=200)

    assert found.damage.kind == DamageKind.CORRUPT_BATCH


GOOD = v2_batch(0, [(1, None, b"v")])
NEXT = v2_batch(1, [(1, None, b"w")])
LEGACY = v1_message(1, 5, None, b"v")


def with_size(batch: bytes, size: int) -> bytes:
    return batch[:8] + struct.pack(">i", size) + batch[12:]


@pytest.mark.parametrize(
    ("tail", "kind", "message"),
    [
        pytest.param(
            NEXT[:10],
            DamageKind.PARTIAL_BATCH,
            "10 bytes left, too few for a batch",
            id="cut before the magic",
        ),
        pytest.param(
            NEXT[:30],
            DamageKind.PARTIAL_BATCH,
            "the batch says 69 bytes, 30 are left in the file",
            id="cut batch",
        ),
        pytest.param(
            with_size(NEXT, 13),
            DamageKind.CORRUPT_BATCH,
            "batch length is 13, the least is 14",
            id="size 13",
        ),
        pytest.param(
            with_size(NEXT, -1),
            DamageKind.CORRUPT_BATCH,
            "batch length is -1, the least is 14",
            id="size -1",
        ),
        pytest.param(
            with_size(NEXT, 48),
            DamageKind.CORRUPT_BATCH,
            "the batch says 60 bytes, magic 2 needs 61",
            id="size 48 of magic 2",
        ),
        pytest.param(
            NEXT[:17] + bytes(4) + NEXT[21:],
            DamageKind.CORRUPT_BATCH,
            "checksum is 0xf21b6c46, the batch says 0x00000000",
            id="CRC-32C",
        ),
        pytest.param(
            LEGACY[:12] + bytes(4) + LEGACY[16:],
            DamageKind.CORRUPT_BATCH,
            "checksum is 0x52488c6a, the batch says 0x00000000",
            id="CRC-32",
        ),
        pytest.param(
            v2_batch(2**31, [(1, None, b"v")]),
            DamageKind.OFFSET_OVERFLOW,
            "last offset 2147483648 does not fit base offset 0: it must lie 0 to 2147483647 above;"
            " Kafka splits such a segment or fails to load",
            id="overflow",
        ),
    ],
)
def test_damage_says_what_was_found_and_expected(tail, kind, message):
    found = recover(GOOD + tail)

    assert found.damage == Damage(kind, len(GOOD), message)


def test_the_greatest_distance_from_the_base_offset_still_fits():
    log = v2_batch(1000 + MAX_INT32, [(1, None, b"v")])

    found = recover(log, base_offset=1000)

    assert found.damage is None
    assert found.next_offset == 1000 + MAX_INT32 + 1


def test_an_offset_below_the_base_offset_is_an_overflow():
    found = recover(GOOD, base_offset=1)

    assert found.damage.kind == DamageKind.OFFSET_OVERFLOW
    assert (found.offset_entries, found.time_entries) == (None, None)


def test_an_offset_that_goes_back_at_an_index_point_empties_the_segment():
    log = b"".join(v2_batch(offset, [(offset, None, b"v")]) for offset in (0, 5, 5))

    found = recover(log, index_interval_bytes=0)

    assert found.damage == Damage(
        DamageKind.OFFSET_GOES_BACK,
        138,
        "offset 5 after offset 5 in the offset index:"
        " an unclean start cuts this segment to its base offset, which mostly empties it, a start"
        " without index files fails",
    )
    assert as_plain(found) == Plain(0, 0, -1, 0, [], [], "offset_goes_back")
    assert found.truncated_bytes == len(log)


def test_an_offset_that_goes_back_between_index_points_is_not_noticed():
    log = b"".join(v2_batch(offset, [(9 - offset, None, b"v")]) for offset in (0, 5, 3))

    found = recover(log)

    assert found.damage is None
    assert found.next_offset == 4


@pytest.mark.parametrize(
    ("segment_index_bytes", "message"),
    [
        pytest.param(32, "the time index is full (1 of 2 entries)", id="time"),
        pytest.param(7, "the offset index is full (0 of 0 entries)", id="offset"),
        pytest.param(11, "the time index is full (0 of 0 entries)", id="neither fits"),
    ],
)
def test_a_full_index_leaves_no_indexes(segment_index_bytes, message):
    log = b"".join(v2_batch(offset, [(offset, None, b"v")]) for offset in range(6))

    found = recover(log, index_interval_bytes=0, segment_index_bytes=segment_index_bytes)

    assert found.damage.kind == DamageKind.INDEX_FULL
    assert found.damage.message == (
        f"{message}: segment.index.bytes is too small for this segment, a broker would not start"
    )
    assert (found.offset_entries, found.time_entries) == (None, None)


def test_a_time_index_of_80_bytes_is_full_at_5_entries_as_the_broker_says():
    log = b"".join(v2_batch(offset, [(offset, None, b"v")]) for offset in range(8))

    found = recover(log, index_interval_bytes=0, segment_index_bytes=80)

    assert found.damage.message.startswith("the time index is full (5 of 6 entries)")


def test_a_file_above_2_gib_is_too_large_and_not_read():
    def read_into(position: int, view: memoryview) -> int:
        raise AssertionError

    found = SegmentRecoverer(RecoveryOptions()).recover(
        read_into, size_bytes=2**31, base_offset=1000
    )

    assert found.damage == Damage(
        DamageKind.TOO_LARGE, 0, "2147483648 bytes, Kafka opens at most 2147483647"
    )
    assert as_plain(found) == Plain(0, 1000, -1, 1000, None, None, "too_large")
    assert found.max_batch_bytes is None
    assert found.truncated_bytes == 2**31


@pytest.mark.parametrize("check_crc", [True, False])
def test_a_file_that_ends_before_its_size_has_changed(check_crc):
    recoverer = SegmentRecoverer(RecoveryOptions(check_crc=check_crc))

    with pytest.raises(FileChangedError) as raised:
        recoverer.recover(reader_of(GOOD), size_bytes=len(GOOD) + 5, base_offset=0)

    assert (raised.value.position, raised.value.expected_bytes) == (len(GOOD), len(GOOD) + 5)


def test_a_file_that_shrinks_while_its_zeros_are_read_has_changed():
    log = GOOD + bytes(100)
    reads = []

    def read_into(position: int, view: memoryview) -> int:
        reads.append(position)
        return reader_of(log if len(reads) == 1 else log[:-10])(position, view)

    with pytest.raises(FileChangedError) as raised:
        SegmentRecoverer(RecoveryOptions()).recover(read_into, size_bytes=len(log), base_offset=0)

    assert (raised.value.position, raised.value.expected_bytes) == (len(log) - 10, len(log))


def test_an_error_of_the_reader_passes_through():
    def read_into(position: int, view: memoryview) -> int:
        raise OSError(5, "Input/output error")

    with pytest.raises(OSError, match="Input/output error"):
        SegmentRecoverer(RecoveryOptions()).recover(read_into, size_bytes=100, base_offset=0)
