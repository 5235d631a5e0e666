"""``lag``: how far behind consumer groups are, in offsets and in time."""

from typing import Any

import click

from kafka_segments.console.as_built import tell_age
from kafka_segments.console.log_options import log_options, of_release
from kafka_segments.console.moments import given_point
from kafka_segments.console.options import ExitStatus, run_with
from kafka_segments.console.prometheus import PROMETHEUS
from kafka_segments.console.strict_options import POSITIVE_INT, Command
from kafka_segments.console.verb_session import verb_session
from kafka_segments.errors import UsageError
from kafka_segments.files.storage.typed_uris import absolute_uri
from kafka_segments.kafka.broker_rules.versions import OLDEST_SEARCHED, parse_version
from kafka_segments.verbs.find.lag.offsets_topic import refuse_without_offsets

_MINUTE_MS = 60_000


@click.command(
    cls=Command,
    reads=("segments", "logs"),
    example="--warehouse /srv/warehouse --group billing",
    has_figures=True,
)
@click.option(
    "--at",
    metavar="T",
    help="A past moment: ms since 1970, ISO 8601 with zone, or -2h; default: now.",
)
@click.option("--group", "groups", multiple=True, help="Only this group; repeatable.")
@click.option(
    "--share-groups",
    "is_share",
    is_flag=True,
    help="Measure share groups instead, by the records that `internals` has read.",
)
@click.option(
    "--explain",
    metavar="GROUP",
    help="Say instead of each partition where this group's offset is, or went, and why.",
)
@click.option(
    "--offsets-retention-minutes",
    "retention_minutes",
    type=POSITIVE_INT,
    metavar="MINUTES",
    help="With --explain: the brokers' setting of this name, by which offsets expire.",
)
@click.option(
    "--commits",
    "most_commits",
    type=POSITIVE_INT,
    default=5,
    show_default=True,
    help="With --explain: how many of the last records of each partition are told.",
)
@of_release
@log_options()
def lag(**options: Any) -> None:
    """Measure the lag of consumer groups, from the segments of __consumer_offsets.

    With --share-groups that of share groups, from __share_group_state. With --explain where the
    offsets of a group went: expired, deleted, with its topic or the group, or never committed, with
    times, and what auto.offset.reset makes of that. Exit status 1: unread records of some group
    are gone, its lag cannot be told, or an offset went or is not known.
    """
    if options["output"] == PROMETHEUS:
        for name in ("explain", "at"):
            if options[name]:
                raise click.UsageError(
                    f"--output prometheus has the lag of groups now: leave --{name} out"
                )
    if options["explain"] is None:
        run_with(_lag, options)
    else:
        run_with(_explain, options)


def _explain(
    *,
    explain: str,
    at: str | None,
    groups: tuple[str, ...],
    is_share: bool,
    retention_minutes: int | None,
    most_commits: int,
    now_ms: int,
    output: str,
    warehouse: str,
    **choice: Any,
) -> int:
    for option, is_given in (("--at", at), ("--group", groups), ("--share-groups", is_share)):
        if is_given:
            raise UsageError(f"--explain and {option} are two questions: leave one of them out")
    root = absolute_uri(warehouse)
    refuse_without_offsets(root, cluster=choice["cluster"])
    from kafka_segments.verbs.find.lag.report_explain import print_explained  # noqa: PLC0415
    from kafka_segments.verbs.find.lag.run_explain import ExplainOptions, run_explain  # noqa: PLC0415
    from kafka_segments.verbs.find.search.log_tables import LogChoice  # noqa: PLC0415

    named = {name: choice[name] for name in ("topics", "partitions", "cluster", "broker_id")}
    retention_ms = None if retention_minutes is None else retention_minutes * _MINUTE_MS
    asked = ExplainOptions(LogChoice(**named), explain, retention_ms, most_commits)
    with verb_session("lag", warehouse=root) as verb:
        found = print_explained(run_explain(verb.warehouse, asked, verb.caches), output)
        tell_age(verb.warehouse, now_ms=now_ms, allowed=asked.choice.allowed())
    return ExitStatus.FINDINGS if found else ExitStatus.DONE


def _lag(
    *,
    at: str | None,
    groups: tuple[str, ...],
    is_share: bool,
    kafka_version: str,
    most_record_bytes: int | None,
    now_ms: int,
    output: str,
    warehouse: str,
    explain: None,
    retention_minutes: int | None,
    most_commits: int,
    **choice: Any,
) -> int:
    del explain, most_commits
    if retention_minutes is not None:
        raise UsageError("--offsets-retention-minutes is for --explain")
    root = absolute_uri(warehouse)
    version = parse_version(kafka_version, oldest=OLDEST_SEARCHED)
    at_ms = None if at is None else given_point("--at", at, now_ms=now_ms)
    if not is_share:
        refuse_without_offsets(root, cluster=choice["cluster"])
    from kafka_segments.verbs.find.lag.report import print_lag, print_share_lag  # noqa: PLC0415
    from kafka_segments.verbs.find.lag.run import LagOptions, run_lag  # noqa: PLC0415
    from kafka_segments.verbs.find.lag.run_share import run_share_lag  # noqa: PLC0415
    from kafka_segments.verbs.find.search.log_tables import LogChoice  # noqa: PLC0415

    asked = LagOptions(
        choice=LogChoice(**choice),
        now_ms=now_ms,
        at_ms=at_ms,
        groups=groups,
        kafka_version=version,
        most_record_bytes=most_record_bytes,
    )
    with verb_session("lag", warehouse=root) as verb:
        tables = verb.warehouse
        if is_share:
            found = print_share_lag(run_share_lag(tables, asked, verb.caches), output)
        else:
            found = print_lag(run_lag(tables, asked, verb.caches), output)
        tell_age(verb.warehouse, now_ms=now_ms, at_ms=at_ms, allowed=asked.choice.allowed())
    return ExitStatus.FINDINGS if found else ExitStatus.DONE
