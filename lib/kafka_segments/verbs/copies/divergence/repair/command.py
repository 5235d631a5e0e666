"""``divergence repair``: make one whole log of damaged copies, in a new folder."""

import os
from pathlib import Path
from typing import Any

import click

from kafka_segments.console.config_options import config_file_options
from kafka_segments.console.early import local_path
from kafka_segments.console.options import (
    ExitStatus,
    now_ms_option,
    output_option,
    run_with,
    verbose_option,
)
from kafka_segments.console.strict_options import OUTPUT_FOLDER, Command
from kafka_segments.console.verb_session import verb_session
from kafka_segments.errors import UsageError
from kafka_segments.files.storage.uris import without_secrets
from kafka_segments.verbs.copies.divergence.copy_option import absolute_copies, copy_option
from kafka_segments.verbs.copies.divergence.policies.options import history_option, load_policies


@click.command(
    cls=Command,
    example="--copy b1=/mnt/broker-1 --copy b2=/mnt/broker-2 --log orders-0 --out /srv/repaired",
)
@copy_option
@click.option(
    "--out",
    type=OUTPUT_FOLDER,
    required=True,
    metavar="FOLDER",
    help="A new or empty folder on a disk that all executors see, apart from the copies.",
)
@click.option(
    "--log",
    "logs",
    multiple=True,
    metavar="TOPIC-PARTITION",
    help="Only this log, damaged or not; repeatable; default: all that are damaged in some copy.",
)
@click.option(
    "--history",
    metavar="NAME",
    help="The copy whose leader epochs count, of logs that forked; default: the latest of each.",
)
@history_option
@config_file_options
@click.option("--dry-run", is_flag=True, help="Say what would be taken from where, write nothing.")
@now_ms_option
@output_option()
@verbose_option
def repair(**options: Any) -> None:
    """Make one whole log of copies that are damaged in different places; leave these as they are.

    Each batch is taken from a copy in which it is sound, and all are of one history of leader
    epochs. Each log gets a folder of its own below --out, with the index files, producer snapshots
    and leader epochs that a broker's recovery writes. A manifest beside it has the SHA-256 of each
    range and file. Exit status 1: no copy has some range, a log was refused, or a replica that the
    metadata log among the copies names is not at hand.
    """
    run_with(_repair, options)


def _repair(
    *,
    copies: tuple[tuple[str, str], ...],
    out: str,
    logs: tuple[str, ...],
    history: str | None,
    warehouse: str | None,
    topic_configs: tuple[Path, ...],
    server_properties: Path | None,
    dry_run: bool,
    now_ms: int,
    output: str,
) -> int:
    from kafka_segments.verbs.copies.divergence.options import CopyOptions  # noqa: PLC0415
    from kafka_segments.verbs.copies.divergence.repair.report import print_repair  # noqa: PLC0415
    from kafka_segments.verbs.copies.divergence.repair.run import run_repair  # noqa: PLC0415
    from kafka_segments.verbs.copies.divergence.repair.tasks import RepairSettings  # noqa: PLC0415

    names = {name for name, _ in copies}
    if history is not None and history not in names:
        raise UsageError(f"--history {history}: one of {', '.join(sorted(names))} expected")
    target = _new_folder(out, [uri for _, uri in copies])
    policies = load_policies(
        topic_configs=topic_configs,
        server_properties=server_properties,
        warehouse=warehouse,
        now_ms=now_ms,
    )
    asked = CopyOptions(copies=absolute_copies(copies), now_ms=now_ms, policies=policies)
    settings = RepairSettings(None if dry_run else str(target), logs, history, now_ms)
    with verb_session("divergence repair") as verb:
        rows = run_repair(verb.spark, asked, verb.caches, verb.work.reads, settings=settings)
        found = print_repair(rows, output)
    return ExitStatus.FINDINGS if found else ExitStatus.DONE


def _new_folder(out: str, copies: list[str]) -> Path:
    """Return the folder for the logs.

    Raises:
        UsageError: it is no local path, it is not empty, or it is in a copy or around one.
    """
    target = local_path(out)
    if target is None:
        raise UsageError(
            f"--out {without_secrets(out)}: a folder on a disk expected, logs are renamed there"
        )
    for uri in copies:
        copy = local_path(uri)
        if copy is not None and (_is_in(target, copy) or _is_in(copy, target)):
            raise UsageError(f"--out {target}: a folder apart from copy {copy} expected")
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise UsageError(f"--out {target}: a new or empty folder expected, nothing is overwritten")
    return target


def _is_in(path: Path, folder: Path) -> bool:
    real = os.path.realpath(folder)
    return os.path.commonpath([os.path.realpath(path), real]) == real
