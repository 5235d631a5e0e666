"""The command line: options in, results to stdout, messages to stderr, an exit status."""

import logging
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from kafka_segments import __version__
from kafka_segments.errors import KafkaSegmentsError, UsageError
from kafka_segments.settings import Settings

DONE, FINDINGS, USAGE, FAILED = 0, 1, 2, 3
ROOT = Path(__file__).resolve().parents[2]
_LOG = logging.getLogger(__name__)


def _shared(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that every verb shares."""
    for option in reversed(
        [
            click.option(
                "--warehouse",
                required=True,
                metavar="URI",
                help="Root of the Delta tables; made where it is not there.",
            ),
            click.option(
                "--conf",
                type=click.Path(exists=True, dir_okay=False, path_type=Path),
                metavar="FILE",
                help="TOML file of settings: Kafka's own keys with _ for '.'.",
            ),
            click.option(
                "--set",
                "pairs",
                multiple=True,
                metavar="KEY=VALUE",
                help="One setting, over --conf and the environment; repeatable.",
            ),
            click.option(
                "--now-ms",
                type=click.IntRange(min=0),
                metavar="MS",
                help="The moment to take as now, in ms since 1970; default: the clock.",
            ),
            click.option(
                "--output",
                type=click.Choice(["table", "json", "csv"]),
                default="table",
                show_default=True,
                help="Form of the result on stdout; json is one object a line.",
            ),
            click.option("--dry-run", is_flag=True, help="Say what would be done, change nothing."),
            click.option("--verbose", is_flag=True, help="More messages on stderr."),
        ]
    ):
        command = option(command)
    return command


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="kafka-segments")
def cli() -> None:
    """Rebuild, check and query the indexes of raw Kafka log segments.

    Exit status: 0 done, nothing found; 1 done, with findings; 2 wrong usage or configuration;
    3 failed.
    """


@cli.command()
@click.option(
    "--source",
    "sources",
    multiple=True,
    required=True,
    metavar="URI",
    help="A log directory, a folder of several, or one partition's folder; repeatable.",
)
@click.option("--index-dir", metavar="URI", help="Where index files go; default: no files.")
@click.option("--in-place", is_flag=True, help="Write index files beside the segments.")
@click.option(
    "--index-format",
    type=click.Choice(["kafka"]),
    default="kafka",
    show_default=True,
    help="Format of the index files.",
)
@click.option("--index-interval-bytes", type=int, metavar="BYTES", help="Kafka's; default 4096.")
@click.option("--segment-index-bytes", type=int, metavar="BYTES", help="Kafka's; default 10485760.")
@click.option(
    "--check",
    type=click.Choice(["full", "headers"]),
    default="full",
    show_default=True,
    help="Verify checksums, or trust them and read headers alone.",
)
@click.option(
    "--set-aside",
    metavar="URI",
    help="Where replaced index files are kept; default: _set_aside under --warehouse.",
)
@click.option("--cluster", help="Cluster name; default: cluster.id of meta.properties.")
@click.option("--broker-id", type=int, help="Broker id; default: node.id of meta.properties.")
@click.option("--full", is_flag=True, help="Read all segments, whatever earlier runs know.")
@_shared
def build(**options: Any) -> None:
    """Scan segments, write their index files, merge the tables.

    Only segments that are new or changed are read. The result is one row a segment read.
    """
    run(lambda: _build(**options), verbose=options["verbose"])


def _build(
    *,
    sources: tuple[str, ...],
    warehouse: str,
    conf: Path | None,
    pairs: tuple[str, ...],
    now_ms: int | None,
    output: str,
    dry_run: bool,
    index_dir: str | None,
    set_aside: str | None,
    index_interval_bytes: int | None,
    segment_index_bytes: int | None,
    check: str,
    **options: Any,
) -> int:
    from kafka_segments import report  # noqa: PLC0415
    from kafka_segments.index.recovery import RecoveryOptions  # noqa: PLC0415
    from kafka_segments.pipelines.build import Build  # noqa: PLC0415
    from kafka_segments.pipelines.build_options import BuildOptions  # noqa: PLC0415
    from kafka_segments.spark.session import spark_session  # noqa: PLC0415
    from kafka_segments.storage.files import absolute_uri  # noqa: PLC0415

    flags = {
        "index_interval_bytes": index_interval_bytes,
        "segment_index_bytes": segment_index_bytes,
    }
    given = [f"{key}={value}" for key, value in flags.items() if value is not None]
    settings = Settings.load(conf, [*pairs, *given])
    options.pop("verbose")
    build_options = BuildOptions(
        sources=tuple(map(absolute_uri, sources)),
        warehouse=absolute_uri(warehouse),
        recovery=RecoveryOptions(
            index_interval_bytes=settings.index_interval_bytes,
            segment_index_bytes=settings.segment_index_bytes,
            check_crc=check == "full",
        ),
        now_ms=_clock() if now_ms is None else now_ms,
        index_dir=None if index_dir is None else absolute_uri(index_dir),
        set_aside=None if set_aside is None else absolute_uri(set_aside),
        **options,
    )
    with spark_session("kafka-segments build", root=ROOT) as spark:
        job = Build(spark, build_options)
        with report.progress(spark):
            summary = job.plan_only() if dry_run else job.run()
        if not dry_run:
            report.segments_of_run(spark, build_options.warehouse, summary.run_id, output)
        report.build_summary(summary, build_options, dry_run=dry_run)
    return FINDINGS if summary.findings else DONE


@cli.command()
@_shared
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
    from kafka_segments import report  # noqa: PLC0415
    from kafka_segments.pipelines.retention import run_retention  # noqa: PLC0415
    from kafka_segments.spark.session import spark_session  # noqa: PLC0415
    from kafka_segments.storage.files import absolute_uri  # noqa: PLC0415

    settings = Settings.load(conf, pairs)
    now = _clock() if now_ms is None else now_ms
    with spark_session("kafka-segments retention", root=ROOT) as spark:
        decisions = run_retention(
            spark,
            warehouse=absolute_uri(warehouse),
            settings=settings,
            now_ms=now,
            dry_run=dry_run,
        )
        report.retention(decisions, output)
    return DONE


def _clock() -> int:
    return time.time_ns() // 1_000_000


def run(command: Callable[[], int], *, verbose: bool) -> None:
    """Run a command and leave with its exit status; errors become one line on stderr."""
    logging.basicConfig(
        level=logging.INFO if verbose else logging.WARNING,
        format="%(asctime)s %(levelname)s %(name)s %(message)s",
        stream=sys.stderr,
    )
    logging.getLogger("py4j").setLevel(logging.ERROR)
    try:
        status = command()
    except UsageError as error:
        click.echo(f"kafka-segments: {error}", err=True)
        status = USAGE
    except KafkaSegmentsError as error:
        click.echo(f"kafka-segments: {error}", err=True)
        status = FAILED
    except KeyboardInterrupt:
        click.echo("kafka-segments: interrupted; what was done is kept, run it again", err=True)
        status = FAILED
    except Exception as error:  # noqa: BLE001  the last line of defence: Spark raises many kinds
        if verbose:
            _LOG.exception("failed")
        click.echo(f"kafka-segments: {describe_failure(error)}", err=True)
        status = FAILED
    sys.exit(status)


def describe_failure(error: Exception) -> str:
    """Find the line of an error that says what went wrong, in Spark's long texts too."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    causes = [line for line in lines if _names_a_python_error(line)]
    if causes:
        return f"{causes[-1]} (--verbose shows all)"
    return f"{type(error).__name__}: {lines[0] if lines else ''} (--verbose shows all)"


def _names_a_python_error(line: str) -> bool:
    name = line.partition(":")[0]
    return name.rpartition(".")[2].endswith("Error") and " " not in name


def main() -> None:
    """Run the command line."""
    cli()
