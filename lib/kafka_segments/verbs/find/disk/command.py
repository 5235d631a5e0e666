"""``disk``: what the bytes of a log directory are, when they go, and what may."""

from typing import Any

import click

from kafka_segments.console.local_folders import directory_options, local_folders
from kafka_segments.console.options import ExitStatus, run_with
from kafka_segments.console.strict_options import Command


@click.command(cls=Command, may_spare_spark=("sources", "folders"))
@directory_options(
    click.option(
        "--rows",
        type=click.Choice(["kinds", "topics", "folders", "disks"]),
        default="kinds",
        show_default=True,
        help="Which rows json and csv print.",
    ),
)
def disk(**options: Any) -> None:
    """Account for every byte of log directories on this machine: what it is, and when it goes.

    Without a broker, tables or a JVM; nothing is written. All bytes together are those of `du`. By
    topic, what the last hour and day wrote, and when the disk is full at that pace; of folders that
    no broker serves, whether they may go, with the evidence. Exit status 1: a folder waits for a
    person, or something could not be looked at.
    """
    run_with(_disk, options)


def _disk(
    *,
    folders: tuple[str, ...],
    sources: tuple[str, ...],
    rows: str,
    now_ms: int,
    output: str,
    **_: Any,
) -> int:
    from kafka_segments.verbs.find.disk.report import print_disk  # noqa: PLC0415
    from kafka_segments.verbs.find.disk.run import DiskOptions, run_disk  # noqa: PLC0415

    options = DiskOptions(
        local_folders("disk", (*folders, *sources)),
        now_ms=now_ms,
    )
    found = print_disk(run_disk(options), output, rows=rows)
    return ExitStatus.FINDINGS if found else ExitStatus.DONE
