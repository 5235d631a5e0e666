"""Validate: measure every table, ask Great Expectations, set aside what fails a fatal one."""

import json
import os
import uuid
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import reduce
from importlib import import_module
from typing import Any

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F

from kafka_segments.engine.frames.engines import computed_once, in_one_task
from kafka_segments.engine.tables import catalog as tables
from kafka_segments.engine.tables.catalog import Table
from kafka_segments.engine.tables.delta import Warehouse
from kafka_segments.engine.tables.last_run import of_last_run
from kafka_segments.engine.tables.run_columns import stamp_of
from kafka_segments.errors import UsageError
from kafka_segments.files.delta.log import last_appended
from kafka_segments.files.storage.folder_lock import warehouse_lock
from kafka_segments.files.storage.stores import store_of
from kafka_segments.files.storage.uris import join_uri
from kafka_segments.verbs.tell.validate.decide.checks import Severity, Suite
from kafka_segments.verbs.tell.validate.decide.failures import count_failures
from kafka_segments.verbs.tell.validate.decide.measure_migrations import (
    measure_events,
    measure_plans,
    measure_proofs,
)
from kafka_segments.verbs.tell.validate.decide.measure_others import (
    measure_history,
    measure_internal_records,
    measure_log_dirs,
    measure_logs,
    measure_retention,
    measure_rolls,
    measure_runs,
)
from kafka_segments.verbs.tell.validate.decide.measure_segments import (
    measure_offset_entries,
    measure_segments,
    measure_time_entries,
)
from kafka_segments.verbs.tell.validate.decide.quarantine import (
    failing_segments,
    quarantining,
    rows_that_differ,
    with_whole_rows,
)
from kafka_segments.verbs.tell.validate.decide.suites import SUITES, SUITES_VERSION
from kafka_segments.verbs.tell.validate.results import CheckCounts, CheckResult, example_text

_DOCS = "_data_docs"
_OF_RUNS = (
    tables.RETENTION_DECISIONS,
    tables.ROLL_DECISIONS,
    tables.MIGRATION_INVENTORY,
    tables.MIGRATION_OBSTACLES,
    tables.INDEX_AUDITS,
    tables.DIVERGENCES,
)
"""Tables to which each run adds rows of its own."""


@dataclass(frozen=True)
class ValidateOptions:
    """Which tables are checked, and where their Data Docs go.

    Attributes:
        now_ms: the clock, in ms since 1970.
        docs_folder: absolute path; None: below the warehouse, where that is local.
    """

    now_ms: int
    docs_folder: str | None = None


@dataclass(frozen=True)
class Validation:
    """What a validation found; ``docs_folder`` is None if no Data Docs were written."""

    run_id: str
    results: tuple[CheckResult, ...]
    quarantined: int
    docs_folder: str | None

    def worst(self) -> Severity | None:
        """Return the worst severity of a failed check; None if all checks hold."""
        return _worst(self.results)


def _worst(results: Sequence[CheckResult]) -> Severity | None:
    failed = {result.severity for result in results if result.failed_rows}
    return next((severity for severity in Severity if severity in failed), None)


def run_validate(
    warehouse: Warehouse, options: ValidateOptions, *, dry_run: bool = False
) -> Validation:
    """Check every table of a warehouse; ``dry_run``: no table is written, nor Data Docs by default.

    1. One query measures all tables and counts, for every check, the rows that fail it.
    2. Great Expectations holds the counts against every suite and writes the Data Docs. A build
       that is under way writes entries before their segments: where a fatal expectation fails,
       builds are waited for and kept out, and what they changed is measured once more.
    3. The results are appended to ``validation_results``. The segments that fail a fatal
       expectation replace all rows of ``quarantined_segments``, where these are others.

    Raises:
        UsageError: the warehouse has no segments, or ``docs_folder`` is not local.
    """
    folder = _docs_folder(warehouse, options, dry_run=dry_run)
    run_id = uuid.uuid4().hex
    with ExitStack() as caches:
        versions = _versions(warehouse)
        measured, suites, results = _validated(warehouse, options.now_ms, folder)
        if _worst(results) is Severity.FATAL:
            _keep_builds_out(warehouse.root, caches)
            if _versions(warehouse) != versions:
                measured, suites, results = _validated(warehouse, options.now_ms, folder)
        failed = {(result.table, result.check) for result in results if result.failed_rows}
        failing = None
        if any(failed.intersection(quarantining(suite)) for suite in suites):
            failing = computed_once(failing_segments(measured, suites), caches)
        quarantined = 0 if failing is None else failing.count()
        if not dry_run:
            _set_aside(warehouse, failing, stamp_of(run_id, options.now_ms))
            warehouse.create(tables.VALIDATION_RESULTS)
            of_run = {"run_id": run_id, "decided_at": options.now_ms * 1000}
            values = [_result_values(result) | of_run for result in results]
            warehouse.append_values(tables.VALIDATION_RESULTS, values)
    return Validation(run_id, tuple(results), quarantined, folder)


def _validated(
    root: Warehouse, now_ms: int, docs_folder: str | None
) -> tuple[dict[str, DataFrame], list[Suite], list[CheckResult]]:
    """Return the measured rows of the tables, the suites for them, and what came of these."""
    measured = _measured(root, now_ms)
    suites = [suite for suite in SUITES if suite.table in measured]
    return measured, suites, _results(measured, suites, docs_folder)


def _versions(root: Warehouse) -> list[int | None]:
    return [root.version(table) for table in tables.BUILD_TABLES]


