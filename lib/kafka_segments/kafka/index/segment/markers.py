"""What a batch says to the producer state: columns of the walk, and markers of transactions.

A marker is a control batch with a producer id. Its one record is plain: key int16 version and
int16 type (0 ABORT, 1 COMMIT), value int16 version and int32 coordinator epoch. ``read_marker``
is compiled and knows this form; any other goes to ``decode_marker``, which ends as Kafka ends.

Source: ProducerAppendInfo.append, EndTransactionMarker, ControlRecordType, DefaultRecordBatch.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kafka_segments.compiling import njit
from kafka_segments.errors import KafkaSegmentsError
from kafka_segments.kafka.codecs.codecs import open_reader
from kafka_segments.kafka.codecs.streams import DecompressionError, stored_in
from kafka_segments.kafka.index.segment.producer_batches import (
    ABORT,
    AT_POSITION,
    COMMIT,
    COORDINATOR_EPOCH,
    EMPTY_CONTROL,
    EPOCH,
    FIRST_OFFSET,
    LAST_OFFSET,
    LAST_SEQUENCE,
    PRODUCER_ID,
    TIMESTAMP,
    UNUSUAL,
)
from kafka_segments.kafka.wire import header_layout as layout
from kafka_segments.kafka.wire.failures import FAILURE_SLOTS, LEFT_IN_BATCH, OK
from kafka_segments.kafka.wire.native import byte_at, load_i16, load_i32, load_i64
from kafka_segments.kafka.wire.record_stream import stream_records
from kafka_segments.kafka.wire.records import check_records
from kafka_segments.kafka.wire.varints import TOO_LONG, read_varint, read_varlong

# What Kafka makes of a control batch with a producer id.
IS_MARKER = 0
IS_CORRUPT = 1  # recovery ends there, the batch stays
IS_REFUSED = 2  # the log does not load

_ABORT_TYPE, _COMMIT_TYPE = 0, 1
_KEY_BYTES = 4
_VALUE_BYTES = 6
_MAX_INT = 2**31 - 1


@njit(forceinline=True)  # type: ignore[untyped-decorator]
def _wrapped(value: Any) -> Any:
    return np.int64(np.int32(value & 0xFFFFFFFF))


@njit  # type: ignore[untyped-decorator]
def _last_sequence(first: Any, delta: Any) -> Any:
    """Return the sequence of a batch's last record, in Java's int. Source: incrementSequence."""
    if first == -1:
        return np.int64(-1)
    if first > _wrapped(_MAX_INT - delta):
        return _wrapped(delta - (_MAX_INT - first) - 1)
    return _wrapped(first + delta)


@njit(cache=True)  # type: ignore[untyped-decorator]
def read_marker(data: Any, at: Any, end: Any) -> Any:
    """Read the marker in ``data[at:end]``; return (kind, coordinator epoch, timestamp).

    The kind is UNUSUAL where its form is not the one that brokers write.
    """
    unusual = np.int64(UNUSUAL), np.int64(-1), np.int64(-1)
    attributes = byte_at(data, at + layout.ATTRIBUTES)
    if attributes & layout.CODEC_MASK != 0 or load_i32(data, at + layout.RECORD_COUNT) != 1:
        return unusual
    length, place = read_varint(data, at + layout.HEADER_BYTES, end)
    if place < 0 or place + length != end or length < 1:
        return unusual
    delta, place = read_varlong(data, place + 1, end)
    if place < 0:
        return unusual
    _, place = read_varint(data, place, end)
    if place < 0:
        return unusual
    key_bytes, key = read_varint(data, place, end)
    if key < 0 or key_bytes < _KEY_BYTES or key_bytes > end - key:
        return unusual
    value_bytes, value = read_varint(data, key + key_bytes, end)
    if value < 0 or value_bytes < _VALUE_BYTES or value_bytes + 1 != end - value:
        return unusual
    marker_type = load_i16(data, key + 2)
    if load_i16(data, key) < 0 or load_i16(data, value) < 0 or byte_at(data, end - 1) != 0:
        return unusual
    if marker_type not in (_ABORT_TYPE, _COMMIT_TYPE):
        return unusual
    if attributes & layout.LOG_APPEND_TIME != 0:
        timestamp = load_i64(data, at + layout.MAX_TIMESTAMP)
    else:
        timestamp = load_i64(data, at + layout.BASE_TIMESTAMP) + delta
    kind = np.int64(COMMIT if marker_type == _COMMIT_TYPE else ABORT)
    return kind, load_i32(data, value + 2), timestamp


@njit  # type: ignore[untyped-decorator]
def store_batch(rows: Any, row: Any, header: Any, position: Any) -> None:
    """Put a v2 header into a row of the columns above; KIND is for the caller to say."""
    last_offset_delta = header.last_offset - header.base_offset
    rows[row, AT_POSITION] = position
    rows[row, PRODUCER_ID] = header.producer_id
    rows[row, EPOCH] = header.producer_epoch
    rows[row, FIRST_OFFSET] = header.base_offset
    rows[row, LAST_OFFSET] = header.last_offset
    rows[row, LAST_SEQUENCE] = _last_sequence(header.base_sequence, last_offset_delta)
    rows[row, TIMESTAMP] = header.max_timestamp
    rows[row, COORDINATOR_EPOCH] = -1


class DecodedMarker(NamedTuple):
    """A marker of unusual form; ``message`` says what is wrong with it, if anything is."""

    end: int
    kind: int = EMPTY_CONTROL
    coordinator_epoch: int = -1
    timestamp: int = -1
    message: str = ""


def decode_marker(batch: npt.NDArray[np.uint8]) -> DecodedMarker:
    """Decode the control batch that ``batch`` holds, of whatever form, as Kafka does."""
    count = _signed(batch, layout.RECORD_COUNT, 4)
    codec = int(batch[layout.ATTRIBUTES]) & layout.CODEC_MASK
    try:
        if not codec:
            return _decoded(batch, _first_plain(batch, count))
        return _decoded(batch, _first_compressed(batch, codec, count))
    except _EndedError as error:
        return error.decoded
    except DecompressionError as error:
        return DecodedMarker(IS_REFUSED, message=f"a marker: {error}")


class _EndedError(KafkaSegmentsError):
    """Kafka throws at the marker."""

    def __init__(self, end: int, message: str) -> None:
        super().__init__(message)
        self.decoded = DecodedMarker(end, message=message)


def _first_plain(batch: npt.NDArray[np.uint8], count: int) -> npt.NDArray[np.uint8]:
    """Return the first of the records, the only one that Kafka reads if they are not compressed."""
    _check_count(count)
    records = batch[layout.HEADER_BYTES :]
    if read_varint(records, 0, len(records))[1] == TOO_LONG:
        raise _EndedError(IS_REFUSED, "a marker's record length has no end")
    _check_record(records, has_more=count > 1)
    return records


def _first_compressed(
    batch: npt.NDArray[np.uint8], codec: int, count: int
) -> npt.NDArray[np.uint8]:
    """Return the first of the records; Kafka reads all of them if they are compressed."""
    reader = open_reader(codec, stored_in(batch[layout.HEADER_BYTES :]), magic=layout.MAGIC_V2)
    _check_count(count)  # Kafka looks at it once the stream is open
    first = None
    for record in stream_records(reader, count):
        if record is None:
            raise _EndedError(IS_CORRUPT, "a marker's records are not as many, or as long, as said")
        _check_record(record)
        first = record if first is None else first
    return batch[:0] if first is None else first


def _check_count(count: int) -> None:
    if count < 0:
        raise _EndedError(IS_CORRUPT, f"a marker's record count is {count}")


def _check_record(records: npt.NDArray[np.uint8], *, has_more: bool = False) -> None:
    """Check the first of some records; ``has_more``: others may follow it."""
    failure = np.zeros(FAILURE_SLOTS, dtype=np.int64)
    ended = check_records(records, 0, len(records), 1, failure)
    if ended != OK and not (ended == LEFT_IN_BATCH and has_more):
        raise _EndedError(IS_CORRUPT, "a marker's record cannot be read")


def _decoded(batch: npt.NDArray[np.uint8], records: npt.NDArray[np.uint8]) -> DecodedMarker:
    """Decode the first record, which is sound as a record."""
    end = len(records)
    _, place = read_varint(records, 0, end)
    delta, place = read_varlong(records, place + 1, end)
    _, place = read_varint(records, place, end)
    key_bytes, key = read_varint(records, place, end)
    value_bytes, value = read_varint(records, key + max(key_bytes, 0), end)
    if key_bytes < 0:
        return DecodedMarker(IS_REFUSED, message="a marker has no key")
    if key_bytes < _KEY_BYTES or _signed(records, key, 2) < 0:
        message = f"a marker's key of {key_bytes} bytes, or its version, cannot be"
        return DecodedMarker(IS_CORRUPT, message=message)
    marker_type = _signed(records, key + 2, 2)
    if marker_type not in (_ABORT_TYPE, _COMMIT_TYPE):
        message = f"a control batch of a producer has type {marker_type}, 0 or 1 expected"
        return DecodedMarker(IS_REFUSED, message=message)
    if value_bytes >= 2 and _signed(records, value, 2) < 0:
        return DecodedMarker(IS_CORRUPT, message="the version of a marker's value is below 0")
    if value_bytes < _VALUE_BYTES:
        message = f"a marker's value has {value_bytes} bytes, {_VALUE_BYTES} expected"
        return DecodedMarker(IS_REFUSED, message=message)
    timestamp = _signed(batch, layout.BASE_TIMESTAMP, 8) + int(delta)
    if int(batch[layout.ATTRIBUTES]) & layout.LOG_APPEND_TIME:
        timestamp = _signed(batch, layout.MAX_TIMESTAMP, 8)
    return DecodedMarker(
        IS_MARKER,
        kind=COMMIT if marker_type == _COMMIT_TYPE else ABORT,
        coordinator_epoch=_signed(records, value + 2, 4),
        timestamp=timestamp,
    )


def _signed(data: npt.NDArray[np.uint8], at: int, size: int) -> int:
    return int.from_bytes(data[at : at + size].tobytes(), "big", signed=True)
