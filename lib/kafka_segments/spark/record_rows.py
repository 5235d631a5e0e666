"""Rows of records: decompress, decode, build Arrow columns; a batch that cannot be is one row."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from kafka_segments.spark.arrow_columns import (
    Bools,
    HeaderColumns,
    Int64s,
    byte_strings,
    numbers,
    segment_column,
    strings,
)
from kafka_segments.storage.bounds import Bounds
from kafka_segments.storage.chunks import Chunk
from kafka_segments.storage.walk import SegmentFile
from kafka_segments.wire import batches as wire
from kafka_segments.wire import filling
from kafka_segments.wire.codecs import DecompressionError, Decompressor
from kafka_segments.wire.failures import describe
from kafka_segments.wire.sections import decompressed_records, record_sections

_MOST_ROWS = 64 * 1024
_MOST_HEADERS = 128 * 1024
_DATA_BYTES = 8 * 1024 * 1024  # of keys, of values, of headers, before rows are given away
_MAX_SEQUENCE = 2**31 - 1


class RecordRows:
    """Makes rows of the records of one chunk after another, in columns that are made once."""

    def __init__(
        self, arrow_schema: pa.Schema, *, max_batch_bytes: int, bounds: Bounds | None = None
    ) -> None:
        self._schema = arrow_schema
        self._bounds = bounds or Bounds()
        self._max_batch_bytes = max_batch_bytes
        self._decompressor = Decompressor(max_batch_bytes)
        names = arrow_schema.names
        self._wants = ("key" in names, "value" in names, "headers" in names)
        self._columns = self._new_columns(_DATA_BYTES, _MOST_HEADERS)
        self._failure = filling.new_failure()
        self._fill = filling.new_fill()
        self._errors: dict[int, str] = {}

    def _new_columns(self, data_bytes: int, headers: int) -> filling.Columns:
        return filling.new_columns(
            rows=_MOST_ROWS, data_bytes=data_bytes, headers=headers, wants=self._wants
        )

    def rows(self, chunk: Chunk, segment: SegmentFile) -> Iterator[pa.RecordBatch]:
        """Give the records of a chunk's batches, in the order of the log.

        1. The records of a batch come all or not at all: where one cannot be decoded, one row
           with ``error`` stands for the batch, at its base offset and greatest timestamp.
        2. The same holds for a batch that is, or decompresses to, more than ``max_batch_bytes``.
        3. Records outside the bounds are left out; rows with ``error`` are not.
        """
        self._fill = filling.new_fill()
        batches = np.ascontiguousarray(chunk.batches)
        for _ in self._decode(chunk, batches):
            yield self._flush(batches, segment)
        if self._fill[filling.ROWS]:
            yield self._flush(batches, segment)

    def _decode(self, chunk: Chunk, batches: wire.Batches) -> Iterator[None]:
        """Fill the columns; stops wherever they are to be emptied."""
        count = batches.shape[1]
        if chunk.data is None:
            for size_bytes in batches[wire.SIZE_BYTES].tolist():
                reason = (
                    f"the batch has {size_bytes} bytes, at most {self._max_batch_bytes} are read"
                )
                self._append_error(batches, reason)
            return
        starts, ends = record_sections(batches, chunk.data_position)
        compressed = np.flatnonzero(batches[wire.ATTRIBUTES] & wire.CODEC_MASK)
        for batch in compressed.tolist():
            yield from self._fill_up(chunk.data, starts, ends, batch, batches)
            stored = chunk.data[starts[batch] : ends[batch]]
            try:
                records = decompressed_records(self._decompressor, stored, batches[:, batch])
            except DecompressionError as error:
                yield from self._make_room()
                self._append_error(batches, str(error))
                continue
            starts[batch], ends[batch] = 0, len(records)
            yield from self._fill_up(records, starts, ends, batch + 1, batches)
        yield from self._fill_up(chunk.data, starts, ends, count, batches)

    def _fill_up(
        self, data: wire.Bytes, starts: Int64s, ends: Int64s, stop: int, batches: wire.Batches
    ) -> Iterator[None]:
        while True:
            status = filling.fill_columns(
                data, starts, ends, stop, batches, self._columns, self._fill, self._failure
            )
            if status == filling.DONE:
                return
            if status == filling.FAILED:
                batch = self._fill[filling.BATCH]
                is_compressed = batches[wire.ATTRIBUTES, batch] & wire.CODEC_MASK
                section = "decompressed records" if is_compressed else "records"
                reason = describe(self._failure, section=section, start=int(starts[batch]))
                yield from self._make_room()
                self._append_error(batches, reason)
            elif self._fill[filling.ROWS]:
                yield
            else:
                self._enlarge()

    def _enlarge(self) -> None:
        """Make columns that hold the one record that was too large for the usual ones."""
        needed_bytes = int(self._fill[filling.NEEDED_BYTES])
        needed_headers = int(self._fill[filling.NEEDED_HEADERS])
        self._columns = self._new_columns(
            max(needed_bytes, _DATA_BYTES), max(needed_headers + 1, _MOST_HEADERS)
        )

    def _make_room(self) -> Iterator[None]:
        if self._fill[filling.ROWS] == _MOST_ROWS:
            yield

    def _append_error(self, batches: wire.Batches, reason: str) -> None:
        """Append the row that stands for the batch under decoding, and go on to the next."""
        fill, columns = self._fill, self._columns
        row, batch = int(fill[filling.ROWS]), int(fill[filling.BATCH])
        columns.rows[filling.ROW_BATCH, row] = batch
        columns.rows[filling.ROW_OFFSET, row] = batches[wire.BASE_OFFSET, batch]
        columns.rows[filling.ROW_TIMESTAMP, row] = batches[wire.MAX_TIMESTAMP, batch]
        for column in (columns.key, columns.value):
            column.is_null[row] = True
            column.ends[row + 1] = column.ends[row]
        columns.header_ends[row + 1] = columns.header_ends[row]
        self._errors[row] = reason
        fill[filling.ROWS] += 1
        fill[filling.BATCH] += 1
        fill[filling.LEFT] = -1

    def _flush(self, batches: wire.Batches, segment: SegmentFile) -> pa.RecordBatch:
        """Copy the filled columns into a RecordBatch and empty them."""
        rows = int(self._fill[filling.ROWS])
        headers = HeaderColumns(batches, self._columns.rows[filling.ROW_BATCH, :rows])
        arrays = []
        for column in self._schema:
            if column.name in _RECORD_COLUMNS:
                arrays.append(self._record_column(column, rows, batches))
            elif column.name in headers:
                arrays.append(headers.column(column.name, column.type))
            else:
                arrays.append(segment_column(column.name, segment, rows, column.type))
        batch = pa.RecordBatch.from_arrays(arrays, schema=self._schema)
        is_within = self._is_within_bounds(rows)
        self._fill[filling.ROWS : filling.NEEDED_BYTES] = 0
        self._errors = {}
        return batch if is_within.all() else batch.filter(pa.array(is_within))

    def _is_within_bounds(self, rows: int) -> Bools:
        bounds = self._bounds
        offset = self._columns.rows[filling.ROW_OFFSET, :rows]
        timestamp = self._columns.rows[filling.ROW_TIMESTAMP, :rows]
        is_within = (offset >= bounds.low_offset) & (offset <= bounds.high_offset)
        is_within &= (timestamp >= bounds.low_timestamp) & (timestamp <= bounds.high_timestamp)
        is_within[list(self._errors)] = True
        return is_within

    def _record_column(self, column: pa.Field, rows: int, batches: wire.Batches) -> pa.Array:
        filled = self._columns
        match column.name:
            case "key":
                return byte_strings(filled.key, rows)
            case "value":
                return byte_strings(filled.value, rows)
            case "headers":
                return self._headers(column.type, rows)
            case "offset":
                return numbers(filled.rows[filling.ROW_OFFSET, :rows], column.type)
            case "timestamp_ms":
                return numbers(filled.rows[filling.ROW_TIMESTAMP, :rows], column.type)
            case "sequence":
                return self._sequence(column.type, rows, batches)
        if not self._errors:
            return pa.nulls(rows, column.type)
        return pa.array([self._errors.get(row) for row in range(rows)], type=column.type)

    def _headers(self, arrow_type: pa.ListType, rows: int) -> pa.Array:
        filled, count = self._columns, int(self._fill[filling.HEADERS])
        fields = [arrow_type.value_type.field(i) for i in range(2)]
        structs = pa.StructArray.from_arrays(
            [strings(filled.header_key, count), byte_strings(filled.header_value, count)],
            fields=fields,
        )
        ends = pa.array(filled.header_ends[: rows + 1].copy())
        mask = None
        if self._errors:
            mask = pa.array([row in self._errors for row in range(rows)], type=pa.bool_())
        return pa.ListArray.from_arrays(ends, structs, type=arrow_type, mask=mask)

    def _sequence(self, arrow_type: pa.DataType, rows: int, batches: wire.Batches) -> pa.Array:
        """Number the records of a producer: after 2147483647 comes 0."""
        filled = self._columns.rows[:, :rows]
        batch = filled[filling.ROW_BATCH]
        first = batches[wire.BASE_SEQUENCE, batch]
        delta = filled[filling.ROW_OFFSET] - batches[wire.BASE_OFFSET, batch]
        is_null = batches[wire.MAGIC, batch] < wire.MAGIC_V2
        is_null[list(self._errors)] = True
        sequence = np.where(first < 0, -1, (first + delta) & _MAX_SEQUENCE)
        return numbers(sequence, arrow_type, is_null)


_RECORD_COLUMNS = ("key", "value", "headers", "offset", "timestamp_ms", "sequence", "error")
