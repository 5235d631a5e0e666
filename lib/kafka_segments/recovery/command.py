"""``recovery``: a broker's recovery after a crash."""

import click

from kafka_segments.console.strict_options import Group
from kafka_segments.recovery.command_forecast import forecast


@click.group(cls=Group)
def recovery() -> None:
    """Say what a broker's start after a crash does, and how long that takes."""


for command in (forecast,):
    recovery.add_command(command)
