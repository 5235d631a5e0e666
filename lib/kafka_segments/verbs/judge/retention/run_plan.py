"""Plans of retention: write one as a table, apply it to a copy or a stopped broker, undo it."""

import itertools
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from operator import itemgetter
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kafka_segments.engine.frames.engines import collected_if_few
from kafka_segments.engine.frames.local_rows import stream_rows
from kafka_segments.engine.frames.packing import TellLoad, TellRead, tell_nobody
from kafka_segments.engine.sources.segment_files import with_digests, with_segment_files
from kafka_segments.engine.tables.catalog import RETENTION_PLANS
from kafka_segments.engine.tables.delta import Warehouse
from kafka_segments.engine.tables.missing import missing_plan, missing_table
from kafka_segments.errors import UsageError
from kafka_segments.files.storage.folder_lock import lock_or_reason
from kafka_segments.files.storage.uris import LOCAL_ROOT
from kafka_segments.verbs.judge.retention.decide.decisions import decide_retention
from kafka_segments.verbs.judge.retention.decide.plan import choose_to_move, with_problem
from kafka_segments.verbs.judge.retention.planned_log import LogMove, PlannedLog, folder_of, moved
from kafka_segments.verbs.judge.retention.run import RetentionOptions, segments_to_decide


@dataclass(frozen=True)
class MoveOptions:
    """Which plan is carried out, and how.

    Attributes:
        plan_id: the plan's id.
        aside: the folder that the files go to; None: one beside each log directory.
        execute: move files; otherwise only say what would be moved.
    """

    plan_id: str
    aside: Path | None = None
    execute: bool = False


def run_plan(
    warehouse: Warehouse,
    options: RetentionOptions,
    *,
    has_digests: bool,
    dry_run: bool,
    tell: TellLoad = tell_nobody,
    tell_read: TellRead | None = None,
) -> tuple[str, DataFrame]:
    """Write what retention deletes into table ``retention_plans``; return the plan's id and rows.

    An active segment is left to the broker, which rolls it first. With ``has_digests`` the plan
    holds the sha256 of every file. ``tell`` and ``tell_read``: see ``with_digests``.

    Raises:
        UsageError: no segments, or segments that lie on no local file system.
    """
    plan_id = uuid.uuid4().hex[:12]
    segments = segments_to_decide(warehouse, options)
    decide = decide_retention(now_ms=options.now_ms, rules=options.rules)
    to_move = collected_if_few(segments.transform(decide).transform(choose_to_move(segments)))
    elsewhere = to_move.where(~F.col("path").startswith(LOCAL_ROOT)).first()
    if elsewhere is not None:
        raise UsageError(f"{elsewhere['path']}: a plan moves files of a local file system alone")
    listed = collected_if_few(with_segment_files(to_move))
    if has_digests:
        listed = with_digests(listed, tell=tell, tell_read=tell_read)
    else:
        listed = listed.withColumn("digests", F.lit(None).cast("map<string, string>"))
    planned = collected_if_few(
        listed.transform(with_problem)
        .withColumn("plan_id", F.lit(plan_id))
        .withColumn("decided_at", F.timestamp_millis(F.lit(options.now_ms)))
    )
    if dry_run:
        return plan_id, planned
    warehouse.create(RETENTION_PLANS)
    warehouse.append(RETENTION_PLANS, planned)
    return plan_id, _read_plan(warehouse, plan_id)


def run_apply(warehouse: Warehouse, options: MoveOptions) -> Iterator[LogMove]:
    """Move the planned segments to the set-aside folder, log by log; yield what became of each.

    A log that is not as planned is refused, the others are moved. A log that an earlier run has
    moved is left alone.

    Raises:
        UsageError: no such plan, or a set-aside folder inside a log directory.
    """
    return _each_log(warehouse, options, partial(PlannedLog.apply, execute=options.execute))


def run_rollback(warehouse: Warehouse, options: MoveOptions) -> Iterator[LogMove]:
    """Bring back what ``run_apply`` moved, log by log; yield what became of each.

    Raises:
        UsageError: no such plan.
    """
    return _each_log(warehouse, options, partial(PlannedLog.roll_back, execute=options.execute))


def _each_log(
    warehouse: Warehouse, options: MoveOptions, act: Callable[[PlannedLog], LogMove]
) -> Iterator[LogMove]:
    """Act on each log of a plan while the lock of its log directory is held."""
    plan_id, aside = options.plan_id, options.aside
    planned = _read_plan(warehouse, plan_id)
    if planned.isEmpty():
        raise UsageError(missing_plan(warehouse.root, RETENTION_PLANS.name, plan_id))
    ordered = stream_rows(planned.orderBy("log_dir", "path"))
    rows = (row.asDict(recursive=True) for row in ordered)
    for log_dir, of_dir in itertools.groupby(rows, key=itemgetter("log_dir")):
        if aside is not None and aside.is_relative_to(log_dir):
            raise UsageError(
                f"--set-aside {aside} lies in the log directory {log_dir}: name a folder outside"
            )
        with lock_or_reason(Path(log_dir)) as refusal:
            for _, of_log in itertools.groupby(of_dir, key=folder_of):
                yield moved(list(of_log), aside, act, refusal)


def _read_plan(warehouse: Warehouse, plan_id: str) -> DataFrame:
    if warehouse.version(RETENTION_PLANS) is None:
        raise UsageError(missing_table(warehouse.root, RETENTION_PLANS.name))
    plans = warehouse.read(RETENTION_PLANS)
    if "digests" not in plans.columns:  # version 1
        plans = plans.withColumn("digests", F.lit(None).cast("map<string, string>"))
    return plans.where(F.col("plan_id") == plan_id)
