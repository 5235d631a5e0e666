"""``disk``: what the bytes of a log directory are, when they go, and what may."""

from typing import TYPE_CHECKING, Any

import click

from kafka_segments.console.local_folders import directory_options, local_folders
from kafka_segments.console.options import ExitStatus, run_with
from kafka_segments.console.prometheus import give_tables_age
from kafka_segments.console.strict_options import Command
from kafka_segments.console.verb_session import verb_session
from kafka_segments.errors import UsageError
from kafka_segments.files.storage.typed_uris import absolute_uri

if TYPE_CHECKING:
    from kafka_segments.verbs.find.disk.decide.accounts import TableGrowth
    from kafka_segments.verbs.find.disk.run import DiskUse


_OF_TABLES = ("growth", "blocked")


@click.command(
    cls=Command,
    reads=("segments", "log_dirs", "runs"),
    extra=None,
    example="/data/kafka-logs --rows topics",
    has_figures=True,
)
@directory_options(
    click.option(
        "--warehouse",
        metavar="URI",
        help="Also say what grew by topic and day, and what retention keeps because of older"
        " segments, by the Delta tables of `build`.",
    ),
    click.option(
        "--rows",
        type=click.Choice(["kinds", "topics", "folders", "disks", *_OF_TABLES]),
        default="kinds",
        show_default=True,
        help="Which rows json and csv print; growth and blocked need --warehouse.",
    ),
)
def disk(**options: Any) -> None:
    """Account for every byte of log directories on this machine: what it is, and when it goes.

    Without a broker, and without --warehouse without tables or a JVM; nothing is written. All bytes
    together are those of `du`. By topic, what the last hour and day wrote, and when the disk is
    full at that pace; of folders that no broker serves, whether they may go, with the evidence.
    Exit status 1: a folder waits for a person, or something could not be looked at.
    """
    run_with(_disk, options)


def _disk(
    *,
    folders: tuple[str, ...],
    sources: tuple[str, ...],
    warehouse: str | None,
    rows: str,
    now_ms: int,
    output: str,
    **_: Any,
) -> int:
    from kafka_segments.verbs.find.disk.report import print_disk  # noqa: PLC0415
    from kafka_segments.verbs.find.disk.run import DiskOptions, run_disk  # noqa: PLC0415

    if warehouse is None and rows in _OF_TABLES:
        raise UsageError(f"--rows {rows} needs --warehouse: it is what tables say")
    options = DiskOptions(
        local_folders("disk", (*folders, *sources)),
        now_ms=now_ms,
    )
    use = run_disk(options)
    if warehouse is not None:
        use.of_tables = _growth(absolute_uri(warehouse), use, now_ms)
    found = print_disk(use, output, rows=rows)
    return ExitStatus.FINDINGS if found else ExitStatus.DONE


def _growth(warehouse: str, use: "DiskUse", now_ms: int) -> "TableGrowth":
    with verb_session("disk", warehouse=warehouse, reads_all=True) as verb:
        from kafka_segments.verbs.find.disk.growth_of_tables import read_growth  # noqa: PLC0415

        grown = read_growth(verb.warehouse, use, now_ms=now_ms)
    is_known = grown.built_ms and not grown.unknown
    give_tables_age(now_ms - min(grown.built_ms.values()) if is_known else None)
    return grown
