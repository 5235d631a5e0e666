"""Plans of retention: write one as a table, apply it to a copy or a stopped broker, undo it."""

import itertools
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from kafka_segments.errors import SetAsideError, UsageError
from kafka_segments.retention.decide.decisions import decide_retention
from kafka_segments.retention.decide.plan import choose_to_move, with_problem
from kafka_segments.retention.run import RetentionOptions, segments_to_decide
from kafka_segments.sources.segment_files import with_digests, with_segment_files
from kafka_segments.spark.held import held_if_few
from kafka_segments.spark.packing import TellLoad, TellRead, tell_nobody
from kafka_segments.spark.row_stream import stream_rows
from kafka_segments.storage import set_aside
from kafka_segments.storage.folder_lock import lock_or_reason
from kafka_segments.storage.set_aside import SegmentFile
from kafka_segments.storage.uris import LOCAL_ROOT
from kafka_segments.tables.catalog import RETENTION_PLANS
from kafka_segments.tables.delta import Warehouse
from kafka_segments.tables.missing import missing_plan, missing_table
from kafka_segments.wire.names import METADATA_TOPIC


class MoveStatus(StrEnum):
    """What became of the planned segments of a log, or would become of them."""

    REFUSED = "refused"
    MOVED = "moved"
    WOULD_MOVE = "would move"
    ALREADY_MOVED = "already moved"
    BROUGHT_BACK = "brought back"
    WOULD_BRING_BACK = "would bring back"
    UNTOUCHED = "untouched"


@dataclass(frozen=True)
class LogMove:
    """What was done, or would be done, with the planned segments of one log."""

    log: str
    segments: int
    files: int
    bytes: int
    status: MoveStatus
    reason: str


@dataclass(frozen=True)
class MoveOptions:
    """Which plan is carried out, and how.

    Attributes:
        warehouse: URI of the tables that hold the plan.
        plan_id: the plan's id.
        aside: the folder that the files go to; None: one beside each log directory.
        execute: move files; otherwise only say what would be moved.
    """

    warehouse: str
    plan_id: str
    aside: Path | None = None
    execute: bool = False


class _PlannedLog(NamedTuple):
    log_dir: Path
    folder: Path
    aside: Path
    files: list[SegmentFile]
    digests: dict[str, str]
    problem: str | None

    def move(self, status: MoveStatus, reason: str) -> LogMove:
        segments = len({file.base_offset for file in self.files})
        total = sum(file.size_bytes for file in self.files)
        return LogMove(str(self.folder), segments, len(self.files), total, status, reason)


def run_plan(
    spark: SparkSession,
    options: RetentionOptions,
    *,
    has_digests: bool,
    dry_run: bool,
    tell: TellLoad = tell_nobody,
    tell_read: TellRead | None = None,
) -> tuple[str, DataFrame]:
    """Write what retention deletes into table ``retention_plans``; return the plan's id and rows.

    An active segment is left to the broker, which rolls it first. With ``has_digests`` the plan
    holds the sha256 of every file. ``tell`` and ``tell_read``: as of ``with_digests``.

    Raises:
        UsageError: no segments, or segments that lie on no local file system.
    """
    plan_id = uuid.uuid4().hex[:12]
    segments = segments_to_decide(spark, options)
    decide = decide_retention(now_ms=options.now_ms, rules=options.rules)
    to_move = held_if_few(segments.transform(decide).transform(choose_to_move(segments)))
    elsewhere = to_move.where(~F.col("path").startswith(LOCAL_ROOT)).first()
    if elsewhere is not None:
        raise UsageError(f"{elsewhere['path']}: a plan moves files of a local file system alone")
    listed = held_if_few(with_segment_files(to_move))
    if has_digests:
        listed = with_digests(listed, tell=tell, tell_read=tell_read)
    else:
        listed = listed.withColumn("digests", F.lit(None).cast("map<string, string>"))
    planned = held_if_few(
        listed.transform(with_problem)
        .withColumn("plan_id", F.lit(plan_id))
        .withColumn("decided_at", F.timestamp_millis(F.lit(options.now_ms)))
    )
    if dry_run:
        return plan_id, planned
    tables = Warehouse(spark, options.warehouse)
    tables.create(RETENTION_PLANS)
    tables.append(RETENTION_PLANS, planned)
    return plan_id, _read_plan(spark, options.warehouse, plan_id)


