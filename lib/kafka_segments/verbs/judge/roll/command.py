"""``roll``: which active segments roll, and what other settings would have given."""

from functools import partial
from pathlib import Path
from typing import Any

import click

from kafka_segments.console.as_built import tell_as_built
from kafka_segments.console.config_options import config_file_options, load_configs
from kafka_segments.console.options import (
    BUILT_TABLES,
    ExitStatus,
    kafka_version_option,
    load_settings,
    run_with,
    shared_options,
)
from kafka_segments.console.strict_options import INT, LONG, POSITIVE_INT, Command
from kafka_segments.console.verb_session import verb_session
from kafka_segments.console.warehouse_access import keeps_nothing
from kafka_segments.files.storage.typed_uris import absolute_uri
from kafka_segments.kafka.broker_rules.versions import parse_version


@click.command(
    cls=Command,
    reads=("segments", "logs"),
    example="--warehouse /srv/warehouse --what-if segment_bytes=104857600",
)
@kafka_version_option("Whose rules hold")
@click.option(
    "--rule",
    metavar="RULE",
    help="Another time rule: first-batch (0.10.1 and later), first-message or largest-timestamp"
    " (texts of KIP-33), create-time (before 0.10.1).",
)
@click.option(
    "--append-bytes", type=INT, default=16_384, show_default=True, help="Size of the next append."
)
@click.option(
    "--append-records",
    type=POSITIVE_INT,
    default=1,
    show_default=True,
    help="Records of the next append.",
)
@click.option(
    "--append-timestamp-ms",
    type=click.IntRange(min=-1, max=2**63 - 1),
    metavar="MS",
    help="Greatest timestamp of the next append, -1 for none; default: now.",
)
@click.option(
    "--opened-ms",
    type=LONG,
    metavar="MS",
    help="When the broker started or rolled, for segments without timestamps; default: mtime.",
)
@click.option(
    "--what-if",
    "what_if",
    multiple=True,
    metavar="KEY=VALUES",
    help="Cut all history anew with another segment_bytes, segment_ms or index_interval_bytes;"
    " values with commas and several keys make a grid. Repeatable.",
)
@config_file_options
@partial(shared_options, warehouse=BUILT_TABLES)
def roll(**options: Any) -> None:
    """Decide which active segments the next append rolls, why, and when the others roll.

    The result is one row an active segment, and table roll_decisions; with --what-if one row a
    log and setting, and no table.
    """
    run_with(_roll, options)


def _roll(
    *,
    warehouse: str,
    conf: Path | None,
    pairs: tuple[str, ...],
    now_ms: int,
    output: str,
    dry_run: bool,
    kafka_version: str,
    rule: str | None,
    topic_configs: tuple[Path, ...],
    server_properties: Path | None,
    what_if: tuple[str, ...],
    **append: Any,
) -> int:
    from kafka_segments.settings import CutConfig, settings_grid  # noqa: PLC0415
    from kafka_segments.verbs.judge.roll.decide.rules import RollRules  # noqa: PLC0415
    from kafka_segments.verbs.judge.roll.report import print_roll, print_what_if  # noqa: PLC0415
    from kafka_segments.verbs.judge.roll.run import RollOptions, run_roll, run_what_if  # noqa: PLC0415

    settings = load_settings(conf, pairs)
    root = absolute_uri(warehouse)
    asked = RollOptions(
        configs=load_configs(
            settings,
            topic_configs=topic_configs,
            server_properties=server_properties,
            warehouse=root,
            now_ms=now_ms,
            decide=True,
        ),
        rules=RollRules.of(parse_version(kafka_version), rule),
        now_ms=now_ms,
        **append,
    )
    grid = settings_grid(what_if, of=CutConfig)
    dry_run = bool(grid) or keeps_nothing(root, dry_run=dry_run)
    with verb_session("roll", warehouse=root, reads_all=True) as verb:
        if grid:
            print_what_if(run_what_if(verb.warehouse, asked, grid), output, asked.configs)
        else:
            print_roll(run_roll(verb.warehouse, asked, dry_run=dry_run), output, asked.configs)
        tell_as_built(verb.warehouse, now_ms=now_ms, has_starts=False)
    return ExitStatus.DONE
