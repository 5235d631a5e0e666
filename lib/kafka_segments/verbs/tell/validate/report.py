"""What ``validate`` prints."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from kafka_segments.console.lines import print_csv, print_json, say
from kafka_segments.console.output import cell
from kafka_segments.console.table_form import made_table, show_table
from kafka_segments.verbs.tell.validate.decide.checks import Severity
from kafka_segments.verbs.tell.validate.results import CheckResult, example_text
from kafka_segments.verbs.tell.validate.run import Validation

_EXAMPLES_SHOWN = 3
_COLUMNS = ("table", "check", "severity", "checked_rows", "failed_rows", "why", "examples")


def print_validate(validation: Validation, output: str) -> None:
    """Print failed expectations as a table, or all as JSON lines or CSV."""
    rows = [result._asdict() for result in validation.results]
    if output == "json":
        for row in rows:
            print_json(row, default=str)
    elif output == "csv":
        print_csv(_COLUMNS)
        for result in validation.results:
            *values, examples = result
            print_csv([*values, json.dumps(examples, default=str)])
    else:
        _print_failed([result for result in validation.results if result.failed_rows])


def _print_failed(failed: list[CheckResult]) -> None:
    if not failed:
        return
    table = made_table("severity", "table", "expectation", "rows>", "of>", "for example")
    for result in failed:
        examples = "; ".join(row_text(example) for example in result.examples[:_EXAMPLES_SHOWN])
        table.add_row(
            cell(result.severity.value),
            cell(result.table),
            cell(result.check),
            str(result.failed_rows),
            str(result.checked_rows),
            cell(examples),
        )
    show_table(table)


def row_text(example: Mapping[str, Any]) -> str:
    """Return a text for a failing row: its log and segment if it has them, else its key."""
    row = dict(example)
    if "topic" not in row:
        return example_text(row)
    text = f"{row.pop('topic')}-{row.pop('partition')}"
    if "base_offset" in row:
        text += f" segment {row.pop('base_offset')}"
    for key in ("cluster", "broker_id"):
        row.pop(key, None)
    log_dir = row.pop("log_dir", "")
    values = ", ".join(f"{name} {value}" for name, value in row.items())
    return f"{text} in {log_dir}" + (f": {values}" if values else "")


def _counting(results: Sequence[CheckResult], fail_on: Severity) -> list[str]:
    """Return a line for each failed expectation of this severity or a graver one, gravest first."""
    order = list(Severity)
    return [
        f"{one.severity} {one.table} {one.check}: {one.failed_rows} of {one.checked_rows} rows"
        for one in sorted(results, key=lambda one: order.index(one.severity))
        if one.failed_rows and order.index(one.severity) <= order.index(fail_on)
    ]


def print_summary(
    validation: Validation, warehouse: str, *, fail_on: Severity, page: str | None, dry_run: bool
) -> None:
    """Print on stderr, in a few lines, what was found, what of it counts, and where it is."""
    failed = sum(result.failed_rows > 0 for result in validation.results)
    lines = [f"{len(validation.results)} expectations, {failed} failed"]
    if counting := _counting(validation.results, fail_on):
        lines.append(f"findings: {'; '.join(counting)}")
    if validation.quarantined:
        verb = "would be" if dry_run else "are"
        lines.append(
            f"{validation.quarantined} segments fail a fatal one and {verb} set aside:"
            " table quarantined_segments"
        )
    if page is not None:
        lines.append(f"all of it, with failing rows: {page}")
        lines.append(f"Data Docs: {validation.docs_folder}/index.html")
    if not dry_run:
        lines.append(f"results: table validation_results of {warehouse}")
    for line in lines:
        say(line)
