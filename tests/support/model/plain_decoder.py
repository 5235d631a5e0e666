"""Records of a log by plain Python: slow, trusting, and sharing nothing with what is tested.

It reads sound logs only; where it raises, the log is not sound. Layouts: semantics 2.1 to 2.3.
"""

import gzip
import struct
from collections.abc import Iterator
from typing import NamedTuple

import cramjam

XERIAL_HEADER = b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1)


class PlainRecord(NamedTuple):
    """A record as any client sees it, and where its batch begins."""

    batch_position: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]


class _Message(NamedTuple):
    offset: int
    magic: int
    attributes: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    end: int


def varint(data: bytes, at: int) -> tuple[int, int]:
    """Read a zig-zag varint of any length; gives the next byte too."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), at


def decompress(codec: int, data: bytes, *, magic: int = 2) -> bytes:
    """Decompress by the plain functions of each codec."""
    if codec == 1:
        return gzip.decompress(data)
    if codec == 2:
        return _unsnappy(data)
    if codec == 3 and magic == 0:
        return _unlz4_by_trial(data)
    if codec == 3:
        return bytes(cramjam.lz4.decompress(data))
    return bytes(cramjam.zstd.decompress(data))


def _unsnappy(data: bytes) -> bytes:
    if not data.startswith(b"\x82SNAPPY\x00"):
        return bytes(cramjam.snappy.decompress_raw(data))
    out, at = b"", 16
    while at < len(data):
        (length,) = struct.unpack_from(">i", data, at)
        out += bytes(cramjam.snappy.decompress_raw(data[at + 4 : at + 4 + length]))
        at += 4 + length
    return out


def _unlz4_by_trial(data: bytes) -> bytes:
    """Open a frame whose header checksum is wrong: one of 256 is right."""
    for checksum in range(256):
        try:
            return bytes(cramjam.lz4.decompress(data[:6] + bytes([checksum]) + data[7:]))
        except cramjam.DecompressionError:
            continue
    raise ValueError("no header checksum fits")


def _message(data: bytes, at: int) -> _Message:
    offset, size, _, magic, attributes = struct.unpack_from(">qiIbb", data, at)
    field, timestamp = at + 18, -1
    if magic == 1:
        (timestamp,) = struct.unpack_from(">q", data, field)
        field += 8
    key, field = _bytes_32(data, field)
    value, field = _bytes_32(data, field)
    return _Message(offset, magic, attributes, timestamp, key, value, at + 12 + size)


def _bytes_32(data: bytes, at: int) -> tuple[bytes | None, int]:
    (length,) = struct.unpack_from(">i", data, at)
    at += 4
    return (None, at) if length < 0 else (data[at : at + length], at + length)


def _bytes(data: bytes, at: int) -> tuple[bytes | None, int]:
    length, at = varint(data, at)
    return (None, at) if length < 0 else (data[at : at + length], at + length)


def _legacy_records(log: bytes, position: int) -> Iterator[PlainRecord]:
    outer = _message(log, position)
    codec = outer.attributes & 7
    if not codec:
        yield PlainRecord(position, outer.offset, outer.timestamp, outer.key, outer.value, [])
        return
    assert outer.value is not None
    data = decompress(codec, outer.value, magic=outer.magic)
    inner, at = [], 0
    while at < len(data):
        inner.append(_message(data, at))
        at = inner[-1].end
    shift = 0
    if outer.magic == 1 and outer.offset:
        shift = outer.offset - inner[-1].offset
    for message in inner:
        timestamp = message.timestamp
        if outer.magic == 1 and outer.attributes & 8 and message.magic == 1:
            timestamp = outer.timestamp
        yield PlainRecord(
            position, message.offset + shift, timestamp, message.key, message.value, []
        )


def _v2_records(log: bytes, position: int, end: int) -> Iterator[PlainRecord]:
    (base_offset,) = struct.unpack_from(">q", log, position)
    attributes, _, base, greatest = struct.unpack_from(">hiqq", log, position + 21)
    (count,) = struct.unpack_from(">i", log, position + 57)
    data = log[position + 61 : end]
    if attributes & 7 and data:
        data = decompress(attributes & 7, data)
    at = 0
    for _ in range(count):
        length, at = varint(data, at)
        stop = at + length
        timestamp_delta, at = varint(data, at + 1)
        offset_delta, at = varint(data, at)
        key, at = _bytes(data, at)
        value, at = _bytes(data, at)
        header_count, at = varint(data, at)
        headers = []
        for _ in range(header_count):
            name, at = _bytes(data, at)
            header, at = _bytes(data, at)
            headers.append(((name or b"").decode(), header))
        assert at == stop
        timestamp = greatest if attributes & 8 else base + timestamp_delta
        yield PlainRecord(position, base_offset + offset_delta, timestamp, key, value, headers)
    assert at == len(data)


def positions(log: bytes) -> Iterator[tuple[int, int]]:
    """Give where each batch begins and ends, up to a tail that is none."""
    at = 0
    while len(log) - at > 17:
        (size,) = struct.unpack_from(">i", log, at + 8)
        if size < 14 or at + 12 + size > len(log):
            return
        yield at, at + 12 + size
        at += 12 + size


def plain_records(log: bytes) -> Iterator[PlainRecord]:
    """Decode every record of a log."""
    for position, end in positions(log):
        if struct.unpack_from(">b", log, position + 16)[0] >= 2:
            yield from _v2_records(log, position, end)
        else:
            yield from _legacy_records(log, position)
