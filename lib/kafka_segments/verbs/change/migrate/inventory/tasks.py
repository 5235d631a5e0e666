"""Count the formats of segments in the executors: paths in, rows out."""

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StringType, StructField, StructType

from kafka_segments.engine.frames.map_segments import map_packed
from kafka_segments.engine.limits import Load
from kafka_segments.engine.tables.schemas import schema
from kafka_segments.errors import FileChangedError
from kafka_segments.files.storage.files import first_line, open_segment, place
from kafka_segments.verbs.change.migrate.inventory.format_counter import FormatCounter

_ROWS_A_BATCH = 1_000


def count_formats(segments: DataFrame, load: Load, *, decompresses: bool) -> DataFrame:
    """Count formats in the files of segments; ``load`` is how many and how large they are.

    Needs: path, valid_bytes.
    Gives: path, formats (null: the file cannot be read), uncounted (string: why not).
    """
    formats = schema("migration_inventory.v1")["formats"].dataType
    row_type = StructType(
        [
            StructField("path", StringType()),
            StructField("formats", formats),
            StructField("uncounted", StringType()),
        ]
    )

    def on_task(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        arrow_schema = to_arrow_schema(row_type)
        counter = FormatCounter(decompresses=decompresses)
        for batch in batches:
            for first in range(0, batch.num_rows, _ROWS_A_BATCH):
                asked = batch.slice(first, _ROWS_A_BATCH).to_pylist()
                rows = [_count(counter, row["path"], row["valid_bytes"]) for row in asked]
                yield pa.RecordBatch.from_pylist(rows, schema=arrow_schema)

    asked = segments.select("path", "valid_bytes")
    return map_packed(asked, on_task, row_type, load, by="valid_bytes", order=("path",))


def _count(counter: FormatCounter, path: str, valid_bytes: int) -> dict[str, Any]:
    try:
        with open_segment(place(path)) as file:
            found = counter.count(file.read_into, valid_bytes=valid_bytes)
            file.check_unchanged()
    except (OSError, FileChangedError) as error:
        return {"path": path, "formats": None, "uncounted": first_line(error)}
    return {"path": path, "formats": [one._asdict() for one in found], "uncounted": None}
