"""Messages v0 and v1, compiled: the check of a message or an inner message set.

::

    offset      int64   of an inner message v1: relative, the last one has the wrapper's
    size        int32   bytes after this field
    crc         uint32
    magic       int8
    attributes  int8
    timestamp   int64   v1 only
    keyLength   int32   negative: null
    key
    valueLength int32   negative: null
    value

Source: LegacyRecord, AbstractLegacyRecordBatch.DeepRecordsIterator.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from kafka_segments.compiling import njit
from kafka_segments.kafka.codecs.streams import DecompressionError, ReadPart
from kafka_segments.kafka.wire import header_layout as layout
from kafka_segments.kafka.wire.failures import (
    BAD_LEGACY_MAGIC,
    BAD_WRAPPER_OFFSET,
    INNER_COMPRESSED,
    INNER_TOO_SMALL,
    KEY_PAST_END,
    LEFT_IN_RECORD,
    NO_INNER_MESSAGES,
    OK,
    RECORD_PAST_END,
    VALUE_PAST_END,
    fail,
)
from kafka_segments.kafka.wire.headers import magic_at, size_at
from kafka_segments.kafka.wire.native import load_i32, load_i64

_TWO_LENGTHS = 8  # of key and value, which a message without either has, too
V0_MIN_BYTES = layout.V0_KEY_LENGTH + _TWO_LENGTHS
V1_MIN_BYTES = layout.V1_KEY_LENGTH + _TWO_LENGTHS


@njit(forceinline=True)  # type: ignore[untyped-decorator]
def key_length_at(data: Any, at: Any) -> Any:
    """Return the place of the key length of the message at ``at``."""
    is_v0 = data[at + layout.MAGIC] == 0
    return at + (layout.V0_KEY_LENGTH if is_v0 else layout.V1_KEY_LENGTH)


@njit(forceinline=True)  # type: ignore[untyped-decorator]
def _check_message(data: Any, at: Any, left: Any, failure: Any) -> Any:
    """Check that a message lies within ``left`` bytes and its fields fill it."""
    if left < V0_MIN_BYTES:
        return fail(failure, INNER_TOO_SMALL, left, V0_MIN_BYTES, at)
    size_bytes = size_at(data, at)
    if size_bytes > left:
        return fail(failure, RECORD_PAST_END, size_bytes, left, at)
    magic = magic_at(data, at)
    if magic not in (0, 1):
        return fail(failure, BAD_LEGACY_MAGIC, magic, 1, at)
    least = V0_MIN_BYTES if magic == 0 else V1_MIN_BYTES
    if size_bytes < least:
        return fail(failure, INNER_TOO_SMALL, size_bytes, least, at)
    end = at + size_bytes
    field = key_length_at(data, at)
    length = load_i32(data, field)
    field += 4
    if length > end - field - 4:
        return fail(failure, KEY_PAST_END, length, end - field - 4, field)
    field += max(length, 0)
    length = load_i32(data, field)
    field += 4
    if length > end - field:
        return fail(failure, VALUE_PAST_END, length, end - field, field)
    field += max(length, 0)
    if field != end:
        return fail(failure, LEFT_IN_RECORD, size_bytes, field - at, at)
    return OK


@njit(cache=True)  # type: ignore[untyped-decorator]
def check_messages(
    data: Any, start: Any, end: Any, wrapper_magic: Any, wrapper_offset: Any, failure: Any
) -> Any:
    """Check an inner message set; return (OK or not, messages, what to add to their offsets).

    1. Inner messages are whole, not compressed, and there is at least one.
    2. In a v0 wrapper their offsets are absolute; in a v1 wrapper the last one's is the
       wrapper's, unless that is 0 (an old librdkafka): then they are absolute too.
    """
    at = start
    count = np.int64(0)
    if wrapper_magic not in (0, 1):
        return fail(failure, BAD_LEGACY_MAGIC, wrapper_magic, 1, at), count, np.int64(0)
    last_inner = np.int64(0)
    while at < end:
        if _check_message(data, at, end - at, failure) != OK:
            return np.int64(failure[0]), count, np.int64(0)
        codec = np.int64(data[at + layout.LEGACY_ATTRIBUTES]) & layout.CODEC_MASK
        if codec != 0:
            return fail(failure, INNER_COMPRESSED, codec, 0, at), count, np.int64(0)
        last_inner = load_i64(data, at)
        at += size_at(data, at)
        count += 1
    if count == 0:
        return fail(failure, NO_INNER_MESSAGES, 0, 1, start), count, np.int64(0)
    if wrapper_magic == 0 or wrapper_offset == 0:
        return np.int64(OK), count, np.int64(0)
    if wrapper_offset < last_inner:
        wrong = fail(failure, BAD_WRAPPER_OFFSET, wrapper_offset, last_inner, start)
        return wrong, count, np.int64(0)
    return np.int64(OK), count, wrapper_offset - last_inner


@njit  # type: ignore[untyped-decorator]
def check_plain_message(data: Any, start: Any, end: Any, failure: Any) -> Any:
    """Check a message that is not compressed and stands in the log itself."""
    return np.int64(_check_message(data, start, end - start, failure))


def wrapper_value(message: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Return the value of a compressed message: its compressed message set.

    Raises:
        DecompressionError: the key or the value does not lie within the message.
    """

    def read(at: int, length: int) -> bytes:
        return message[at : at + length].tobytes()

    start, end = value_of(read, len(message), magic=int(message[layout.MAGIC]))
    return message[start:end]


def value_of(read: ReadPart, size_bytes: int, *, magic: int) -> tuple[int, int]:
    """Return where the value of a message begins and ends; ``read`` gives parts of the message.

    Raises:
        DecompressionError: the key or the value does not lie within the message.
    """
    at = layout.V0_KEY_LENGTH if magic == 0 else layout.V1_KEY_LENGTH
    for field in ("key", "value"):
        left = max(size_bytes - at - 4, 0)
        length = int.from_bytes(read(at, min(4, size_bytes - at)), "big", signed=True)
        if at + 4 > size_bytes or length > left:
            raise DecompressionError(f"a {field} says {length} bytes, {left} are left")
        start, at = at + 4, at + 4 + max(length, 0)
    if length < 0:
        raise DecompressionError("a compressed message has no value")
    return start, at
