"""``migrate``: log directories of Kafka 0.8 to 0.10 for Kafka 4."""

import click

from kafka_segments.console.strict_options import Group
from kafka_segments.verbs.change.migrate.inventory.command import inventory
from kafka_segments.verbs.change.migrate.plan.command import plan
from kafka_segments.verbs.change.migrate.steps.command import apply, rollback, stage, status, verify


@click.group(cls=Group)
def migrate() -> None:
    """Bring log directories of old clusters to what a Kafka 4 broker should find."""


for command in (inventory, plan, stage, verify, apply, rollback, status):
    migrate.add_command(command)
