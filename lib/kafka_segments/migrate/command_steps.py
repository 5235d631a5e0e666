"""``migrate plan``, ``stage``, ``verify``, ``apply``, ``rollback`` and ``status``."""

from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click

from kafka_segments.console.early import require_plan
from kafka_segments.console.options import (
    DONE,
    FAILED,
    FINDINGS,
    ROOT,
    clock,
    index_size_options,
    load_settings,
    run,
    shared_options,
    source_option,
)
from kafka_segments.console.strict_options import INT, MOMENT_MS, Command
from kafka_segments.errors import CorruptTextError, UsageError

_RULES = ("kafka", "mtime-next", "mtime-first")
_Command = Callable[..., Any]


def _step_options(command: _Command) -> _Command:
    for option in (
        click.option("--verbose", is_flag=True, help="More messages on stderr."),
        click.option(
            "--output",
            type=click.Choice(["table", "json", "csv"]),
            default="table",
            show_default=True,
            help="Form of the result on stdout; json is one object a line.",
        ),
        click.option(
            "--now-ms",
            type=MOMENT_MS,
            metavar="MS",
            help="The moment to take as now, in ms since 1970; default: the clock.",
        ),
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
    help="Tell .log files by size and mtime alone; default: their bytes are read again and have"
    " the sha256 of the manifest, but for those that both folders share.",
)


@click.command(cls=Command)
@source_option
@shared_options
@index_size_options
@click.option("--cluster", metavar="NAME", help="Default: cluster.id of meta.properties.")
@click.option("--broker-id", type=INT, metavar="N", help="Default: of meta.properties.")
@click.option(
    "--time-index",
    type=click.Choice(_RULES),
    default="kafka",
    show_default=True,
    help="Time index of closed segments in which no record has a timestamp: empty, as Kafka's"
    " recovery leaves it, or one entry by KIP-33: (mtime -> base offset of the next segment), or"
    " (mtime -> first offset).",
)
@click.option("--convert", is_flag=True, help="Write messages v0 and v1 anew as batches v2.")
@click.option(
    "--no-timestamp-as",
    type=click.Choice(["none", "mtime"]),
    default="none",
    show_default=True,
    help="With --convert: what messages without a timestamp get; none is Kafka's -1.",
)
@click.option(
    "--max-message-bytes",
    type=INT,
    default=1_048_588,
    show_default=True,
    metavar="BYTES",
    help="With --convert: the brokers' message.max.bytes; larger batches are named.",
)
@click.option(
    "--topic-ids",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="What kafka-topics --describe prints of the new cluster: logs without partition.metadata"
    " get one with their topic's id.",
)
@click.option(
    "--damaged",
    type=click.Choice(["refuse", "cut"]),
    default="refuse",
    show_default=True,
    help="Logs with bytes that a broker's recovery would cut off: leave them alone, or leave those"
    " bytes behind, segment by segment.",
)
@click.option("--stage-dir", metavar="DIR", help="Default: <log directory>.migration, beside it.")
@click.option("--plan", "plan_id", metavar="ID", help="The plan's id; default: a random one.")
def plan(**options: Any) -> None:
    """Look at every segment and say what will be done and why; nothing is changed.

    Exit status 1: some logs are refused. They are left alone, their replicas elsewhere go on.
    """
    run(lambda: _plan(**options), verbose=options["verbose"])


@click.command(cls=Command, reads=("migration_plans",))
@_step_options
def stage(**options: Any) -> None:
    """Write the migrated folders of a plan beside the log directories, each whole or not at all.

    Run again after a crash, it goes on. Exit status 1: some logs are refused, by the plan or now;
    3: there is too little room, or a file could not be written.
    """
    run(lambda: _step("stage", **options), verbose=options["verbose"])


@click.command(cls=Command, reads=("migration_plans",))
@_step_options
def verify(**options: Any) -> None:
    """Prove that staged segments hold the same records and fit their index files.

    Exit status 1: some are not proven, or refused by the plan; their logs are not applied.
    """
    run(lambda: _step("verify", **options), verbose=options["verbose"])


@click.command(cls=Command, reads=("migration_plans",))
@_step_options
@_by_mtime_option
@_execute_option
def apply(**options: Any) -> None:
    """Swap the migrated folders in, on a copy or under a stopped broker.

    A log directory whose .lock is held is refused, and a log that is not verified or has changed
    since it was staged; exit status 1, as where the plan refuses a log. Each log swaps in one
    step: a crash leaves it as it was or migrated, `migrate status` says which, and a second run
    goes on.
    """
    run(lambda: _step("apply", **options), verbose=options["verbose"])


@click.command(cls=Command, reads=("migration_plans",))
@_step_options
@click.option(
    "--discard-appended",
    "discard",
    is_flag=True,
    help="Also where segments have changed since; what is there then goes to the stage folder.",
)
@_by_mtime_option
@_execute_option
def rollback(**options: Any) -> None:
    """Swap the first folders back in, byte for byte and with their mtimes."""
    run(lambda: _step("roll_back", **options), verbose=options["verbose"])


