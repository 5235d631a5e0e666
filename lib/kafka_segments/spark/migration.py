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
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from kafka_segments.decide.build_plan import LOG_KEYS, SEGMENT_KEYS
from kafka_segments.errors import FileChangedError, SetAsideError
from kafka_segments.storage.log_staging import LogToStage, finish_log
from kafka_segments.storage.migrated_segments import Action, MigrationRules, PlannedSegment
from kafka_segments.storage.segment_proof import SegmentProver
from kafka_segments.storage.segment_staging import SegmentStager
from kafka_segments.storage.segment_survey import SegmentSurveyor

Row = dict[str, Any]
SURVEYED = (
    StructField("magics", ArrayType(IntegerType(), False)),
    StructField("batch_count", LongType()),
    StructField("max_timestamp_ms", LongType()),
    StructField("damage", StringType()),
    StructField("problem", StringType()),
    StructField("index_findings", ArrayType(StringType(), False)),
    StructField("converted_bytes", LongType()),
    StructField("largest_batch_bytes", LongType()),
    StructField("conversion_hazards", ArrayType(StringType(), False)),
    StructField("conversion_refusal", StringType()),
)
_PROVEN = (
    StructField("size_bytes", LongType()),
    StructField("migrated_size_bytes", LongType()),
    StructField("record_count", LongType()),
    StructField("migrated_record_count", LongType()),
    StructField("digest", StringType()),
    StructField("migrated_digest", StringType()),
    StructField("problem", StringType()),
)
_FINISHED = (
    StructField("files", LongType()),
    StructField("migrated_files", LongType()),
    StructField("problem", StringType()),
)
_ROWS_A_BATCH = 1_000
_PLANNED = ("path", "root", "base_offset", "next_base_offset", "size_bytes", "mtime_ns", "action")


def survey_segments(rules: MigrationRules) -> Callable[[DataFrame], DataFrame]:
    """Look at every segment of a listing; gives its columns and ``SURVEYED``.

    Needs: path (of a local .log), base_offset, next_base_offset, size_bytes, mtime_ns.
    """

    def make() -> Callable[[Row], Row]:
        surveyor = SegmentSurveyor(rules)
        return lambda row: surveyor.survey(_planned(row | {"root": "", "action": Action.KEEP}))

    return lambda segments: _mapped(segments, SURVEYED, make)


def stage_segments(rules: MigrationRules) -> Callable[[DataFrame], DataFrame]:
    """Write the files of every planned segment; gives the key and ``problem``.

    Needs: the columns of a plan.
    """

    def make() -> Callable[[Row], Row]:
        stager = SegmentStager(rules)

        def act(row: Row) -> Row:
            try:
                stager.stage(_planned(row))
            except (SetAsideError, FileChangedError, OSError) as error:
                return {"problem": str(error)}
            return {"problem": None}

        return act

    columns = (*SEGMENT_KEYS, *_PLANNED[:2], *_PLANNED[3:])
    return lambda plan: _mapped(
        plan.select(*columns), (StructField("problem", StringType()),), make
    )


def finish_logs(rules: MigrationRules, *, now_ms: int) -> Callable[[DataFrame], DataFrame]:
    """Finish the staged folder of every log; gives its key, the files of both, ``problem``.

    Needs: one row a log with its key, log_start_offset, and ``segments``, planned ones in order.
    """

    def act(row: Row) -> Row:
        segments = [_planned(segment) for segment in row["segments"]]
        try:
            log = LogToStage(segments, row["log_start_offset"], now_ms)
            manifest = finish_log(log, rules)
        except (SetAsideError, FileChangedError, OSError) as error:
            return {"problem": str(error)}
        before, after = len(manifest.before.files), len(manifest.after.files)
        return {"files": before, "migrated_files": after, "problem": None}

    columns = (*LOG_KEYS, "log_start_offset", "segments")
    return lambda logs: _mapped(logs.select(*columns), _FINISHED, lambda: act).drop("segments")


def prove_segments(rules: MigrationRules) -> Callable[[DataFrame], DataFrame]:
    """Prove every staged segment; gives its key and a proof.

    Needs: the columns of a plan.
    """

    def make() -> Callable[[Row], Row]:
        prover = SegmentProver(rules)
        return lambda row: prover.prove(_planned(row))

    columns = [*SEGMENT_KEYS, "path", "root", "next_base_offset", "mtime_ns", "action"]

    def transform(plan: DataFrame) -> DataFrame:
        segments = plan.select(*columns, plan["size_bytes"].alias("planned_bytes"))
        return _mapped(segments, _PROVEN, make)

    return transform


def _planned(row: Row) -> PlannedSegment:
    return PlannedSegment(
        path=Path(row["path"]),
        root=Path(row["root"]),
        base_offset=row["base_offset"],
        next_base_offset=row["next_base_offset"],
        size_bytes=row["planned_bytes"] if "planned_bytes" in row else row["size_bytes"],
        mtime_ns=row["mtime_ns"],
        action=Action(row["action"]),
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
