"""Fold the metadata log of each cluster into rows that held, in an executor."""

import json
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructField, StructType

from kafka_segments.engine.frames.driver_rows import by_keys
from kafka_segments.engine.frames.map_rows import map_rows
from kafka_segments.engine.frames.row_types import row_fields
from kafka_segments.engine.tables.catalog import METADATA_TABLES, Table
from kafka_segments.verbs.find.internals.decide.rows import HELD
from kafka_segments.verbs.find.internals.metadata.history import (
    PROBLEMS,
    HistoryRow,
    MetadataHistory,
    Point,
)

_GIVEN = ("cluster", "is_snapshot", "point_offset", "point_ms", "kind", "value_json")
_ROWS_A_BATCH = 10_000
_Row = dict[str, Any]


def _values_of(table: Table) -> StructField:
    """Return the columns of a metadata table that a record says, as one column."""
    said = (field for field in table.schema if field.name not in ("cluster", *HELD))
    return StructField(table.name, StructType([StructField(f.name, f.dataType) for f in said]))


_HISTORY = StructType(
    [
        *row_fields(
            "cluster string, from_offset long, from_ms long, until_offset long, until_ms long,"
            " is_from_snapshot boolean"
        ),
        *map(_values_of, METADATA_TABLES),
        StructField(PROBLEMS, StructType(row_fields("problem string"))),
    ]
)


def fold_history(records: DataFrame) -> DataFrame:
    """Fold records of ``__cluster_metadata``: for each cluster a snapshot's, then the log's.

    One task folds a cluster. It holds the cluster's state, but not the records.

    Needs: cluster, is_snapshot, point_offset, point_ms (where a record is applied; for all
        records of a snapshot, at its last one), row, kind, value_json.
    Gives: cluster, from_offset, from_ms, until_offset, until_ms (null: it holds still),
        is_from_snapshot, and a column for each metadata table and for ``PROBLEMS``, all but one of
        them null: the row's values in that table.
    """
    order = ("cluster", "point_offset", "row")
    ordered = by_keys(records, ("cluster",), order=order).select(*_GIVEN)
    return map_rows(ordered, _fold, _HISTORY, most_in_driver=None)


def _fold(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    arrow_schema = to_arrow_schema(_HISTORY)
    rows: list[_Row] = []
    for row in _rows(batches):
        rows.append(row)
        if len(rows) == _ROWS_A_BATCH:
            yield pa.RecordBatch.from_pylist(rows, arrow_schema)
            rows = []
    yield pa.RecordBatch.from_pylist(rows, arrow_schema)


def _rows(batches: Iterable[pa.RecordBatch]) -> Iterator[_Row]:
    cluster: str | None = None
    history = MetadataHistory()
    for batch in batches:
        for row in zip(*(batch.column(name).to_pylist() for name in _GIVEN), strict=True):
            its_cluster, is_snapshot, offset, ms, kind, value_json = row
            if its_cluster != cluster:
                yield from (_row(cluster, ended) for ended in history.end())
                cluster, history = its_cluster, MetadataHistory()
            value = {} if value_json is None else json.loads(value_json)
            point = Point(offset, ms, is_snapshot)
            yield from (_row(cluster, ended) for ended in history.replay(kind, value, point))
    yield from (_row(cluster, ended) for ended in history.end())


def _row(cluster: str | None, held: HistoryRow) -> _Row:
    until = held.until or (None, None)
    return {
        "cluster": cluster,
        "from_offset": held.since.offset,
        "from_ms": held.since.ms,
        "until_offset": until[0],
        "until_ms": until[1],
        "is_from_snapshot": held.since.is_snapshot,
        held.table: held.values,
    }
