"""``report``: one HTML page about a warehouse."""

from typing import Any

import click

from kafka_segments.console.options import (
    ROOT,
    ExitStatus,
    clock,
    now_ms_option,
    output_option,
    run,
    verbose_option,
)
from kafka_segments.console.strict_options import Command


@click.command(cls=Command, reads=("segments", "runs"))
@click.option("--warehouse", required=True, metavar="URI", help="Root of the Delta tables.")
@click.option("--out", required=True, metavar="FILE", help="The page; replaced where it is there.")
@now_ms_option
@output_option()
@verbose_option
def report(**options: Any) -> None:
    """Write one self-contained HTML page: spans, disk, damage, timestamps, indexes, retention.

    The forecast and what retention blocks come from the last run of `kafka-segments retention`.
    The page loads nothing from elsewhere.
    """
    run(lambda: _report(**options), verbose=options["verbose"])


def _report(*, warehouse: str, out: str, now_ms: int | None, output: str, **_: Any) -> int:
    from kafka_segments.console.output import progress  # noqa: PLC0415
    from kafka_segments.report.report import print_report  # noqa: PLC0415
    from kafka_segments.report.run import ReportOptions, run_report  # noqa: PLC0415
    from kafka_segments.spark.few_rows import few_rows  # noqa: PLC0415
    from kafka_segments.spark.session import spark_session  # noqa: PLC0415
    from kafka_segments.storage.files import absolute_uri  # noqa: PLC0415
    from kafka_segments.tables.sizes import holds_much  # noqa: PLC0415

    target = absolute_uri(out)
    asked = ReportOptions(absolute_uri(warehouse), clock() if now_ms is None else now_ms)
    is_long = holds_much(asked.warehouse)
    with (
        spark_session("kafka-segments report", root=ROOT, is_long=is_long) as spark,
        few_rows(spark, of=asked.warehouse),
        progress(spark),
    ):
        data = run_report(spark, asked)
    print_report(data, target, output)
    return ExitStatus.DONE
