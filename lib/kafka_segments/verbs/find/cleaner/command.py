"""``cleaner``: what the log cleaner makes of each compacted log, and why it does not run."""

from pathlib import Path
from typing import Any

import click

from kafka_segments.console.local_folders import directory_options, local_folders, log_name
from kafka_segments.console.options import ExitStatus, run_with
from kafka_segments.console.progress import progress
from kafka_segments.console.strict_options import Command


@click.command(
    cls=Command,
    extra=None,
    example="/data/kafka-logs --server-properties server.properties",
    has_figures=True,
)
@directory_options(
    click.option(
        "--server-properties",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        metavar="FILE",
        help="The broker's server.properties, for what the metadata log does not set.",
    ),
    click.option(
        "--what-if",
        "changes",
        multiple=True,
        metavar="KEY=VALUE",
        help="As if all topics had this setting, such as min.cleanable.dirty.ratio=0.1;"
        " repeatable.",
    ),
    click.option(
        "--log",
        "logs",
        multiple=True,
        metavar="TOPIC-PARTITION",
        help="This log alone, in words, with what its state follows from; repeatable.",
    ),
    click.option(
        "--check",
        type=click.Choice(["headers", "sample", "records"]),
        default="headers",
        show_default=True,
        help="records: read all that a pass would read, and say what it frees, or where the"
        " cleaner throws; sample: of what is clean a tenth of the segments, with an error; headers:"
        " what the broker looks at when it chooses a log.",
    ),
)
def cleaner(**options: Any) -> None:
    """Say of each compacted log where it stands with the log cleaner, and why.

    Its dirty ratio, from where on it is dirty and how far the cleaner may go, what holds it, and
    which log is next: as the broker's cleaner sees it at that moment. Settings are those of the
    metadata log. Without a broker, tables or a JVM; nothing is written. Exit status 1: a log is
    held by what may not pass by itself, the cleaner does not run, or something is not known.
    """
    run_with(_cleaner, options)


def _cleaner(
    *,
    folders: tuple[str, ...],
    sources: tuple[str, ...],
    server_properties: Path | None,
    changes: tuple[str, ...],
    logs: tuple[str, ...],
    check: str,
    now_ms: int,
    output: str,
    **_: Any,
) -> int:
    from kafka_segments.verbs.find.cleaner.configs import parse_changes, read_properties  # noqa: PLC0415
    from kafka_segments.verbs.find.cleaner.decide import Check  # noqa: PLC0415
    from kafka_segments.verbs.find.cleaner.report import print_cleaner  # noqa: PLC0415
    from kafka_segments.verbs.find.cleaner.run import (  # noqa: PLC0415
        CleanerOptions,
        run_cleaner,
    )

    options = CleanerOptions(
        local_folders("cleaner", (*folders, *sources)),
        now_ms=now_ms,
        properties={} if server_properties is None else read_properties(server_properties),
        what_if=parse_changes(changes),
        check=Check(check),
        logs=tuple(log_name("--log", log) for log in logs),
    )
    with progress(None) as work:
        nodes = run_cleaner(options, work=work)
    found = print_cleaner(nodes, output, in_words=bool(logs))
    return ExitStatus.FINDINGS if found else ExitStatus.DONE
