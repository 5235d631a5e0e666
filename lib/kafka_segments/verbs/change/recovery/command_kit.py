"""``recovery kit``, ``apply`` and ``rollback``: do a broker's recovery before it starts."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kafka_segments.console.options import (
    clock,
    index_size_options,
    load_settings,
    now_ms_option,
    output_option,
    run,
    source_option,
    verbose_option,
    with_options,
)
from kafka_segments.console.strict_options import POSITIVE_INT, Command
from kafka_segments.console.verb_session import verb_session
from kafka_segments.engine.spark.java import require_java

if TYPE_CHECKING:
    from kafka_segments.settings import Settings
    from kafka_segments.verbs.change.recovery.kit_listing import KitWork
    from kafka_segments.verbs.change.recovery.run_kit import KitOptions

# A broker drops silent producers itself when it loads a kit's snapshots, by a setting of its own:
# producer.id.expiration.ms, before 3.4 transactional.id.expiration.ms.
_NEVER_MS = 2**63 - 1
_KIT = click.argument("kit", type=click.Path(exists=True, file_okay=False, path_type=Path))
_apply_options = with_options(
    _KIT,
    click.option(
        "--log-dir",
        "log_dirs",
        multiple=True,
        metavar="DIR",
        help="Where the kit's log directories lie now, in its order; default: where it was made.",
    ),
    click.option("--execute", is_flag=True, help="Do it; without it nothing changes."),
    output_option(),
    verbose_option,
)


@click.command(cls=Command, may_spare_spark=("out",))
@source_option
@click.option("--out", required=True, metavar="DIR", help="A new folder for the kit.")
@click.option(
    "--engine",
    type=click.Choice(["auto", "threads", "spark"]),
    default="auto",
    show_default=True,
    help="What reads the segments; auto: threads where they end before Spark would have started.",
)
@click.option(
    "--threads", type=POSITIVE_INT, metavar="N", help="Threads, without Spark; default: the cores."
)
@click.option(
    "--digests", is_flag=True, help="Note the sha256 of each segment, for `apply --by-digest`."
)
@index_size_options
@click.option(
    "--conf",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="TOML file of settings: Kafka's own keys with _ for '.'.",
)
@click.option(
    "--set",
    "pairs",
    multiple=True,
    metavar="KEY=VALUE",
    help="One setting, over --conf and the environment; repeatable.",
)
@now_ms_option
@output_option()
@verbose_option
def kit(**options: Any) -> None:
    """Read what a broker would read after a crash, and make the files that it would make.

    The sources are log directories of a stopped broker, a snapshot or a copy of them; they are
    only read. Every batch from the recovery points on is verified. A torn tail is shown with its
    bytes and records. Exit status 1: logs are left to the broker, or have a torn tail.
    """
    run(lambda: _kit(**options), verbose=options["verbose"])


@click.command(cls=Command, may_spare_spark=("kit",))
@_apply_options
@click.option(
    "--by-digest",
    is_flag=True,
    help="Read the segments again and compare their sha256; default: size and mtime tell.",
)
def apply(**options: Any) -> None:
    """Put a kit's files in place under a stopped broker, then advance its recovery points.

    Without --execute it only says what it would do. It refuses a log directory whose .lock is held,
    and a log that has changed since the kit was made. Torn tails are cut off and kept in the kit,
    as is every file that is replaced. After a crash at any moment the broker starts as it
    would have without the kit, or sooner; a second run goes on.
    """
    run(lambda: _apply(is_back=False, **options), verbose=options["verbose"])


@click.command(cls=Command, may_spare_spark=("kit",))
@_apply_options
def rollback(**options: Any) -> None:
    """Put back what `recovery apply` changed: the recovery points first, then every file.

    A log that its broker has written to since is refused. Run again after a crash, it goes on.
    """
    run(lambda: _apply(is_back=True, **options), verbose=options["verbose"])


def _kit(
    *,
    sources: tuple[str, ...],
    out: str,
    engine: str,
    threads: int | None,
    digests: bool,
    conf: Path | None,
    pairs: tuple[str, ...],
    index_interval_bytes: int | None,
    segment_index_bytes: int | None,
    now_ms: int | None,
    output: str,
    **_: Any,
) -> int:
    sizes = {
        "index_interval_bytes": index_interval_bytes,
        "segment_index_bytes": segment_index_bytes,
    }
    settings = load_settings(conf, pairs, **sizes)
    moment = clock() if now_ms is None else now_ms
    if engine == "spark":
        require_java()
    from kafka_segments.console.progress import progress  # noqa: PLC0415
    from kafka_segments.files.storage.files import absolute_uri  # noqa: PLC0415
    from kafka_segments.verbs.change.recovery.kit_listing import plan_kit  # noqa: PLC0415
    from kafka_segments.verbs.change.recovery.report_kit import print_kit  # noqa: PLC0415
    from kafka_segments.verbs.change.recovery.run_kit import (  # noqa: PLC0415
        is_quicker_in_threads,
        read_in_threads,
        run_kit,
    )

    folder = absolute_uri(out)
    work = plan_kit([absolute_uri(source) for source in sources], folder)
    options = _kit_options(folder, settings, moment, has_digests=digests)
    at_once = threads or os.cpu_count() or 1
    is_quick = is_quicker_in_threads(work.read_bytes, work.segments, threads=at_once)
    if engine == "spark" or (engine == "auto" and not is_quick):
        return _kit_on_spark(work, options, moment, output)
    with progress(None) as told:
        told.reads_here(work.read_bytes)
        read = read_in_threads(at_once, told.has_read)
        kits = run_kit(options, work=work, read=read, made_ms=moment)
        return print_kit(kits, work, output, by=f"{at_once} threads of this process")


def _kit_on_spark(work: "KitWork", options: "KitOptions", moment: int, output: str) -> int:
    from kafka_segments.verbs.change.recovery.report_kit import print_kit  # noqa: PLC0415
    from kafka_segments.verbs.change.recovery.run_kit import run_kit  # noqa: PLC0415
    from kafka_segments.verbs.change.recovery.tasks_kit import SparkReader  # noqa: PLC0415

    require_java()
    with verb_session("recovery kit", has_few=False) as verb:
        read = SparkReader(verb.spark, verb.work.reads)
        return print_kit(
            run_kit(options, work=work, read=read, made_ms=moment), work, output, by="Spark"
        )


def _kit_options(out: str, settings: "Settings", moment: int, *, has_digests: bool) -> "KitOptions":
    from kafka_segments.kafka.index.recovery_options import RecoveryOptions  # noqa: PLC0415
    from kafka_segments.verbs.change.recovery.kit_fold import FoldSettings  # noqa: PLC0415
    from kafka_segments.verbs.change.recovery.run_kit import KitOptions  # noqa: PLC0415

    recovery = RecoveryOptions(
        index_interval_bytes=settings.index_interval_bytes,
        segment_index_bytes=settings.segment_index_bytes,
        is_load=True,
    )
    is_given = "producer_id_expiration_ms" in settings.model_fields_set
    expiration_ms = settings.producer_id_expiration_ms if is_given else _NEVER_MS
    fold = FoldSettings(recovery, moment, expiration_ms)
    return KitOptions(out, fold, has_digests)


def _apply(
    *,
    is_back: bool,
    kit: Path,
    log_dirs: tuple[str, ...],
    execute: bool,
    output: str,
    by_digest: bool = False,
    **_: Any,
) -> int:
    from kafka_segments.files.storage.files import absolute_uri  # noqa: PLC0415
    from kafka_segments.verbs.change.recovery.report_kit import print_steps  # noqa: PLC0415
    from kafka_segments.verbs.change.recovery.run_apply import (  # noqa: PLC0415
        ApplyOptions,
        run_apply,
        run_rollback,
    )

    options = ApplyOptions(
        kit=kit.absolute(),
        execute=execute,
        by_digest=by_digest,
        log_dirs=[absolute_uri(folder) for folder in log_dirs] or None,
    )
    change = run_rollback if is_back else run_apply
    return print_steps(change(options), output)
