"""Carry out the steps of a migration's plan: stage, verify, apply, roll back, and tell its status.

What is on disk decides. Table ``migration_events`` says what was done when, and that a log was
verified after it was staged. Each step skips what it finds done, so it can be run again.
"""

import itertools
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from kafka_segments.engine.frames.engines import computed_once
from kafka_segments.engine.frames.local_rows import local_rows, stream_rows
from kafka_segments.engine.frames.packing import TellLoad, packed, spread, tell_nobody
from kafka_segments.engine.limits import Load
from kafka_segments.engine.tables.catalog import (
    MIGRATION_EVENTS,
    MIGRATION_PLANS,
    MIGRATION_PROOFS,
    Table,
)
from kafka_segments.engine.tables.delta import Warehouse
from kafka_segments.engine.tables.keys import LOG_KEYS
from kafka_segments.engine.tables.long_arithmetic import total
from kafka_segments.engine.tables.missing import missing_plan
from kafka_segments.engine.tables.outcomes import Outcome
from kafka_segments.engine.tables.run_columns import stamp_of
from kafka_segments.engine.tables.statements import sql_text
from kafka_segments.engine.tables.upgrades import with_new_columns
from kafka_segments.errors import SetAsideError, UsageError
from kafka_segments.files.changes.free_space import check_space
from kafka_segments.files.storage.folder_lock import lock_or_reason
from kafka_segments.verbs.change.migrate.decide import steps as decide
from kafka_segments.verbs.change.migrate.decide.actions import NOTED, Step
from kafka_segments.verbs.change.migrate.planned_log import staged_log
from kafka_segments.verbs.change.migrate.staged_log import (
    Side,
    check_put_back,
    check_put_in_place,
    log_state,
    put_back,
    put_in_place,
)
from kafka_segments.verbs.change.migrate.steps.log_step import (
    Log,
    LogStep,
    reached,
    step_of,
    tried,
    why_unverified,
)
from kafka_segments.verbs.change.migrate.steps.tasks import (
    finish_logs,
    mark_staged,
    prove_segments,
    stage_segments,
)


@dataclass(frozen=True)
class StepOptions:
    """Which plan a step carries out, and how.

    Attributes:
        plan_id: The plan's id.
        now_ms: The clock, in ms since 1970.
        execute: ``apply`` and ``rollback`` swap folders; without it they change nothing.
        by_mtime: They compare ``.log`` files by size and mtime alone.
        discard: ``rollback`` also swaps back a log whose segments have changed since.
    """

    plan_id: str
    now_ms: int
    execute: bool = False
    by_mtime: bool = False
    discard: bool = False


def run_stage(
    warehouse: Warehouse, options: StepOptions, tell: TellLoad = tell_nobody
) -> list[LogStep]:
    """Write the migrated folders of a plan beside the log directories; return a row for each log.

    Raises:
        UsageError: there is no such plan.
        NoSpaceError: a file system has too little room; nothing is written.
    """
    return _migration(warehouse, options, tell).stage()


def run_verify(
    warehouse: Warehouse, options: StepOptions, tell: TellLoad = tell_nobody
) -> list[LogStep]:
    """Prove the staged segments of a plan and note the proofs; return a row for each log.

    Raises:
        UsageError: there is no such plan.
    """
    return _migration(warehouse, options, tell).verify()


def run_apply(
    warehouse: Warehouse, options: StepOptions, tell: TellLoad = tell_nobody
) -> Iterator[LogStep]:
    """Swap the migrated folders of a plan in; yield a row for each log.

    Raises:
        UsageError: there is no such plan.
    """
    migration = _migration(warehouse, options, tell)
    return migration.apply(execute=options.execute, by_mtime=options.by_mtime)


def run_rollback(
    warehouse: Warehouse, options: StepOptions, tell: TellLoad = tell_nobody
) -> Iterator[LogStep]:
    """Swap the first folders of a plan back in; yield a row for each log that was applied.

    Raises:
        UsageError: there is no such plan.
    """
    return _migration(warehouse, options, tell).roll_back(
        execute=options.execute, discard=options.discard, by_mtime=options.by_mtime
    )


def run_status(
    warehouse: Warehouse, options: StepOptions, tell: TellLoad = tell_nobody
) -> Iterator[LogStep]:
    """Say how far a plan is; yield a row for each log.

    Raises:
        UsageError: there is no such plan.
    """
    return _migration(warehouse, options, tell).status()


