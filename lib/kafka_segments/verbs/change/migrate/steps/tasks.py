"""Stage and prove segments and logs in the executors: rows of a plan in, outcomes out."""

from collections.abc import Callable

from pyspark.sql import DataFrame
from pyspark.sql.types import BooleanType, StructField

from kafka_segments.engine.frames.row_types import row_fields
from kafka_segments.engine.tables.keys import SEGMENT_KEYS, Transform
from kafka_segments.errors import FileChangedError, SetAsideError
from kafka_segments.verbs.change.migrate.decide.steps import OF_PLANNED_SEGMENT
from kafka_segments.verbs.change.migrate.planned_rows import (
    Row,
    made_by_rules,
    planned_segment,
    with_made_columns,
)
from kafka_segments.verbs.change.migrate.planned_segment import MigrationRules
from kafka_segments.verbs.change.migrate.steps.log_staging import LogToStage, finish_log
from kafka_segments.verbs.change.migrate.steps.segment_proof import SegmentProver
from kafka_segments.verbs.change.migrate.steps.segment_staging import SegmentStager, is_staged

_PROVEN = row_fields(
    "migrated_size_bytes long, record_count long, migrated_record_count long, digest string,"
    " migrated_digest string, problem string"
)
_PLANNED = (
    "plan_id",
    *SEGMENT_KEYS,
    *OF_PLANNED_SEGMENT,
    "log_start_offset",
    "topic_id",
    "rules",
)
_OUTCOME = row_fields("problem string, is_failed boolean")


def stage_segments(plan: DataFrame) -> DataFrame:
    """Write the files of every planned segment.

    Needs: rows of a plan.
    Gives: the same with problem (string, null: none) and is_failed (boolean: the machine is the
    cause).
    """

    def make() -> Callable[[Row], Row]:
        stager = made_by_rules(SegmentStager)

        def act(row: Row) -> Row:
            return _tried(lambda: stager(row).stage(planned_segment(row)))

        return act

    return with_made_columns(plan.select(*_PLANNED), _OUTCOME, make)


def mark_staged(plan: DataFrame) -> DataFrame:
    """Tell which segments an earlier run has written, or none will write as they are refused.

    Needs: rows of a plan.
    Gives: the same with is_staged (boolean).
    """

    def act(row: Row) -> Row:
        try:
            return {"is_staged": is_staged(planned_segment(row))}
        except SetAsideError:
            return {"is_staged": True}

    rows = plan.select(*_PLANNED, "expected_bytes")
    return with_made_columns(rows, (StructField("is_staged", BooleanType()),), lambda: act)


def finish_logs(*, now_ms: int) -> Transform:
    """Finish the staged folder of every log without a problem.

    Needs: rows of ``decide.steps.logs_of_segments``.
    Gives: the same, with problem and is_failed anew.
    """

    def act(row: Row) -> Row:
        if row["problem"] is not None:
            return {}
        return _tried(lambda: _finish(row, now_ms))

    return lambda logs: with_made_columns(logs, (), lambda: act)


def prove_segments(plan: DataFrame) -> DataFrame:
    """Prove every staged segment.

    Needs: rows of a plan.
    Gives: the same with the columns of a proof.
    """

    def make() -> Callable[[Row], Row]:
        prover = made_by_rules(SegmentProver)

        def act(row: Row) -> Row:
            try:
                return prover(row).prove(planned_segment(row))
            except SetAsideError as error:
                return {"problem": str(error)}

        return act

    return with_made_columns(plan.select(*_PLANNED), _PROVEN, make)


def _finish(row: Row, now_ms: int) -> None:
    segments = [planned_segment(row | segment) for segment in row["segments"]]
    log = LogToStage(segments, row["log_start_offset"], now_ms, row["topic_id"])
    finish_log(log, MigrationRules.of(row["rules"]))


def _tried(act: Callable[[], object]) -> Row:
    try:
        act()
    except (SetAsideError, FileChangedError) as error:
        return {"problem": str(error), "is_failed": False}
    except OSError as error:
        return {"problem": str(error), "is_failed": True}
    return {"problem": None, "is_failed": False}
