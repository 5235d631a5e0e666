"""The walk over batch headers, and reading a segment chunk by chunk."""

import binascii
import struct
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_segments.errors import FileChangedError
from kafka_segments.files.segments import chunks
from kafka_segments.files.segments.bounds import Bounds
from kafka_segments.files.segments.chunks import ChunkOptions, ChunkReader
from kafka_segments.kafka.wire import batches as wire
from support.logs import strategies
from support.logs.strategies import (
    CONTROL,
    DELETE_HORIZON,
    LOG_APPEND_TIME,
    TRANSACTIONAL,
    gzip_wrapper,
    v0_message,
    v1_message,
    v2_batch,
)

Read = tuple[list[dict[str, int]], str | None, int | None]
_FIELDS = {
    "position": wire.BATCH_POSITION,
    "size_bytes": wire.BATCH_SIZE_BYTES,
    "magic": wire.BATCH_MAGIC,
    "attributes": wire.BATCH_ATTRIBUTES,
    "base_offset": wire.BATCH_BASE_OFFSET,
    "last_offset": wire.BATCH_LAST_OFFSET,
    "leader_epoch": wire.BATCH_LEADER_EPOCH,
    "base_timestamp": wire.BATCH_BASE_TIMESTAMP,
    "max_timestamp": wire.BATCH_MAX_TIMESTAMP,
    "producer_id": wire.BATCH_PRODUCER_ID,
    "producer_epoch": wire.BATCH_PRODUCER_EPOCH,
    "base_sequence": wire.BATCH_BASE_SEQUENCE,
    "record_count": wire.BATCH_RECORD_COUNT,
}


def reading(log: bytes, *, ends_at: int | None = None) -> Callable[[int, memoryview], int]:
    """Read from bytes as from a file, one that may end before its size."""

    def read_into(position: int, view: memoryview) -> int:
        piece = log[position : ends_at if ends_at is not None else len(log)][: len(view)]
        view[: len(piece)] = piece
        return len(piece)

    return read_into


def read(log: bytes, *, needs_body: bool = False, **options: object) -> Read:
    """Read a log; gives a dictionary a batch, and why and where the walk ended early."""
    reader = ChunkReader(ChunkOptions(needs_body=needs_body, **options))  # type: ignore[arg-type]
    found: list[dict[str, int]] = []
    reason = position = None
    for chunk in reader.read(reading(log), size_bytes=len(log)):
        for batch in chunk.batches.T:
            row = {name: int(batch[field]) for name, field in _FIELDS.items()}
            if chunk.data is not None:
                at = row["position"] - chunk.data_position
                whole = chunk.data[at : at + row["size_bytes"]].tobytes()
                assert whole == log[row["position"] : row["position"] + row["size_bytes"]]
            found.append(row)
        if chunk.end_reason is not None:
            reason, position = chunk.end_reason, chunk.end_position
    return found, reason, position


def padded(batch: bytes, pad_bytes: int) -> bytes:
    """Lengthen a v2 batch by zeros; its checksum no longer fits."""
    longer = bytearray(batch) + bytes(pad_bytes)
    struct.pack_into(">i", longer, 8, len(longer) - 12)
    return bytes(longer)


def _plain_valid_bytes(log: bytes, *, check_crc: bool) -> int:
    """Walk by the rules of semantics 2.5, steps 1 to 6, in the plainest way."""
    at = 0
    while len(log) - at > 17:
        size, crc, magic = struct.unpack_from(">iIb", log, at + 8)
        end = at + 12 + size
        if size < 14 or end > len(log) or (magic >= 2 and end - at < 61):
            break
        if check_crc:
            if magic >= 2:
                (crc,) = struct.unpack_from(">I", log, at + 17)
                found = strategies.crc32c(log[at + 21 : end])
            else:
                found = binascii.crc32(log[at + 16 : end])
            if found != crc:
                break
        at = end
    return at


def test_a_v2_header_has_all_its_fields() -> None:
    log = v2_batch(
        7,
        [(2000, None, b"hi"), (2005, None, b"yo")],
        leader_epoch=3,
        flags=TRANSACTIONAL | CONTROL | DELETE_HORIZON,
        producer_id=4711,
        producer_epoch=-2,
        base_sequence=2**31 - 1,
    )

    found, reason, _ = read(log)

    assert reason is None
    assert found == [
        {
            "position": 0,
            "size_bytes": len(log),
            "magic": 2,
            "attributes": 0x70,
            "base_offset": 7,
            "last_offset": 8,
            "leader_epoch": 3,
            "base_timestamp": 2000,
            "max_timestamp": 2005,
            "producer_id": 4711,
            "producer_epoch": -2,
            "base_sequence": 2**31 - 1,
            "record_count": 2,
        }
    ]


