"""Map each log, with all that its copies hold, in the driver or in the executors."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from kafka_segments.engine.frames.local_rows import arrow_schema
from kafka_segments.engine.frames.map_rows import map_rows
from kafka_segments.engine.tables.keys import Transform
from kafka_segments.verbs.copies.divergence.decide.copies import CopyPiece
from kafka_segments.verbs.copies.divergence.decide.joined_ranges import Part, ranges_of

KEYS = ("topic", "partition")
MapLog = Callable[
    [Sequence[dict[str, Any]], Sequence[dict[str, CopyPiece]]], Iterable[dict[str, Any]]
]
"""From a row for each copy of a log, and its ranges (``ranges_of``)."""

_MOST_LOGS, _MOST_PARTS = 1_000, 20_000


def map_logs(parts: DataFrame, of_log: MapLog, columns: StructType) -> Transform:
    """Map each log to rows; the rows of all copies of a log, and of their parts, go in one row.

    A group of Spark's for each log would cost a millisecond, which most logs do not take.

    Needs: rows of ``decide.frames.described``, and what ``of_log`` takes of them besides;
        ``parts``: rows of ``decide.frames.unequal_parts``, of these logs.
    Gives: ``columns``, of which ``of_log`` gives all but topic and partition, or some.
    """

    def on_task(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        made = arrow_schema(columns)
        for batch in batches:
            for logs in _pieces(batch):
                rows = [
                    {**{name: log[name] for name in KEYS}, **row}
                    for log in logs.to_pylist()
                    for row in of_log(log["copies"], _ranges(log))
                ]
                yield pa.RecordBatch.from_pylist(rows, schema=made)

    def transform(copies: DataFrame) -> DataFrame:
        held = copies.groupBy(*KEYS).agg(F.collect_list(F.struct("*")).alias("copies"))
        unequal = F.collect_list(F.struct(*Part._fields)).alias("parts")
        logs = held.join(parts.groupBy(*KEYS).agg(unequal), list(KEYS), how="left")
        return map_rows(logs, on_task, columns, most_in_driver=None)

    return transform


def _pieces(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Cut a batch into pieces of few logs with few parts, or of one log: they become objects."""
    first = parts = 0
    for row, count in enumerate(pc.list_value_length(batch["parts"]).to_pylist()):
        parts += count or 0
        if row > first and (row - first == _MOST_LOGS or parts > _MOST_PARTS):
            yield batch.slice(first, row - first)
            first, parts = row, count or 0
    yield batch.slice(first)


def _ranges(log: dict[str, Any]) -> list[dict[str, CopyPiece]]:
    return ranges_of(Part(**part) for part in log["parts"] or ())
