"""The first offset of a compressed message v0 or v1, which only its inner messages say.

Source: AbstractLegacyRecordBatch.DeepRecordsIterator, DataLogInputStream.
"""

from typing import NamedTuple

import numpy as np

from kafka_segments.wire.codecs import Bytes, DecompressionError, Decompressor
from kafka_segments.wire.header_layout import (
    CODEC_MASK,
    LEGACY_ATTRIBUTES,
    LENGTH,
    LOG_OVERHEAD,
    MAGIC,
    MIN_LENGTH,
)
from kafka_segments.wire.messages import wrapper_value

MOST_BYTES = 256 * 1024 * 1024


class _Inner(NamedTuple):
    offset: int
    attributes: int


def first_offset(message: Bytes, decompressor: Decompressor) -> int:
    """Return the offset of a wrapper's first message, as Kafka reads it: all of them are read.

    Raises:
        DecompressionError: Kafka throws at it.
    """
    magic = int(message[MAGIC].view(np.int8))
    if magic not in (0, 1):
        raise DecompressionError(f"a compressed message has magic {magic}, 0 or 1 expected")
    codec = int(message[LEGACY_ATTRIBUTES]) & CODEC_MASK
    inner = decompressor.decompress(codec, wrapper_value(message), magic=magic)
    first, last = _ends(inner)
    if first.attributes & CODEC_MASK:
        raise DecompressionError("an inner message is compressed")
    wrapper_offset = _int64(message, 0)
    if magic == 0 or wrapper_offset == 0:
        return first.offset
    if wrapper_offset < last.offset:
        raise DecompressionError(
            f"a wrapper has offset {wrapper_offset}, its last message {last.offset}"
        )
    return int(np.int64(wrapper_offset - last.offset + first.offset))


def _ends(inner: Bytes) -> tuple[_Inner, _Inner]:
    """Return the first and the last message of a set; a torn last one does not count."""
    first = last = None
    at = 0
    while len(inner) - at >= LOG_OVERHEAD:
        size = int.from_bytes(inner[at + LENGTH : at + LOG_OVERHEAD].tobytes(), "big", signed=True)
        if size < MIN_LENGTH:
            raise DecompressionError(
                f"an inner message says {size} bytes, the least is {MIN_LENGTH}"
            )
        if size > len(inner) - at - LOG_OVERHEAD:
            break
        last = _Inner(_int64(inner, at), int(inner[at + LEGACY_ATTRIBUTES]))
        first = first or last
        at += LOG_OVERHEAD + size
    if first is None or last is None:
        raise DecompressionError("a compressed message holds no messages")
    return first, last


def _int64(data: Bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 8].tobytes(), "big", signed=True)
