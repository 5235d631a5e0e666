"""The records of a compressed batch v2, read one after another from its stream, as Kafka does.

Kafka reads all that the batch counts, and one byte more: none may follow. A byte that is not there
counts as 255 where a length is read, so that a stream that gives nothing once and goes
on makes another length.

Source: DefaultRecordBatch.StreamRecordIterator, DefaultRecord.readFrom, ByteUtils.readVarint.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kafka_segments.kafka.codecs.streams import BufferedReader, DecompressionError

_VARINT_BYTES = 5


class Limit(NamedTuple):
    """How large a record may be, and the name of what says so; ``is_set``: somebody chose it."""

    most_bytes: int
    name: str
    is_set: bool = False

    def check(self, size: int) -> None:
        """Refuse a larger record.

        Raises:
            DecompressionError: it is larger.
        """
        if size > self.most_bytes:
            raise DecompressionError(
                f"a record of {size} bytes exceeds {self.name}, {self.most_bytes}"
            )


def stream_records(
    reader: BufferedReader, count: int, *, limit: Limit | None = None
) -> Iterator[npt.NDArray[np.uint8] | None]:
    """Yield ``count`` records, each with a length of 5 bytes in front; fields are not checked.

    ``None``, and then no more: Kafka finds one that ends before its length, a length that cannot
    be, or, before it gives the last, bytes behind it.

    Raises:
        DecompressionError: the stream throws, or a record is larger than ``limit``.
    """
    for left in reversed(range(count)):
        length = _read_length(reader)
        if limit is not None and length is not None:
            limit.check(length)
        record = None if length is None or length < 0 else reader.bytes(length)
        if record is None or len(record) != length or (not left and reader.byte() >= 0):
            yield None
            return
        yield np.frombuffer(_padded_varint(len(record)) + record, dtype=np.uint8)


def _read_length(reader: BufferedReader) -> int | None:
    """Read a varint; None: it has no end."""
    value = 0
    for number in range(_VARINT_BYTES):
        byte = reader.byte() & 0xFF
        value |= (byte & 0x7F) << 7 * number
        if byte < 0x80:
            value &= 0xFFFFFFFF
            return (value >> 1) ^ -(value & 1)
    return None


def _padded_varint(length: int) -> bytes:
    """Write a length in as many bytes as a varint can have."""
    left = length << 1
    more = [left >> 7 * number & 0x7F | 0x80 for number in range(_VARINT_BYTES - 1)]
    return bytes([*more, left >> 7 * len(more) & 0x7F])
