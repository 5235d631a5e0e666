"""``internals groups``: whether ``__consumer_offsets`` loads, and what room its groups take."""

from typing import Any

import click

from kafka_segments.console.as_built import tell_records
from kafka_segments.console.options import (
    ExitStatus,
    kafka_version_option,
    now_ms_option,
    output_option,
    run_with,
    verbose_option,
    with_options,
)
from kafka_segments.console.strict_options import INT, Command, complete_folder
from kafka_segments.console.verb_session import verb_session
from kafka_segments.files.storage.typed_uris import absolute_uri
from kafka_segments.kafka.broker_rules.group_records import OLDEST, group_record_rules
from kafka_segments.kafka.broker_rules.versions import parse_version
from kafka_segments.kafka.text.names import OFFSETS_TOPIC


@click.command(
    cls=Command, reads=("internal_records",), example="--warehouse /srv/warehouse --group billing"
)
@with_options(
    click.option(
        "--warehouse",
        required=True,
        metavar="URI",
        shell_complete=complete_folder,
        help="Root of the tables of `internals`.",
    ),
    kafka_version_option(f"The release whose group coordinator is to read it, {OLDEST} or later"),
    click.option(
        "--new-coordinator",
        is_flag=True,
        help="Let 3.7 to 3.9 run the coordinator of KIP-848, which 4.0 and later run always.",
    ),
    click.option("--group", "groups", multiple=True, help="Only this group; repeatable."),
    click.option("--cluster", help="Only this cluster's logs."),
    click.option("--broker-id", type=INT, help="Only this broker's logs."),
    now_ms_option,
    output_option(),
    verbose_option,
)
def groups(**options: Any) -> None:
    """Say whether each partition of __consumer_offsets loads, and what room its groups take.

    It prints a row for each partition on each broker, and one for each group in it: records and
    bytes, how many of them are live, and how many compaction could remove. Exit status 1: a
    partition does not load, not all of its records do, a partition was not read, or
    the state of a group is not known.
    """
    run_with(_groups, options)


def _groups(
    *,
    warehouse: str,
    kafka_version: str,
    new_coordinator: bool,
    groups: tuple[str, ...],
    cluster: str | None,
    broker_id: int | None,
    now_ms: int,
    output: str,
) -> int:
    from kafka_segments.verbs.find.internals.groups.report import print_groups  # noqa: PLC0415
    from kafka_segments.verbs.find.internals.groups.run import GroupsOptions, run_groups  # noqa: PLC0415

    version = parse_version(kafka_version, oldest=OLDEST)
    rules = group_record_rules(version, is_new_coordinator=new_coordinator)
    asked = GroupsOptions(rules, cluster, broker_id, groups)
    with verb_session("internals groups", warehouse=absolute_uri(warehouse)) as verb:
        found = print_groups(run_groups(verb.warehouse, asked, verb.caches), output)
        tell_records(verb.warehouse, OFFSETS_TOPIC, now_ms=now_ms, cluster=cluster)
    return ExitStatus.FINDINGS if found else ExitStatus.DONE
