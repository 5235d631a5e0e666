"""Read and decode the records of internal topics, in the executors."""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from kafka_segments.engine.derived.file_sums import FILE_KEYS
from kafka_segments.engine.frames.map_segments import map_segments
from kafka_segments.engine.frames.packing import TellLoad, tell_nobody
from kafka_segments.engine.frames.row_types import row_fields
from kafka_segments.engine.limits import MOST_DIGESTED_IN_DRIVER
from kafka_segments.engine.rows.read_options import parse_options
from kafka_segments.engine.tables.catalog import INTERNAL_FILES, INTERNAL_RECORDS
from kafka_segments.files.folders.walk import ListedSegment
from kafka_segments.files.segments.bounds import Bounds
from kafka_segments.files.storage.files import place
from kafka_segments.verbs.find.internals.files import FILE_COLUMNS
from kafka_segments.verbs.find.internals.record_columns import GIVEN, RecordColumns

_RECORD_COLUMNS = {  # of the data source, by the columns of the table
    "batch_position": "batch_position",
    "offset": "offset",
    "timestamp_ms": "timestamp_ms",
    "leader_epoch": "partition_leader_epoch",
    "producer_id": "producer_id",
    "producer_epoch": "producer_epoch",
    "is_transactional": "is_transactional",
}
_STARTS = ("start_bytes", "start_row")
_LEFT = "_bytes_left"
_LOOKS = StructType(
    [
        *(INTERNAL_FILES.schema[key] for key in FILE_KEYS),
        *row_fields("end long, crc32c long, has_start boolean"),
    ]
)


def read_records(
    files: DataFrame, *, goes_on: bool = False, tell: TellLoad = tell_nobody
) -> DataFrame:
    """Read files of internal topics; what cannot be read becomes a row with ``problem``.

    They are read up to the size that they had when they were listed. ``tell`` is told how much
    tasks will read; it is not called where the driver reads few rows.

    Needs: the columns of ``FILE_COLUMNS``; with ``goes_on`` also start_bytes, start_row (from where
        a file is read, and the number of its first row from there).
    Gives: the columns of ``internal_records``.
    """
    row_type = INTERNAL_RECORDS.schema
    columns = (*FILE_COLUMNS, *_STARTS) if goes_on else FILE_COLUMNS

    def on_task(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        reader = InternalReader(to_arrow_schema(row_type))
        for batch in batches:
            for file in batch.select(list(columns)).to_pylist():
                yield from reader.file(file)

    asked = files.select(*columns)
    if not goes_on:
        return map_segments(asked, on_task, row_type, size="size_bytes", tell=tell)
    asked = asked.withColumn(_LEFT, bytes_left())
    return map_segments(asked, on_task, row_type, size=_LEFT, tell=tell)


def bytes_left() -> Column:
    """Return how many bytes of a file are read.

    Needs: size_bytes, start_bytes.
    """
    return F.col("size_bytes") - F.col("start_bytes")


def look_at(files: DataFrame) -> DataFrame:
    """Digest the whole batches of files, of each up to the size that it had when it was listed.

    Needs: the columns of a file's key, path, size_bytes, start_bytes, start_crc32c (the position up
        to which its bytes are held against a digest; null: none).
    Gives: the file's key; end, crc32c, has_start: see ``WholeBatches``.
    """

    def on_task(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from kafka_segments.files.segments.whole_batches import WholeBatchReader  # noqa: PLC0415

        reader = WholeBatchReader()
        for batch in batches:
            rows = []
            for file in batch.to_pylist():
                found = reader.read(
                    place(file["path"]),
                    size_bytes=file["size_bytes"],
                    start=file["start_bytes"],
                    start_crc32c=file["start_crc32c"],
                )
                rows.append({key: file[key] for key in FILE_KEYS} | found._asdict())
            yield pa.RecordBatch.from_pylist(rows, schema=to_arrow_schema(_LOOKS))

    asked = files.select(*FILE_KEYS, "path", "size_bytes", "start_bytes", "start_crc32c")
    return map_segments(
        asked,
        on_task,
        _LOOKS,
        size="size_bytes",
        most_bytes=MOST_DIGESTED_IN_DRIVER,
    )


class InternalReader:
    """Reads one file after another; a task makes one."""

    def __init__(self, arrow_schema: pa.Schema) -> None:
        from kafka_segments.engine.rows.segment_rows import SegmentRows  # noqa: PLC0415

        self._schema = arrow_schema
        columns = ",".join(("path", *_RECORD_COLUMNS.values(), *GIVEN))
        options = parse_options({"path": "/", "rows": "records", "columns": columns})
        self._columns = RecordColumns(arrow_schema)
        self._rows = SegmentRows(options, Bounds(), to_arrow_schema(options.schema()))

    def file(self, file: dict[str, Any]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a segment or a snapshot, given by ``FILE_COLUMNS``.

        With start_bytes and start_row it is read from there on.

        A file without records, in which the cleaner has left only an empty batch, has one row
        without offset, kind and problem: it says only that the file was read.
        """
        folder, _, name = file["path"].rpartition("/")
        segment = ListedSegment(
            folder,
            "",
            name,
            file["topic"],
            file["partition"],
            file["base_offset"],
            None,
            file["size_bytes"],
        )
        first_row = file.get("start_row", 0)
        batches = self._rows.segment(
            segment, start=file.get("start_bytes", 0), end=file["size_bytes"]
        )
        for batch in batches:
            decoded_rows = 0
            for decoded in self._columns.decode(file["topic"], batch):
                rows = batch.slice(decoded_rows, len(decoded["kind"]))
                yield self._joined(rows, decoded, file, first_row + decoded_rows)
                decoded_rows += rows.num_rows
            first_row += batch.num_rows
        if first_row == 0 and file["size_bytes"]:
            yield self._row({**file, "row": 0, "batch_position": 0})

    def _row(self, values: dict[str, Any]) -> pa.RecordBatch:
        arrays = [pa.array([values.get(field.name)], type=field.type) for field in self._schema]
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def _joined(
        self,
        batch: pa.RecordBatch,
        decoded: dict[str, pa.Array],
        file: dict[str, Any],
        first_row: int,
    ) -> pa.RecordBatch:
        arrays = []
        for field in self._schema:
            if field.name in decoded:
                arrays.append(decoded[field.name])
            elif field.name in _RECORD_COLUMNS:
                arrays.append(batch.column(_RECORD_COLUMNS[field.name]).cast(field.type))
            elif field.name == "row":
                rows_of_file = np.arange(first_row, first_row + batch.num_rows)
                arrays.append(pa.array(rows_of_file, type=field.type))
            else:
                arrays.append(pa.repeat(pa.scalar(file[field.name], field.type), batch.num_rows))
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)
