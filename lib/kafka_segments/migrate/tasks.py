"""Migrate segments and logs in the executors: rows of a plan in, files staged, rows out."""

import gc
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from kafka_segments.errors import FileChangedError, SetAsideError
from kafka_segments.migrate.log_staging import LogToStage, finish_log
from kafka_segments.migrate.planned_segment import Action, MigrationRules, PlannedSegment
from kafka_segments.migrate.segment_proof import SegmentProver
from kafka_segments.migrate.segment_staging import SegmentStager, is_staged
from kafka_segments.migrate.segment_survey import SegmentSurveyor
from kafka_segments.tables.keys import SEGMENT_KEYS

Row = dict[str, Any]
SURVEYED = (
    StructField("magics", ArrayType(IntegerType(), False)),
    StructField("batch_count", LongType()),
    StructField("max_timestamp_ms", LongType()),
    StructField("damage", StringType()),
    StructField("problem", StringType()),
    StructField("unmodelled", StringType()),
    StructField("cut_bytes", LongType()),
    StructField("index_findings", ArrayType(StringType(), False)),
    StructField("converted_bytes", LongType()),
    StructField("largest_batch_bytes", LongType()),
    StructField("conversion_hazards", ArrayType(StringType(), False)),
    StructField("conversion_refusal", StringType()),
)
_PROVEN = (
    StructField("migrated_size_bytes", LongType()),
    StructField("record_count", LongType()),
    StructField("migrated_record_count", LongType()),
    StructField("digest", StringType()),
    StructField("migrated_digest", StringType()),
    StructField("problem", StringType()),
)
_ROWS_A_BATCH = 1_000
_UNPLANNED = {"root": "", "action": Action.KEEP, "cut_bytes": 0}
_PLANNED = (
    *SEGMENT_KEYS,
    "path",
    "root",
    "next_base_offset",
    "size_bytes",
    "mtime_ns",
    "action",
    "cut_bytes",
    "log_start_offset",
    "topic_id",
)
_OUTCOME = (StructField("problem", StringType()), StructField("is_failed", BooleanType()))


def survey_segments(rules: MigrationRules) -> Callable[[DataFrame], DataFrame]:
    """Look at every segment of a listing; gives its columns and ``SURVEYED``.

    Needs: path (of a local .log), base_offset, next_base_offset, size_bytes, mtime_ns.
    """

    def make() -> Callable[[Row], Row]:
        surveyor = SegmentSurveyor(rules)
        return lambda row: surveyor.survey(_planned(row | _UNPLANNED))

    return lambda segments: _mapped(segments, SURVEYED, make)


def stage_segments(rules: MigrationRules) -> Callable[[DataFrame], DataFrame]:
    """Write the files of every planned segment.

    Gives: the plan's columns, ``problem``, and ``is_failed`` where that is of the machine.
    """

    def make() -> Callable[[Row], Row]:
        stager = SegmentStager(rules)

        def act(row: Row) -> Row:
            return _tried(lambda: stager.stage(_planned(row)))

        return act

    return lambda plan: _mapped(plan.select(*_PLANNED), _OUTCOME, make)


def mark_staged(plan: DataFrame) -> DataFrame:
    """Tell of planned segments in ``is_staged`` whether an earlier run wrote what they get."""

    def act(row: Row) -> Row:
        return {"is_staged": is_staged(_planned(row))}

    rows = plan.select(*_PLANNED, "expected_bytes")
    return _mapped(rows, (StructField("is_staged", BooleanType()),), lambda: act)


def finish_logs(rules: MigrationRules, *, now_ms: int) -> Callable[[DataFrame], DataFrame]:
    """Finish the staged folder of every log without a problem; gives its outcome anew.

    Needs: rows of ``decide.migration.logs_of_segments``.
    """

    def act(row: Row) -> Row:
        if row["problem"] is not None:
            return {}
        segments = [_planned(segment) for segment in row["segments"]]
        log = LogToStage(segments, row["log_start_offset"], now_ms, row["topic_id"])
        return _tried(lambda: finish_log(log, rules))

    return lambda logs: _mapped(logs, (), lambda: act)


def prove_segments(rules: MigrationRules) -> Callable[[DataFrame], DataFrame]:
    """Prove every staged segment; gives the plan's columns, ``size_bytes`` apart, and a proof."""

    def make() -> Callable[[Row], Row]:
        prover = SegmentProver(rules)
        return lambda row: prover.prove(_planned(row))

    return lambda plan: _mapped(plan.select(*_PLANNED), _PROVEN, make)


def _tried(act: Callable[[], object]) -> Row:
    try:
        act()
    except (SetAsideError, FileChangedError) as error:
        return {"problem": str(error), "is_failed": False}
    except OSError as error:
        return {"problem": str(error), "is_failed": True}
    return {"problem": None, "is_failed": False}


def _planned(row: Row) -> PlannedSegment:
    return PlannedSegment(
        path=Path(row["path"]),
        root=Path(row["root"]),
        base_offset=row["base_offset"],
        next_base_offset=row["next_base_offset"],
        size_bytes=row["size_bytes"],
        mtime_ns=row["mtime_ns"],
        action=Action(row["action"]),
        cut_bytes=row["cut_bytes"] or 0,
    )


def _mapped(
    rows: DataFrame, added: tuple[StructField, ...], make: Callable[[], Callable[[Row], Row]]
) -> DataFrame:
    """Add the columns that a function, made once a task, gives for each row."""
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
