"""``retention plan``, ``apply``, ``rollback``: move what retention deletes, and bring it back."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import click

from kafka_segments.console.as_built import tell_as_built
from kafka_segments.console.early import require_plan
from kafka_segments.console.options import (
    ExitStatus,
    output_option,
    run_with,
    verbose_option,
)
from kafka_segments.console.strict_options import LOCAL_OUTPUT_FOLDER, Command
from kafka_segments.console.verb_session import verb_session
from kafka_segments.console.warehouse_access import require_writable
from kafka_segments.files.storage.typed_uris import absolute_uri
from kafka_segments.verbs.judge.retention.command_options import decision_options, retention_options


def _plan_options(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in (
        verbose_option,
        output_option(),
        click.option("--execute", is_flag=True, help="Move the files; without it nothing moves."),
        click.option("--plan", "plan_id", required=True, metavar="ID", help="The plan's id."),
        click.option("--warehouse", required=True, metavar="URI", help="Where the plan is."),
    ):
        command = option(command)
    return command


def _aside_option(kind: click.ParamType[Any], what: str) -> Callable[..., Any]:
    default = "default: <log directory>.set-aside, beside it."
    return click.option("--set-aside", "aside", type=kind, metavar="DIR", help=f"{what}; {default}")


@click.command(
    cls=Command,
    reads=("segments", "logs"),
    example="--warehouse /srv/warehouse --set retention_ms=604800000",
)
@click.option(
    "--digests",
    "has_digests",
    is_flag=True,
    help="Keep the sha256 of every file in the plan and hold apply to it; reads them all.",
)
@decision_options
def plan(**options: Any) -> None:
    """Write what retention deletes into table retention_plans; nothing is moved.

    An active segment is left to the broker, which rolls it first. Exit status 1: some segments
    have changed since build read them, their logs will be refused.
    """
    run_with(_plan, options)


@click.command(
    cls=Command,
    reads=("retention_plans",),
    example="--warehouse /srv/warehouse --plan PLAN_ID --set-aside /srv/set-aside",
)
@_plan_options
@_aside_option(LOCAL_OUTPUT_FOLDER, "Where the files go")
def apply(**options: Any) -> None:
    """Move a plan's segments to a set-aside folder, on a copy or under a stopped broker.

    A log directory whose .lock is held is refused, and a log whose files are not as planned (by
    size and mtime, and by sha256 after `plan --digests`); exit status 1. Run again after a crash,
    it goes on; what has been moved is left alone.
    """
    run_with(partial(_move, "run_apply"), options)


@click.command(
    cls=Command, reads=("retention_plans",), example="--warehouse /srv/warehouse --plan PLAN_ID"
)
@_plan_options
@_aside_option(click.Path(file_okay=False, path_type=Path), "Where apply moved the files")
def rollback(**options: Any) -> None:
    """Bring back what apply has moved, byte for byte and with its mtimes."""
    run_with(partial(_move, "run_rollback"), options)


def _plan(*, output: str, dry_run: bool, has_digests: bool, **options: Any) -> int:
    from kafka_segments.verbs.judge.retention.report_plan import print_plan  # noqa: PLC0415
    from kafka_segments.verbs.judge.retention.report_settings import print_retention_settings  # noqa: PLC0415
    from kafka_segments.verbs.judge.retention.run_plan import run_plan  # noqa: PLC0415

    asked, root = retention_options(**options), absolute_uri(options["warehouse"])
    print_retention_settings(root, asked.configs)
    if not dry_run:
        require_writable(root)
    session = verb_session("retention plan", warehouse=root, reads_all=True)
    with session as verb:
        plan_id, planned = run_plan(
            verb.warehouse,
            asked,
            has_digests=has_digests,
            dry_run=dry_run,
            tell=verb.work.reads,
            tell_read=verb.work.has_read,
        )
        problems = print_plan(plan_id, planned, output, dry_run=dry_run)
        tell_as_built(verb.warehouse, now_ms=asked.now_ms)
    return ExitStatus.FINDINGS if problems else ExitStatus.DONE


def _move(
    run_step: str,
    *,
    warehouse: str,
    plan_id: str,
    aside: Path | None,
    execute: bool,
    output: str,
    **_: Any,
) -> int:

    root = absolute_uri(warehouse)
    require_plan(root, "retention_plans", plan_id)
    from kafka_segments.verbs.judge.retention import run_plan as steps  # noqa: PLC0415
    from kafka_segments.verbs.judge.retention.report_plan import print_moves  # noqa: PLC0415

    aside = None if aside is None else aside.resolve()
    asked = steps.MoveOptions(plan_id, aside=aside, execute=execute)
    with verb_session("retention", warehouse=root, has_few=False) as verb:
        moves = getattr(steps, run_step)(verb.warehouse, asked)
        refused = print_moves(moves, output, execute=execute)
    return ExitStatus.FINDINGS if refused else ExitStatus.DONE
