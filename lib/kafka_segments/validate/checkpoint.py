"""Ask Great Expectations: suites of built-in expectations over what was measured, Data Docs."""

import json
import logging
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import great_expectations as gx
from great_expectations.core.batch_definition import BatchDefinition
from great_expectations.data_context.data_context.abstract_data_context import AbstractDataContext
from great_expectations.data_context.types.base import ProgressBarsConfig
from great_expectations.expectations.core.expect_column_values_to_be_unique import (
    ExpectColumnValuesToBeUnique,
)
from great_expectations.expectations.core.expect_compound_columns_to_be_unique import (
    ExpectCompoundColumnsToBeUnique,
)
from great_expectations.expectations.expectation import Expectation
from great_expectations.expectations.metadata_types import FailureSeverity
from pyspark.sql import DataFrame

from kafka_segments.validate.decide.checks import KEYS_UNIQUE, Check, Severity, Suite
from kafka_segments.validate.decide.suites import SUITES_VERSION
from kafka_segments.validate.expectation import ExpectMeasureWithinBounds

MOST_EXAMPLES = 20
_SITE = "kafka_segments"
_SEVERITIES = {
    Severity.FATAL: FailureSeverity.CRITICAL,
    Severity.WARNING: FailureSeverity.WARNING,
    Severity.INFO: FailureSeverity.INFO,
}


class CheckResult(NamedTuple):
    """The result of an expectation; ``examples`` are keys and value of at most 20 failing rows."""

    table: str
    check: str
    severity: Severity
    why: str
    checked_rows: int
    failed_rows: int
    examples: list[dict[str, Any]]


def run_checkpoint(
    measured: Mapping[str, DataFrame], suites: Sequence[Suite], *, docs_folder: str | None
) -> list[CheckResult]:
    """Run a checkpoint for each suite over its measured table.

    No telemetry, no progress bars; the frames are not cached by Great Expectations.
    ``docs_folder`` is a local folder, made where it is not there.
    """
    with _quiet():
        context = _context(docs_folder)
        source = context.data_sources.add_spark("tables", persist=False)
        results: list[CheckResult] = []
        for suite in suites:
            asset = source.add_dataframe_asset(suite.table)
            batch = asset.add_batch_definition_whole_dataframe("all")
            checkpoint = _checkpoint(suite, _definition(context, suite, batch))
            said = context.checkpoints.add(checkpoint).run(
                batch_parameters={"dataframe": measured[suite.table]}
            )
            for validation in said.run_results.values():
                results.extend(_result(suite.table, result) for result in validation.results)
        if docs_folder is not None:
            context.build_data_docs(site_names=[_SITE])
        return results


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
    if not suite.has_measured_keys:
        expected.add_expectation(_unique(suite.keys))
    for check in suite.checks:
        expected.add_expectation(_within(check))
    return context.validation_definitions.add(
        gx.ValidationDefinition(name=suite.table, data=batch, suite=context.suites.add(expected))
    )


def _unique(keys: tuple[str, ...]) -> Expectation:
    about: dict[str, Any] = {
        "severity": _SEVERITIES[Severity.FATAL],
        "notes": "a key has one row",
        "meta": {"check": KEYS_UNIQUE, "severity": Severity.FATAL.value},
    }
    if len(keys) == 1:
        return ExpectColumnValuesToBeUnique(column=keys[0], **about)
    return ExpectCompoundColumnsToBeUnique(column_list=list(keys), **about)


def _within(check: Check) -> Expectation:
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
        # Sorted: how many tasks a session shuffles by decides in which order they come.
        examples=sorted(found.get("partial_unexpected_index_list") or (), key=example_text),
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


def example_text(example: Mapping[str, Any]) -> str:
    """Write an example as JSON."""
    return json.dumps(dict(example), default=str, sort_keys=False)
