"""``search failover`` and ``search restore``: move a group, cut logs."""

from typing import Any

import click

from kafka_segments.console.as_built import tell_age
from kafka_segments.console.log_options import RESET_OFFSETS, log_options, of_release
from kafka_segments.console.moments import given_point
from kafka_segments.console.options import ExitStatus, run_with
from kafka_segments.console.strict_options import Command
from kafka_segments.console.verb_session import verb_session
from kafka_segments.errors import UsageError
from kafka_segments.files.storage.typed_uris import absolute_uri
from kafka_segments.kafka.broker_rules.versions import OLDEST_SEARCHED, parse_version
from kafka_segments.kafka.text.moments import parse_span


@click.command(
    cls=Command,
    reads=("segments", "logs"),
    example="--warehouse /srv/east --to-warehouse /srv/west --group billing --max-latency 5m",
)
@click.option("--group", required=True, help="The group that moves to the other cluster.")
@click.option(
    "--max-latency",
    required=True,
    metavar="SPAN",
    help="The greatest latency between the clusters: 30s, 5m, 1h.",
)
@click.option("--to-warehouse", metavar="URI", help="Tables of the other; default: --warehouse.")
@click.option("--to-cluster", help="Name of the other cluster in its tables.")
@of_release
@log_options(RESET_OFFSETS)
def failover(**options: Any) -> None:
    """Find where a group goes on in another cluster that has the same messages.

    The search starts at the create time of the last message consumed, less the greatest latency
    between the clusters, or at the oldest unread message where that is older. Topics are taken to
    have the same names and partitions in both. Exit status 1: such an older message is unread, or
    the offset of some partition is not known.
    """
    run_with(_failover, options)


@click.command(
    cls=Command,
    reads=("segments", "logs"),
    example="--warehouse /srv/warehouse --at 2026-01-31T14:00:00Z",
)
@click.option("--at", required=True, metavar="T", help="The moment, as --time takes it.")
@of_release
@log_options()
def restore(**options: Any) -> None:
    """Plan a restore to a moment: where each log is cut, and the segments it needs.

    A log is cut before its first record later than T.
    """
    run_with(_restore, options)


def _failover(
    *,
    group: str,
    max_latency: str,
    to_warehouse: str | None,
    to_cluster: str | None,
    kafka_version: str,
    most_record_bytes: int | None,
    now_ms: int,
    output: str,
    warehouse: str,
    **choice: Any,
) -> int:
    version = parse_version(kafka_version, oldest=OLDEST_SEARCHED)
    from kafka_segments.engine.tables.delta import Warehouse  # noqa: PLC0415
    from kafka_segments.verbs.find.failover.report import print_failover  # noqa: PLC0415
    from kafka_segments.verbs.find.failover.run import FailoverOptions, run_failover  # noqa: PLC0415
    from kafka_segments.verbs.find.search.log_tables import LogChoice  # noqa: PLC0415
    from kafka_segments.verbs.find.search.named_logs import chosen_logs, refuse_absent  # noqa: PLC0415

    if to_warehouse is None and to_cluster is None:
        raise UsageError("--to-warehouse or --to-cluster is needed: which is the other cluster?")
    if to_warehouse is None and choice["cluster"] in (None, to_cluster):
        raise UsageError(
            "--cluster is needed, and must differ from --to-cluster: --warehouse has the tables of"
            " both clusters"
        )
    root = absolute_uri(warehouse)
    asked = FailoverOptions(
        choice=chosen_logs(root, **choice),
        to_warehouse=root if to_warehouse is None else absolute_uri(to_warehouse),
        to_choice=LogChoice(**{**choice, "cluster": to_cluster, "broker_id": None}),
        group=group,
        max_latency_ms=parse_span(max_latency),
        now_ms=now_ms,
        kafka_version=version,
        most_record_bytes=most_record_bytes,
    )
    refuse_absent(asked.to_warehouse, LogChoice(cluster=to_cluster))
    with verb_session("search failover", warehouse=root) as verb:
        found = print_failover(run_failover(verb.warehouse, asked, verb.caches), output)
        tell_age(verb.warehouse, now_ms=now_ms, allowed=asked.choice.allowed())
        moment = now_ms if asked.to_warehouse != root else None  # its age is told
        other = Warehouse(verb.spark, asked.to_warehouse)
        tell_age(other, now_ms=moment, allowed=asked.to_choice.allowed())
    return ExitStatus.FINDINGS if found else ExitStatus.DONE


def _restore(
    *,
    at: str,
    kafka_version: str,
    most_record_bytes: int | None,
    now_ms: int,
    output: str,
    warehouse: str,
    **choice: Any,
) -> int:
    version = parse_version(kafka_version, oldest=OLDEST_SEARCHED)
    from kafka_segments.verbs.find.failover.report import print_restore  # noqa: PLC0415
    from kafka_segments.verbs.find.failover.run import RestoreOptions, run_restore  # noqa: PLC0415
    from kafka_segments.verbs.find.search.named_logs import chosen_logs  # noqa: PLC0415

    root = absolute_uri(warehouse)
    asked = RestoreOptions(
        choice=chosen_logs(root, **choice),
        at_ms=given_point("--at", at, now_ms=now_ms),
        kafka_version=version,
        most_record_bytes=most_record_bytes,
    )
    with verb_session("search restore", warehouse=root) as verb:
        found = print_restore(run_restore(verb.warehouse, asked, verb.caches), output)
        allowed = asked.choice.allowed()
        tell_age(verb.warehouse, now_ms=now_ms, at_ms=asked.at_ms, allowed=allowed)
    return ExitStatus.FINDINGS if found else ExitStatus.DONE
