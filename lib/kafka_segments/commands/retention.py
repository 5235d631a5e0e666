"""``retention``: decide what a broker deletes, and why the rest stays."""

from pathlib import Path
from typing import Any

import click

from kafka_segments.commands.shared import DONE, ROOT, clock, run, shared_options
from kafka_segments.settings import Settings


@click.command()
@shared_options
def retention(**options: Any) -> None:
    """Decide what retention deletes now, and why the rest stays.

    The settings hold for all topics. The result is one row a segment, and table
    retention_decisions.
    """
    run(lambda: _retention(**options), verbose=options["verbose"])


def _retention(
    *,
    warehouse: str,
    conf: Path | None,
    pairs: tuple[str, ...],
    now_ms: int | None,
    output: str,
    dry_run: bool,
    **_: Any,
) -> int:
    from kafka_segments.pipelines.retention import run_retention  # noqa: PLC0415
    from kafka_segments.reports.retention import print_decisions  # noqa: PLC0415
    from kafka_segments.spark.session import spark_session  # noqa: PLC0415
    from kafka_segments.storage.files import absolute_uri  # noqa: PLC0415

    settings = Settings.load(conf, pairs)
    now = clock() if now_ms is None else now_ms
    with spark_session("kafka-segments retention", root=ROOT) as spark:
        decisions = run_retention(
            spark,
            warehouse=absolute_uri(warehouse),
            settings=settings,
            now_ms=now,
            dry_run=dry_run,
        )
        print_decisions(decisions, output)
    return DONE
