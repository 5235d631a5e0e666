"""The command line: the group of all verbs."""

import click

from kafka_segments import __version__
from kafka_segments.commands.audit import audit
from kafka_segments.commands.build import build
from kafka_segments.commands.compact import compact
from kafka_segments.commands.forensics import forensics
from kafka_segments.commands.lag import lag
from kafka_segments.commands.latency import latency
from kafka_segments.commands.migrate import migrate
from kafka_segments.commands.report import report
from kafka_segments.commands.retention import retention
from kafka_segments.commands.roll import roll
from kafka_segments.commands.search import search
from kafka_segments.commands.sql import sql
from kafka_segments.commands.validate import validate


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="kafka-segments")
def cli() -> None:
    """Rebuild, check and query the indexes of raw Kafka log segments.

    Exit status: 0 done, nothing found; 1 done, with findings; 2 wrong usage or configuration;
    3 failed.
    """


for verb in (
    audit,
    build,
    compact,
    forensics,
    lag,
    latency,
    migrate,
    report,
    retention,
    roll,
    search,
    sql,
    validate,
):
    cli.add_command(verb)


def main() -> None:
    """Run the command line."""
    cli()