def test_messages_v0_and_v1_have_no_v2_fields() -> None:
    inner = [v1_message(delta, 900 + delta, None, b"x") for delta in range(3)]
    log = (
        v0_message(5, None, b"hi")
        + v1_message(6, 1000, None, b"hi")
        + gzip_wrapper(inner, offset=9, timestamp=902)
    )

    found, _, _ = read(log)

    wanted = ("magic", "last_offset", "max_timestamp", "record_count", "leader_epoch")
    assert [tuple(row[name] for name in wanted) for row in found] == [
        (0, 5, -1, 1, -1),
        (1, 6, 1000, 1, -1),
        (1, 9, 902, -1, -1),
    ]


@given(data=st.data(), segment=strategies.segments(), check_crc=st.booleans())
def test_the_walk_ends_where_recovery_ends_it(
    data: st.DataObject, segment: strategies.Segment, check_crc: bool
) -> None:
    log = data.draw(strategies.damaged(segment))
    valid_bytes = _plain_valid_bytes(log, check_crc=check_crc)

    for needs_body in (False, True):
        found, reason, position = read(log, needs_body=needs_body, check_crc=check_crc)

        assert (found[-1]["position"] + found[-1]["size_bytes"] if found else 0) == valid_bytes
        zeros = not any(log[valid_bytes:]) and len(log) - valid_bytes > 17
        if valid_bytes == len(log) or zeros:
            assert reason is None
        else:
            assert reason is not None
            assert position == valid_bytes


@given(
    data=st.data(),
    segment=strategies.segments(),
    needs_body=st.booleans(),
    check_crc=st.booleans(),
    chunk_bytes=st.sampled_from([61, 62, 100, 333, 1024]),
    most_batches=st.sampled_from([1, 2, 7]),
)
def test_batches_are_the_same_however_small_the_buffers_are(
    data: st.DataObject,
    segment: strategies.Segment,
    needs_body: bool,
    check_crc: bool,
    chunk_bytes: int,
    most_batches: int,
) -> None:
    log = data.draw(strategies.damaged(segment))
    expected = read(log, needs_body=needs_body, check_crc=check_crc)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chunks, "_CHUNK_BYTES", chunk_bytes)
        patch.setattr(chunks, "_HEADERS_CHUNK_BYTES", chunk_bytes)
        patch.setattr(chunks, "_MOST_BATCHES", most_batches)

        assert read(log, needs_body=needs_body, check_crc=check_crc) == expected


def test_without_checksums_only_headers_are_read() -> None:
    log = b"".join(padded(v2_batch(i, [(1000, None, b"a")]), 1_000_000) for i in range(5))
    read_bytes = []

    def read_into(position: int, view: memoryview) -> int:
        read_bytes.append(len(view))
        return reading(log)(position, view)

    reader = ChunkReader(ChunkOptions(needs_body=False, check_crc=False))
    found = [
        int(offset)
        for chunk in reader.read(read_into, size_bytes=len(log))
        for offset in chunk.batches[wire.BATCH_BASE_OFFSET]
    ]

    assert found == [0, 1, 2, 3, 4]
    assert sum(read_bytes) < len(log) // 10


def test_bodies_outside_the_bounds_are_not_read_without_checksums() -> None:
    log = b"".join(padded(v2_batch(i, [(1000 + i, None, b"a")]), 20_000_000) for i in range(3))
    read_bytes = []

    def read_into(position: int, view: memoryview) -> int:
        read_bytes.append(len(view))
        return reading(log)(position, view)

    bounds = Bounds(low_timestamp=2000)
    reader = ChunkReader(ChunkOptions(needs_body=True, check_crc=False, bounds=bounds))

    assert list(reader.read(read_into, size_bytes=len(log)))[-1].end_reason is None
    assert sum(read_bytes) < len(log) // 4


@pytest.mark.parametrize(
    ("bounds", "expected"),
    [
        (Bounds(), [0, 10, 20, 30]),
        (Bounds(low_offset=12), [10, 20, 30]),
        (Bounds(low_offset=13), [20, 30]),
        (Bounds(high_offset=10), [0, 10, 30]),
        (Bounds(low_timestamp=1010), [10, 20, 30]),
        (Bounds(low_timestamp=1011), [20, 30]),
        (Bounds(high_timestamp=1019), [0, 10, 30]),
        (Bounds(low_offset=100), []),
    ],
)
def test_bounds_pass_over_what_cannot_hold_a_record_within_them(
    bounds: Bounds, expected: list[int]
) -> None:
    inner = [v1_message(delta, 1030, None, b"x") for delta in range(2)]
    log = (
        v2_batch(0, [(1000, None, b"a")] * 3)
        + v2_batch(10, [(1010, None, b"a")] * 3)
        + v2_batch(20, [(900, None, b"a")] * 3, max_timestamp=1020, flags=LOG_APPEND_TIME)
        + gzip_wrapper(inner, offset=30, timestamp=1030)
    )

    found, _, _ = read(log, bounds=bounds)

    assert [row["base_offset"] for row in found] == expected


