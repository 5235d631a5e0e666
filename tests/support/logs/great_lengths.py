"""Lengths that a compressed batch says, and that Kafka takes memory for before it has the bytes."""

from collections.abc import Iterator

import numpy as np

from kafka_segments.kafka.codecs.codecs import SNAPPY, Bytes, Decompressor
from kafka_segments.kafka.codecs.snappy_stream import XERIAL_MAGIC
from kafka_segments.kafka.codecs.streams import DecompressionError
from kafka_segments.kafka.wire.messages import wrapper_value
from kafka_segments.kafka.wire.varints import read_varint

GREAT_LENGTH = 128 * 1024 * 1024
_CODEC, _CONTROL = 0x07, 0x20
_XERIAL_HEADER_BYTES = 16


def says_great_length(log: bytes) -> bool:
    """Tell whether Kafka takes more than ``GREAT_LENGTH`` bytes at once to read a log's batch.

    It reads the records of markers, and compressed messages v0 and v1.
    """
    return any(
        length > GREAT_LENGTH for batch, magic in _batches(log) for length in _lengths(batch, magic)
    )


def _batches(log: bytes) -> Iterator[tuple[Bytes, int]]:
    at = 0
    while at + 26 <= len(log):
        size = int.from_bytes(log[at + 8 : at + 12], "big", signed=True)
        if size < 14:
            return
        batch = np.frombuffer(log[at : at + 12 + size], np.uint8)
        yield batch, int(batch[16].view(np.int8))
        at += 12 + size


def _lengths(batch: Bytes, magic: int) -> Iterator[int]:
    attributes = int(batch[22 if magic >= 2 else 17])
    codec = attributes & _CODEC
    if not codec or magic < 0 or (magic >= 2 and not attributes & _CONTROL):
        return
    try:
        data = batch[61:] if magic >= 2 else wrapper_value(batch)
        if codec == SNAPPY:
            yield from _snappy_lengths(data.tobytes())
        inner = Decompressor(GREAT_LENGTH).decompress(codec, data, magic=magic)
    except DecompressionError:
        return
    if magic >= 2:
        yield 4 * int.from_bytes(batch[57:61].tobytes(), "big", signed=True)
    at = 0
    while 0 <= at < len(inner):
        if magic >= 2:
            length, at = read_varint(inner, at, len(inner))
        else:
            length = int.from_bytes(inner[at + 8 : at + 12].tobytes(), "big", signed=True)
            at += 12
        yield length
        at += max(length, 0)


def _snappy_lengths(data: bytes) -> Iterator[int]:
    """Give the length of each block, and that of what it holds."""
    if not data.startswith(XERIAL_MAGIC):
        yield _plain_length(data)
        return
    at = _XERIAL_HEADER_BYTES
    while at + 4 <= len(data):
        length = int.from_bytes(data[at : at + 4], "big")
        yield length
        yield _plain_length(data[at + 4 :])
        at += 4 + length


def _plain_length(block: bytes) -> int:
    return sum((byte & 0x7F) << 7 * place for place, byte in _varint(block))


def _varint(data: bytes) -> Iterator[tuple[int, int]]:
    for place, byte in enumerate(data[:5]):
        yield place, byte
        if byte < 0x80:
            return
