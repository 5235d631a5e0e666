"""``divergence``: compare copies of logs with each other."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kafka_segments.console.config_options import config_file_options
from kafka_segments.console.options import (
    ExitStatus,
    now_ms_option,
    output_option,
    run_with,
    verbose_option,
    with_options,
)
from kafka_segments.console.strict_options import Command, Group, complete_folder
from kafka_segments.console.verb_session import verb_session
from kafka_segments.console.warehouse_access import keeps_nothing
from kafka_segments.files.storage.typed_uris import absolute_uri
from kafka_segments.verbs.copies.divergence.copy_option import absolute_copies, copy_option
from kafka_segments.verbs.copies.divergence.decide.copies import Match
from kafka_segments.verbs.copies.divergence.elect.command import elect
from kafka_segments.verbs.copies.divergence.mirror.command import mirror
from kafka_segments.verbs.copies.divergence.policies.options import load_policies
from kafka_segments.verbs.copies.divergence.repair.command import repair

if TYPE_CHECKING:
    from kafka_segments.verbs.copies.divergence.options import CopyOptions

_FULL, _HEADERS, _RECORDS = "full", "headers", "records"

digests_option = click.option(
    "--digests",
    multiple=True,
    metavar="URI",
    shell_complete=complete_folder,
    help="Do not read files whose digests this warehouse has, and which have since kept their size"
    " and mtime: those of `build --digests` and earlier comparisons. Bit rot since then is not"
    " found. Repeatable.",
)
shared_options = with_options(
    click.option(
        "--check",
        type=click.Choice([_FULL, _HEADERS, _RECORDS]),
        default=_FULL,
        show_default=True,
        help="full: read every byte and verify checksums; headers: compare what the batches'"
        " headers say, which finds no bit rot inside of batches; records: as full, and where copies"
        " were compacted otherwise, look for a later record of each key that one lacks.",
    ),
    config_file_options,
    now_ms_option,
    output_option(),
    verbose_option,
)


class _CompareByDefault(Group):
    """A group whose call without a subcommand compares."""

    default = "compare"


@click.group(cls=_CompareByDefault)
def divergence() -> None:
    """Hold copies of logs against each other, and say what to do where they differ.

    Without a subcommand it compares: `divergence compare --help` has the options.
    """


@divergence.command(cls=Command, example="--copy b1=/mnt/broker-1 --copy b2=/mnt/broker-2")
@copy_option
@click.option(
    "--warehouse",
    metavar="URI",
    shell_complete=complete_folder,
    help="Keep the rows in table divergences of these tables; default: print them only. The history"
    " of the cluster's metadata log in them tells topics' cleanup policies.",
)
@digests_option
@click.option(
    "--match",
    type=click.Choice([match.value for match in Match]),
    default=Match.BOTH.value,
    show_default=True,
    help="both: logs of one name, and other topic ids are a finding; name: logs of one name,"
    " whatever their ids, as those of a restored cluster or of a mirror that keeps offsets; id:"
    " logs of one topic id, whatever their names. The last two leave internal topics out.",
)
@click.option("--dry-run", is_flag=True, help="Keep nothing in the warehouse.")
@shared_options
def compare(**options: Any) -> None:
    """Hold copies of logs against each other: where they differ, how, and which copy is right.

    Copies are brokers' log directories, snapshots and backups of one cluster, or with --match of
    several. Nothing is changed there. Exit status 1: some difference is a fault, or a replica that
    the metadata log among them names is not at hand.
    """
    run_with(_compare, options)


def _compare(*, warehouse: str | None, match: str, output: str, dry_run: bool, **asked: Any) -> int:
    from kafka_segments.verbs.copies.divergence.report import print_divergence  # noqa: PLC0415
    from kafka_segments.verbs.copies.divergence.run import run_divergence  # noqa: PLC0415

    root = None if warehouse is None else absolute_uri(warehouse)
    options = comparison_options(**asked, warehouse=root, match=Match(match))
    dry_run = keeps_nothing(root, dry_run=dry_run)
    with verb_session("divergence", warehouse=root) as verb:
        keep_in = None if dry_run else verb.tables
        compared = run_divergence(
            verb.spark, options, verb.caches, keep_in=keep_in, tell=verb.work.reads
        )
        found = print_divergence(compared, output)
    return ExitStatus.FINDINGS if found else ExitStatus.DONE


def comparison_options(
    *,
    copies: Sequence[tuple[str, str]],
    warehouse: str | None,
    digests: Sequence[str],
    check: str,
    topic_configs: Sequence[Path],
    server_properties: Path | None,
    now_ms: int,
    **of_verb: Any,
) -> "CopyOptions":
    """Read what the verbs that compare copies take alike, beside the options of the verb's own.

    ``warehouse``: the absolute URI of the tables that keep the result; None: nothing does.

    Raises:
        UsageError: as ``load_configs`` and ``CopyOptions``.
    """
    from kafka_segments.verbs.copies.divergence.options import CopyOptions, given_digests  # noqa: PLC0415

    return CopyOptions(
        copies=absolute_copies(copies),
        now_ms=now_ms,
        check_crc=check != _HEADERS,
        check_keys=check == _RECORDS,
        digests=given_digests(digests, own=warehouse),
        policies=load_policies(
            topic_configs=topic_configs,
            server_properties=server_properties,
            warehouse=warehouse,
            now_ms=now_ms,
        ),
        **of_verb,
    )


divergence.add_command(elect)
divergence.add_command(mirror)
divergence.add_command(repair)
