"""Rows of a plan: turn them into logs and segments, and add columns to them in the executors."""

import gc
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Self, TypeVar

import pyarrow as pa
from pydantic import Field, model_validator
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructField, StructType

from kafka_segments.files.changes.manifests import Count, Int64
from kafka_segments.files.changes.plan_rows import PlannedFile, planned_row
from kafka_segments.verbs.change.migrate.decide.actions import SegmentAction
from kafka_segments.verbs.change.migrate.planned_log import PLANS, PlannedRoot
from kafka_segments.verbs.change.migrate.planned_segment import MigrationRules, PlannedSegment

Row = dict[str, Any]
_Made = TypeVar("_Made")
_ROWS_A_BATCH = 1_000


class _PlannedSegmentRow(PlannedFile, PlannedRoot):
    next_base_offset: Count | None
    size_bytes: Count
    mtime_ns: Int64
    action: Annotated[SegmentAction, Field(strict=False)]
    cut_bytes: Count | None
    log_start_offset: Count
    topic_id: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{22}$")] | None

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if self.next_base_offset is not None and self.next_base_offset <= self.base_offset:
            raise ValueError(f"next_base_offset: {self.next_base_offset}, no higher one")
        if (self.cut_bytes or 0) > self.size_bytes:
            raise ValueError(f"cut_bytes: {self.cut_bytes} of {self.size_bytes}")
        return self


def planned_segment(row: Row) -> PlannedSegment:
    """Return the segment that a row of a plan describes.

    Raises:
        SetAsideError: see ``planned_row``.
    """
    planned_row(row, _PlannedSegmentRow, table=PLANS)
    return listed_segment(row)


def listed_segment(row: Row) -> PlannedSegment:
    """Return the segment of a row that was made just now."""
    return PlannedSegment(
        path=Path(row["path"]),
        root=Path(row["root"]),
        base_offset=row["base_offset"],
        next_base_offset=row["next_base_offset"],
        size_bytes=row["size_bytes"],
        mtime_ns=row["mtime_ns"],
        action=SegmentAction(row["action"]),
        cut_bytes=row["cut_bytes"] or 0,
    )


def made_by_rules(make: Callable[[MigrationRules], _Made]) -> Callable[[Row], _Made]:
    """Return a function that gives what works by a row's rules, made once for equal rules."""
    made: dict[str, _Made] = {}

    def of(row: Row) -> _Made:
        text = row["rules"]
        if text not in made:
            made[text] = make(MigrationRules.of(text))
        return made[text]

    return of


def with_made_columns(
    rows: DataFrame, added: Sequence[StructField], make: Callable[[], Callable[[Row], Row]]
) -> DataFrame:
    """Add the columns that a function returns for each row.

    ``make`` makes the function, once in each task.
    """
    row_type = StructType([*rows.schema.fields, *added])

    def on_task(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        arrow_schema = to_arrow_schema(row_type)
        act = make()
        gc.freeze()  # Spark collects after each task: what is imported need not be searched
        for batch in batches:
            for first in range(0, batch.num_rows, _ROWS_A_BATCH):
                found = [row | act(row) for row in batch.slice(first, _ROWS_A_BATCH).to_pylist()]
                yield pa.RecordBatch.from_pylist(found, schema=arrow_schema)

    return rows.mapInArrow(on_task, row_type)
