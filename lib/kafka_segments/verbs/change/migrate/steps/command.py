"""``migrate stage``, ``verify``, ``apply``, ``rollback`` and ``status``: carry out a plan."""

from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

import click

from kafka_segments.console.early import require_plan
from kafka_segments.console.options import (
    ExitStatus,
    now_ms_option,
    output_option,
    run_with,
    verbose_option,
)
from kafka_segments.console.strict_options import Command
from kafka_segments.console.verb_session import verb_session
from kafka_segments.engine.tables.outcomes import Outcome
from kafka_segments.files.storage.typed_uris import absolute_uri

_Command = Callable[..., Any]


def _step_options(command: _Command) -> _Command:
    for option in (
        verbose_option,
        output_option(),
        now_ms_option,
        click.option("--plan", "plan_id", required=True, metavar="ID", help="The plan's id."),
        click.option("--warehouse", required=True, metavar="URI", help="Where the plan is."),
    ):
        command = option(command)
    return command


_execute_option = click.option(
    "--execute", is_flag=True, help="Swap the folders; without it nothing changes."
)
_by_mtime_option = click.option(
    "--by-mtime",
    is_flag=True,
    help="Compare .log files by size and mtime alone; default: their bytes are read again and"
    " compared by sha256, but for files that both folders share.",
)


@click.command(
    cls=Command, reads=("migration_plans",), example="--warehouse /srv/warehouse --plan spring"
)
@_step_options
def stage(**options: Any) -> None:
    """Write the migrated folders of a plan beside the log directories, each whole or not at all.

    A second run goes on after a crash. Exit status 1: some logs are refused, by the plan or now;
    3: there is too little room, or a file could not be written.
    """
    run_with(partial(_step, "stage"), options)


@click.command(
    cls=Command, reads=("migration_plans",), example="--warehouse /srv/warehouse --plan spring"
)
@_step_options
def verify(**options: Any) -> None:
    """Prove that staged segments hold the same records and fit their index files.

    Exit status 1: some are not proven, or refused by the plan; their logs are not applied.
    """
    run_with(partial(_step, "verify"), options)


@click.command(
    cls=Command, reads=("migration_plans",), example="--warehouse /srv/warehouse --plan spring"
)
@_step_options
@_by_mtime_option
@_execute_option
def apply(**options: Any) -> None:
    """Swap the migrated folders in, on a copy or under a stopped broker.

    It refuses a log directory whose .lock is held, and a log that is not verified or has changed
    since it was staged. Exit status 1: a log is refused, by the plan or now. Each log swaps in one
    step: a crash leaves it as it was or migrated, `migrate status` says which, and a second run
    goes on.
    """
    run_with(partial(_step, "apply"), options)


@click.command(
    cls=Command, reads=("migration_plans",), example="--warehouse /srv/warehouse --plan spring"
)
@_step_options
@click.option(
    "--discard-appended",
    "discard",
    is_flag=True,
    help="Also swap back logs whose segments have changed since; these stay in the stage folder.",
)
@_by_mtime_option
@_execute_option
def rollback(**options: Any) -> None:
    """Swap the first folders back in, byte for byte and with their mtimes."""
    run_with(partial(_step, "rollback"), options)


@click.command(
    cls=Command,
    reads=("migration_plans",),
    may_spare_spark=("plan_id",),
    example="--warehouse /srv/warehouse --plan spring",
)
@_step_options
def status(**options: Any) -> None:
    """Say how far each log is, and which folder is in place.

    Exit status 1: the plan refuses some.
    """
    run_with(_status, options)


def _step(
    step: str,
    *,
    warehouse: str,
    plan_id: str,
    now_ms: int,
    output: str,
    **options: Any,
) -> int:

    root = absolute_uri(warehouse)
    require_plan(root, "migration_plans", plan_id)
    from kafka_segments.verbs.change.migrate.steps import run as steps_of_plan  # noqa: PLC0415
    from kafka_segments.verbs.change.migrate.steps.report import print_steps  # noqa: PLC0415

    asked = steps_of_plan.StepOptions(plan_id, now_ms, **options)
    with verb_session(f"migrate {step}", warehouse=root, has_few=False) as verb:
        steps = getattr(steps_of_plan, f"run_{step}")(verb.warehouse, asked, verb.work.reads)
        counts = print_steps(steps, output)
    return exit_status(counts)


def _status(*, warehouse: str, plan_id: str, output: str, **options: Any) -> int:
    """Say how far a migration is; start Spark only where nothing else can tell."""
    from kafka_segments.verbs.change.migrate.steps.report import print_steps  # noqa: PLC0415
    from kafka_segments.verbs.change.migrate.steps.status import status_without_spark  # noqa: PLC0415

    told = status_without_spark(absolute_uri(warehouse), plan_id)
    if told is None:
        return _step("status", warehouse=warehouse, plan_id=plan_id, output=output, **options)
    return exit_status(print_steps(told, output))


def exit_status(logs: Counter[str]) -> int:
    """Return the exit status of a step, given how many logs have which status."""
    if logs[Outcome.FAILED]:
        return ExitStatus.FAILED
    return ExitStatus.FINDINGS if logs[Outcome.REFUSED] else ExitStatus.DONE
