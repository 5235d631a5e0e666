"""Read the records of batches in one form, with what their batches say of them."""

import hashlib
import struct
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from kafka_segments.files.segments.chunks import Chunk
from kafka_segments.kafka.codecs.codecs import Decompressor
from kafka_segments.kafka.codecs.streams import DecompressionError
from kafka_segments.kafka.wire import batches as wire
from kafka_segments.kafka.wire import header_layout as layout
from kafka_segments.kafka.wire import record_form
from kafka_segments.kafka.wire.filling import new_failure
from kafka_segments.kafka.wire.sections import decompressed_records, record_sections
from kafka_segments.verbs.copies.divergence.decide.record_fields import (
    Fields,
    HeldBatch,
    HeldRecords,
)

MOST_BATCH_BYTES = 256 * 1024 * 1024
_OUT_BYTES = 64 * 1024
_DIGEST_BYTES = 16
_NULL = (-1).to_bytes(4, "big", signed=True)
_INT32, _STAMPED = struct.Struct(">i"), struct.Struct(">qq")
_TOLD_ATTRIBUTES = (
    layout.CODEC_MASK
    | layout.LOG_APPEND_TIME
    | layout.TRANSACTIONAL
    | layout.CONTROL
    | layout.DELETE_HORIZON
)
_SEQUENCES = 2**31


class RecordReader:
    """Reads the records of one chunk after another (``wire.record_form``)."""

    def __init__(self) -> None:
        self._decompressor = Decompressor(MOST_BATCH_BYTES)
        self._failure = new_failure()
        self._form = np.zeros(record_form.FORM_SLOTS, dtype=np.int64)
        self._out = np.empty(_OUT_BYTES, dtype=np.uint8)

    def of(self, chunk: Chunk, *, are_apart: bool = False) -> HeldRecords | None:
        """Return the records, with digests of their contents; None: a batch cannot be decoded.

        With ``are_apart`` only those fields are told that a mirror takes over.
        """
        found = HeldRecords.none()
        if chunk.data is None:
            return None if chunk.batches.shape[1] or chunk.end_reason else found
        for header, formed in zip(chunk.batches.T.tolist(), self.forms(chunk), strict=True):
            if formed is None:
                return None
            fields = _fields_of_mirror(header) if are_apart else _fields_of(header)
            base, records = header[wire.BATCH_BASE_OFFSET], 0
            for record in formed_records(formed):
                content = formed[record.key : record.end]
                digest = hashlib.blake2b(content, digest_size=_DIGEST_BYTES)
                found.contents[record.offset] = digest.digest()
                found.fields[record.offset] = _fields_at(fields, record, record.offset - base)
                records += 1
            if header[wire.BATCH_MAGIC] >= layout.MAGIC_V2:
                found.batches[base] = HeldBatch(records, fields)
        return found

    def forms(self, chunk: Chunk) -> Iterator[bytes | None]:
        """Yield the records of each batch of a chunk in one form; None: it cannot be decoded."""
        if chunk.data is None:
            yield from [None] * chunk.batches.shape[1]
            return
        batches = np.ascontiguousarray(chunk.batches)
        starts, ends = record_sections(batches, chunk.data_position)
        for batch in range(batches.shape[1]):
            one = np.ascontiguousarray(batches[:, [batch]])
            stored = chunk.data[starts[batch] : ends[batch]]
            try:
                if one[wire.BATCH_ATTRIBUTES, 0] & layout.CODEC_MASK:
                    stored = decompressed_records(self._decompressor, stored, one[:, 0])
            except DecompressionError:
                yield None
                continue
            yield self._formed(stored, one)

    def _formed(self, data: wire.Bytes, batch: wire.Batches) -> bytes | None:
        """Return the records of a batch in one form, None where they cannot be decoded."""
        form = self._form
        form[:] = 0
        form[record_form.LEFT], form[record_form.STAMPED] = -1, 1
        starts, ends = np.array([0]), np.array([len(data)])
        formed, data = bytearray(), wire.read_only(data)
        while True:
            status = record_form.form_batches(
                data, starts, ends, 1, batch, self._out, form, self._failure
            )
            formed += self._out[: int(form[record_form.USED])].tobytes()
            form[record_form.USED] = 0
            if status == record_form.WRITTEN:
                return bytes(formed)
            if status == record_form.FAILED:
                return None
            if len(self._out) < form[record_form.NEEDED]:
                self._out = np.empty(int(form[record_form.NEEDED]), dtype=np.uint8)


