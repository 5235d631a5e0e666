"""``divergence mirror``: compare a mirror that has offsets of its own with its source."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from kafka_segments.console.config_options import config_file_options
from kafka_segments.console.options import (
    ExitStatus,
    clock,
    output_option,
    run_with,
    verbose_option,
)
from kafka_segments.console.strict_options import Command, complete_folder
from kafka_segments.console.verb_session import verb_session
from kafka_segments.files.storage.typed_uris import absolute_uri
from kafka_segments.verbs.copies.divergence.copy_option import Options
from kafka_segments.verbs.copies.divergence.policies.options import history_option, load_policies


def _side(option: str, name: str, what: str) -> Callable[[Options], Options]:
    return click.option(
        option,
        name,
        multiple=True,
        required=True,
        metavar="URI",
        shell_complete=complete_folder,
        help=f"{what}: a log directory, or a folder of several; repeatable. Of replicas of a log,"
        " the one that goes on furthest is read.",
    )


@click.command(cls=Command, example="--source /mnt/east --mirror /mnt/west")
@_side("--source", "sources", "Where the logs lie that are mirrored")
@_side("--mirror", "mirrors", "Where the mirrored logs lie")
@click.option(
    "--prefix",
    default="",
    metavar="TEXT",
    help="What the mirror puts in front of the source's topic names, as `east.`",
)
@history_option
@config_file_options
@output_option()
@verbose_option
def mirror(**options: Any) -> None:
    """Compare a mirror that has offsets of its own with its source, record by record.

    Records are matched in their order, by key, value and headers. Ranges are printed with their
    offsets in both: what is mirrored, missing, extra, duplicated or reordered. If the offset syncs
    of a mirror maker lie on either side, they are checked. Exit status 1: some difference is a
    fault, or a log that a metadata log names is not at hand.
    """
    run_with(_mirror, options)


def _mirror(
    *,
    sources: tuple[str, ...],
    mirrors: tuple[str, ...],
    prefix: str,
    warehouse: str | None,
    topic_configs: tuple[Path, ...],
    server_properties: Path | None,
    output: str,
) -> int:
    from kafka_segments.verbs.copies.divergence.mirror.report import print_mirror  # noqa: PLC0415
    from kafka_segments.verbs.copies.divergence.mirror.run import MirrorOptions, run_mirror  # noqa: PLC0415

    policies = load_policies(
        topic_configs=topic_configs,
        server_properties=server_properties,
        warehouse=warehouse,
        now_ms=clock(),
    )
    asked = MirrorOptions(
        tuple(map(absolute_uri, sources)), tuple(map(absolute_uri, mirrors)), prefix, policies
    )
    with verb_session("divergence mirror") as verb:
        found = run_mirror(verb.spark, asked, verb.caches, tell=verb.work.reads)
        findings = print_mirror(found, output)
    return ExitStatus.FINDINGS if findings else ExitStatus.DONE
