"""``retention``: decide what a broker deletes, and why the rest stays."""

from contextlib import ExitStack
from typing import Any

import click

from kafka_segments.console.as_built import tell_as_built
from kafka_segments.console.config_options import log_of
from kafka_segments.console.options import ExitStatus, run_with
from kafka_segments.console.prometheus import PROMETHEUS
from kafka_segments.console.strict_options import Group
from kafka_segments.console.verb_session import verb_session
from kafka_segments.console.warehouse_access import keeps_nothing
from kafka_segments.engine.tables.missing import require_names
from kafka_segments.errors import UsageError
from kafka_segments.files.storage.typed_uris import absolute_uri
from kafka_segments.verbs.judge.retention.command_options import decision_options, retention_options
from kafka_segments.verbs.judge.retention.command_plan import apply, plan, rollback


class _DecideByDefault(Group):
    """A group whose call without a subcommand decides."""

    default = "decide"


@click.group(cls=_DecideByDefault)
def retention() -> None:
    """Decide what retention deletes now, and why the rest stays.

    Without a subcommand it decides: `retention decide --help` has the options.
    """


@retention.command(
    reads=("segments", "logs"),
    example="--warehouse /srv/warehouse --what-if retention_ms=86400000,604800000",
    has_figures=True,
)
@click.option(
    "--what-if",
    "what_if",
    multiple=True,
    metavar="KEY=VALUES",
    help="Show what other settings keep, per topic; values with commas and several keys make a"
    " grid. Repeatable.",
)
@click.option(
    "--topic",
    "topics",
    multiple=True,
    help="Decide for this topic alone, and keep no decisions; repeatable.",
)
@decision_options
def decide(**options: Any) -> None:
    """Decide for every segment; the default.

    The result is one row a segment, and table retention_decisions; with --what-if one row a
    topic and setting. The table has decisions for all topics of a run, so --topic adds none.
    """
    run_with(_decide, options)


@retention.command(reads=("segments", "logs"), example="orders-0 --warehouse /srv/warehouse")
@click.argument("log", metavar="TOPIC-PARTITION")
@decision_options
def explain(**options: Any) -> None:
    """Say for each segment of one log why it goes or stays, and what would free it."""
    run_with(_explain, options)


for command in (plan, apply, rollback):
    retention.add_command(command)


def _decide(*, what_if: tuple[str, ...], output: str, dry_run: bool, **options: Any) -> int:
    from kafka_segments.engine.frames.engines import computed_once  # noqa: PLC0415
    from kafka_segments.settings import settings_grid  # noqa: PLC0415
    from kafka_segments.verbs.judge.retention.report import (  # noqa: PLC0415
        print_not_decided,
        print_retention,
        print_what_if,
    )
    from kafka_segments.verbs.judge.retention.report_settings import print_retention_settings  # noqa: PLC0415
    from kafka_segments.verbs.judge.retention.run import run_retention, run_what_if  # noqa: PLC0415

    if what_if and output == PROMETHEUS:
        raise UsageError("--output prometheus has what retention decides now: leave --what-if out")
    asked, root = retention_options(**options), absolute_uri(options["warehouse"])
    grid = settings_grid(what_if)
    print_retention_settings(root, asked.configs, asked.topics)
    dry_run = bool(grid or asked.topics) or keeps_nothing(root, dry_run=dry_run)
    with verb_session("retention", warehouse=root, reads_all=True) as verb:
        if grid:
            print_what_if(run_what_if(verb.warehouse, asked, grid), output)
            unsure = 0
        else:
            decided = run_retention(verb.warehouse, asked, dry_run=dry_run)
            with ExitStack() as caches:
                decided = computed_once(decided, caches) if dry_run else decided
                print_retention(decided, output)
                unsure = print_not_decided(decided)
        tell_as_built(verb.warehouse, now_ms=asked.now_ms, topics=asked.topics)
    return ExitStatus.FINDINGS if unsure else ExitStatus.DONE


def _explain(*, log: str, output: str, **options: Any) -> int:
    folder = log_of(log)
    from kafka_segments.console.output import print_rows  # noqa: PLC0415
    from kafka_segments.engine.derived.logs_in_tables import partitions_known  # noqa: PLC0415
    from kafka_segments.engine.frames.engines import computed_once  # noqa: PLC0415
    from kafka_segments.verbs.judge.retention.report import print_not_decided  # noqa: PLC0415
    from kafka_segments.verbs.judge.retention.report_explain import (  # noqa: PLC0415
        MOST_SEGMENTS,
        print_explain,
    )
    from kafka_segments.verbs.judge.retention.run import run_explain  # noqa: PLC0415

    asked, root = retention_options(**options), absolute_uri(options["warehouse"])
    known = partitions_known(root)
    if known is not None:
        logs = (f"{one.topic}-{one.partition}" for one in known)
        named = f"{folder.topic}-{folder.partition}"
        require_names(root, "segments of", (named,), logs)
    with (
        verb_session("retention explain", warehouse=root) as verb,
        ExitStack() as caches,
    ):
        decided = run_explain(verb.warehouse, asked, topic=folder.topic, partition=folder.partition)
        decided = computed_once(decided, caches)
        if output != "table":
            print_rows(decided, output)
        else:
            found = decided.take(MOST_SEGMENTS + 1)
            if not found:
                raise UsageError(f"{root} has no segments of {log}")
            print_explain(found, asked.configs, now_ms=asked.now_ms)
        unsure = print_not_decided(decided)
        tell_as_built(
            verb.warehouse,
            now_ms=asked.now_ms,
            topics=(folder.topic,),
            partition=folder.partition,
        )
    return ExitStatus.FINDINGS if unsure else ExitStatus.DONE