@click.command(cls=Command, reads=("migration_plans",), may_spare_spark=("plan_id",))
@_step_options
def status(**options: Any) -> None:
    """Say of every log how far it is, and which folder is in place.

    Exit status 1: the plan refuses some.
    """
    run(lambda: _status(**options), verbose=options["verbose"])


COMMANDS = (plan, stage, verify, apply, rollback, status)


def _plan(
    *,
    sources: tuple[str, ...],
    warehouse: str,
    conf: Path | None,
    pairs: tuple[str, ...],
    now_ms: int | None,
    output: str,
    dry_run: bool,
    index_interval_bytes: int | None,
    segment_index_bytes: int | None,
    time_index: str,
    convert: bool,
    no_timestamp_as: str,
    max_message_bytes: int,
    damaged: str,
    topic_ids: Path | None,
    stage_dir: str | None,
    plan_id: str | None,
    cluster: str | None,
    broker_id: int | None,
    **_: Any,
) -> int:
    from kafka_segments.console.output import progress  # noqa: PLC0415
    from kafka_segments.index.kip33_index import WithoutTimestamps  # noqa: PLC0415
    from kafka_segments.migrate.planned_segment import MigrationRules  # noqa: PLC0415
    from kafka_segments.migrate.report_steps import print_plan  # noqa: PLC0415
    from kafka_segments.migrate.run_plan import MigrationOptions, plan_migration  # noqa: PLC0415
    from kafka_segments.spark.session import spark_session  # noqa: PLC0415
    from kafka_segments.storage.files import absolute_uri  # noqa: PLC0415

    settings = load_settings(
        conf,
        pairs,
        index_interval_bytes=index_interval_bytes,
        segment_index_bytes=segment_index_bytes,
    )
    rule = "empty" if time_index == _RULES[0] else time_index
    asked = MigrationOptions(
        sources=tuple(map(absolute_uri, sources)),
        warehouse=absolute_uri(warehouse),
        rules=MigrationRules(
            without_timestamps=WithoutTimestamps(rule),
            convert=convert,
            mtime_for_none=no_timestamp_as == "mtime",
            max_message_bytes=max_message_bytes,
            index_interval_bytes=settings.index_interval_bytes,
            segment_index_bytes=settings.segment_index_bytes,
            producer_id_expiration_ms=settings.producer_id_expiration_ms,
            cut_damaged=damaged == "cut",
        ),
        now_ms=clock() if now_ms is None else now_ms,
        plan_id=plan_id,
        topic_ids={} if topic_ids is None else _read_topic_ids(topic_ids),
        stage_dir=None if stage_dir is None else absolute_uri(stage_dir),
        cluster=cluster,
        broker_id=broker_id,
    )
    with spark_session("kafka-segments migrate plan", root=ROOT) as spark, ExitStack() as caches:
        with progress(spark):
            made, planned = plan_migration(spark, asked, caches, dry_run=dry_run)
        refused = print_plan(made, planned, output, dry_run=dry_run)
    return FINDINGS if refused else DONE


def _read_topic_ids(file: Path) -> dict[str, str]:
    from kafka_segments.wire.topic_ids import parse_topic_ids  # noqa: PLC0415

    try:
        return parse_topic_ids(str(file), file.read_text("utf-8"))
    except (CorruptTextError, OSError, UnicodeDecodeError) as error:
        raise UsageError(f"--topic-ids {error}") from None


def _step(
    step: str,
    *,
    warehouse: str,
    plan_id: str,
    now_ms: int | None,
    output: str,
    verbose: bool,
    **options: Any,
) -> int:
    from kafka_segments.storage.files import absolute_uri  # noqa: PLC0415

    moment, root = clock() if now_ms is None else now_ms, absolute_uri(warehouse)
    require_plan(root, "migration_plans", plan_id)
    from kafka_segments.console.output import progress  # noqa: PLC0415
    from kafka_segments.migrate.report_steps import print_steps  # noqa: PLC0415
    from kafka_segments.migrate.run import Migration  # noqa: PLC0415
    from kafka_segments.spark.session import spark_session  # noqa: PLC0415

    with spark_session(f"kafka-segments migrate {step}", root=ROOT) as spark:
        migration = Migration(spark, root, plan_id, now_ms=moment)
        with progress(spark):
            steps = getattr(migration, step)(**options)
        counts = print_steps(steps, output)
    return exit_status(counts)


def _status(*, warehouse: str, plan_id: str, output: str, **options: Any) -> int:
    """Say how far a migration is, with Spark only where nothing else can tell."""
    from kafka_segments.migrate.report_steps import print_steps  # noqa: PLC0415
    from kafka_segments.migrate.status import status_without_spark  # noqa: PLC0415
    from kafka_segments.storage.files import absolute_uri  # noqa: PLC0415

    told = status_without_spark(absolute_uri(warehouse), plan_id)
    if told is None:
        return _step("status", warehouse=warehouse, plan_id=plan_id, output=output, **options)
    return exit_status(print_steps(told, output))


def exit_status(logs: Counter[str]) -> int:
    """Give the exit status of a step by how many logs became what."""
    from kafka_segments.migrate.decide import plan as decide  # noqa: PLC0415

    if logs[decide.FAILED]:
        return FAILED
    return FINDINGS if logs[decide.REFUSED] else DONE
