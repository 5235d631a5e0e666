"""``latency``: broker latency by topic and hour, from batch headers."""

from typing import Any

import click

from kafka_segments.console.as_built import tell_age
from kafka_segments.console.log_options import log_options
from kafka_segments.console.options import ExitStatus, run_with
from kafka_segments.console.strict_options import Command
from kafka_segments.console.verb_session import verb_session
from kafka_segments.files.storage.typed_uris import absolute_uri


@click.command(
    cls=Command, reads=("segments", "logs"), example="--warehouse /srv/warehouse --topic orders"
)
@log_options()
def latency(**options: Any) -> None:
    """Measure LAT - CT, append time less create time, by topic and hour.

    Only topics with LogAppendTime tell it: for the first record of each batch v2 and of each
    compressed batch v1. Exit status 1: some latencies are negative, so some clock is wrong; or a
    segment could not be read to its end.
    """
    run_with(_latency, options)


def _latency(*, warehouse: str, output: str, now_ms: int, **choice: Any) -> int:
    from kafka_segments.verbs.find.latency.report import print_latency  # noqa: PLC0415
    from kafka_segments.verbs.find.latency.run import run_latency  # noqa: PLC0415
    from kafka_segments.verbs.find.search.named_logs import chosen_logs  # noqa: PLC0415

    root = absolute_uri(warehouse)
    asked = chosen_logs(root, **choice)
    with verb_session("latency", warehouse=root) as verb:
        tables = verb.warehouse
        found = print_latency(run_latency(tables, asked, verb.caches, verb.work.reads), output)
        tell_age(verb.warehouse, now_ms=now_ms, allowed=asked.allowed())
    return ExitStatus.FINDINGS if found else ExitStatus.DONE
