"""``search``: offsets for timestamps, and the plans that are made of them."""

import re
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click

from kafka_segments.console.options import DONE, FINDINGS, ROOT, clock, run
from kafka_segments.console.strict_options import INT, MOMENT_MS, Group
from kafka_segments.errors import UsageError
from kafka_segments.wire.moments import parse_moment, parse_point, parse_span

RESET_OFFSETS = "reset-offsets"
_READ_COMMITTED = "read_committed"
_OLDEST = (0, 11)


class _SearchGroup(Group):
    """A group whose first subcommand, ``offsets``, need not be named."""

    default = "offsets"


@click.group(cls=_SearchGroup)
def search() -> None:
    """Find offsets for timestamps, from the tables and short reads of the log.

    `search OPTIONS` is short for `search offsets OPTIONS`. Exit status 1: some answers of Kafka's
    are not the true ones, or could not be found; the rows say why.
    """


def log_options(*forms: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add the options that say which logs are asked, and how the answer looks."""
    options = [
        click.option(
            "--warehouse", required=True, metavar="URI", help="Root of the tables of `build`."
        ),
        click.option("--topic", "topics", multiple=True, help="Only this topic; repeatable."),
        click.option(
            "--partition", "partitions", type=INT, multiple=True, help="Only this; repeatable."
        ),
        click.option("--cluster", help="Only this cluster's logs."),
        click.option("--broker-id", type=INT, help="Only this broker's logs."),
        click.option(
            "--now-ms",
            type=MOMENT_MS,
            metavar="MS",
            help="The moment to take as now, in ms since 1970; default: the clock.",
        ),
        click.option(
            "--output",
            type=click.Choice(["table", "json", "csv", *forms]),
            default="table",
            show_default=True,
            help="Form of the result on stdout; json is one object a line.",
        ),
        click.option("--verbose", is_flag=True, help="More messages on stderr."),
    ]

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            command = option(command)
        return command

    return add


@search.command()
@click.option(
    "--time",
    "times",
    multiple=True,
    metavar="T",
    help="ms since 1970, ISO 8601 with zone, -2h (s, m, h, d, w), now, or EARLIEST, LATEST,"
    " MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING_UPLOAD; repeatable.",
)
@click.option(
    "--questions", metavar="CSV", help="A file of topic,partition,timestamp_ms with that header."
)
@click.option(
    "--kafka-version",
    default="4.3",
    show_default=True,
    help="Whose ListOffsets answers; 0.11 or later.",
)
@click.option(
    "--high-watermark",
    type=click.Choice(["end", "checkpoint"]),
    default="end",
    show_default=True,
    help="Up to where consumers can read: the log's end, as when all replicas have it, or"
    " the broker's last checkpoint.",
)
@click.option(
    "--isolation-level",
    type=click.Choice(["read_uncommitted", _READ_COMMITTED]),
    default="read_uncommitted",
    show_default=True,
    help="Whose answer: read_committed consumers read up to the first open transaction.",
)
@log_options(RESET_OFFSETS)
def offsets(**options: Any) -> None:
    """Find the offset for each time in each log: Kafka's answer and the true one.

    `--output reset-offsets` prints what `kafka-consumer-groups --reset-offsets --from-file` takes:
    the true first record at or after T, or the log's end where there is none.
    """
    run(lambda: _offsets(**options), verbose=options["verbose"])


@search.command()
@click.option("--last", required=True, metavar="SPAN", help="How far back: 90m, 6h, 3d, 2w.")
@log_options(RESET_OFFSETS)
def bootstrap(*, last: str, **options: Any) -> None:
    """Find where a consumer starts that wants the last so many hours.

    Where a topic's timestamps are LogAppendTime, bulk-loaded data counts as appended when it was
    loaded.
    """
    run(lambda: _bootstrap(last, **options), verbose=options["verbose"])


@search.command()
@click.option("--group", required=True, help="The group that moves to the other cluster.")
@click.option(
    "--max-latency",
    required=True,
    metavar="SPAN",
    help="The greatest latency between the clusters: 30s, 5m, 1h.",
)
@click.option("--to-warehouse", metavar="URI", help="Tables of the other; default: --warehouse.")
@click.option("--to-cluster", help="Name of the other cluster in its tables.")
@log_options(RESET_OFFSETS)
def failover(**options: Any) -> None:
    """Find where a group goes on in another cluster that has the same messages.

    The search starts at the create time of the last message consumed, less the greatest latency
    between the clusters, or at the oldest unread message where that is older: then exit status 1.
    Topics are taken to have the same names and partitions in both.
    """
    run(lambda: _failover(**options), verbose=options["verbose"])


@search.command()
@click.option("--at", required=True, metavar="T", help="The moment, as --time takes it.")
@log_options()
def restore(**options: Any) -> None:
    """Plan a restore to a moment: where each log is cut, and the segments it needs.

    A log is cut before its first record later than T.
    """
    run(lambda: _restore(**options), verbose=options["verbose"])


def parse_version(text: str) -> tuple[int, ...]:
    """Give a Kafka version such as 3.8 or 3.8.1 as numbers.

    Raises:
        UsageError: it is none, or too old.
    """
    if not re.fullmatch(r"[0-9]{1,3}(\.[0-9]{1,3}){1,3}", text, re.ASCII):
        raise UsageError(f"--kafka-version is {text!r}, a release such as 3.8 or 4.3.1 expected")
    version = tuple(map(int, text.split(".")))
    if version < _OLDEST:
        raise UsageError(f"--kafka-version is {text}, 0.11 or later expected")
    return version


def _bootstrap(last: str, *, now_ms: int | None, **options: Any) -> int:
    now = clock() if now_ms is None else now_ms
    start = now - parse_span(last)
    if start < 0:
        raise UsageError(f"--last {last} goes back to before 1970")
    return _offsets(
        times=(str(start),),
        questions=None,
        kafka_version="4.3",
        high_watermark="end",
        isolation_level="read_uncommitted",
        now_ms=now,
        **options,
    )


def _offsets(
    *,
    times: tuple[str, ...],
    questions: str | None,
    kafka_version: str,
    high_watermark: str,
    isolation_level: str,
    now_ms: int | None,
    output: str,
    verbose: bool,
    warehouse: str,
    **choice: Any,
) -> int:
    from kafka_segments.search import report  # noqa: PLC0415
    from kafka_segments.search import run as pipeline  # noqa: PLC0415
    from kafka_segments.spark.session import spark_session  # noqa: PLC0415
    from kafka_segments.storage.files import absolute_uri  # noqa: PLC0415

    del verbose
    version = parse_version(kafka_version)
    now = clock() if now_ms is None else now_ms
    moments = [(text, parse_moment(text, now_ms=now)) for text in times]
    is_read_committed = isolation_level == _READ_COMMITTED
    _refuse_contradictions(moments, questions, output)
    if is_read_committed and high_watermark != "end":
        raise UsageError(
            "--isolation-level read_committed takes --high-watermark end alone: the tables do not"
            " tell which transactions were open at an earlier offset"
        )
    with spark_session("kafka-segments search", root=ROOT) as spark, ExitStack() as caches:
        tables = pipeline.LogTables(
            spark,
            absolute_uri(warehouse),
            pipeline.LogChoice(**choice),
            caches,
            has_checkpointed_end=high_watermark == "checkpoint",
            is_read_committed=is_read_committed,
        )
        if questions is not None:
            asked = tables.ask_from_file(absolute_uri(questions))
            answers = pipeline.search(tables, asked, kafka_version=version)
        else:
            answers = pipeline.search_moments(tables, moments, kafka_version=version)
        found = report.print_answers(answers, output)
    return FINDINGS if found else DONE


def _refuse_contradictions(
    moments: list[tuple[str, int]], questions: str | None, output: str
) -> None:
    if bool(moments) == bool(questions):
        raise UsageError("one of --time and --questions is needed")
    if output == RESET_OFFSETS and (len(moments) != 1 or moments[0][1] < 0):
        raise UsageError("--output reset-offsets takes one --time, and no name for it")
    if questions is not None and not Path(questions).is_file() and "://" not in questions:
        raise UsageError(f"--questions {questions}: no such file")


def _failover(
    *,
    group: str,
    max_latency: str,
    to_warehouse: str | None,
    to_cluster: str | None,
    now_ms: int | None,
    output: str,
    verbose: bool,
    warehouse: str,
    **choice: Any,
) -> int:
    from kafka_segments.failover import report  # noqa: PLC0415
    from kafka_segments.failover import run as plans  # noqa: PLC0415
    from kafka_segments.search import run as search  # noqa: PLC0415
    from kafka_segments.spark.session import spark_session  # noqa: PLC0415
    from kafka_segments.storage.files import absolute_uri  # noqa: PLC0415

    del verbose
    if to_warehouse is None and to_cluster is None:
        raise UsageError("--to-warehouse or --to-cluster is needed: which is the other cluster?")
    if to_warehouse is None and choice["cluster"] in (None, to_cluster):
        raise UsageError("--cluster is needed, and not that of --to-cluster: they share tables")
    max_latency_ms = parse_span(max_latency)
    here = absolute_uri(warehouse)
    there = here if to_warehouse is None else absolute_uri(to_warehouse)
    there_choice = {**choice, "cluster": to_cluster, "broker_id": None}
    with spark_session("kafka-segments search failover", root=ROOT) as spark, ExitStack() as caches:
        plan = plans.failover_plan(
            spark,
            here,
            search.LogTables(spark, here, search.LogChoice(**choice), caches),
            search.LogTables(spark, there, search.LogChoice(**there_choice), caches),
            cluster=choice["cluster"],
            group=group,
            max_latency_ms=max_latency_ms,
            now_ms=clock() if now_ms is None else now_ms,
        )
        found = report.print_failover(plan, output)
    return FINDINGS if found else DONE


def _restore(
    *, at: str, now_ms: int | None, output: str, verbose: bool, warehouse: str, **choice: Any
) -> int:
    from kafka_segments.failover import report  # noqa: PLC0415
    from kafka_segments.failover import run as plans  # noqa: PLC0415
    from kafka_segments.search import run as search  # noqa: PLC0415
    from kafka_segments.spark.session import spark_session  # noqa: PLC0415
    from kafka_segments.storage.files import absolute_uri  # noqa: PLC0415

    del verbose
    at_ms = parse_point("--at", at, now_ms=clock() if now_ms is None else now_ms)
    with spark_session("kafka-segments search restore", root=ROOT) as spark, ExitStack() as caches:
        choice_of_logs = search.LogChoice(**choice)
        tables = search.LogTables(spark, absolute_uri(warehouse), choice_of_logs, caches)
        found = report.print_restore(plans.restore_plan(tables, at_ms=at_ms), output)
    return FINDINGS if found else DONE
