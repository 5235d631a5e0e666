"""``internals transactions``: which transactions are open, and whether anything ends them."""

from typing import Any

import click

from kafka_segments.console.as_built import tell_builds
from kafka_segments.console.log_options import log_options
from kafka_segments.console.options import ExitStatus, run_with
from kafka_segments.console.strict_options import Command
from kafka_segments.console.verb_session import verb_session
from kafka_segments.files.storage.typed_uris import absolute_uri


@click.command(
    cls=Command,
    reads=("segments", "logs", "internal_records"),
    example="--warehouse /srv/warehouse",
)
@log_options()
def transactions(**options: Any) -> None:
    """Say which transactions are open, since when, and whether anything will end them.

    It compares what `build` found open in the logs with the transaction coordinator's own log. An
    open transaction holds back the last stable offset: consumers that read committed records wait
    there, and so does compaction. Exit status 1: the coordinator does not know of a transaction, so
    that it hangs, the timeout of one has passed, or not all of the coordinator's log was read.
    """
    run_with(_transactions, options)


def _transactions(*, warehouse: str, output: str, now_ms: int, **choice: Any) -> int:
    from kafka_segments.verbs.find.internals.transactions.report import print_transactions  # noqa: PLC0415
    from kafka_segments.verbs.find.internals.transactions.run import (  # noqa: PLC0415
        TransactionsOptions,
        run_transactions,
    )
    from kafka_segments.verbs.find.search.named_logs import chosen_logs  # noqa: PLC0415

    root = absolute_uri(warehouse)
    asked = TransactionsOptions(chosen_logs(root, **choice), now_ms)
    with verb_session("internals transactions", warehouse=root) as verb:
        found = print_transactions(run_transactions(verb.warehouse, asked, verb.caches), output)
        tell_builds(verb.warehouse, now_ms=now_ms)
    return ExitStatus.FINDINGS if found else ExitStatus.DONE
