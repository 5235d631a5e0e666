"""The first record of one batch that is late enough and far enough on, read no further than it.

Source: DefaultRecordBatch.streamingIterator and uncompressedIterator,
AbstractLegacyRecordBatch.DataLogInputStream (as of Kafka 4.4).
"""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from kafka_segments.kafka.codecs.codecs import Decompressor, open_reader
from kafka_segments.kafka.codecs.streams import (
    BufferedReader,
    DecompressionError,
    Stored,
    stored_in,
)
from kafka_segments.kafka.wire import batches as wire
from kafka_segments.kafka.wire import header_layout as layout
from kafka_segments.kafka.wire.failures import FAILURE_SLOTS, OK
from kafka_segments.kafka.wire.record_stream import Limit, stream_records
from kafka_segments.kafka.wire.records import check_records
from kafka_segments.kafka.wire.sections import decompressed_records
from kafka_segments.kafka.wire.varints import read_varint, read_varlong

_PLAIN_BUFFER_BYTES = 16 * 1024
_INNER_HEADER_BYTES = 12
_MOST_BYTES = 256 * 1024 * 1024


class _Plain:
    """Records that are not compressed, as a stream."""

    def __init__(self, stored: Stored) -> None:
        self._stored = stored

    def read(self, most: int) -> bytes | memoryview | None:
        return self._stored.take(most) or None

    def has_more(self) -> bool:
        return self._stored.left > 0


def first_fitting(
    stored: wire.Bytes,
    batch: npt.NDArray[np.int64],
    least_timestamp_ms: int,
    least_offset: int,
    limit: Limit,
) -> tuple[int, int] | None:
    """Return offset and timestamp (ms) of the first record of a batch v2 at or after both.

    ``stored``: its records as they lie in the log; ``batch``: its column of ``wire.Batches``.

    Raises:
        DecompressionError: the stream throws, or a record before that one, or it, is not sound or
            too large.
    """
    codec = int(batch[wire.BATCH_ATTRIBUTES]) & layout.CODEC_MASK
    if codec:
        reader = open_reader(codec, stored_in(stored), magic=layout.MAGIC_V2)
    else:
        reader = BufferedReader(_Plain(stored_in(stored)), _PLAIN_BUFFER_BYTES)
    count = int(batch[wire.BATCH_RECORD_COUNT])
    if count < 0:
        raise DecompressionError(f"a record count of {count}")
    for number, record in enumerate(stream_records(reader, count, limit=limit)):
        if record is None or not _is_sound(record):
            raise DecompressionError(f"record {number + 1} of {count} is not as the batch says")
        offset, timestamp = _read(record, batch)
        if timestamp >= least_timestamp_ms and offset >= least_offset:
            return offset, timestamp
    return None


def refuse_large_messages(stored: wire.Bytes, batch: npt.NDArray[np.int64], limit: Limit) -> None:
    """Refuse a compressed set of messages v0 or v1 of which one is too large.

    Raises:
        DecompressionError: one is, or the set cannot be decompressed.
    """
    for size in _inner_sizes(decompressed_records(Decompressor(_MOST_BYTES), stored, batch)):
        limit.check(size)


def _inner_sizes(messages: wire.Bytes) -> Iterator[int]:
    at = 0
    while at + _INNER_HEADER_BYTES <= len(messages):
        size = int.from_bytes(bytes(messages[at + 8 : at + _INNER_HEADER_BYTES]), "big")
        yield size
        at += _INNER_HEADER_BYTES + size


def _is_sound(record: wire.Bytes) -> bool:
    failure = np.zeros(FAILURE_SLOTS, dtype=np.int64)
    return bool(check_records(record, 0, len(record), 1, failure) == OK)


def _read(record: wire.Bytes, batch: npt.NDArray[np.int64]) -> tuple[int, int]:
    """Return offset and timestamp of a sound record."""
    end = len(record)
    _, at = read_varint(record, 0, end)
    timestamp_delta, at = read_varlong(record, at + 1, end)
    offset_delta, _ = read_varint(record, at, end)
    offset = _as_long(int(batch[wire.BATCH_BASE_OFFSET]) + int(offset_delta))
    if int(batch[wire.BATCH_ATTRIBUTES]) & layout.LOG_APPEND_TIME:
        return offset, int(batch[wire.BATCH_MAX_TIMESTAMP])
    return offset, _as_long(int(batch[wire.BATCH_BASE_TIMESTAMP]) + int(timestamp_delta))


def _as_long(value: int) -> int:
    """Return a sum as Java's long has it."""
    return (value + 2**63) % 2**64 - 2**63
