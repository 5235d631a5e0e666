"""Ask Great Expectations: suites of expectations over what was counted, Data Docs."""

import logging
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import great_expectations as gx
import pandas as pd
from great_expectations.core.batch_definition import BatchDefinition
from great_expectations.data_context.data_context.abstract_data_context import AbstractDataContext
from great_expectations.data_context.types.base import ProgressBarsConfig
from great_expectations.expectations.metadata_types import FailureSeverity

from kafka_segments.verbs.tell.validate.decide.checks import Check, Severity, Suite
from kafka_segments.verbs.tell.validate.decide.failures import MOST_EXAMPLES
from kafka_segments.verbs.tell.validate.decide.suites import SUITES_VERSION
from kafka_segments.verbs.tell.validate.expectation import ExpectMeasureWithinBounds
from kafka_segments.verbs.tell.validate.results import CheckCounts, CheckResult

_SITE = "kafka_segments"
_SEVERITIES = {
    Severity.FATAL: FailureSeverity.CRITICAL,
    Severity.WARNING: FailureSeverity.WARNING,
    Severity.INFO: FailureSeverity.INFO,
}


def run_checkpoint(
    counted: Mapping[str, Sequence[CheckCounts]],
    suites: Sequence[Suite],
    *,
    docs_folder: str | None,
) -> list[CheckResult]:
    """Run a checkpoint for each suite over what was counted of its table.

    No telemetry, no progress bars.

    Args:
        counted: by table, the counts of each of its suite's checks, in the order of ``all_checks``.
        suites: the suites of these tables.
        docs_folder: a local folder for Data Docs, made where it is not there; None: none.
    """
    with _quiet():
        context = _context(docs_folder)
        source = context.data_sources.add_pandas("tables")
        results: list[CheckResult] = []
        for suite in suites:
            asset = source.add_dataframe_asset(suite.table)
            batch = asset.add_batch_definition_whole_dataframe("all")
            checkpoint = _checkpoint(suite, _definition(context, suite, batch))
            said = context.checkpoints.add(checkpoint).run(
                batch_parameters={"dataframe": _one_row(suite, counted[suite.table])}
            )
            for validation in said.run_results.values():
                results.extend(_result(suite.table, result) for result in validation.results)
        if docs_folder is not None:
            context.build_data_docs(site_names=[_SITE])
        return results


def _one_row(suite: Suite, counts: Sequence[CheckCounts]) -> pd.DataFrame:
    """Return a row that has in each measured column what was counted of it."""
    columns = [check.column for check in suite.all_checks()]
    cells = {
        column: pd.Series([of_check]) for column, of_check in zip(columns, counts, strict=True)
    }
    return pd.DataFrame(cells)


def _checkpoint(suite: Suite, definition: gx.ValidationDefinition) -> gx.Checkpoint:
    return gx.Checkpoint(
        name=suite.table,
        validation_definitions=[definition],
        result_format={
            "result_format": "SUMMARY",
            "partial_unexpected_count": MOST_EXAMPLES,
            "unexpected_index_column_names": list(suite.keys),
            "return_unexpected_index_query": False,
        },
    )


def _context(docs_folder: str | None) -> AbstractDataContext:
    context = gx.get_context(mode="ephemeral")
    context.enable_analytics(False)
    context.variables.progress_bars = ProgressBarsConfig(globally=False)
    for site in list(context.get_site_names()):
        context.delete_data_docs_site(site)
    if docs_folder is not None:
        context.add_data_docs_site(
            site_name=_SITE,
            site_config={
                "class_name": "SiteBuilder",
                "site_index_builder": {"class_name": "DefaultSiteIndexBuilder"},
                "store_backend": {
                    "class_name": "TupleFilesystemStoreBackend",
                    "base_directory": docs_folder,
                },
            },
        )
    return context


def _definition(
    context: AbstractDataContext, suite: Suite, batch: BatchDefinition[Any]
) -> gx.ValidationDefinition:
    """Return a suite, named with its version, bound to its table."""
    expected = gx.ExpectationSuite(name=f"{suite.table}.v{SUITES_VERSION}")
    for check in suite.all_checks():
        expected.add_expectation(_within(check))
    return context.validation_definitions.add(
        gx.ValidationDefinition(name=suite.table, data=batch, suite=context.suites.add(expected))
    )


def _within(check: Check) -> ExpectMeasureWithinBounds:
    return ExpectMeasureWithinBounds(
        column=check.column,
        min_value=check.least,
        max_value=check.most,
        severity=_SEVERITIES[check.severity],
        notes=f"{check.name}: {check.why}",
        meta={"check": check.name, "severity": check.severity.value},
    )


def _result(table: str, result: Any) -> CheckResult:
    meta, found = result.expectation_config.meta, result.result
    problem = (result.exception_info or {}).get("exception_message")
    if not found and problem:
        raise RuntimeError(f"{table}, {meta['check']}: {problem}")
    return CheckResult(
        table=table,
        check=meta["check"],
        severity=Severity(meta["severity"]),
        why=str(result.expectation_config.notes),
        checked_rows=found["element_count"],
        failed_rows=found["unexpected_count"] or 0,  # null where there are no rows
        examples=found.get("partial_unexpected_index_list") or [],
    )


@contextmanager
def _quiet() -> Iterator[None]:
    """Hide from the user what the library warns of and logs about itself."""
    logger, silent = logging.getLogger("great_expectations"), logging.NullHandler()
    logger.addHandler(silent)
    logger.propagate = False
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.propagate = True
        logger.removeHandler(silent)
