"""``recovery kit``: do a broker's recovery before it starts."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kafka_segments.console.options import (
    index_size_options,
    load_settings,
    now_ms_option,
    output_option,
    run_with,
    source_option,
    verbose_option,
)
from kafka_segments.console.progress import progress
from kafka_segments.console.strict_options import OUTPUT_FOLDER, POSITIVE_INT, Command
from kafka_segments.console.verb_session import verb_session
from kafka_segments.engine.spark.java import require_java
from kafka_segments.extras import has_extra, require_extra
from kafka_segments.files.storage.typed_uris import absolute_uri

if TYPE_CHECKING:
    from kafka_segments.settings import Settings
    from kafka_segments.verbs.change.recovery.kit.listing import KitWork
    from kafka_segments.verbs.change.recovery.kit.run import KitOptions

# A broker drops silent producers itself when it loads a kit's snapshots, by a setting of its own:
# producer.id.expiration.ms, before 3.4 transactional.id.expiration.ms.
_NEVER_MS = 2**63 - 1


@click.command(cls=Command, extra=None, example="--source /data/kafka-logs --out /srv/kit")
@source_option
@click.option(
    "--out", type=OUTPUT_FOLDER, required=True, metavar="DIR", help="A new folder for the kit."
)
@click.option(
    "--engine",
    type=click.Choice(["auto", "threads", "spark"]),
    default="auto",
    show_default=True,
    help="What reads the segments; auto: threads where they end before Spark would have started, or"
    " it is not installed.",
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
    run_with(_kit, options)


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
    now_ms: int,
    output: str,
    **_: Any,
) -> int:
    sizes = {
        "index_interval_bytes": index_interval_bytes,
        "segment_index_bytes": segment_index_bytes,
    }
    settings = load_settings(conf, pairs, **sizes)
    if engine == "spark":
        require_extra("spark", "recovery kit --engine spark")
        require_java()
    from kafka_segments.verbs.change.recovery.kit.listing import plan_kit  # noqa: PLC0415
    from kafka_segments.verbs.change.recovery.kit.report import print_kit  # noqa: PLC0415
    from kafka_segments.verbs.change.recovery.kit.run import (  # noqa: PLC0415
        is_quicker_in_threads,
        read_in_threads,
        run_kit,
    )

    folder = absolute_uri(out)
    work = plan_kit([absolute_uri(source) for source in sources], folder)
    options = _kit_options(folder, settings, now_ms, has_digests=digests)
    at_once = threads or os.cpu_count() or 1
    is_quick = is_quicker_in_threads(work.read_bytes, work.segments, threads=at_once)
    if engine == "spark" or (engine == "auto" and not is_quick and has_extra("spark")):
        return _kit_on_spark(work, options, now_ms, output)
    with progress(None) as told:
        told.reads_in_driver(work.read_bytes)
        read = read_in_threads(at_once, told.has_read)
        kits = run_kit(options, work=work, read=read, made_ms=now_ms)
        return print_kit(kits, work, output, by=f"{at_once} threads of this process")


def _kit_on_spark(work: "KitWork", options: "KitOptions", moment: int, output: str) -> int:
    from kafka_segments.verbs.change.recovery.kit.report import print_kit  # noqa: PLC0415
    from kafka_segments.verbs.change.recovery.kit.run import run_kit  # noqa: PLC0415
    from kafka_segments.verbs.change.recovery.kit.tasks import SparkReader  # noqa: PLC0415

    require_java()
    with verb_session("recovery kit", has_few=False) as verb:
        read = SparkReader(verb.spark, verb.work.reads)
        return print_kit(
            run_kit(options, work=work, read=read, made_ms=moment), work, output, by="Spark"
        )


def _kit_options(out: str, settings: "Settings", moment: int, *, has_digests: bool) -> "KitOptions":
    from kafka_segments.kafka.index.segment.recovery_options import RecoveryOptions  # noqa: PLC0415
    from kafka_segments.verbs.change.recovery.kit.fold import FoldSettings  # noqa: PLC0415
    from kafka_segments.verbs.change.recovery.kit.run import KitOptions  # noqa: PLC0415

    recovery = RecoveryOptions(
        index_interval_bytes=settings.index_interval_bytes,
        segment_index_bytes=settings.segment_index_bytes,
        is_load=True,
    )
    is_given = "producer_id_expiration_ms" in settings.model_fields_set
    expiration_ms = settings.producer_id_expiration_ms if is_given else _NEVER_MS
    fold = FoldSettings(recovery, moment, expiration_ms)
    return KitOptions(out, fold, has_digests)