def _fields_of(header: Sequence[int]) -> Fields:
    """Return the fields of a batch; what its format does not have is None."""
    magic, attributes = header[wire.BATCH_MAGIC], header[wire.BATCH_ATTRIBUTES]
    if not magic:
        return Fields()
    timestamp = header[wire.BATCH_MAX_TIMESTAMP]
    is_append_time = bool(attributes & layout.LOG_APPEND_TIME)
    if magic < layout.MAGIC_V2:
        return Fields(timestamp, is_append_time)
    return Fields(
        timestamp,
        is_append_time,
        header[wire.BATCH_PRODUCER_ID],
        header[wire.BATCH_PRODUCER_EPOCH],
        header[wire.BATCH_BASE_SEQUENCE],
        bool(attributes & layout.TRANSACTIONAL),
        bool(attributes & layout.CONTROL),
        attributes & ~_TOLD_ATTRIBUTES,
        header[wire.BATCH_LAST_OFFSET],
    )


def _fields_of_mirror(header: Sequence[int]) -> Fields:
    """Return those fields of a batch that a mirror in another cluster takes over."""
    known = _fields_of(header)
    timestamp = None if known.is_append_time else known.timestamp
    return Fields(timestamp, is_control=known.is_control)


def _fields_at(batch: Fields, record: "FormedRecord", delta: int) -> Fields:
    """Return the fields of a record ``delta`` offsets behind its batch's first one.

    Source: DefaultRecordBatch.incrementSequence (4.3.1): behind the greatest sequence comes 0.
    """
    sequence = batch.sequence
    if sequence is not None and sequence >= 0:
        sequence = (sequence + delta) % _SEQUENCES
    timestamp = None if batch.timestamp is None else record.timestamp
    return batch._replace(timestamp=timestamp, sequence=sequence, last_offset=None)


class FormedRecord(NamedTuple):
    """Where a record lies in what ``wire.record_form`` gives: its key and value with their lengths.

    ``start`` is that of its offset, ``end`` behind its headers; ``timestamp`` is in ms.
    """

    offset: int
    timestamp: int
    start: int
    key: int
    value: int
    end: int


def formed_records(formed: bytes) -> Iterator[FormedRecord]:
    """Yield the records of ``formed``, which has timestamps."""
    at = 0
    while at < len(formed):
        start, key = at, at + _STAMPED.size
        offset, timestamp = _STAMPED.unpack_from(formed, start)
        value = _behind(formed, key)
        at = _behind(formed, value)
        (headers,) = _INT32.unpack_from(formed, at)
        at += 4
        for _ in range(2 * headers):
            at = _behind(formed, at)
        yield FormedRecord(offset, timestamp, start, key, value, at)


def digest64(data: bytes) -> int:
    """Return a digest of 64 bits."""
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "big")


def key_digest(formed: bytes, record: FormedRecord) -> int:
    """Return a digest of 64 bits of a record's key; 0: it has none."""
    key = formed[record.key : record.value]
    if key == _NULL:
        return 0
    return digest64(key) or 1


def has_value(formed: bytes, record: FormedRecord) -> bool:
    """Tell whether a record has a value, be it empty."""
    return not formed.startswith(_NULL, record.value)


def _behind(formed: bytes, at: int) -> int:
    (length,) = _INT32.unpack_from(formed, at)
    return at + 4 + max(int(length), 0)
