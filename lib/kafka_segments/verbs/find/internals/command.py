"""``internals``: what a cluster wrote about itself, from its own topics' segments."""

from typing import Any

import click

from kafka_segments.console.as_built import tell_records
from kafka_segments.console.early import require_tables
from kafka_segments.console.moments import given_point
from kafka_segments.console.options import (
    ExitStatus,
    follow_links_option,
    most_vanished_option,
    now_ms_option,
    optional_source_option,
    output_option,
    run_with,
    verbose_option,
    with_options,
)
from kafka_segments.console.strict_options import INT, Command, Group, complete_folder
from kafka_segments.console.verb_session import verb_session
from kafka_segments.console.warehouse_access import require_writable
from kafka_segments.errors import UsageError
from kafka_segments.files.storage.typed_uris import absolute_uri
from kafka_segments.kafka.text.names import METADATA_TOPIC
from kafka_segments.verbs.find.internals.groups.command import groups
from kafka_segments.verbs.find.internals.metadata.as_of import parse_as_of
from kafka_segments.verbs.find.internals.tier.command import tier
from kafka_segments.verbs.find.internals.transactions.command import transactions

_METADATA = ("metadata_configs", "metadata_partitions")


class _ReadByDefault(Group):
    """A group whose call without a subcommand reads."""

    default = "read"


_shared_options = with_options(
    click.option(
        "--warehouse",
        required=True,
        metavar="URI",
        shell_complete=complete_folder,
        help="Root of the Delta tables; made if it is not there.",
    ),
    click.option("--cluster", help="Cluster name; default: cluster.id of meta.properties."),
    now_ms_option,
    output_option(),
    verbose_option,
)


@click.group(cls=_ReadByDefault)
def internals() -> None:
    """Read the cluster's own topics: its metadata, offsets, transactions, share groups, tiers.

    Without a subcommand it reads: `internals read --help` has the options.
    """


@internals.command(cls=Command, example="--source /data/kafka-logs --warehouse /srv/warehouse")
@optional_source_option
@click.option("--topic", "topics", multiple=True, help="Only this internal topic; repeatable.")
@click.option("--broker-id", type=INT, help="Broker id; default: node.id of meta.properties.")
@click.option(
    "--at",
    metavar="OFFSET|T",
    help="Print the metadata as of this offset of the metadata log, or of this moment: ISO 8601"
    " with zone, -2h or now.",
)
@follow_links_option
@most_vanished_option
@click.option(
    "--dry-run",
    is_flag=True,
    help="Read, and say what the tables would have; write none, and make no history.",
)
@_shared_options
def read(**options: Any) -> None:
    """Read the cluster's own topics into tables, the metadata log with its snapshots.

    These are __cluster_metadata, __consumer_offsets, __transaction_state, __share_group_state and
    __remote_log_metadata. Files that have not changed are not read again. With --at it prints the
    metadata that held then; without --source it takes that from the tables alone. Exit status 1:
    records, a snapshot or the rest of a segment cannot be read, or no history can be made.
    """
    run_with(_read, options)


def _read(
    *,
    sources: tuple[str, ...],
    topics: tuple[str, ...],
    at: str | None,
    warehouse: str,
    cluster: str | None,
    broker_id: int | None,
    follow_links: bool,
    most_vanished: int,
    dry_run: bool,
    now_ms: int,
    output: str,
    **_: Any,
) -> int:
    from kafka_segments.kafka.messages.records import INTERNAL_TOPICS  # noqa: PLC0415

    as_of = None if at is None else parse_as_of(at, now_ms=now_ms)
    unknown = [topic for topic in topics if topic not in INTERNAL_TOPICS]
    if unknown:
        one_of = ", ".join(sorted(INTERNAL_TOPICS))
        raise UsageError(f"--topic {unknown[0]}: one of {one_of} expected")
    if not sources and as_of is None:
        raise UsageError("nothing to read and nothing to print: give --source, --at, or both")
    if dry_run and as_of is not None:
        raise UsageError("--at tells what tables have, and --dry-run writes none: leave one out")
    if not sources:
        require_tables(warehouse, ("internal_records",))
    from kafka_segments.verbs.find.internals.files import Origin  # noqa: PLC0415
    from kafka_segments.verbs.find.internals.report import print_internals, print_state  # noqa: PLC0415
    from kafka_segments.verbs.find.internals.run import InternalsOptions, run_internals  # noqa: PLC0415
    from kafka_segments.verbs.find.internals.run_changed import StateOptions, run_state  # noqa: PLC0415

    root, found = absolute_uri(warehouse), 0
    origin = Origin(
        sources=tuple(map(absolute_uri, sources)),
        topics=topics or tuple(sorted(INTERNAL_TOPICS)),
        cluster=cluster,
        broker_id=broker_id,
        follow_links=follow_links,
        most_vanished=most_vanished,
    )
    if sources and not dry_run:
        require_writable(root)
    with verb_session("internals", warehouse=root) as verb:
        if sources:
            asked = InternalsOptions(origin, dry_run)
            reading = run_internals(verb.warehouse, asked, verb.caches, verb.work.reads)
            found = print_internals(reading, output, is_shown=as_of is None)
        if as_of is not None:
            print_state(run_state(verb.warehouse, StateOptions(as_of, cluster)), output)
            if as_of.ms is not None and not sources:
                tell_records(verb.warehouse, METADATA_TOPIC, now_ms=as_of.ms, cluster=cluster)
    return ExitStatus.FINDINGS if found else ExitStatus.DONE


@internals.command(cls=Command, reads=_METADATA, example="--warehouse /srv/warehouse --since -2d")
@click.option(
    "--since",
    metavar="T",
    help="Only from this moment: ms since 1970, ISO 8601 with zone, or -2h; default: all.",
)
@_shared_options
def changed(**options: Any) -> None:
    """Print which configs, leaders and replicas changed, when, and at which metadata offset."""
    run_with(_changed, options)


def _changed(
    *,
    since: str | None,
    warehouse: str,
    cluster: str | None,
    now_ms: int,
    output: str,
    **_: Any,
) -> int:
    from kafka_segments.verbs.find.internals.report import print_changes  # noqa: PLC0415
    from kafka_segments.verbs.find.internals.run_changed import ChangesOptions, run_changed  # noqa: PLC0415

    root = absolute_uri(warehouse)
    since_ms = None if since is None else given_point("--since", since, now_ms=now_ms)
    with verb_session("internals changed", warehouse=root) as verb:
        print_changes(run_changed(verb.warehouse, ChangesOptions(since_ms, cluster)), output)
        tell_records(verb.warehouse, METADATA_TOPIC, now_ms=now_ms, cluster=cluster)
    return ExitStatus.DONE


for _command in (groups, tier, transactions):
    internals.add_command(_command)