def test_bounds_do_not_change_where_a_walk_ends() -> None:
    bad = bytearray(v2_batch(1, [(1000, None, b"a")]))
    bad[-1] ^= 1
    log = v2_batch(0, [(1000, None, b"a")]) + bytes(bad)

    found, reason, position = read(log, bounds=Bounds(low_offset=50))

    assert found == []
    assert reason is not None
    assert position == len(log) // 2


def test_a_batch_above_the_limit_comes_without_its_bytes() -> None:
    small, large = v2_batch(0, [(1, None, b"a")]), v2_batch(1, [(1, None, bytes(5_000_000))])
    log = small + large + v2_batch(2, [(1, None, b"b")])
    reader = ChunkReader(ChunkOptions(needs_body=True, max_batch_bytes=1_000_000))

    seen = [
        (chunk.batches[wire.BATCH_BASE_OFFSET].tolist(), chunk.data is None)
        for chunk in reader.read(reading(log), size_bytes=len(log))
        if chunk.batches.shape[1]
    ]

    assert seen == [([0], False), ([1], True), ([2], False)]


@pytest.mark.parametrize("make", [v2_batch, None])
def test_the_checksum_of_a_batch_above_the_limit_is_verified(
    make: Callable[..., bytes] | None,
) -> None:
    large = bytearray(
        make(1, [(1, None, bytes(9_000_000))]) if make else v0_message(1, None, bytes(9_000_000))
    )
    whole = read(bytes(large), needs_body=True, max_batch_bytes=1_000_000)
    large[8_000_000] ^= 1

    found, reason, position = read(bytes(large), needs_body=True, max_batch_bytes=1_000_000)

    assert (len(whole[0]), whole[1]) == (1, None)
    assert (found, position) == ([], 0)
    assert reason is not None
    assert reason.startswith("checksum is 0x")


def test_a_length_that_reaches_past_the_file_takes_no_memory() -> None:
    log = bytearray(v2_batch(0, [(1, None, b"a")]) * 2)
    struct.pack_into(">i", log, len(log) // 2 + 8, 2**31 - 1)
    size = len(log) - len(log) // 2

    found, reason, position = read(bytes(log), needs_body=True)

    assert len(found) == 1
    assert reason == f"the batch says 2147483659 bytes, {size} are left in the file"
    assert position == len(log) // 2


@pytest.mark.parametrize(
    ("tail", "reason"),
    [
        (bytes(18), None),
        (bytes(5_000_000), None),
        (bytes(5_000_000) + b"x", "batch length is 0, the least is 14"),
        (bytes(17), "17 bytes left, too few for a batch"),
    ],
)
def test_zeros_to_the_end_are_a_preallocated_tail(tail: bytes, reason: str | None) -> None:
    batch = v2_batch(0, [(1, None, b"a")])

    found, ended, position = read(batch + tail)

    assert len(found) == 1
    assert ended == reason
    assert position == (None if reason is None else len(batch))


@pytest.mark.parametrize("needs_body", [False, True])
def test_what_was_read_before_the_file_shrank_is_given(needs_body: bool) -> None:
    log = b"".join(v2_batch(i, [(1, None, bytes(1_000_000))]) for i in range(9))
    reader = ChunkReader(ChunkOptions(needs_body=needs_body))
    offsets: list[int] = []

    with pytest.raises(FileChangedError) as caught:
        for chunk in reader.read(reading(log, ends_at=6_000_000), size_bytes=len(log)):
            offsets += chunk.batches[wire.BATCH_BASE_OFFSET].tolist()

    assert offsets == [0, 1, 2, 3]
    assert str(caught.value) == f"the file ends at byte 6000000, it had {len(log)} when opened"


def test_a_file_larger_than_kafka_opens_is_not_read() -> None:
    reader = ChunkReader(ChunkOptions(needs_body=False))

    chunk, *others = reader.read(reading(b""), size_bytes=2**31)

    assert chunk.end_reason == "2147483648 bytes, Kafka opens at most 2147483647"
    assert others == []


def test_one_reader_reads_segments_one_after_another() -> None:
    reader = ChunkReader(ChunkOptions(needs_body=True))
    logs = [v2_batch(base, [(1, None, b"a")]) for base in (5, 6)]

    seen = [
        np.concatenate(
            [
                chunk.batches[wire.BATCH_BASE_OFFSET].copy()
                for chunk in reader.read(reading(log), size_bytes=len(log))
            ]
        ).tolist()
        for log in logs
    ]

    assert seen == [[5], [6]]
