"""``backup``: whether a backup holds what its cluster held."""

from typing import Any

import click

from kafka_segments.console.moments import given_point
from kafka_segments.console.options import ExitStatus, run_with
from kafka_segments.console.strict_options import Group, complete_folder
from kafka_segments.console.verb_session import verb_session
from kafka_segments.console.warehouse_access import keeps_nothing
from kafka_segments.errors import UsageError
from kafka_segments.files.storage.typed_uris import absolute_uri
from kafka_segments.verbs.copies.divergence.command import (
    comparison_options,
    digests_option,
    shared_options,
)
from kafka_segments.verbs.copies.divergence.copy_option import named_copies


@click.group(cls=Group)
def backup() -> None:
    """Judge backups of log directories without a broker."""


@backup.command(example="--backup /mnt/backup --against b1=/mnt/broker-1", has_figures=True)
@click.option(
    "--backup",
    "backups",
    multiple=True,
    required=True,
    metavar="URI",
    shell_complete=complete_folder,
    help="Where the backup lies: a log directory, or a folder of several; repeatable.",
)
@named_copies("--against", "A broker's log directory, disk or snapshot of today")
@click.option(
    "--moment",
    metavar="TIME",
    help="When the backup was taken, as 2026-01-31T02:00:00Z or in ms: it misses what follows its"
    " end and is no younger than that. Default: the time of its youngest record, less 5 minutes.",
)
@click.option(
    "--warehouse",
    metavar="URI",
    shell_complete=complete_folder,
    help="Keep digests of what is read, and the rows of the comparison, in these tables. The"
    " history of the cluster's metadata log in them tells topics' cleanup policies.",
)
@digests_option
@click.option("--dry-run", is_flag=True, help="Keep nothing in the warehouse.")
@shared_options
def verify(**options: Any) -> None:
    """Say of each log up to which offset a backup is complete, and what it misses.

    The backup is compared with what the cluster held at the backup's moment. So it misses neither
    what was written or made later, nor what retention has deleted since. Exit status 1: it misses
    something.
    """
    run_with(_verify, options)


def _verify(
    *,
    backups: tuple[str, ...],
    copies: tuple[tuple[str, str], ...],
    moment: str | None,
    warehouse: str | None,
    now_ms: int,
    output: str,
    dry_run: bool,
    **asked: Any,
) -> int:
    from kafka_segments.verbs.copies.backup.report import print_backup  # noqa: PLC0415
    from kafka_segments.verbs.copies.backup.run import BACKUP, run_backup  # noqa: PLC0415

    if any(name == BACKUP for name, _ in copies):
        raise UsageError(f"--against {BACKUP}=…: the backup has this name, give it another")
    root = None if warehouse is None else absolute_uri(warehouse)
    copies = (*((BACKUP, uri) for uri in backups), *copies)
    options = comparison_options(
        **asked, copies=copies, warehouse=root, now_ms=now_ms, anchor=BACKUP
    )
    moment_ms = None if moment is None else given_point("--moment", moment, now_ms=now_ms)
    dry_run = keeps_nothing(root, dry_run=dry_run)
    with verb_session("backup", warehouse=root) as verb:
        keep_in = None if dry_run else verb.tables
        verified = run_backup(
            verb.spark,
            options,
            verb.caches,
            moment_ms=moment_ms,
            keep_in=keep_in,
            tell=verb.work.reads,
        )
        found = print_backup(verified, output)
    return ExitStatus.FINDINGS if found else ExitStatus.DONE
