"""The command line: the group of all verbs."""

import sys
from typing import Any

import click

from kafka_segments.console.options import interrupted_status
from kafka_segments.kafka.wire.plain_text import plain_lines
from kafka_segments.release import __version__
from kafka_segments.shell.command import shell
from kafka_segments.verbs.change.compact.command import compact
from kafka_segments.verbs.change.migrate.command import migrate
from kafka_segments.verbs.change.recovery.command import recovery
from kafka_segments.verbs.copies.backup.command import backup
from kafka_segments.verbs.copies.divergence.command import divergence
from kafka_segments.verbs.find.cleaner.command import cleaner
from kafka_segments.verbs.find.disk.command import disk
from kafka_segments.verbs.find.failover.command import failover, restore
from kafka_segments.verbs.find.forensics.command import forensics
from kafka_segments.verbs.find.internals.command import internals
from kafka_segments.verbs.find.lag.command import lag
from kafka_segments.verbs.find.latency.command import latency
from kafka_segments.verbs.find.records.command import records
from kafka_segments.verbs.find.search.command import search
from kafka_segments.verbs.find.triage.command import triage
from kafka_segments.verbs.judge.audit.command import audit
from kafka_segments.verbs.judge.retention.command import retention
from kafka_segments.verbs.judge.roll.command import roll
from kafka_segments.verbs.scan.command import build
from kafka_segments.verbs.tell.report.command import report
from kafka_segments.verbs.tell.sql.command import sql
from kafka_segments.verbs.tell.validate.command import validate


def _plain(error: click.ClickException) -> click.ClickException:
    """Let an error about options, which repeats what was given, do nothing to a terminal."""
    vars(error)["message"] = plain_lines(error.message)
    return error


class _Verbs(click.Group):
    """The group of all verbs; Ctrl-C and SIGTERM end one with the status of shells for them."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run a verb; it says itself that it was interrupted, if it had begun."""
        try:
            return super().invoke(ctx)
        except click.ClickException as error:
            raise _plain(error) from None
        except KeyboardInterrupt as error:
            sys.exit(interrupted_status(error))


@click.group(cls=_Verbs, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="kafka-segments")
def cli() -> None:
    """Rebuild, check and query the indexes of raw Kafka log segments.

    Exit status: 0 done, nothing found; 1 done, with findings; 2 wrong usage or configuration;
    3 failed; 130 interrupted; 143 ended by SIGTERM.
    """


for verb in (
    audit,
    backup,
    build,
    cleaner,
    compact,
    disk,
    divergence,
    forensics,
    internals,
    lag,
    latency,
    migrate,
    records,
    recovery,
    report,
    retention,
    roll,
    search,
    shell,
    sql,
    triage,
    validate,
):
    cli.add_command(verb)
for plan in (failover, restore):
    search.add_command(plan)
