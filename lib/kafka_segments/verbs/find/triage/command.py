"""``triage``: what is wrong with a broker's directories, and what to do, on one page."""

from typing import Any

import click

from kafka_segments.console.local_folders import directory_options, local_folders
from kafka_segments.console.options import ExitStatus, follow_links_option, run_with
from kafka_segments.console.progress import progress
from kafka_segments.console.strict_options import Command


@click.command(cls=Command, extra=None, example="/data/kafka-logs", has_figures=True)
@directory_options(
    click.option(
        "--check",
        type=click.Choice(["tails", "full"]),
        default="tails",
        show_default=True,
        help="What is read: the ends of logs, or every segment that a start reads.",
    ),
    follow_links_option,
)
def triage(**options: Any) -> None:
    """Look at a broker's directories, and say on one page what is wrong and what to do.

    Will it start, what stops it, what a start cuts, deletes or sets aside, what makes it slow, what
    is odd; then the steps, in their order. All directories of a node belong together: name them
    all, or the folder above. Without a broker, tables or a JVM; nothing is written. The rules are
    those of Kafka 4.3: `audit --kafka-version` judges index files for others. Exit status 1:
    something is to be done, or not known.
    """
    run_with(_triage, options)


def _triage(
    *,
    folders: tuple[str, ...],
    sources: tuple[str, ...],
    check: str,
    follow_links: bool,
    now_ms: int,
    output: str,
    **_: Any,
) -> int:
    from kafka_segments.verbs.find.triage.report import print_triage  # noqa: PLC0415
    from kafka_segments.verbs.find.triage.run import TriageOptions, run_triage  # noqa: PLC0415

    options = TriageOptions(
        local_folders("triage", (*folders, *sources)),
        now_ms=now_ms,
        is_full=check == "full",
        follow_links=follow_links,
    )
    with progress(None) as work:
        found = print_triage(run_triage(options, work=work), output)
    return ExitStatus.FINDINGS if found else ExitStatus.DONE