def _migration(warehouse: Warehouse, options: StepOptions, tell: TellLoad) -> "Migration":
    return Migration(warehouse, options.plan_id, now_ms=options.now_ms, tell=tell)


class Migration:
    """One plan, and a run that carries out a step of it; ``now_ms`` is the run's clock.

    Raises:
        UsageError: there is no such plan.
    """

    def __init__(
        self,
        warehouse: Warehouse,
        plan_id: str,
        *,
        now_ms: int,
        tell: TellLoad = tell_nobody,
    ) -> None:
        self._tell = tell
        self._tables = warehouse
        self._plan_id = plan_id
        self._now_ms = now_ms
        self._run_id = uuid.uuid4().hex
        plans = None
        if self._tables.version(MIGRATION_PLANS) is not None:
            plans = self._rows(MIGRATION_PLANS, plan_id)
        if plans is None or plans.isEmpty():
            raise UsageError(missing_plan(warehouse.root, MIGRATION_PLANS.name, plan_id))
        self._plan = plans

    def stage(self) -> list[LogStep]:
        """Write the migrated folders beside the log directories; return a row for each log.

        Raises:
            NoSpaceError: a file system has too little room; nothing is written.
        """
        self._check_space()
        logs = (
            self._segments()
            .transform(stage_segments)
            .transform(decide.logs_of_segments)
            .transform(spread, *LOG_KEYS)
            .transform(finish_logs(now_ms=self._now_ms))
        )
        return self._note_outcomes(Step.STAGE, logs)

    def verify(self) -> list[LogStep]:
        """Prove every staged segment and note the proofs; return a row for each log."""
        with ExitStack() as caches:
            proofs = (
                self._segments()
                .transform(prove_segments)
                .transform(decide.with_replicas)
                .withColumn("plan_id", F.lit(self._plan_id))
                .withColumns(stamp_of(self._run_id, self._now_ms, clock="verified_at"))
            )
            proofs = computed_once(proofs, caches)
            self._tables.create(MIGRATION_PROOFS)
            where = f"plan_id = {sql_text(self._plan_id)}"
            self._tables.fill(MIGRATION_PROOFS, proofs, where=where)
            logs = proofs.transform(decide.with_proof_problems).transform(decide.logs_of_segments)
            return self._note_outcomes(Step.VERIFY, logs)

    def apply(self, *, execute: bool, by_mtime: bool = False) -> Iterator[LogStep]:
        """Swap the migrated folders in, log by log, under the lock of their log directory.

        A log is refused if it was not verified, or has changed since it was staged. ``by_mtime``:
        ``.log`` files are compared by size and mtime alone.
        """

        def act(log: Log) -> LogStep:
            staged = staged_log(log)
            refusal = why_unverified(log)
            if refusal is not None:
                raise SetAsideError(staged.folder, refusal)
            if log_state(staged).side is Side.AFTER:
                return step_of(log, "in place already")
            if not execute:
                check_put_in_place(staged, by_mtime=by_mtime)
                return step_of(log, "would swap in")
            put_in_place(staged, by_mtime=by_mtime)
            return step_of(log, Outcome.DONE)

        yield from self._refused()
        yield from self._swap(Step.APPLY, act, execute=execute)

    def roll_back(
        self, *, execute: bool, discard: bool, by_mtime: bool = False
    ) -> Iterator[LogStep]:
        """Swap the first folders back in, log by log; logs that were not applied are skipped.

        ``discard``: also where segments have changed since. ``by_mtime``: see ``apply``.
        """

        def act(log: Log) -> LogStep:
            staged = staged_log(log)
            state = log_state(staged)
            if state.side is Side.BEFORE:
                return step_of(log, "in place already")
            if not execute:
                check_put_back(staged, discard=discard, by_mtime=by_mtime)
                return step_of(log, "would swap back")
            put_back(staged, discard=discard, by_mtime=by_mtime)
            return step_of(log, Outcome.DONE)

        return self._swap(Step.ROLLBACK, act, execute=execute)

    def status(self) -> Iterator[LogStep]:
        """Yield for each log which folder is in place, and what the last steps did."""
        yield from self._refused()
        for log in _streamed(self._planned("NOT is_migrated").orderBy(*LOG_KEYS)):
            if log["problem"] is None:
                yield step_of(log, "left alone", "there is nothing to do")
        for log in _streamed(self._logs("is_migrated")):
            yield reached(log)

    def _segments(self) -> DataFrame:
        """Return the segments of logs that are migrated, packed into tasks by bytes."""
        segments = self._plan.where("is_migrated")
        size_bytes = F.coalesce(total("size_bytes"), F.lit(0))
        totals = segments.agg(F.count("*"), size_bytes).collect()[0]
        load = Load(*totals)
        return segments.withColumn("relative_path", F.col("path")).transform(
            packed(load, self._tell)
        )

    def _check_space(self) -> None:
        needs = mark_staged(self._plan.where("is_migrated")).transform(decide.bytes_to_stage)
        check_space({row["root"]: row["needed_bytes"] for row in needs.collect()})

    def _rows(self, table: Table, plan_id: str) -> DataFrame:
        """Return the rows of a plan; the table is left as it is, of an older release, too."""
        rows = self._tables.read(table).transform(with_new_columns(table))
        return rows.where(F.col("plan_id") == plan_id)

    def _refused(self) -> Iterator[LogStep]:
        """Yield the logs that the plan refuses: no step may skip them silently."""
        refused = self._planned("NOT is_migrated").where("problem IS NOT NULL")
        for log in _streamed(refused.orderBy(*LOG_KEYS)):
            yield step_of(log, Outcome.REFUSED, f"by the plan: {log['problem']}")

    def _planned(self, condition: str) -> DataFrame:
        """Return the logs of the plan; ``problem`` says why it refuses one."""
        segments = self._plan.where(condition).transform(decide.with_refusals)
        return segments.transform(decide.logs_of_segments).drop("segments")

    def _logs(self, condition: str) -> DataFrame:
        """Return the logs of the plan in order, with the newest event of each step."""
        events = local_rows(self._tables.spark, [], MIGRATION_EVENTS.schema)
        if self._tables.version(MIGRATION_EVENTS) is not None:
            events = self._rows(MIGRATION_EVENTS, self._plan_id)
        return (
            self._planned(condition)
            .join(events.transform(decide.latest_steps), list(LOG_KEYS), how="left")
            .orderBy(*LOG_KEYS)
        )

    def _swap(
        self, step: Step, act: Callable[[Log], LogStep], *, execute: bool
    ) -> Iterator[LogStep]:
        logs = _streamed(self._logs("is_migrated"))
        for log_dir, group in itertools.groupby(logs, key=lambda log: str(log["log_dir"])):
            done: list[tuple[Log, LogStep]] = []
            try:
                with lock_or_reason(Path(log_dir)) as refusal:
                    for log in group:
                        outcome = tried(log, act, refusal)
                        done.append((log, outcome))
                        yield outcome
            finally:
                if execute:
                    self._note_swaps(step, done)

    def _note_swaps(self, step: Step, done: Sequence[tuple[Log, LogStep]]) -> None:
        names = (*LOG_KEYS, *NOTED)
        rows = [
            (*(log[name] for name in names), str(made.status), made.message) for log, made in done
        ]
        columns = MIGRATION_EVENTS.schema
        outcome = StructType([columns[name] for name in (*names, "status", "message")])
        self._note(step, self._tables.spark.createDataFrame(rows, outcome))

    def _note_outcomes(self, step: Step, logs: DataFrame) -> list[LogStep]:
        """Append what became of logs; return the logs that the plan refuses, and then these."""
        self._note(step, logs.transform(decide.with_outcomes))
        is_this = (F.col("run_id") == self._run_id) & (F.col("step") == step)
        events = self._tables.read(MIGRATION_EVENTS).where(is_this)
        outcomes = _streamed(events.orderBy(*LOG_KEYS))
        made = [step_of(log, log["status"], log["message"]) for log in outcomes]
        return [*self._refused(), *made]

    def _note(self, step: Step, outcomes: DataFrame) -> None:
        """Append events; the newest one of a log and step counts."""
        self._tables.create(MIGRATION_EVENTS)
        self._tables.append(
            MIGRATION_EVENTS,
            outcomes.withColumns(
                {
                    "plan_id": F.lit(self._plan_id),
                    "sequence": F.lit(self._tables.version(MIGRATION_EVENTS)).cast("long"),
                    "step": F.lit(step),
                    **stamp_of(self._run_id, self._now_ms, clock="at"),
                }
            ),
        )


def _streamed(rows: DataFrame) -> Iterator[Log]:
    return (row.asDict() for row in stream_rows(rows))
