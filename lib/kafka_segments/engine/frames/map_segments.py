"""Rows that name segments mapped to what is in these: few small ones in the driver."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeAlias

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from kafka_segments.engine.frames.engines import mapped_rows, rows_for_tasks, rows_to_map
from kafka_segments.engine.frames.local_rows import arrow_schema
from kafka_segments.engine.frames.map_rows import map_rows
from kafka_segments.engine.frames.packing import (
    ORDER,
    TellLoad,
    pack_by_bytes,
    packed,
    tell_nobody,
)
from kafka_segments.engine.limits import (
    MOST_IN_DRIVER,
    MOST_READ_IN_DRIVER,
    MOST_SEARCHED_IN_DRIVER,
    Load,
)

OnTask: TypeAlias = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def map_segments(
    asked: DataFrame,
    on_task: OnTask,
    row_type: StructType,
    *,
    size: str,
    tell: TellLoad = tell_nobody,
    most_bytes: int = MOST_SEARCHED_IN_DRIVER,
) -> DataFrame:
    """Map rows that name segments to rows of what is in these; few small ones in the driver.

    It has read these before processes for them would have started. ``tell``: is told how much tasks
    read. ``most_bytes``: more than so many are read by tasks.

    Needs: path, and ``size``, a column of bytes that are read (null: none).
    Gives: ``row_type``.
    """
    spark, load = asked.sparkSession, None
    here = rows_to_map(asked)
    if here is not None:
        found, kind = here
        size_bytes = sum(value or 0 for value in found[size].to_pylist())
        if len(found) <= MOST_IN_DRIVER and size_bytes <= most_bytes:
            rows = pa.Table.from_batches(on_task(found.to_batches()), schema=arrow_schema(row_type))
            return mapped_rows(spark, rows, row_type)
        asked, load = rows_for_tasks(spark, found, kind), Load(len(found), size_bytes)
    shared = pack_by_bytes(asked, by=size, load=load, tell=tell)
    return shared.mapInArrow(on_task, row_type)


def map_packed(
    segments: DataFrame,
    on_task: OnTask,
    row_type: StructType,
    load: Load,
    *,
    by: str = "size_bytes",
    order: Sequence[str] = ORDER,
) -> DataFrame:
    """Map a segment list of a known size: little of it as ``map_rows``, much in tasks by bytes."""
    if load.is_within(Load(MOST_IN_DRIVER, MOST_READ_IN_DRIVER)):
        return map_rows(segments, on_task, row_type)
    return segments.transform(packed(load, by=by, order=order)).mapInArrow(on_task, row_type)
