"""Batches as bytes and Hypothesis strategies for segments, shared by all tests.

Written with ``struct`` and tables of its own: nothing here comes from ``kafka_segments``, so what
is under test cannot agree with itself. Layouts: semantics 2.1 and 2.2.
"""

from __future__ import annotations

import binascii
import gzip
import struct
from collections.abc import Sequence
from typing import NamedTuple

from hypothesis import strategies as st

NO_TIMESTAMP = -1
MAX_INT32 = 2**31 - 1
MAX_INT64 = 2**63 - 1
GZIP = 1
LOG_APPEND_TIME, TRANSACTIONAL, CONTROL, DELETE_HORIZON = 0x08, 0x10, 0x20, 0x40

Record = tuple[int, bytes | None, bytes | None]
"""Timestamp (ms), key and value; None is a null key or value."""


def _table(polynomial: int) -> list[int]:
    table = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (polynomial if value & 1 else 0)  # noqa: PLW2901
        table.append(value)
    return table


_CASTAGNOLI = _table(0x82F63B78)


def crc32c(data: bytes) -> int:
    """Compute a CRC-32C byte by byte."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ _CASTAGNOLI[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


def varint(value: int) -> bytes:
    """Write a signed number zig-zag, 7 bits a byte, the lowest first."""
    left = value << 1 if value >= 0 else (-value << 1) - 1
    out = bytearray()
    while left > 0x7F:
        out.append(left & 0x7F | 0x80)
        left >>= 7
    out.append(left)
    return bytes(out)


def _varint_bytes(data: bytes | None) -> bytes:
    return varint(-1) if data is None else varint(len(data)) + data


def v2_record(
    *,
    timestamp_delta: int,
    offset_delta: int,
    key: bytes | None,
    value: bytes | None,
    headers: Sequence[tuple[str, bytes | None]] = (),
) -> bytes:
    """Write one record of a v2 batch, its length in front."""
    body = b"\x00" + varint(timestamp_delta) + varint(offset_delta)
    body += _varint_bytes(key) + _varint_bytes(value) + varint(len(headers))
    for name, header in headers:
        body += _varint_bytes(name.encode()) + _varint_bytes(header)
    return varint(len(body)) + body


def v2_batch(
    base_offset: int,
    records: Sequence[Record],
    *,
    offset_deltas: Sequence[int] | None = None,
    last_offset_delta: int | None = None,
    base_timestamp: int | None = None,
    max_timestamp: int | None = None,
    leader_epoch: int = -1,
    magic: int = 2,
    codec: int = 0,
    flags: int = 0,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    record_count: int | None = None,
    headers: Sequence[tuple[str, bytes | None]] = (),
    payload: bytes | None = None,
) -> bytes:
    """Write a record batch v2.

    Whatever is left out follows from ``records``: deltas 0, 1, 2, …, the first record's timestamp
    as base, the greatest as maximum. ``flags`` are attribute bits above the codec, such as
    ``CONTROL``. ``codec`` 0 and ``GZIP`` are written; with another one, or for bytes that are no
    records, give ``payload``. ``headers`` go to every record.
    """
    deltas = list(range(len(records)) if offset_deltas is None else offset_deltas)
    timestamps = [timestamp for timestamp, _, _ in records] or [NO_TIMESTAMP]
    first = timestamps[0] if base_timestamp is None else base_timestamp
    if payload is None:
        payload = b"".join(
            v2_record(
                timestamp_delta=timestamp - first,
                offset_delta=delta,
                key=key,
                value=value,
                headers=headers,
            )
            for delta, (timestamp, key, value) in zip(deltas, records, strict=True)
        )
        payload = gzip.compress(payload, mtime=0) if codec == GZIP else payload
    covered = struct.pack(
        ">hiqqqhii",
        codec | flags,
        max(deltas, default=0) if last_offset_delta is None else last_offset_delta,
        first,
        max(timestamps) if max_timestamp is None else max_timestamp,
        producer_id,
        producer_epoch,
        base_sequence,
        len(records) if record_count is None else record_count,
    )
    covered += payload
    length = 9 + len(covered)
    return (
        struct.pack(">qiibI", base_offset, length, leader_epoch, magic, crc32c(covered)) + covered
    )


def empty_batch(
    base_offset: int, *, last_offset_delta: int, max_timestamp: int, producer_id: int = -1
) -> bytes:
    """Write what compaction leaves of a batch whose records are all gone: 61 bytes."""
    return v2_batch(
        base_offset,
        [],
        last_offset_delta=last_offset_delta,
        base_timestamp=NO_TIMESTAMP,
        max_timestamp=max_timestamp,
        producer_id=producer_id,
    )


def transaction_marker(
    offset: int, *, timestamp: int, producer_id: int, commit: bool = True
) -> bytes:
    """Write the control batch that ends a transaction."""
    key = struct.pack(">hh", 0, 1 if commit else 0)
    return v2_batch(
        offset,
        [(timestamp, key, struct.pack(">hi", 0, 0))],
        flags=CONTROL | TRANSACTIONAL,
        producer_id=producer_id,
        producer_epoch=0,
    )


def _int32_bytes(data: bytes | None) -> bytes:
    return struct.pack(">i", -1) if data is None else struct.pack(">i", len(data)) + data


def legacy_entry(offset: int, covered: bytes) -> bytes:
    """Write a v0 or v1 entry around the bytes that its CRC-32 covers (magic to the end)."""
    return struct.pack(">qiI", offset, 4 + len(covered), binascii.crc32(covered)) + covered


def v0_message(
    offset: int, key: bytes | None, value: bytes | None, *, attributes: int = 0
) -> bytes:
    """Write a message v0; for a wrapper give ``attributes`` a codec and ``value`` its bytes."""
    return legacy_entry(
        offset, struct.pack(">bb", 0, attributes) + _int32_bytes(key) + _int32_bytes(value)
    )


def v1_message(
    offset: int,
    timestamp: int,
    key: bytes | None,
    value: bytes | None,
    *,
    attributes: int = 0,
) -> bytes:
    """Write a message v1; ``attributes`` may have a codec and ``LOG_APPEND_TIME``."""
    return legacy_entry(
        offset,
        struct.pack(">bbq", 1, attributes, timestamp) + _int32_bytes(key) + _int32_bytes(value),
    )


def gzip_wrapper(inner: Sequence[bytes], *, offset: int, timestamp: int | None = None) -> bytes:
    """Wrap legacy entries into one, gzipped: v0 without a timestamp, else v1.

    ``offset`` is the last inner entry's. Inner offsets are the caller's to choose: absolute in
    v0, 0, 1, 2, … in v1.
    """
    value = gzip.compress(b"".join(inner), mtime=0)
    if timestamp is None:
        return v0_message(offset, None, value, attributes=GZIP)
    return v1_message(offset, timestamp, None, value, attributes=GZIP)


def stamped_wrapper(created: Sequence[int], *, appended: int) -> bytes:
    """Write a compressed v1 batch as a broker stamps it: in the wrapper alone."""
    inner = [v1_message(delta, time, None, b"v") for delta, time in enumerate(created)]
    value = gzip.compress(b"".join(inner), mtime=0)
    return v1_message(len(inner) - 1, appended, None, value, attributes=GZIP | LOG_APPEND_TIME)


def example_e1() -> tuple[int, bytes]:
    """Give (base offset, log) of worked example E1 in semantics 3.2: 936 bytes, epochs 3 and 5."""
    batches = [
        (1000, [5000, 5001], 3),
        (1002, [4000], 3),
        (1003, [7000, 7001, 7002], 3),
        (1006, [6000, 6001], 5),
        (1008, [7000], 5),
        (1009, [9000], 5),
    ]
    log = b"".join(
        v2_batch(base, [(time, None, bytes(50)) for time in times], leader_epoch=epoch)
        for base, times, epoch in batches
    )
    return 1000, log


class Segment(NamedTuple):
    """A generated segment: its log and where each batch begins (and the last one ends)."""

    base_offset: int
    log: bytes
    positions: list[int]


base_offsets = st.one_of(
    st.sampled_from([0, 1, 1000, 2**31, MAX_INT64 - 2**32]), st.integers(0, 2**40)
)
"""Base offsets of segments that leave room above them."""

batch_timestamps = st.one_of(
    st.integers(1_000, 1_020),
    st.integers(1_000, 1_020),
    st.integers(1_600_000_000_000, 1_600_000_000_100),
    st.sampled_from([NO_TIMESTAMP] * 4 + [0, 1, MAX_INT64, -(2**63), -2]),
)
"""Timestamps that rise, go back and repeat, some of them -1 (none) or absurd."""

_small_bytes = st.one_of(st.none(), st.binary(max_size=12), st.just(bytes(90)))
_producer_ids = st.sampled_from([-1, -1, 0, 1, 4711, MAX_INT64])
_epochs = st.sampled_from([-1, 0, 0, 1, 2, 5])


@st.composite
def v2_batches(draw: st.DrawFn, base_offset: int) -> tuple[int, bytes]:
    """Draw (last offset, bytes) of a v2 batch that begins at ``base_offset``."""
    timestamp = draw(batch_timestamps)
    values = draw(st.lists(_small_bytes, max_size=3))
    gaps = draw(st.sampled_from([0, 0, 0, 3]))
    last_delta = max(len(values) - 1, 0) + gaps
    flags = draw(st.sampled_from([0, 0, LOG_APPEND_TIME, TRANSACTIONAL, DELETE_HORIZON]))
    batch = v2_batch(
        base_offset,
        [(timestamp, None, value) for value in values],
        last_offset_delta=last_delta,
        max_timestamp=timestamp,
        leader_epoch=draw(_epochs),
        magic=draw(st.sampled_from([2, 2, 2, 3, 127])),
        flags=flags,
        producer_id=draw(_producer_ids),
    )
    return base_offset + last_delta, batch


@st.composite
def legacy_batches(draw: st.DrawFn, base_offset: int) -> tuple[int, bytes]:
    """Draw (last offset, bytes) of a v0 or v1 message, or of a gzipped wrapper."""
    key, value = draw(_small_bytes), draw(_small_bytes)
    timestamp = draw(batch_timestamps)
    kind = draw(st.sampled_from(["v0", "v1", "v1", "wrapper"]))
    if kind == "v0":
        return base_offset, v0_message(base_offset, key, value)
    if kind == "v1":
        attributes = draw(st.sampled_from([0, LOG_APPEND_TIME]))
        return base_offset, v1_message(base_offset, timestamp, key, value, attributes=attributes)
    inner = [v1_message(delta, timestamp, key, value) for delta in range(2)]
    return base_offset + 1, gzip_wrapper(inner, offset=base_offset + 1, timestamp=timestamp)


@st.composite
def segments(draw: st.DrawFn, *, max_batches: int = 25) -> Segment:
    """Draw a segment of mixed formats.

    Offsets mostly rise with gaps; now and then they go back, or jump to just below, at or above
    the greatest distance from the base offset that a segment may hold.
    """
    base_offset = draw(base_offsets)
    offset = base_offset + draw(st.sampled_from([0, 0, 0, 7]))
    log, positions = bytearray(), [0]
    for _ in range(draw(st.integers(0, max_batches))):
        builder = draw(st.sampled_from([v2_batches, v2_batches, legacy_batches]))
        last_offset, batch = draw(builder(offset))
        log += batch
        positions.append(len(log))
        step = draw(st.sampled_from(["next"] * 24 + ["gap"] * 4 + ["back", "far"]))
        offset = last_offset + 1
        if step == "gap":
            offset += draw(st.integers(1, 50))
        elif step == "back":
            offset = max(0, offset - draw(st.integers(1, 20)))
        elif step == "far":
            offset = base_offset + MAX_INT32 + draw(st.integers(-3, 2))
    return Segment(base_offset, bytes(log), positions)


@st.composite
def damaged(draw: st.DrawFn, segment: Segment) -> bytes:
    """Draw what may become of a segment's log on a disk; it may also stay whole."""
    log = segment.log
    kind = draw(st.sampled_from(["none", "bit", "cut", "zeros", "size", "garbage"]))
    if kind == "bit" and log:
        damaged_log = bytearray(log)
        damaged_log[draw(st.integers(0, len(log) - 1))] ^= 1 << draw(st.integers(0, 7))
        return bytes(damaged_log)
    if kind == "cut" and log:
        return log[: draw(st.integers(0, len(log) - 1))]
    if kind == "zeros":
        return log + bytes(draw(st.sampled_from([1, 11, 12, 16, 17, 18, 60, 500])))
    if kind == "size" and len(segment.positions) > 1:
        position = draw(st.sampled_from(segment.positions[:-1]))
        size = draw(st.sampled_from([-1, 0, 13, 14, 48, 49, 200, MAX_INT32, -(2**31)]))
        return log[: position + 8] + struct.pack(">i", size) + log[position + 12 :]
    if kind == "garbage":
        return log + draw(st.binary(min_size=1, max_size=80))
    return log


