"""``migrate``: log directories of Kafka 0.8 to 0.10 for Kafka 4."""

import click

from kafka_segments.console.strict_options import Group
from kafka_segments.verbs.change.migrate.command_inventory import inventory
from kafka_segments.verbs.change.migrate.command_plan import plan
from kafka_segments.verbs.change.migrate.command_steps import apply, rollback, stage, status, verify


@click.group(cls=Group)
def migrate() -> None:
    """Bring log directories of old clusters to what a Kafka 4 broker should find."""


for command in (inventory, plan, stage, verify, apply, rollback, status):
    migrate.add_command(command)
