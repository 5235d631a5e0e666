"""The command line: the group of all verbs."""

import sys
import time
from itertools import chain
from typing import Any

import click

from kafka_segments.console.lines import say
from kafka_segments.console.options import ExitStatus, interrupted_status
from kafka_segments.console.strict_options import first_sentence
from kafka_segments.kafka.text.plain_text import plain_lines
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

QUESTIONS: dict[str, tuple[click.Command, ...]] = {
    "At 3 a.m.": (triage, recovery, disk, records, cleaner, audit),
    "Indexes and tables": (build, validate, compact),
    "Where, when, how late": (search, lag, latency, forensics, internals),
    "What goes, what would": (retention, roll, migrate),
    "Copies and backups": (divergence, backup),
    "The tables, read": (report, sql, shell),
}
"""The verbs, by what people ask; the command line has those that stand here."""


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

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Take ``help`` and ``help VERB`` for what they mean."""
        if args[:1] == ["help"]:
            args = [*args[1:], "--help"]
        return super().parse_args(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the verbs by what people ask, each with its first sentence as a whole."""
        del ctx
        for question, verbs in QUESTIONS.items():
            with formatter.section(question):
                formatter.write_dl([(str(verb.name), first_sentence(verb)) for verb in verbs])


def _compile(ctx: click.Context, _: click.Parameter, is_asked: bool) -> None:
    if not is_asked or ctx.resilient_parsing:
        return
    from kafka_segments.compiled_calls import compile_calls  # noqa: PLC0415  numba takes a while

    begun = time.monotonic()
    folder = compile_calls()
    if folder is None:
        say("no folder to keep compiled code in: set NUMBA_CACHE_DIR to one that can be written to")
        ctx.exit(ExitStatus.FAILED)
    say(f"compiled what reads segments, in {time.monotonic() - begun:.1f} s: {folder}")
    ctx.exit()


@click.group(cls=_Verbs, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="kafka-segments")
@click.option(
    *("--compile", "_"),
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_compile,
    help="Compile what reads segments, once an installation, so that no run waits for it.",
)
def cli() -> None:
    """Rebuild, check and query the indexes of raw Kafka log segments.

    Exit status: 0 done, nothing found; 1 done, with findings; 2 wrong usage or configuration;
    3 failed; 130 interrupted; 143 ended by SIGTERM.
    """


for verb in chain.from_iterable(QUESTIONS.values()):
    cli.add_command(verb)
for plan in (failover, restore):
    search.add_command(plan)