def _keep_builds_out(warehouse: str, locks: ExitStack) -> None:
    """Wait for the builds under way, and let none begin; in a store nobody can."""
    with suppress(OSError):  # a warehouse that may only be read
        locks.enter_context(warehouse_lock(warehouse, alone=True))


def _docs_folder(warehouse: Warehouse, options: ValidateOptions, *, dry_run: bool) -> str | None:
    """Return the folder for Data Docs: the given one, else one below a local warehouse."""
    if options.docs_folder is None:
        has_none = dry_run or not store_of(warehouse.root).is_local
        return None if has_none else os.path.join(warehouse.root, _DOCS)
    if not store_of(options.docs_folder).is_local:
        raise UsageError(f"--docs-dir {options.docs_folder}: Data Docs go to a local folder")
    return options.docs_folder


def _measured(root: Warehouse, now_ms: int) -> dict[str, DataFrame]:
    """Return the measured rows of every existing table, by its name."""
    segments = in_one_task(root.read(tables.SEGMENTS))
    logs = in_one_task(root.read(tables.LOGS))
    found = segments.where(F.col("vanished_at").isNull())
    measures = {
        tables.SEGMENTS: lambda _: found.transform(measure_segments(logs, now_ms=now_ms)),
        tables.OFFSET_INDEX: measure_offset_entries(segments),
        tables.TIME_INDEX: measure_time_entries(segments),
        tables.LOGS: measure_logs(found),
        tables.LOG_DIRS: measure_log_dirs,
        tables.UNRECOGNIZED_FILES: lambda rows: rows,
        tables.RUNS: measure_runs(
            found, last_run=last_appended(join_uri(root.root, tables.RUNS.name), "run_id")
        ),
        tables.RETENTION_DECISIONS: measure_retention,
        tables.ROLL_DECISIONS: measure_rolls,
        tables.RETENTION_PLANS: lambda rows: rows,
        tables.MIGRATION_INVENTORY: lambda rows: rows,
        tables.MIGRATION_OBSTACLES: lambda rows: rows,
        tables.MIGRATION_PLANS: measure_plans,
        tables.MIGRATION_PROOFS: lambda rows: rows.transform(
            measure_proofs(in_one_task(root.read(tables.MIGRATION_PLANS)))
        ),
        tables.MIGRATION_EVENTS: measure_events,
        tables.INDEX_AUDITS: lambda rows: rows,
        tables.DIVERGENCES: lambda rows: rows,
        tables.OFFSET_RANGES: lambda rows: rows,
        tables.INTERNAL_RECORDS: measure_internal_records,
        tables.INTERNAL_FILES: lambda rows: rows,
        **{table: measure_history(table.keys) for table in tables.METADATA_TABLES},
        tables.METADATA_PROBLEMS: lambda rows: rows,
        tables.REMOTE_SEGMENTS: lambda rows: rows,
    }
    return {
        table.name: in_one_task(_rows_to_measure(root, table)).transform(measure)
        for table, measure in measures.items()
        if root.version(table) is not None
    }


def _rows_to_measure(root: Warehouse, table: Table) -> DataFrame:
    """Return the rows of a table; of one to which each run adds rows, those of the last run."""
    rows = root.read(table)
    return of_last_run(root, table, rows) if table in _OF_RUNS else rows


def _results(
    measured: Mapping[str, DataFrame], suites: Sequence[Suite], docs_folder: str | None
) -> list[CheckResult]:
    """Count what fails, by one query over all tables; ask Great Expectations of the counts."""
    counts = [measured[suite.table].transform(count_failures(suite)) for suite in suites]
    together = in_one_task(reduce(DataFrame.unionByName, counts))
    with ThreadPoolExecutor(1) as pool:  # Spark counts while Python imports a large library
        library = pool.submit(import_module, "kafka_segments.verbs.tell.validate.checkpoint")
        counted = {row["table"]: _counts(row) for row in together.collect()}
    results: list[CheckResult] = library.result().run_checkpoint(
        counted, suites, docs_folder=docs_folder
    )
    return results


def _counts(row: Row) -> list[CheckCounts]:
    """Return what was counted for each check of a table."""
    return [
        CheckCounts(
            row["checked_rows"],
            counted["measured_rows"],
            counted["failed_rows"],
            list(map(json.loads, counted["examples"])),
        )
        for counted in row["checks"]
    ]


def _set_aside(root: Warehouse, failing: DataFrame | None, stamp: Mapping[str, Column]) -> None:
    """Replace the rows of ``quarantined_segments``, unless they are the same but for the stamp."""
    table = tables.QUARANTINED_SEGMENTS
    root.create(table)
    if failing is None and root.version(table) == 0:
        return
    there = root.read(table)
    if failing is None:
        rows = there.limit(0)
    else:
        segments = root.read(tables.SEGMENTS)
        rows = failing.transform(with_whole_rows(segments)).withColumns(dict(stamp))
    if not rows.transform(rows_that_differ(there)).isEmpty():
        root.replace(table, rows, where="true")


def _result_values(result: CheckResult) -> dict[str, Any]:
    """Return the row of ``validation_results``, without the run's id and time."""
    return {
        "table_name": result.table,
        "expectation": result.check,
        "severity": result.severity.value,
        "is_success": result.failed_rows == 0,
        "checked_rows": result.checked_rows,
        "failed_rows": result.failed_rows,
        "why": result.why,
        "examples": [example_text(example) for example in result.examples],
        "suites_version": SUITES_VERSION,
    }
