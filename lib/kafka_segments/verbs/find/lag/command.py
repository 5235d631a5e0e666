"""``lag``: how far behind consumer groups are, in offsets and in time."""

from typing import Any

import click

from kafka_segments.console.options import ExitStatus, run_with
from kafka_segments.console.strict_options import Command
from kafka_segments.console.verb_session import verb_session
from kafka_segments.files.storage.typed_uris import absolute_uri
from kafka_segments.kafka.broker_rules.versions import OLDEST_SEARCHED, parse_version
from kafka_segments.kafka.wire.moments import parse_point
from kafka_segments.verbs.find.lag.offsets_there import refuse_without_offsets
from kafka_segments.verbs.find.search.command_options import log_options, of_release


@click.command(cls=Command, reads=("segments", "logs"))
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
@of_release
@log_options()
def lag(**options: Any) -> None:
    """Measure the lag of consumer groups, from the segments of __consumer_offsets.

    With --share-groups that of share groups, from __share_group_state. Exit status 1: unread
    records of some group are gone, or its lag cannot be told.
    """
    run_with(_lag, options)


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
    **choice: Any,
) -> int:

    root = absolute_uri(warehouse)
    version = parse_version(kafka_version, oldest=OLDEST_SEARCHED)
    at_ms = None if at is None else parse_point("--at", at, now_ms=now_ms)
    if not is_share:
        refuse_without_offsets(root, cluster=choice["cluster"])
    from kafka_segments.verbs.find.lag.report import print_lag, print_share_lag  # noqa: PLC0415
    from kafka_segments.verbs.find.lag.run import LagOptions, run_lag  # noqa: PLC0415
    from kafka_segments.verbs.find.lag.run_share import run_share_lag  # noqa: PLC0415
    from kafka_segments.verbs.find.search.log_tables import LogChoice  # noqa: PLC0415

    asked = LagOptions(
        warehouse=root,
        choice=LogChoice(**choice),
        now_ms=now_ms,
        at_ms=at_ms,
        groups=groups,
        kafka_version=version,
        most_record_bytes=most_record_bytes,
    )
    with verb_session("lag", warehouse=asked.warehouse) as verb:
        if is_share:
            found = print_share_lag(run_share_lag(verb.spark, asked, verb.caches), output)
        else:
            found = print_lag(run_lag(verb.spark, asked, verb.caches), output)
    return ExitStatus.FINDINGS if found else ExitStatus.DONE
