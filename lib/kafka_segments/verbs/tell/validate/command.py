"""``validate``: expectations over the tables, Data Docs."""

import os
from contextlib import suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from threading import Thread
from typing import Any

import click

from kafka_segments.console.as_built import tell_builds
from kafka_segments.console.options import (
    BUILT_TABLES,
    ExitStatus,
    load_settings,
    run_with,
    shared_options,
)
from kafka_segments.console.strict_options import OUTPUT_FOLDER, Command
from kafka_segments.console.verb_session import verb_session
from kafka_segments.console.warehouse_access import keeps_nothing
from kafka_segments.files.storage.typed_uris import absolute_uri

_SEVERITIES = ("fatal", "warning", "info")


@click.command(
    cls=Command,
    reads=("segments", "logs"),
    extra="validate",
    example="--warehouse /srv/warehouse --docs-dir /srv/data-docs",
)
@click.option(
    "--docs-dir",
    type=OUTPUT_FOLDER,
    metavar="DIR",
    help="Local folder for the Data Docs; default: _data_docs under a local --warehouse.",
)
@click.option(
    "--fail-on",
    type=click.Choice(_SEVERITIES),
    default="warning",
    show_default=True,
    help="Least severity of a failed expectation that gives exit status 1.",
)
@partial(shared_options, warehouse=BUILT_TABLES)
def validate(**options: Any) -> None:
    """Hold every table against what is expected of it.

    Failed expectations are printed with examples; results go to table validation_results.
    Segments that fail a fatal one go to table quarantined_segments and are not published.
    """
    run_with(_validate, options)


def _import_meanwhile(module: str) -> None:
    """Begin to import a module that takes seconds, while Spark starts.

    What fails there fails again, and is told, where the module is needed.
    """

    def begin() -> None:
        with suppress(Exception):
            import_module(module)

    Thread(target=begin, daemon=True).start()


def _validate(
    *,
    warehouse: str,
    docs_dir: str | None,
    fail_on: str,
    conf: Path | None,
    pairs: tuple[str, ...],
    now_ms: int,
    output: str,
    dry_run: bool,
    **_: Any,
) -> int:
    load_settings(conf, pairs)  # none is needed, but what cannot be meant is said
    from kafka_segments.files.storage.files import place  # noqa: PLC0415
    from kafka_segments.files.storage.publishing import publish_page  # noqa: PLC0415
    from kafka_segments.verbs.tell.validate import report  # noqa: PLC0415
    from kafka_segments.verbs.tell.validate.decide.checks import Severity  # noqa: PLC0415
    from kafka_segments.verbs.tell.validate.page import PAGE, render_validation  # noqa: PLC0415
    from kafka_segments.verbs.tell.validate.run import ValidateOptions, run_validate  # noqa: PLC0415

    root = absolute_uri(warehouse)
    docs_folder = None if docs_dir is None else absolute_uri(docs_dir)
    asked = ValidateOptions(now_ms, docs_folder)
    _import_meanwhile("kafka_segments.verbs.tell.validate.checkpoint")
    dry_run = keeps_nothing(root, dry_run=dry_run)
    with verb_session("validate", warehouse=root, reads_all=True) as verb:
        validation = run_validate(verb.warehouse, asked, dry_run=dry_run)
        report.print_validate(validation, output)
        page = None
        if validation.docs_folder is not None:
            page = os.path.join(validation.docs_folder, PAGE)
            publish_page(place(page), render_validation(validation, root, now_ms).encode("utf-8"))
        report.print_summary(
            validation, root, fail_on=Severity(fail_on), page=page, dry_run=dry_run
        )
        tell_builds(verb.warehouse, now_ms=now_ms)
    worst = validation.worst()
    counts = worst is not None and _SEVERITIES.index(worst) <= _SEVERITIES.index(fail_on)
    return ExitStatus.FINDINGS if counts else ExitStatus.DONE