def run_apply(spark: SparkSession, options: MoveOptions) -> Iterator[LogMove]:
    """Move the planned segments to the set-aside folder, log by log; yield what became of each.

    A log that is not as planned is refused, the others are moved. A log that an earlier run has
    moved is left alone.

    Raises:
        UsageError: no such plan, or a set-aside folder inside a log directory.
    """

    def act(log: _PlannedLog) -> LogMove:
        if log.problem is not None:
            return log.move(MoveStatus.REFUSED, log.problem)
        to_aside = f"to {log.aside}"
        if set_aside.is_set_aside(log.folder, log.aside, log.files):
            return log.move(MoveStatus.ALREADY_MOVED, to_aside)
        if not options.execute:
            set_aside.check_planned(log.folder, log.aside, log.files, log.digests)
            return log.move(MoveStatus.WOULD_MOVE, to_aside)
        set_aside.set_aside(log.folder, log.aside, log.files, log.digests)
        return log.move(MoveStatus.MOVED, to_aside)

    return _each_log(spark, options, act)


def run_rollback(spark: SparkSession, options: MoveOptions) -> Iterator[LogMove]:
    """Bring back what ``run_apply`` moved, log by log; yield what became of each.

    Raises:
        UsageError: no such plan.
    """

    def act(log: _PlannedLog) -> LogMove:
        if not log.aside.is_dir():
            return log.move(MoveStatus.UNTOUCHED, f"nothing in {log.aside}")
        if not options.execute:
            return log.move(MoveStatus.WOULD_BRING_BACK, f"from {log.aside}")
        set_aside.bring_back(log.folder, log.aside)
        with suppress(OSError):  # other logs of the plan are still there
            log.aside.parent.rmdir()
        return log.move(MoveStatus.BROUGHT_BACK, f"from {log.aside}")

    return _each_log(spark, options, act)


def _each_log(
    spark: SparkSession, options: MoveOptions, act: Callable[[_PlannedLog], LogMove]
) -> Iterator[LogMove]:
    """Act on each log of a plan while the lock of its log directory is held."""
    warehouse, plan_id, aside = options.warehouse, options.plan_id, options.aside
    planned = _read_plan(spark, warehouse, plan_id)
    if planned.isEmpty():
        raise UsageError(missing_plan(warehouse, RETENTION_PLANS.name, plan_id))
    rows = stream_rows(planned.orderBy("log_dir", "path"))
    logs = (_planned_log(list(group), aside) for _, group in itertools.groupby(rows, key=_folder))
    for log_dir, group in itertools.groupby(logs, key=lambda log: log.log_dir):
        if aside is not None and aside.is_relative_to(log_dir):
            raise UsageError(
                f"--set-aside {aside} lies in the log directory {log_dir}: name a folder outside"
            )
        with lock_or_reason(log_dir) as refusal:
            for log in group:
                if refusal is None:
                    yield _tried(log, act)
                else:
                    yield log.move(MoveStatus.REFUSED, refusal)


def _tried(log: _PlannedLog, act: Callable[[_PlannedLog], LogMove]) -> LogMove:
    try:
        return act(log)
    except (SetAsideError, OSError) as error:
        return log.move(MoveStatus.REFUSED, str(error))


def _read_plan(spark: SparkSession, warehouse: str, plan_id: str) -> DataFrame:
    tables = Warehouse(spark, warehouse)
    if tables.version(RETENTION_PLANS) is None:
        raise UsageError(missing_table(warehouse, RETENTION_PLANS.name))
    plans = tables.read(RETENTION_PLANS)
    if "digests" not in plans.columns:  # version 1
        plans = plans.withColumn("digests", F.lit(None).cast("map<string, string>"))
    return plans.where(F.col("plan_id") == plan_id)


def _folder(row: Row) -> str:
    return str(row["path"]).rpartition("/")[0]


def _planned_log(rows: list[Row], aside: Path | None) -> _PlannedLog:
    rows.sort(key=lambda row: row["base_offset"])
    folder, log_dir = Path(_folder(rows[0])), Path(rows[0]["log_dir"])
    if aside is None:
        root = log_dir.with_name(f"{log_dir.name}.set-aside") / rows[0]["plan_id"]
    else:
        root = aside / rows[0]["plan_id"] / str(log_dir).lstrip("/")
    digests = {name: digest for row in rows for name, digest in (row["digests"] or {}).items()}
    problems = [f"{row['path']}: {row['problem']}" for row in rows if row["problem"] is not None]
    files = [
        SegmentFile(row["base_offset"], file["name"], file["size_bytes"], file["mtime_ns"])
        for row in rows
        for file in row["files"]
    ]
    if rows[0]["topic"] == METADATA_TOPIC:  # planned by an older release
        problems = ["KRaft's own log goes by other rules: plan again"]
    first_problem = problems[0] if problems else None
    return _PlannedLog(log_dir, folder, root / folder.name, files, digests, first_problem)
