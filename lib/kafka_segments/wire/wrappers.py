"""The first offset of a compressed message v0 or v1, which only its inner messages say.

Source: AbstractLegacyRecordBatch.DeepRecordsIterator, DataLogInputStream.
"""

from typing import NamedTuple

import numpy as np

from kafka_segments.wire.batches import CODEC_MASK, LOG_OVERHEAD
from kafka_segments.wire.codecs import Bytes, DecompressionError, Decompressor
from kafka_segments.wire.ends import MIN_SIZE
from kafka_segments.wire.messages import MAGIC_AT, wrapper_value

MOST_BYTES = 256 * 1024 * 1024
_ATTRIBUTES_AT = 17


class _Inner(NamedTuple):
    offset: int
    attributes: int


def first_offset(message: Bytes, decompressor: Decompressor) -> int:
    """Give the offset of a wrapper's first message, as Kafka reads it: all of them are read.

    Raises:
        DecompressionError: Kafka throws at it.
    """
    magic = int(message[MAGIC_AT].view(np.int8))
    if magic not in (0, 1):
        raise DecompressionError(f"a compressed message has magic {magic}, 0 or 1 expected")
    codec = int(message[_ATTRIBUTES_AT]) & CODEC_MASK
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
    """Give the first and the last message of a set; a torn last one does not count."""
    first = last = None
    at = 0
    while len(inner) - at >= LOG_OVERHEAD:
        size = int.from_bytes(inner[at + 8 : at + 12].tobytes(), "big", signed=True)
        if size < MIN_SIZE:
            raise DecompressionError(f"an inner message says {size} bytes, the least is {MIN_SIZE}")
        if size > len(inner) - at - LOG_OVERHEAD:
            break
        last = _Inner(_int64(inner, at), int(inner[at + _ATTRIBUTES_AT]))
        first = first or last
        at += LOG_OVERHEAD + size
    if first is None or last is None:
        raise DecompressionError("a compressed message holds no messages")
    return first, last


def _int64(data: Bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 8].tobytes(), "big", signed=True)
