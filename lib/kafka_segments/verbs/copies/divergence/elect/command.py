"""``divergence elect``: what each replica would lose as leader, and how to elect the best.

Nothing is changed: an operator runs the commands.
"""

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
from kafka_segments.verbs.copies.divergence.copy_option import absolute_copies, copy_option
from kafka_segments.verbs.copies.divergence.policies.options import history_option, load_policies


@click.command(
    cls=Command, example="--copy b1=/mnt/broker-1 --copy b2=/mnt/broker-2 --output commands"
)
@copy_option
@click.option(
    "--metadata",
    multiple=True,
    metavar="URI",
    shell_complete=complete_folder,
    help="A log directory with __cluster_metadata-0, as of a controller; repeatable; default: the"
    " copies.",
)
@history_option
@config_file_options
@output_option("commands")
@verbose_option
def elect(**options: Any) -> None:
    """Say what is lost with each replica that could lead a partition, and how to elect the best.

    Each copy holds the log directories of one broker; all were taken while none of the brokers ran.
    The ISR and the ELR are those of the metadata log. `--output commands` prints a script of
    Kafka's tools that makes the best replicas lead. Exit status 1: of some partition a replica is
    not at hand, or even the best one loses records that acks=all may have acknowledged, does not
    lead by itself, or has a damaged log.
    """
    run_with(_elect, options)


def _elect(
    *,
    copies: tuple[tuple[str, str], ...],
    metadata: tuple[str, ...],
    warehouse: str | None,
    topic_configs: tuple[Path, ...],
    server_properties: Path | None,
    output: str,
) -> int:
    from kafka_segments.verbs.copies.divergence.elect.report import print_elect  # noqa: PLC0415
    from kafka_segments.verbs.copies.divergence.elect.run import run_elect  # noqa: PLC0415
    from kafka_segments.verbs.copies.divergence.options import CopyOptions  # noqa: PLC0415

    now = clock()
    policies = load_policies(
        topic_configs=topic_configs,
        server_properties=server_properties,
        warehouse=warehouse,
        now_ms=now,
    )
    asked = CopyOptions(copies=absolute_copies(copies), now_ms=now, least=1, policies=policies)
    sources = tuple(map(absolute_uri, metadata))
    with verb_session("divergence elect") as verb:
        found = run_elect(verb.spark, asked, verb.caches, verb.work.reads, metadata=sources)
        findings = print_elect(found, output)
    return ExitStatus.FINDINGS if findings else ExitStatus.DONE
