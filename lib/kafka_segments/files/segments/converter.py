"""Convert a segment's messages v0 and v1 to batches v2, in bounded memory.

1. A message that is not compressed becomes a batch of its own. A compressed set becomes one batch
   with the same codec. Offsets, the gaps between them, keys, values and nulls stay.
2. The timestamp type stays; v0 becomes CreateTime. A message without a timestamp keeps none (-1),
   or gets the one that the caller asks for.
3. The last offset of a batch is its set's offset where that is greater than the offset of its last
   message.
4. Batches v2 stay as they are, byte for byte.
5. Bytes that recovery would cut off at the end are not written.
6. A segment is refused where Kafka's own writer would throw, and where a batch cannot be decoded.

Kafka's log cleaner differs in two points. In 3 it takes the offset of the last message. Where
values are null it sets a delete horizon; it does so too when it first meets the batches made here.

Source: MemoryRecords.filterTo (4.0 and later).
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from kafka_segments.errors import KafkaSegmentsError
from kafka_segments.files.segments.chunks import Chunk, ChunkOptions, ChunkReader
from kafka_segments.files.segments.conversion import (
    WORDS,
    Conversion,
    ConversionOptions,
    Hazard,
    HazardKind,
)
from kafka_segments.kafka.codecs.codecs import Decompressor
from kafka_segments.kafka.codecs.compression import compress
from kafka_segments.kafka.codecs.streams import DecompressionError
from kafka_segments.kafka.wire import batches as wire
from kafka_segments.kafka.wire import header_layout as layout
from kafka_segments.kafka.wire import v2_writing as writing
from kafka_segments.kafka.wire.failures import OK, describe
from kafka_segments.kafka.wire.filling import new_failure
from kafka_segments.kafka.wire.header_layout import HEADER_BYTES
from kafka_segments.kafka.wire.messages import check_messages
from kafka_segments.kafka.wire.reading import MAX_FILE_BYTES, ReadInto
from kafka_segments.kafka.wire.sections import Int64s, decompressed_records

_OUT_BYTES = 4 * 1024 * 1024
_NO_LIMIT = 2**63 - 1
_KEPT, _PLAIN, _SET = 0, 1, 2
_REFUSALS = {
    writing.OFFSET_ORDER: HazardKind.OFFSET_ORDER,
    writing.OFFSET_SPAN: HazardKind.OFFSET_SPAN,
    writing.NEGATIVE_TIMESTAMP: HazardKind.NEGATIVE_TIMESTAMP,
}

Write = Callable[[memoryview], object]


class SegmentConverter:
    """Converts one segment after another, with buffers that are made once."""

    def __init__(self, options: ConversionOptions | None = None) -> None:
        self._options = options or ConversionOptions()
        most = self._options.max_batch_bytes
        self._reader = ChunkReader(ChunkOptions(needs_body=True, max_batch_bytes=most))
        self._decompressor = Decompressor(most)
        self._out = np.empty(_OUT_BYTES, dtype=np.uint8)
        self._facts = np.zeros(writing.FACT_SLOTS, dtype=np.int64)
        self._failure = new_failure()

    def convert(
        self, read_into: ReadInto, write: Write, *, size_bytes: int, timestamp_ms: int = -1
    ) -> Conversion:
        """Convert a segment.

        Args:
            read_into: reads the segment.
            write: takes the converted segment piece by piece; a piece is valid during the call
                only.
            size_bytes: of the segment.
            timestamp_ms: for messages without a timestamp, such as the file's mtime; -1: they keep
                none.

        Raises:
            FileChangedError: the file ended before ``size_bytes``.
            OSError: whatever ``read_into`` raises. What ``write`` raises passes through.
        """
        limit = self._options.max_message_bytes
        run = _Run(write, timestamp_ms, limit)
        refusal = None
        try:
            run.check_size(size_bytes)
            for chunk in self._reader.read(read_into, size_bytes=size_bytes):
                if chunk.end_reason is not None:
                    run.note(HazardKind.DAMAGE, chunk.end_position, chunk.end_reason)
                self._convert_chunk(chunk, run)
        except _RefusedError as error:
            refusal = error.hazard
        return run.conversion(size_bytes, refusal)

    def _convert_chunk(self, chunk: Chunk, run: "_Run") -> None:
        batches = np.ascontiguousarray(chunk.batches)
        if not batches.shape[1]:
            return
        if chunk.data is None:
            position, size_bytes = batches[[wire.BATCH_POSITION, wire.BATCH_SIZE_BYTES], 0].tolist()
            most = self._options.max_batch_bytes
            message = f"the batch has {size_bytes} bytes, at most {most} are read"
            raise _RefusedError(HazardKind.UNDECODABLE, position, message)
        given = _Given(chunk.data, chunk.data_position, batches)
        for kind, first, stop in _stretches(batches):
            if kind == _KEPT:
                run.keep(given, first, stop)
            elif kind == _PLAIN:
                self._convert_plain(given, first, stop, run)
            else:
                for batch in range(first, stop):
                    self._convert_set(given, batch, run)
        run.valid_bytes = int(batches[wire.BATCH_POSITION, -1] + batches[wire.BATCH_SIZE_BYTES, -1])

    def _convert_plain(self, given: "_Given", first: int, stop: int, run: "_Run") -> None:
        while first < stop:
            run.state[writing.USED] = 0
            status, first = writing.convert_plain(
                *given, first, stop, self._out, run.state, self._facts, self._failure
            )
            used = int(run.state[writing.USED])
            run.write(self._out[:used])
            if status == writing.NO_ROOM:
                if not used:
                    self._make_room(int(given.batches[wire.BATCH_SIZE_BYTES, first]), messages=1)
            elif status != writing.WRITTEN:
                position = int(given.batches[wire.BATCH_POSITION, first])
                self._refuse(status, position, "message", start=position - given.data_position)

    def _convert_set(self, given: "_Given", batch: int, run: "_Run") -> None:
        column = given.batches[:, batch]
        position = int(column[wire.BATCH_POSITION])
        messages, shift = self._decompressed(given, column)
        status = writing.write_records(
            messages,
            0,
            len(messages),
            shift,
            given.batches,
            batch,
            run.state[writing.NO_TIMESTAMP_AS],
            self._out,
            0,
            self._facts,
        )
        if status != writing.WRITTEN:
            self._refuse(status, position, "decompressed messages", start=0)
        attributes = int(column[wire.BATCH_ATTRIBUTES]) & layout.CODEC_MASK
        if column[wire.BATCH_MAGIC] == 1:
            attributes |= int(column[wire.BATCH_ATTRIBUTES]) & layout.LOG_APPEND_TIME
        packed = compress(
            attributes & layout.CODEC_MASK, self._out[: int(self._facts[writing.END])]
        )
        made = np.empty(HEADER_BYTES + len(packed), dtype=np.uint8)
        made[HEADER_BYTES:] = np.frombuffer(packed, dtype=np.uint8)
        writing.write_header(made, 0, len(made), attributes, self._facts, run.state)
        writing.note_size(run.state, len(made), position)
        run.write(made)
        run.note(HazardKind.RECOMPRESSED, position)
        if self._facts[writing.LAST_MESSAGE] != column[wire.BATCH_LAST_OFFSET]:
            run.note(HazardKind.LAST_OFFSET, position)
        if self._facts[writing.AGELESS]:
            run.note(HazardKind.TIMESTAMP_CHANGED, position)

    def _decompressed(self, given: "_Given", column: Int64s) -> tuple[wire.Bytes, int]:
        """Return the checked messages of a set and what to add to their offsets."""
        position = int(column[wire.BATCH_POSITION])
        start = position - given.data_position
        stored = given.data[start : start + int(column[wire.BATCH_SIZE_BYTES])]
        try:
            messages = decompressed_records(self._decompressor, stored, column)
        except DecompressionError as error:
            raise _RefusedError(HazardKind.UNDECODABLE, position, str(error)) from None
        magic, offset = column[wire.BATCH_MAGIC], column[wire.BATCH_LAST_OFFSET]
        status, count, shift = check_messages(
            messages, 0, len(messages), magic, offset, self._failure
        )
        if status != OK:
            self._refuse(writing.UNDECODABLE, position, "decompressed messages", start=0)
        self._make_room(len(messages), messages=count)
        return messages, shift

    def _make_room(self, data_bytes: int, *, messages: int) -> None:
        overhead = HEADER_BYTES + writing.MOST_RECORD_OVERHEAD * messages
        if len(self._out) < data_bytes + overhead:
            self._out = np.empty(data_bytes + overhead, dtype=np.uint8)

    def _refuse(self, status: int, position: int, section: str, *, start: int) -> None:
        kind = _REFUSALS.get(status, HazardKind.UNDECODABLE)
        words = WORDS.get(kind) or describe(self._failure, section=section, start=start)
        raise _RefusedError(kind, position, words)


class _RefusedError(KafkaSegmentsError):
    """The segment cannot be converted."""

    def __init__(self, kind: HazardKind, position: int, message: str) -> None:
        super().__init__(message)
        self.hazard = Hazard(kind, 1, position, message)


class _Given(NamedTuple):
    data: wire.Bytes
    data_position: int
    batches: wire.Batches


class _Run:
    """One conversion under way."""

    def __init__(self, write: Write, timestamp_ms: int, limit: int | None) -> None:
        self._write = write
        self._limit = limit
        self.state = writing.new_state(
            no_timestamp_as=timestamp_ms, most_batch_bytes=_NO_LIMIT if limit is None else limit
        )
        self.valid_bytes = 0
        self._written_bytes = 0
        self._kept_batches = 0
        self._hazards: dict[HazardKind, Hazard] = {}

    def check_size(self, size_bytes: int) -> None:
        if size_bytes > MAX_FILE_BYTES:
            message = f"{size_bytes} bytes, Kafka opens at most {MAX_FILE_BYTES}"
            raise _RefusedError(HazardKind.SEGMENT_TOO_LARGE, self.valid_bytes, message)

    def write(self, data: wire.Bytes) -> None:
        if len(data):
            self.check_size(self._written_bytes + len(data))
            self._write(memoryview(data))
            self._written_bytes += len(data)

    def keep(self, given: _Given, first: int, stop: int) -> None:
        """Write batches as they are; they lie one behind the other."""
        positions, sizes = given.batches[[wire.BATCH_POSITION, wire.BATCH_SIZE_BYTES], first:stop]
        start = int(positions[0]) - given.data_position
        end = int(positions[-1] + sizes[-1]) - given.data_position
        writing.note_sizes(given.batches, first, stop, self.state)
        self._kept_batches += stop - first
        self.write(given.data[start:end])

    def note(self, kind: HazardKind, position: int, message: str | None = None) -> None:
        known = self._hazards.get(kind)
        count = 1 if known is None else known.count + 1
        first = position if known is None else known.position
        self._hazards[kind] = Hazard(kind, count, first, message or WORDS[kind])

    def conversion(self, size_bytes: int, refusal: Hazard | None) -> Conversion:
        state = self.state
        if state[writing.ABOVE_MOST]:
            self._hazards[HazardKind.BATCH_TOO_LARGE] = Hazard(
                HazardKind.BATCH_TOO_LARGE,
                int(state[writing.ABOVE_MOST]),
                int(state[writing.FIRST_ABOVE_MOST]),
                f"batches of up to {state[writing.LARGEST]} bytes, max.message.bytes is"
                f" {self._limit}: a broker keeps and serves them, but accepts no new one",
            )
        return Conversion(
            size_bytes=size_bytes,
            valid_bytes=self.valid_bytes,
            converted_bytes=self._written_bytes,
            converted_batch_count=int(state[writing.BATCHES]),
            kept_batch_count=self._kept_batches,
            converted_record_count=int(state[writing.RECORDS]),
            largest_batch_bytes=int(state[writing.LARGEST]),
            hazards=tuple(self._hazards.values()),
            refusal=refusal,
        )


def _stretches(batches: wire.Batches) -> Iterator[tuple[int, int, int]]:
    """Yield stretches of batches of one kind: kind, first column, column behind the last."""
    is_legacy = batches[wire.BATCH_MAGIC] < layout.MAGIC_V2
    is_set = batches[wire.BATCH_ATTRIBUTES] & layout.CODEC_MASK != 0
    kinds = np.where(is_legacy, np.where(is_set, _SET, _PLAIN), _KEPT)
    starts = [0, *(np.flatnonzero(np.diff(kinds)) + 1).tolist()]
    for first, stop in zip(starts, [*starts[1:], len(kinds)], strict=True):
        yield int(kinds[first]), first, stop
