"""Rows of records: Arrow columns of what batches decode to."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from kafka_segments.engine.rows.arrow_columns import (
    Bools,
    HeaderColumns,
    byte_strings,
    numbers,
    segment_column,
    strings,
)
from kafka_segments.files.folders.walk import ListedSegment
from kafka_segments.files.segments.bounds import Bounds
from kafka_segments.files.segments.chunks import Chunk
from kafka_segments.files.segments.decoding import record_filler
from kafka_segments.kafka.wire import batches as wire
from kafka_segments.kafka.wire import filling
from kafka_segments.kafka.wire import header_layout as layout

_MAX_SEQUENCE = 2**31 - 1


class RecordRows:
    """Makes rows of the records of one chunk after another, in columns that are made once."""

    def __init__(
        self, arrow_schema: pa.Schema, *, max_batch_bytes: int, bounds: Bounds | None = None
    ) -> None:
        self._schema = arrow_schema
        self._bounds = bounds or Bounds()
        names = arrow_schema.names
        wants = ("key" in names, "value" in names, "headers" in names)
        self._filler = record_filler(wants, max_batch_bytes=max_batch_bytes)

    def rows(self, chunk: Chunk, segment: ListedSegment) -> Iterator[pa.RecordBatch]:
        """Yield the records of a chunk's batches, in the order of the log.

        A batch that ``RecordFiller`` has one row for is a row with ``error``. Records outside the
        bounds are left out; rows with ``error`` are not.
        """
        for rows in self._filler.fill(chunk.batches, chunk.data, chunk.data_position):
            yield self._batch(rows, chunk.batches, segment)

    def _batch(self, rows: int, batches: wire.Batches, segment: ListedSegment) -> pa.RecordBatch:
        """Copy the filled columns into a RecordBatch."""
        row_batch = self._filler.columns.rows[filling.ROW_BATCH, :rows]
        headers = HeaderColumns(batches, row_batch)
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
        return batch if is_within.all() else batch.filter(pa.array(is_within))

    def _is_within_bounds(self, rows: int) -> Bools:
        bounds = self._bounds
        offset = self._filler.columns.rows[filling.ROW_OFFSET, :rows]
        timestamp = self._filler.columns.rows[filling.ROW_TIMESTAMP, :rows]
        is_within = (offset >= bounds.low_offset) & (offset <= bounds.high_offset)
        is_within &= (timestamp >= bounds.low_timestamp) & (timestamp <= bounds.high_timestamp)
        is_within[list(self._filler.errors)] = True
        return is_within

    def _record_column(self, column: pa.Field, rows: int, batches: wire.Batches) -> pa.Array:
        filled = self._filler.columns
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
        if not self._filler.errors:
            return pa.nulls(rows, column.type)
        return pa.array([self._filler.errors.get(row) for row in range(rows)], type=column.type)

    def _headers(self, arrow_type: pa.ListType, rows: int) -> pa.Array:
        filled, count = self._filler.columns, self._filler.headers
        fields = [arrow_type.value_type.field(i) for i in range(2)]
        structs = pa.StructArray.from_arrays(
            [strings(filled.header_key, count), byte_strings(filled.header_value, count)],
            fields=fields,
        )
        ends = pa.array(filled.header_ends[: rows + 1].copy())
        mask = None
        if self._filler.errors:
            mask = pa.array([row in self._filler.errors for row in range(rows)], type=pa.bool_())
        return pa.ListArray.from_arrays(ends, structs, type=arrow_type, mask=mask)

    def _sequence(self, arrow_type: pa.DataType, rows: int, batches: wire.Batches) -> pa.Array:
        """Number the records of a producer: after 2147483647 comes 0."""
        filled = self._filler.columns.rows[:, :rows]
        batch = filled[filling.ROW_BATCH]
        first = batches[wire.BATCH_BASE_SEQUENCE, batch]
        delta = filled[filling.ROW_OFFSET] - batches[wire.BATCH_BASE_OFFSET, batch]
        is_null = batches[wire.BATCH_MAGIC, batch] < layout.MAGIC_V2
        is_null[list(self._filler.errors)] = True
        sequence = np.where(first < 0, -1, (first + delta) & _MAX_SEQUENCE)
        return numbers(sequence, arrow_type, is_null)


_RECORD_COLUMNS = ("key", "value", "headers", "offset", "timestamp_ms", "sequence", "error")
