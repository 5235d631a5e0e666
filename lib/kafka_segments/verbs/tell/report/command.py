"""``report``: one HTML page about a warehouse."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from kafka_segments.console.as_built import say_builds
from kafka_segments.console.options import (
    ExitStatus,
    now_ms_option,
    output_option,
    run_with,
    verbose_option,
)
from kafka_segments.console.strict_options import OUTPUT_FILE, Command
from kafka_segments.console.verb_session import verb_session
from kafka_segments.files.storage.typed_uris import absolute_uri


@click.command(
    cls=Command,
    reads=("segments", "runs"),
    extra="report",
    example="--warehouse /srv/warehouse --out report.html",
)
@click.option("--warehouse", required=True, metavar="URI", help="Root of the Delta tables.")
@click.option(
    "--out",
    type=OUTPUT_FILE,
    required=True,
    metavar="FILE",
    help="The page; replaced where it is there.",
)
@click.option(
    "--directories",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Also show what `triage`, `disk`, `cleaner` or `records` printed with --output json;"
    " repeatable.",
)
@now_ms_option
@output_option()
@verbose_option
def report(**options: Any) -> None:
    """Write one self-contained HTML page: spans, disk, damage, timestamps, indexes, retention.

    The forecast and what retention blocks come from the last run of `kafka-segments retention`.
    The page loads nothing from elsewhere.
    """
    run_with(_report, options)


def _report(
    *,
    warehouse: str,
    out: str,
    directories: tuple[Path, ...],
    now_ms: int,
    output: str,
    **_: Any,
) -> int:
    from kafka_segments.verbs.tell.report.directory_files import read_answers  # noqa: PLC0415
    from kafka_segments.verbs.tell.report.report import print_report  # noqa: PLC0415
    from kafka_segments.verbs.tell.report.run import ReportOptions, run_report  # noqa: PLC0415

    target = absolute_uri(out)
    answers = read_answers(directories)
    with verb_session("report", warehouse=absolute_uri(warehouse), reads_all=True) as verb:
        data = run_report(verb.warehouse, ReportOptions(now_ms))

    say_builds(data.builds_ms, now_ms=now_ms)
    print_report(replace(data, directories=answers), target, output)
    return ExitStatus.DONE
