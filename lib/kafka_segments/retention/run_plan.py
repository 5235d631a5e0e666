"""Plans of retention: written as a table, applied to a copy or a stopped broker, rolled back."""

import itertools
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from kafka_segments.errors import SetAsideError, UsageError
from kafka_segments.retention.decide.deletion import DELETE, decide_retention
from kafka_segments.retention.run import RetentionOptions, segments_to_decide
from kafka_segments.sources.segment_files import with_segment_files
from kafka_segments.spark.row_stream import stream_rows
from kafka_segments.storage import set_aside
from kafka_segments.storage.set_aside import SegmentFile
from kafka_segments.tables.catalog import RETENTION_PLANS
from kafka_segments.tables.delta import Warehouse
from kafka_segments.tables.keys import LOG_KEYS
from kafka_segments.wire.checkpoints import LOCK
from kafka_segments.wire.names import METADATA_TOPIC


@dataclass(frozen=True)
class LogMove:
    """What was done, or would be, with the planned segments of one log."""

    log: str
    segments: int
    files: int
    bytes: int
    status: str
    reason: str


class _PlannedLog(NamedTuple):
    log_dir: Path
    folder: Path
    aside: Path
    files: list[SegmentFile]
    digests: dict[str, str]
    problem: str | None

    def move(self, status: str, reason: str = "") -> LogMove:
        segments = len({file.base_offset for file in self.files})
        total = sum(file.size_bytes for file in self.files)
        return LogMove(str(self.folder), segments, len(self.files), total, status, reason)


def plan_retention(
    spark: SparkSession, options: RetentionOptions, *, dry_run: bool, has_digests: bool = False
) -> tuple[str, DataFrame]:
    """Write what retention deletes into table ``retention_plans``; gives the plan's id and rows.

    An active segment is left to the broker, which rolls it first. With ``has_digests`` the plan
    holds the sha256 of every file.

    Raises:
        UsageError: no segments, or segments that lie on no local file system.
    """
    plan_id = uuid.uuid4().hex[:12]
    segments = segments_to_decide(spark, options)
    known = segments.select(*LOG_KEYS, "base_offset", "path", "last_modified_ms")
    decided = segments.transform(decide_retention(now_ms=options.now_ms, rules=options.rules))
    doomed = decided.where((F.col("decision") == DELETE) & ~F.col("rolls")).join(
        known, [*LOG_KEYS, "base_offset"], how="inner"
    )
    elsewhere = doomed.where(F.col("path").contains("://")).first()
    if elsewhere is not None:
        raise UsageError(f"{elsewhere['path']}: a plan moves files of a local file system alone")
    log = F.try_element_at("files", F.lit(-1))
    is_same = (log["size_bytes"] == F.col("size_bytes")) & (
        F.expr("try_element_at(files, -1).mtime_ns div 1000000") == F.col("last_modified_ms")
    )
    changed = "it has changed since it was read: run `kafka-segments build`, then plan again"
    gone = F.when(F.size("files") == 0, "it is gone: run `kafka-segments build`, then plan again")
    planned = (
        with_segment_files(doomed, has_digests=has_digests)
        .withColumn("problem", F.coalesce("unlisted", gone, F.when(~is_same, changed)))
        .withColumn("plan_id", F.lit(plan_id))
        .withColumn("decided_at", F.timestamp_millis(F.lit(options.now_ms)))
    )
    if dry_run:
        return plan_id, planned
    tables = Warehouse(spark, options.warehouse)
    tables.create(RETENTION_PLANS)
    tables.append(RETENTION_PLANS, planned)
    return plan_id, _read_plan(spark, options.warehouse, plan_id)


def apply_plan(
    spark: SparkSession, warehouse: str, plan_id: str, *, aside: Path | None, execute: bool
) -> Iterator[LogMove]:
    """Move the planned segments to the set-aside folder, log by log; gives one row a log.

    A log that is not as planned is refused, the others are moved; one that an earlier run has
    moved is left alone.

    Raises:
        UsageError: no such plan, or a set-aside folder inside a log directory.
    """

    def act(log: _PlannedLog) -> LogMove:
        if log.problem is not None:
            return log.move("refused", log.problem)
        if set_aside.is_set_aside(log.folder, log.aside, log.files):
            return log.move("already moved", f"to {log.aside}")
        if not execute:
            set_aside.check_planned(log.folder, log.aside, log.files, log.digests)
            return log.move("would move", f"to {log.aside}")
        set_aside.set_aside(log.folder, log.aside, log.files, log.digests)
        return log.move("moved", f"to {log.aside}")

    return _each_log(spark, warehouse, plan_id, aside, act)


def roll_plan_back(
    spark: SparkSession, warehouse: str, plan_id: str, *, aside: Path | None, execute: bool
) -> Iterator[LogMove]:
    """Bring back what ``apply_plan`` moved, log by log; gives one row a log.

    Raises:
        UsageError: no such plan.
    """

    def act(log: _PlannedLog) -> LogMove:
        if not log.aside.is_dir():
            return log.move("untouched", f"nothing in {log.aside}")
        if not execute:
            return log.move("would bring back", f"from {log.aside}")
        set_aside.bring_back(log.folder, log.aside)
        with suppress(OSError):  # other logs of the plan are still there
            log.aside.parent.rmdir()
        return log.move("brought back", f"from {log.aside}")

    return _each_log(spark, warehouse, plan_id, aside, act)


def _each_log(
    spark: SparkSession,
    warehouse: str,
    plan_id: str,
    aside: Path | None,
    act: Callable[[_PlannedLog], LogMove],
) -> Iterator[LogMove]:
    planned = _read_plan(spark, warehouse, plan_id)
    if planned.isEmpty():
        raise UsageError(f"{warehouse} has no plan {plan_id}: see table retention_plans")
    rows = stream_rows(planned.orderBy("log_dir", "path"))
    logs = (_planned_log(list(group), aside) for _, group in itertools.groupby(rows, key=_folder))
    for log_dir, group in itertools.groupby(logs, key=lambda log: log.log_dir):
        if aside is not None and aside.is_relative_to(log_dir):
            raise UsageError(f"--set-aside {aside} lies in the log directory {log_dir}")
        with ExitStack() as lock:
            refusal = None
            try:
                lock.enter_context(set_aside.held_lock(log_dir / LOCK))
            except SetAsideError as error:
                refusal = str(error)
            for log in group:
                yield _tried(log, act) if refusal is None else log.move("refused", refusal)


def _tried(log: _PlannedLog, act: Callable[[_PlannedLog], LogMove]) -> LogMove:
    try:
        return act(log)
    except (SetAsideError, OSError) as error:
        return log.move("refused", str(error))


def _read_plan(spark: SparkSession, warehouse: str, plan_id: str) -> DataFrame:
    tables = Warehouse(spark, warehouse)
    if tables.version(RETENTION_PLANS) is None:
        raise UsageError(f"{warehouse} has no plans: run `kafka-segments retention plan`")
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
    if rows[0]["topic"] == METADATA_TOPIC:  # an older release planned it
        problems = ["KRaft's own log goes by other rules: plan again"]
    first_problem = problems[0] if problems else None
    return _PlannedLog(log_dir, folder, root / folder.name, files, digests, first_problem)
