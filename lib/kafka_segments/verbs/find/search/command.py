"""``search``: find offsets for timestamps."""

from functools import partial
from pathlib import Path
from typing import Any

import click

from kafka_segments.console.as_built import tell_age
from kafka_segments.console.log_options import RESET_OFFSETS, log_options, of_release
from kafka_segments.console.moments import given_moment
from kafka_segments.console.options import (
    ExitStatus,
    run_with,
)
from kafka_segments.console.strict_options import Group
from kafka_segments.console.verb_session import verb_session
from kafka_segments.errors import UsageError
from kafka_segments.files.storage.typed_uris import absolute_uri
from kafka_segments.kafka.broker_rules.versions import OLDEST_SEARCHED, parse_version
from kafka_segments.kafka.text.moments import parse_span

_READ_COMMITTED = "read_committed"


class _SearchGroup(Group):
    """A group whose first subcommand, ``offsets``, need not be named."""

    default = "offsets"


@click.group(cls=_SearchGroup)
def search() -> None:
    """Find offsets for timestamps, from the tables and short reads of the log.

    `search OPTIONS` is short for `search offsets OPTIONS`. Exit status 1: some answers of Kafka
    are not the true ones, or could not be found; the rows say why.
    """


@search.command(
    reads=("segments", "logs"),
    example="--warehouse /srv/warehouse --topic orders --time 2026-01-31T14:00:00Z",
)
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
@of_release
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
    run_with(_offsets, options)


@search.command(
    reads=("segments", "logs"), example="--warehouse /srv/warehouse --topic orders --last 2h"
)
@click.option("--last", required=True, metavar="SPAN", help="How far back: 90m, 6h, 3d, 2w.")
@of_release
@log_options(RESET_OFFSETS)
def bootstrap(*, last: str, **options: Any) -> None:
    """Find where a consumer starts that wants the last so many hours.

    Where a topic's timestamps are LogAppendTime, bulk-loaded data counts as appended when it was
    loaded.
    """
    run_with(partial(_bootstrap, last), options)


def _bootstrap(last: str, *, now_ms: int, **options: Any) -> int:
    start = now_ms - parse_span(last)
    if start < 0:
        raise UsageError(f"--last {last} goes back to before 1970")
    return _offsets(
        times=(str(start),),
        questions=None,
        high_watermark="end",
        isolation_level="read_uncommitted",
        now_ms=now_ms,
        **options,
    )


def _offsets(
    *,
    times: tuple[str, ...],
    questions: str | None,
    kafka_version: str,
    most_record_bytes: int | None,
    high_watermark: str,
    isolation_level: str,
    now_ms: int,
    output: str,
    warehouse: str,
    **choice: Any,
) -> int:
    moments = tuple((text, given_moment("--time", text, now_ms=now_ms)) for text in times)
    version = parse_version(kafka_version, oldest=OLDEST_SEARCHED)
    _refuse_contradictions(moments, questions, output)
    is_checkpointed = high_watermark == "checkpoint"
    is_committed = isolation_level == _READ_COMMITTED
    if is_committed and is_checkpointed:
        raise UsageError(
            "--isolation-level read_committed takes --high-watermark end alone: the tables do not"
            " tell which transactions were open at an earlier offset"
        )
    from kafka_segments.verbs.find.search.named_logs import chosen_logs  # noqa: PLC0415
    from kafka_segments.verbs.find.search.report import print_search  # noqa: PLC0415
    from kafka_segments.verbs.find.search.run import SearchOptions, run_search  # noqa: PLC0415

    root = absolute_uri(warehouse)
    asked = SearchOptions(
        choice=chosen_logs(root, **choice),
        kafka_version=version,
        most_record_bytes=most_record_bytes,
        moments=moments,
        questions=None if questions is None else absolute_uri(questions),
        has_checkpointed_end=is_checkpointed,
        is_read_committed=is_committed,
        is_of_partitions=output == RESET_OFFSETS,
    )
    session = verb_session("search", warehouse=root, reads_all=True, questions=asked.questions)
    with session as verb:
        found = print_search(run_search(verb.warehouse, asked, verb.caches), output)
        tell_age(verb.warehouse, now_ms=now_ms, allowed=asked.choice.allowed())
    return ExitStatus.FINDINGS if found else ExitStatus.DONE


def _refuse_contradictions(
    moments: tuple[tuple[str, int], ...], questions: str | None, output: str
) -> None:
    if bool(moments) == bool(questions):
        raise UsageError("one of --time and --questions is needed, and not both")
    if output == RESET_OFFSETS and (len(moments) != 1 or moments[0][1] < 0):
        raise UsageError("--output reset-offsets takes one --time, and no name such as LATEST")
    from kafka_segments.files.storage.stores import store_of  # noqa: PLC0415

    if questions is not None and store_of(questions).is_local and not Path(questions).is_file():
        raise UsageError(f"--questions {questions}: no such file")
