"""``recovery forecast``: what a start of a broker does, and how long it takes."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kafka_segments.console.as_built import tell_age
from kafka_segments.console.options import (
    ExitStatus,
    follow_links_option,
    now_ms_option,
    optional_source_option,
    output_option,
    run_with,
    verbose_option,
)
from kafka_segments.console.progress import progress
from kafka_segments.console.strict_options import INT, POSITIVE_INT, Command, complete_folder
from kafka_segments.console.verb_session import verb_session
from kafka_segments.errors import UsageError
from kafka_segments.files.storage.typed_uris import absolute_uri

if TYPE_CHECKING:
    from kafka_segments.verbs.change.recovery.forecast.run import Forecast, ForecastOptions


@click.command(
    cls=Command,
    reads=("segments", "logs", "log_dirs"),
    extra=None,
    example="--source /data/kafka-logs --killed",
)
@optional_source_option
@click.option(
    "--warehouse",
    metavar="URI",
    shell_complete=complete_folder,
    help="Root of the Delta tables that are asked, as the last build left them; no --source then.",
)
@click.option(
    "--broker-threads",
    "threads",
    type=POSITIVE_INT,
    metavar="N",
    help="num.recovery.threads.per.data.dir; default: 1 to 32 side by side.",
)
@click.option(
    "--broker-cores",
    "cores",
    type=POSITIVE_INT,
    metavar="N",
    help="Cores of the broker's machine; default: those of this one.",
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
@click.option("--cold", "is_cold", is_flag=True, help="Forecast with nothing in the page cache.")
@click.option("--killed", "is_killed", is_flag=True, help="Forecast as if no stop had been clean.")
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
@verbose_option
def forecast(**options: Any) -> None:
    """Say what a start does with each log directory, and how long it takes.

    Which logs and segments are read again after a hard stop, what is cut off and lost, and the
    time by threads, with and without index files, snapshots and recovery points made by a kit.
    Nothing is written below the sources. The rules are those of Kafka 4.3: `audit --kafka-version`
    judges index files for others. Exit status 1: something is lost, split or refused, or was not or
    could not be read.
    """
    run_with(_forecast, options)


def _forecast(
    *,
    sources: tuple[str, ...],
    warehouse: str | None,
    threads: int | None,
    cores: int | None,
    check: str,
    rows: str,
    now_ms: int,
    output: str,
    **asked: Any,
) -> int:
    from kafka_segments.verbs.change.recovery.forecast.decide.times import THREADS  # noqa: PLC0415
    from kafka_segments.verbs.change.recovery.forecast.report import print_forecast  # noqa: PLC0415
    from kafka_segments.verbs.change.recovery.forecast.run import ForecastOptions, run_forecast  # noqa: PLC0415

    if bool(sources) == (warehouse is not None):
        raise UsageError("give either --source, or --warehouse for what its last build found")
    if warehouse is not None and (check == "full" or asked["is_cold"]):
        raise UsageError("--check full and --cold read segments: give --source")
    if cores is not None:
        asked["cores"] = cores
    options = ForecastOptions(
        threads=THREADS if threads is None else (threads,),
        sources=tuple(map(absolute_uri, sources)),
        is_full=check == "full",
        **asked,
    )
    if warehouse is None:
        with progress(None) as work:
            found = run_forecast(options, work=work)
    else:
        found = _of_tables(absolute_uri(warehouse), options, now_ms)
    return ExitStatus.FINDINGS if print_forecast(found, output, rows=rows) else ExitStatus.DONE


def _of_tables(warehouse: str, options: "ForecastOptions", now_ms: int) -> "Forecast":
    from kafka_segments.verbs.change.recovery.forecast.run_tables import run_forecast_tables  # noqa: PLC0415

    with verb_session("recovery forecast", warehouse=warehouse, has_few=False) as verb:
        found = run_forecast_tables(verb.warehouse, options)
        tell_age(verb.warehouse, now_ms=now_ms)
        return found
