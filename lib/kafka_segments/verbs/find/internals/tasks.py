"""Read and decode the records of internal topics, in the executors."""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema

from kafka_segments.engine.frames.map_segments import map_segments
from kafka_segments.engine.frames.packing import TellLoad, tell_nobody
from kafka_segments.engine.rows.read_options import parse_options
from kafka_segments.engine.tables.catalog import INTERNAL_RECORDS
from kafka_segments.files.folders.walk import ListedSegment
from kafka_segments.files.segments.bounds import Bounds
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


def read_records(files: DataFrame, *, tell: TellLoad = tell_nobody) -> DataFrame:
    """Read files of internal topics; what cannot be read becomes a row with ``problem``.

    ``tell`` is told how much tasks will read; it is not called where the driver reads few rows.

    Needs: the columns of ``FILE_COLUMNS``.
    Gives: the columns of ``internal_records``.
    """
    row_type = INTERNAL_RECORDS.schema

    def on_task(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        reader = InternalReader(to_arrow_schema(row_type))
        for batch in batches:
            for file in batch.select(list(FILE_COLUMNS)).to_pylist():
                yield from reader.file(file)

    asked = files.select(*FILE_COLUMNS)
    return map_segments(asked, on_task, row_type, size="size_bytes", tell=tell)


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
        first_row = 0
        for batch in self._rows.segment(segment):
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
