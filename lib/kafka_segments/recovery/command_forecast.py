"""``recovery forecast``: what a start of a broker does, and how long it takes."""

from pathlib import Path
from typing import Any

import click

from kafka_segments.console.options import (
    DONE,
    FINDINGS,
    ROOT,
    clock,
    follow_links_option,
    now_ms_option,
    output_option,
    run,
    verbose_option,
)
from kafka_segments.console.strict_options import INT, POSITIVE_INT, Command, complete_folder
from kafka_segments.errors import UsageError


@click.command(cls=Command, may_spare_spark=("sources",))
@click.option(
    "--source",
    "sources",
    multiple=True,
    metavar="URI",
    shell_complete=complete_folder,
    help="A log directory, a folder of several, or one partition's folder; repeatable.",
)
@click.option(
    "--warehouse",
    metavar="URI",
    shell_complete=complete_folder,
    help="Root of the Delta tables: without --source they are asked; the forecast is kept there.",
)
@click.option(
    "--broker-threads",
    "threads",
    type=POSITIVE_INT,
    metavar="N",
    help="num.recovery.threads.per.data.dir; default: 1 to 32 side by side.",
)
@click.option(
    "--broker-cores", "cores", type=POSITIVE_INT, metavar="N", help="Cores; default: as here."
)
@click.option(
    "--check",
    type=click.Choice(["tails", "full"]),
    default="tails",
    show_default=True,
    help="What is read: the ends of logs, or every segment that is recovered.",
)
@click.option(
    "--calibrate",
    "calibrates_in",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="FOLDER",
    help="Measure what recovery costs here, with some MiB of files in this folder of the disk.",
)
@click.option("--cold", "is_cold", is_flag=True, help="As with nothing in the page cache.")
@click.option("--killed", "is_killed", is_flag=True, help="As if no stop had been clean.")
@click.option(
    "--rows",
    type=click.Choice(["options", "logs", "findings"]),
    default="options",
    show_default=True,
    help="Which rows json and csv print.",
)
@click.option("--cluster", help="Cluster name; default: cluster.id of meta.properties.")
@click.option("--broker-id", type=INT, help="Broker id; default: node.id of meta.properties.")
@follow_links_option
@now_ms_option
@output_option()
@click.option("--dry-run", is_flag=True, help="Keep nothing in the warehouse.")
@verbose_option
def forecast(**options: Any) -> None:
    """Say what a start does with each log directory, and how long it takes.

    Which logs and segments are read again after a hard stop, what is cut off and lost, and the
    time by threads, with and without index files, snapshots and recovery points made by a kit.
    Nothing is written below the sources. Exit status 1: something is lost, split or refused, or
    could not be read.
    """
    run(lambda: _forecast(**options), verbose=options["verbose"])


def _forecast(
    *,
    sources: tuple[str, ...],
    warehouse: str | None,
    threads: int | None,
    cores: int | None,
    check: str,
    rows: str,
    output: str,
    now_ms: int | None,
    dry_run: bool,
    verbose: bool,
    **asked: Any,
) -> int:
    from kafka_segments.recovery.decide.times import THREADS  # noqa: PLC0415
    from kafka_segments.recovery.report_forecast import print_forecast  # noqa: PLC0415
    from kafka_segments.recovery.run_forecast import ForecastOptions, forecast_sources  # noqa: PLC0415
    from kafka_segments.storage.files import absolute_uri  # noqa: PLC0415

    del verbose
    if not sources and warehouse is None:
        raise UsageError("nothing to forecast: give --source, or --warehouse for its last build")
    if cores is not None:
        asked["cores"] = cores
    options = ForecastOptions(
        threads=THREADS if threads is None else (threads,),
        now_ms=clock() if now_ms is None else now_ms,
        sources=tuple(map(absolute_uri, sources)),
        warehouse=None if warehouse is None else absolute_uri(warehouse),
        is_full=check == "full",
        **asked,
    )
    if options.warehouse is not None and not (dry_run and sources):
        found = _with_tables(options, is_kept=not dry_run)
    else:
        found = forecast_sources(options)
    return FINDINGS if print_forecast(found, output, rows=rows) else DONE


def _with_tables(options: Any, *, is_kept: bool) -> Any:
    """Forecast from sources or tables, and keep the forecast in the warehouse."""
    from kafka_segments.console.output import progress  # noqa: PLC0415
    from kafka_segments.recovery.run_forecast import forecast_sources, keep_forecast  # noqa: PLC0415
    from kafka_segments.recovery.run_tables import forecast_tables  # noqa: PLC0415
    from kafka_segments.spark.session import spark_session  # noqa: PLC0415

    with spark_session("kafka-segments recovery forecast", root=ROOT) as spark, progress(spark):
        found = forecast_sources(options) if options.sources else forecast_tables(spark, options)
        if is_kept:
            keep_forecast(spark, options, found)
    return found
