"""Digest a segment's records: the SHA-256 stays the same when its batches are written anew.

It covers offset, key, value and headers of every record, in order (``wire.record_form``), control
records included. It does not cover timestamps, batches and compression.
"""

import hashlib
from dataclasses import dataclass

import numpy as np

from kafka_segments.files.segments.chunks import Chunk, ChunkOptions, ChunkReader
from kafka_segments.kafka.codecs.codecs import Decompressor
from kafka_segments.kafka.codecs.streams import DecompressionError
from kafka_segments.kafka.wire import batches as wire
from kafka_segments.kafka.wire import header_layout as layout
from kafka_segments.kafka.wire import record_form
from kafka_segments.kafka.wire.failures import describe
from kafka_segments.kafka.wire.filling import new_failure
from kafka_segments.kafka.wire.reading import ReadInto
from kafka_segments.kafka.wire.sections import Int64s, decompressed_records, record_sections

_OUT_BYTES = 1024 * 1024


@dataclass(frozen=True)
class RecordDigest:
    """The digest in hex, and how many records it covers.

    ``undecodable`` names the batch that ended the digest before the segment's end, and why; with
    one the digest proves nothing. Bytes that recovery would cut off at the end are not covered.
    """

    sha256: str
    record_count: int
    undecodable: str | None


class RecordDigester:
    """Digests one segment after another, with buffers that are made once."""

    def __init__(self, *, max_batch_bytes: int = 256 * 1024 * 1024) -> None:
        options = ChunkOptions(needs_body=True, max_batch_bytes=max_batch_bytes)
        self._reader = ChunkReader(options)
        self._decompressor = Decompressor(max_batch_bytes)
        self._failure = new_failure()
        self._form = np.zeros(record_form.FORM_SLOTS, dtype=np.int64)
        self._out = np.empty(_OUT_BYTES, dtype=np.uint8)
        self._sha256 = hashlib.sha256()

    def digest(self, read_into: ReadInto, *, size_bytes: int) -> RecordDigest:
        """Digest the records of a segment's valid bytes.

        Raises:
            FileChangedError: the file ended before ``size_bytes``.
            OSError: whatever ``read_into`` raises.
        """
        self._sha256 = hashlib.sha256()
        self._form[:] = 0
        undecodable = None
        for chunk in self._reader.read(read_into, size_bytes=size_bytes):
            undecodable = self._add(chunk)
            if undecodable is not None:
                break
        self._flush()
        count = int(self._form[record_form.RECORDS])
        return RecordDigest(self._sha256.hexdigest(), count, undecodable)

    def _add(self, chunk: Chunk) -> str | None:
        """Add the records of a chunk's batches; return why one of them cannot be decoded."""
        batches = np.ascontiguousarray(chunk.batches)
        form = self._form
        form[record_form.BATCH], form[record_form.LEFT] = 0, -1
        if not batches.shape[1]:
            return None
        reason: object = f"{batches[wire.BATCH_SIZE_BYTES, 0]} bytes, more than a batch may have"
        if chunk.data is not None:
            try:
                self._add_batches(chunk.data, chunk.data_position, batches)
            except DecompressionError as error:
                reason = error
            else:
                return None
        return (
            f"the batch at byte {batches[wire.BATCH_POSITION, form[record_form.BATCH]]}: {reason}"
        )

    def _add_batches(self, data: wire.Bytes, data_position: int, batches: wire.Batches) -> None:
        starts, ends = record_sections(batches, data_position)
        for batch in np.flatnonzero(batches[wire.BATCH_ATTRIBUTES] & layout.CODEC_MASK).tolist():
            self._write(data, starts, ends, batch, batches)
            stored = data[starts[batch] : ends[batch]]
            records = decompressed_records(self._decompressor, stored, batches[:, batch])
            starts[batch], ends[batch] = 0, len(records)
            self._write(records, starts, ends, batch + 1, batches)
        self._write(data, starts, ends, batches.shape[1], batches)

    def _write(
        self, data: wire.Bytes, starts: Int64s, ends: Int64s, stop: int, batches: wire.Batches
    ) -> None:
        form, data = self._form, wire.read_only(data)
        while True:
            status = record_form.form_batches(
                data, starts, ends, stop, batches, self._out, form, self._failure
            )
            if status == record_form.WRITTEN:
                return
            if status == record_form.FAILED:
                start = int(starts[form[record_form.BATCH]])
                raise DecompressionError(describe(self._failure, section="records", start=start))
            self._flush()
            if len(self._out) < form[record_form.NEEDED]:
                self._out = np.empty(int(form[record_form.NEEDED]), dtype=np.uint8)

    def _flush(self) -> None:
        self._sha256.update(self._out[: int(self._form[record_form.USED])])
        self._form[record_form.USED] = 0
