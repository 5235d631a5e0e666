"""Read and decode the records of internal topics, in the executors."""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema

from kafka_segments.engine.frames.map_segments import map_segments
from kafka_segments.engine.frames.packing import TellLoad, tell_nobody
from kafka_segments.engine.rows.read_options import parse_options
from kafka_segments.engine.tables.catalog import INTERNAL_RECORDS
from kafka_segments.files.folders.walk import ListedSegment
from kafka_segments.files.segments.bounds import Bounds
from kafka_segments.kafka.messages.records import UNKNOWN, decode_internal
from kafka_segments.verbs.find.internals.files import FILE_COLUMNS

_RECORD_COLUMNS = {  # of the data source, by the columns of the table
    "batch_position": "batch_position",
    "offset": "offset",
    "timestamp_ms": "timestamp_ms",
    "leader_epoch": "partition_leader_epoch",
    "producer_id": "producer_id",
    "producer_epoch": "producer_epoch",
    "is_transactional": "is_transactional",
}
_GIVEN = ("key", "value", "is_control", "error")


class Decoded(NamedTuple):
    """The columns of a row that come from the record's key and value."""

    kind: str | None = None
    key_version: int | None = None
    value_version: int | None = None
    key_json: str | None = None
    value_json: str | None = None
    is_tombstone: bool | None = None
    key: bytes | None = None
    value: bytes | None = None
    problem: str | None = None


def read_records(files: DataFrame, *, tell: TellLoad = tell_nobody) -> DataFrame:
    """Read files of internal topics; what cannot be read becomes a row with ``problem``.

    ``tell`` is told how much tasks will read; it is not called where few rows are read at once.

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
        columns = ",".join(("path", *_RECORD_COLUMNS.values(), *_GIVEN))
        options = parse_options({"path": "/", "rows": "records", "columns": columns})
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
            yield self._decoded(batch, file, first_row)
            first_row += batch.num_rows
        if first_row == 0 and file["size_bytes"]:
            yield self._row({**file, "row": 0, "batch_position": 0})

    def _row(self, values: dict[str, Any]) -> pa.RecordBatch:
        arrays = [pa.array([values.get(field.name)], type=field.type) for field in self._schema]
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def _decoded(
        self, batch: pa.RecordBatch, file: dict[str, Any], first_row: int
    ) -> pa.RecordBatch:
        given = (batch.column(name).to_pylist() for name in _GIVEN)
        rows = [decode_row(file["topic"], *values) for values in zip(*given, strict=True)]
        decoded = dict(zip(Decoded._fields, zip(*rows, strict=True), strict=False))
        arrays = []
        for field in self._schema:
            if field.name in decoded:
                arrays.append(pa.array(decoded[field.name], type=field.type))
            elif field.name in _RECORD_COLUMNS:
                arrays.append(batch.column(_RECORD_COLUMNS[field.name]).cast(field.type))
            elif field.name == "row":
                rows_of_file = range(first_row, first_row + batch.num_rows)
                arrays.append(pa.array(rows_of_file, type=field.type))
            else:
                arrays.append(pa.repeat(pa.scalar(file[field.name], field.type), batch.num_rows))
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)


def decode_row(
    topic: str, key: bytes | None, value: bytes | None, is_control: bool | None, error: str | None
) -> Decoded:
    """Decode a record of an internal topic, whatever its bytes are."""
    if error is not None:
        return Decoded(problem=error)
    record = decode_internal(topic, key, value, is_control=bool(is_control))
    is_decoded = record.kind != UNKNOWN and record.problem is None
    return Decoded(
        kind=record.kind,
        key_version=record.key_version,
        value_version=record.value_version,
        key_json=record.key_json(),
        value_json=record.value_json(),
        is_tombstone=value is None and not is_control,
        key=None if is_decoded and record.key is not None else key,
        value=None if is_decoded else value,
        problem=record.problem,
    )