class DatedLog(NamedTuple):
    """A sound log: its batches, whose offsets rise, and (offset, timestamp) of every record."""

    base_offset: int
    log: bytes
    records: list[tuple[int, int]]


@st.composite
def dated_logs(
    draw: st.DrawFn, *, timestamps: st.SearchStrategy[int] | None = None, rising: bool = False
) -> DatedLog:
    """Draw a log of v2 batches (plain, gzipped, with LogAppendTime) and v1 wrappers.

    ``rising`` makes timestamps never go back, as a broker's clock with LogAppendTime.
    """
    times = timestamps or st.one_of(st.integers(0, 400_000), st.just(NO_TIMESTAMP))
    base_offset = offset = draw(base_offsets)
    log, records, now = bytearray(), [], 0
    for _ in range(draw(st.integers(0, 12))):
        offset += draw(st.sampled_from([0, 0, 0, 4]))
        stamps = draw(st.lists(times, min_size=1, max_size=4))
        if rising:
            now = max([now, *stamps])
            stamps = [now] * len(stamps)
        kind = draw(st.sampled_from(["plain", "gzip", "append", "wrapper"]))
        if kind == "wrapper":
            inner = [v1_message(i, stamp, None, b"x") for i, stamp in enumerate(stamps)]
            last = offset + len(stamps) - 1
            log += gzip_wrapper(inner, offset=last, timestamp=max(stamps))
        else:
            stamps = [max(stamps)] * len(stamps) if kind == "append" else stamps
            log += v2_batch(
                offset,
                [(stamp, None, b"v" * 20) for stamp in stamps],
                codec=GZIP if kind == "gzip" else 0,
                flags=LOG_APPEND_TIME if kind == "append" else 0,
            )
        records += [(offset + i, stamp) for i, stamp in enumerate(stamps)]
        offset += len(stamps)
    return DatedLog(base_offset, bytes(log), records)
