"""``migrate inventory``: what segments are made of, and what stands in the way of Kafka 4."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kafka_segments.console.as_built import tell_age
from kafka_segments.console.options import ExitStatus, run_with
from kafka_segments.console.strict_options import Command
from kafka_segments.console.verb_session import verb_session
from kafka_segments.console.warehouse_access import keeps_nothing
from kafka_segments.errors import CorruptTextError, UsageError
from kafka_segments.files.storage.typed_uris import absolute_uri
from kafka_segments.verbs.judge.retention.command_options import decision_options, retention_options

if TYPE_CHECKING:
    from kafka_segments.kafka.text.kafka_configs import GoneSetting


@click.command(cls=Command, reads=("segments", "logs"), example="--warehouse /srv/warehouse")
@click.option(
    "--by",
    type=click.Choice(["cluster", "topic", "partition", "segment"]),
    default="topic",
    show_default=True,
    help="What the tables sum up by.",
)
@click.option(
    "--rows",
    type=click.Choice(["segments", "obstacles"]),
    default="segments",
    show_default=True,
    help="Which rows json and csv print.",
)
@click.option(
    "--headers-only",
    is_flag=True,
    help="Open no compressed messages v0 and v1: their records are not counted.",
)
@decision_options
def inventory(**options: Any) -> None:
    """Say what segments are made of, when they go, and what stands in the way of Kafka 4.

    Reads the tables of `build`, and again segments of mixed formats. The result goes to tables
    migration_inventory and migration_obstacles. Exit status 1: something stands in the way.
    """
    run_with(_inventory, options)


def _inventory(
    *, by: str, rows: str, headers_only: bool, output: str, dry_run: bool, **options: Any
) -> int:
    from kafka_segments.verbs.change.migrate.inventory.removed_settings import removed_in_metadata  # noqa: PLC0415
    from kafka_segments.verbs.change.migrate.inventory.report import print_inventory  # noqa: PLC0415
    from kafka_segments.verbs.change.migrate.inventory.run import InventoryOptions, run_inventory  # noqa: PLC0415
    from kafka_segments.verbs.judge.retention.report_settings import print_retention_settings  # noqa: PLC0415

    retention, root = retention_options(**options), absolute_uri(options["warehouse"])
    of_files = _gone_settings(options["server_properties"], options["topic_configs"])
    asked = InventoryOptions(
        retention=retention,
        gone_settings=(*of_files, *removed_in_metadata(retention.configs)),
        decompresses=not headers_only,
    )
    print_retention_settings(root, retention.configs)
    dry_run = keeps_nothing(root, dry_run=dry_run)
    with verb_session("migrate inventory", warehouse=root, reads_all=True) as verb:
        found = run_inventory(verb.warehouse, asked, dry_run=dry_run)
        has_obstacles = print_inventory(found, output, by=by, rows=rows)
        tell_age(verb.warehouse, now_ms=retention.now_ms)
    return ExitStatus.FINDINGS if has_obstacles else ExitStatus.DONE


def _gone_settings(
    server_properties: Path | None, topic_configs: tuple[Path, ...]
) -> tuple["GoneSetting", ...]:
    from kafka_segments.kafka.text import kafka_configs  # noqa: PLC0415

    found = []
    for file, find in (
        (server_properties, kafka_configs.find_gone_in_properties),
        *((file, kafka_configs.find_gone_in_described) for file in topic_configs),
    ):
        if file is None:
            continue
        try:
            found += find(str(file), file.read_text("utf-8"))
        except CorruptTextError as error:
            raise UsageError(str(error)) from None
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"{file}: {error}") from None
    return tuple(found)
