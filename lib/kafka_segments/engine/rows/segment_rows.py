"""Rows of whole segments; one that is damaged or cannot be read ends in a row with the reason."""

from collections.abc import Iterator

import pyarrow as pa

from kafka_segments.engine.rows.arrow_columns import HeaderColumns, segment_column
from kafka_segments.engine.rows.read_options import ReadOptions
from kafka_segments.engine.rows.record_rows import RecordRows
from kafka_segments.errors import FileChangedError, OtherFileError
from kafka_segments.files.folders.walk import ListedSegment, UnlistedFolder
from kafka_segments.files.segments.bounds import Bounds
from kafka_segments.files.segments.chunks import Chunk, ChunkOptions, ChunkReader
from kafka_segments.files.segments.known_batch import refuse_other_file
from kafka_segments.files.storage.files import first_line, open_segment, place


class SegmentRows:
    """Makes the rows of one task."""

    def __init__(self, options: ReadOptions, bounds: Bounds, arrow_schema: pa.Schema) -> None:
        self._schema = arrow_schema
        self._records = (
            RecordRows(arrow_schema, max_batch_bytes=options.max_batch_bytes, bounds=bounds)
            if options.is_records
            else None
        )
        self._reader = ChunkReader(
            ChunkOptions(
                needs_body=options.is_records,
                check_crc=options.check_crc,
                max_batch_bytes=options.max_batch_bytes,
                bounds=bounds,
            )
        )

    def segment(
        self,
        segment: ListedSegment,
        *,
        start: int = 0,
        end: int | None = None,
        first_timestamp_ms: int | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a segment: of all of it, or of its bytes from ``start`` to ``end``.

        ``first_timestamp_ms``: the greatest timestamp of its first batch, as tables know it. A file
        with another one has no row but that which says so.
        """
        log = place(segment.source).child(segment.relative_path, segment.name)
        try:
            with open_segment(log) as file:
                size_bytes = file.size_bytes if end is None else min(end, file.size_bytes)
                for chunk in self._reader.read(
                    file.read_into,
                    size_bytes=size_bytes,
                    written_bytes=file.written_bytes,
                    start=start,
                ):
                    refuse_other_file(
                        chunk.batches, 0, last_offset=None, max_timestamp_ms=first_timestamp_ms
                    )
                    yield from self._chunk(chunk, segment)
                file.check_unchanged()
        except FileNotFoundError:
            yield self._error(segment, "listed, but gone when it was to be read", 0)
        except (FileChangedError, OtherFileError) as error:
            yield self._error(segment, str(error), error.position)
        except OSError as error:
            yield self._error(segment, first_line(error), 0)

    def _chunk(self, chunk: Chunk, segment: ListedSegment) -> Iterator[pa.RecordBatch]:
        if self._records is not None:
            yield from self._records.rows(chunk, segment)
        elif chunk.batches.shape[1]:
            yield self._batches(chunk, segment)
        if chunk.end_reason is not None:
            yield self._error(segment, chunk.end_reason, chunk.end_position)

    def _batches(self, chunk: Chunk, segment: ListedSegment) -> pa.RecordBatch:
        headers, count = HeaderColumns(chunk.batches), chunk.batches.shape[1]
        arrays = [
            headers.column(column.name, column.type)
            if column.name in headers
            else segment_column(column.name, segment, count, column.type)
            for column in self._schema
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def unlisted(self, folder: UnlistedFolder) -> pa.RecordBatch:
        """Return the row of a folder that could not be listed."""
        values: dict[str, str | int | None] = {
            "path": folder.path,
            "topic": folder.topic,
            "partition": folder.partition,
            "error": folder.reason,
        }
        return self._row(values)

    def _error(self, segment: ListedSegment, reason: str, position: int) -> pa.RecordBatch:
        values: dict[str, str | int | None] = {
            "path": segment.path,
            "topic": segment.topic,
            "partition": segment.partition,
            "segment_base_offset": segment.base_offset,
            "position": position,
            "batch_position": position,
            "error": f"{reason} (at byte {position})",
        }
        return self._row(values)

    def _row(self, values: dict[str, str | int | None]) -> pa.RecordBatch:
        arrays = [pa.array([values.get(column.name)], type=column.type) for column in self._schema]
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)
