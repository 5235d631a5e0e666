"""``recovery``: a broker's recovery after a crash."""

import click

from kafka_segments.console.strict_options import Group
from kafka_segments.verbs.change.recovery.apply.command import apply, rollback
from kafka_segments.verbs.change.recovery.forecast.command import forecast
from kafka_segments.verbs.change.recovery.kit.command import kit


@click.group(cls=Group)
def recovery() -> None:
    """Say what a broker's start after a crash does and how long it takes; do its work before."""


for command in (forecast, kit, apply, rollback):
    recovery.add_command(command)
