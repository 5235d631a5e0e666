"""``forensics``: what is wrong with the timestamps of producers."""

from functools import partial
from pathlib import Path
from typing import Any

import click

from kafka_segments.console.options import (
    ExitStatus,
    follow_links_option,
    load_settings,
    run_with,
    shared_options,
    source_option,
)
from kafka_segments.console.strict_options import Command
from kafka_segments.console.verb_session import verb_session
from kafka_segments.files.storage.typed_uris import absolute_uri


@click.command(cls=Command, example="--source /data/kafka-logs")
@source_option
@follow_links_option
@click.option("--refused", is_flag=True, help="Print each batch that would be refused instead.")
@partial(
    shared_options,
    needs_warehouse=False,
    warehouse="Taken, as by other verbs, and not used: the sources are read.",
)
def forensics(**options: Any) -> None:
    """Judge the timestamps of every topic, partition and producer, from batch headers.

    Unit, future, steps back and gaps, skew between both clocks, and what
    message_timestamp_before_max_ms, _after_max_ms and KIP-32's _difference_max_ms (--set) would
    have refused. Nothing is written. Exit status 1: a limit would have refused some, a unit is not
    ms, or a segment cannot be read to its end; stderr names those. That the last segment of a log
    ends early is said, but does not count: a running broker may be writing to it.
    """
    run_with(_forensics, options)


def _forensics(
    *,
    sources: tuple[str, ...],
    refused: bool,
    follow_links: bool,
    conf: Path | None,
    pairs: tuple[str, ...],
    now_ms: int,
    output: str,
    **_: Any,
) -> int:
    from kafka_segments.verbs.find.forensics import report  # noqa: PLC0415
    from kafka_segments.verbs.find.forensics.decide import Admission  # noqa: PLC0415
    from kafka_segments.verbs.find.forensics.run import ForensicsOptions, run_forensics  # noqa: PLC0415

    settings = load_settings(conf, pairs)
    asked = ForensicsOptions(
        sources=tuple(map(absolute_uri, sources)),
        now_ms=now_ms,
        admission=Admission(
            before_ms=settings.message_timestamp_before_max_ms,
            after_ms=settings.message_timestamp_after_max_ms,
            difference_ms=settings.message_timestamp_difference_max_ms,
        ),
        follow_links=follow_links,
    )
    print_found = report.print_refused if refused else report.print_forensics
    with verb_session("forensics", sources=asked.sources, follow_links=follow_links) as verb:
        tell = verb.work.reads if verb.work.is_shown else None
        found = print_found(run_forensics(verb.spark, asked, tell), output)
    return ExitStatus.FINDINGS if found else ExitStatus.DONE
