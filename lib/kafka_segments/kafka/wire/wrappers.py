"""The first offset of a compressed message v0 or v1, which only its inner messages say.

The inner messages are read as a stream, in bounded memory: only the first and the last are held.

Source: AbstractLegacyRecordBatch.DeepRecordsIterator, DataLogInputStream.
"""

from collections.abc import Iterator
from typing import NamedTuple

from kafka_segments.kafka.codecs.codecs import open_reader
from kafka_segments.kafka.codecs.streams import BufferedReader, DecompressionError, ReadPart, Stored
from kafka_segments.kafka.wire.header_layout import (
    CODEC_MASK,
    LEGACY_ATTRIBUTES,
    LENGTH,
    LOG_OVERHEAD,
    MAGIC,
    MIN_LENGTH,
)
from kafka_segments.kafka.wire.messages import value_of

_UP_TO_ATTRIBUTES = LEGACY_ATTRIBUTES + 1


class _Inner(NamedTuple):
    offset: int
    attributes: int


def first_offset(read: ReadPart, size_bytes: int) -> int:
    """Return the offset of a wrapper's first message, as Kafka reads it: all of them are read.

    ``read`` gives parts of the wrapper, which has ``size_bytes``.

    Raises:
        DecompressionError: Kafka throws at it.
    """
    header = bytes(read(0, _UP_TO_ATTRIBUTES))
    magic = int.from_bytes(header[MAGIC:LEGACY_ATTRIBUTES], "big", signed=True)
    if magic not in (0, 1):
        raise DecompressionError(f"a compressed message has magic {magic}, 0 or 1 expected")
    start, end = value_of(read, size_bytes, magic=magic)
    stored = Stored(lambda at, length: read(start + at, length), end - start)
    reader = open_reader(header[LEGACY_ATTRIBUTES] & CODEC_MASK, stored, magic=magic)
    first = last = None
    for inner in _messages(reader):
        first, last = first or inner, inner
    if first is None or last is None:
        raise DecompressionError("a compressed message holds no messages")
    if first.attributes & CODEC_MASK:
        raise DecompressionError("an inner message is compressed")
    wrapper_offset = _signed(header[:LENGTH])
    if magic == 0 or wrapper_offset == 0:
        return first.offset
    if wrapper_offset < last.offset:
        raise DecompressionError(
            f"a wrapper has offset {wrapper_offset}, its last message {last.offset}"
        )
    return _wrapped(wrapper_offset - last.offset + first.offset)


def _messages(reader: BufferedReader) -> Iterator[_Inner]:
    """Yield the messages of a set; a torn last one does not count."""
    while len(head := reader.bytes(LOG_OVERHEAD)) == LOG_OVERHEAD:
        size = _signed(head[LENGTH:])
        if size < MIN_LENGTH:
            raise DecompressionError(
                f"an inner message says {size} bytes, the least is {MIN_LENGTH}"
            )
        front = b""
        for piece in reader.pieces(size):
            size -= len(piece)
            front += bytes(piece[: _UP_TO_ATTRIBUTES - LOG_OVERHEAD - len(front)])
        if size:
            return
        yield _Inner(_signed(head[:LENGTH]), front[-1])


def _signed(data: bytes) -> int:
    return int.from_bytes(data, "big", signed=True)


def _wrapped(offset: int) -> int:
    """Return an offset as a Java long holds it."""
    return (offset + 2**63) % 2**64 - 2**63
