"""Validate: measure every table, ask Great Expectations, set aside what fails a fatal one."""

import os
import uuid
from contextlib import ExitStack
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from kafka_segments.errors import UsageError
from kafka_segments.tables import catalog as tables
from kafka_segments.tables.delta import Warehouse
from kafka_segments.tables.keys import SEGMENT_KEYS
from kafka_segments.tables.schemas import schema
from kafka_segments.validate.checkpoint import CheckResult, example_text, run_checkpoint
from kafka_segments.validate.checks import (
    SUITES,
    SUITES_VERSION,
    Severity,
    Suite,
    failed_checks,
    fails_any,
)
from kafka_segments.validate.measure_migrations import (
    measure_events,
    measure_plans,
    measure_proofs,
)
from kafka_segments.validate.measure_others import (
    last_run,
    measure_log_dirs,
    measure_logs,
    measure_retention,
    measure_rolls,
    measure_runs,
)
from kafka_segments.validate.measure_segments import (
    measure_offset_entries,
    measure_segments,
    measure_time_entries,
)

_DOCS = "_data_docs"


@dataclass(frozen=True)
class Validation:
    """What a validation found; ``docs_folder``: the Data Docs, None: not written."""

    run_id: str
    results: tuple[CheckResult, ...]
    quarantined: int
    docs_folder: str | None

    def worst(self) -> Severity | None:
        """Give the worst severity that failed; None: all holds."""
        failed = {result.severity for result in self.results if result.failed_rows}
        return next((severity for severity in Severity if severity in failed), None)


def run_validation(
    spark: SparkSession,
    *,
    warehouse: str,
    now_ms: int,
    docs_folder: str | None = None,
    dry_run: bool = False,
) -> Validation:
    """Check every table of a warehouse.

    1. Tables are measured; what checks need of them is cached, by name, until the end.
    2. Great Expectations asks every suite and writes the Data Docs.
    3. The results are appended to ``validation_results``; the segments that fail a fatal
       expectation take the place of all rows of ``quarantined_segments``.

    Raises:
        UsageError: the warehouse has no segments, or ``docs_folder`` is not local.
    """
    root = Warehouse(spark, warehouse)
    folder = _docs_folder(warehouse, docs_folder, dry_run=dry_run)
    run_id = uuid.uuid4().hex
    with ExitStack() as caches:
        measured = _measured(root, now_ms)
        for rows in measured.values():
            caches.callback(rows.persist().unpersist)
        suites = [suite for suite in SUITES if suite.table in measured]
        results = run_checkpoint(measured, suites, docs_folder=folder)
        failing = _failing(measured, suites).persist()
        caches.callback(failing.unpersist)
        quarantined = failing.count()
        if not dry_run:
            _write(root, failing, results, run_id, now_ms)
    return Validation(run_id, tuple(results), quarantined, folder)


def _docs_folder(warehouse: str, docs_folder: str | None, *, dry_run: bool) -> str | None:
    """Give the folder for Data Docs: as told, else below a local warehouse."""
    if docs_folder is None:
        return None if "://" in warehouse or dry_run else os.path.join(warehouse, _DOCS)
    if "://" in docs_folder:
        raise UsageError(f"--docs-dir {docs_folder}: Data Docs go to a local folder")
    return docs_folder


def _measured(root: Warehouse, now_ms: int) -> dict[str, DataFrame]:
    """Measure the tables that there are, by name."""
    segments, logs = root.read(tables.SEGMENTS), root.read(tables.LOGS)
    found = segments.where(F.col("vanished_at").isNull())
    measures = {
        tables.SEGMENTS: lambda _: found.transform(measure_segments(logs, now_ms=now_ms)),
        tables.OFFSET_INDEX: measure_offset_entries(segments),
        tables.TIME_INDEX: measure_time_entries(segments),
        tables.LOGS: measure_logs(found),
        tables.LOG_DIRS: measure_log_dirs,
        tables.UNRECOGNIZED_FILES: lambda rows: rows,
        tables.RUNS: measure_runs(found),
        tables.RETENTION_DECISIONS: measure_retention,
        tables.ROLL_DECISIONS: measure_rolls,
        tables.RETENTION_PLANS: lambda rows: rows,
        tables.MIGRATION_INVENTORY: last_run,
        tables.MIGRATION_OBSTACLES: last_run,
        tables.MIGRATION_PLANS: measure_plans,
        tables.MIGRATION_PROOFS: lambda rows: rows.transform(
            measure_proofs(root.read(tables.MIGRATION_PLANS))
        ),
        tables.MIGRATION_EVENTS: measure_events,
        tables.INDEX_AUDITS: last_run,
    }
    return {
        table.name: root.read(table).transform(measure)
        for table, measure in measures.items()
        if root.version(table) is not None
    }


def _failing(measured: dict[str, DataFrame], suites: list[Suite]) -> DataFrame:
    """Give the keys of segments that fail a fatal check, with the names of those."""
    parts = []
    for suite in suites:
        if suite.keys == SEGMENT_KEYS:
            failing = measured[suite.table].where(fails_any(suite.checks, Severity.FATAL))
            names = F.explode(failed_checks(suite.checks, Severity.FATAL))
            named = failing.select(*SEGMENT_KEYS, names.alias("_name"))
            expectation = F.concat_ws(".", F.lit(suite.table), "_name")
            parts.append(named.select(*SEGMENT_KEYS, expectation.alias("expectation")))
    together = reduce(DataFrame.unionByName, parts)
    return together.groupBy(*SEGMENT_KEYS).agg(
        F.sort_array(F.collect_set("expectation")).alias("expectations")
    )


def _write(
    root: Warehouse, failing: DataFrame, results: list[CheckResult], run_id: str, now_ms: int
) -> None:
    stamp = {"run_id": F.lit(run_id), "decided_at": F.timestamp_millis(F.lit(now_ms))}
    for table in (tables.VALIDATION_RESULTS, tables.QUARANTINED_SEGMENTS):
        root.create(table)
    keys = list(SEGMENT_KEYS)
    rows = root.read(tables.SEGMENTS).join(failing.select(*keys), keys, how="left_semi")
    whole = rows.groupBy(*keys).agg(
        F.to_json(F.collect_list(F.struct(*rows.columns))).alias("segment")
    )
    # By its size alone Spark would broadcast what may be the whole table, as text.
    set_aside = failing.join(whole.hint("merge"), keys, how="left").withColumns(stamp)
    root.replace(tables.QUARANTINED_SEGMENTS, set_aside, where="true")
    root.append(tables.VALIDATION_RESULTS, _result_rows(root.spark, results).withColumns(stamp))


def _result_rows(spark: SparkSession, results: list[CheckResult]) -> DataFrame:
    published = schema("validation_results.v1")
    kept = [field for field in published if field.name not in ("run_id", "decided_at")]
    rows = [
        (
            result.table,
            result.check,
            result.severity.value,
            result.failed_rows == 0,
            result.checked_rows,
            result.failed_rows,
            result.why,
            [example_text(example) for example in result.examples],
            SUITES_VERSION,
        )
        for result in results
    ]
    return spark.createDataFrame(rows, type(published)(kept))
