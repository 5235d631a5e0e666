"""``migrate plan``: look at every segment and say what will be done."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kafka_segments.console.config_options import of_clusters
from kafka_segments.console.lines import say
from kafka_segments.console.options import (
    ExitStatus,
    index_size_options,
    load_settings,
    run_with,
    shared_options,
    source_option,
)
from kafka_segments.console.strict_options import INT, OUTPUT_FOLDER, Command
from kafka_segments.console.verb_session import verb_session
from kafka_segments.console.warehouse_access import require_writable
from kafka_segments.engine.derived.cluster_names import cluster_in_words
from kafka_segments.errors import CorruptTextError, UsageError
from kafka_segments.files.storage.typed_uris import absolute_uri
from kafka_segments.kafka.text.moments import moment_text
from kafka_segments.kafka.text.topic_ids import parse_topic_ids

if TYPE_CHECKING:
    from kafka_segments.engine.derived.metadata_configs import MetadataConfigs
    from kafka_segments.engine.derived.metadata_topics import MetadataTopics
    from kafka_segments.settings import Settings
    from kafka_segments.verbs.change.migrate.plan.run import MigrationOptions
    from kafka_segments.verbs.change.migrate.planned_segment import MigrationRules

_RULES = ("kafka", "mtime-next", "mtime-first")


@click.command(
    cls=Command, example="--source /data/kafka-logs --warehouse /srv/warehouse --plan spring"
)
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
    metavar="BYTES",
    help="With --convert: name larger batches. Default: the topic's max.message.bytes, if the"
    " warehouse has the metadata, else 1048588.",
)
@click.option(
    "--topic-ids",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="What kafka-topics --describe prints of the new cluster: logs without partition.metadata"
    " get one with their topic's id. Default: the metadata in the warehouse, if `internals` has"
    " read it; replicas and settings of topics are then taken from there, too.",
)
@click.option(
    "--damaged",
    type=click.Choice(["refuse", "cut"]),
    default="refuse",
    show_default=True,
    help="Logs with bytes that a broker's recovery would cut off: leave them alone, or leave those"
    " bytes behind, segment by segment.",
)
@click.option(
    "--stage-dir",
    type=OUTPUT_FOLDER,
    metavar="DIR",
    help="Default: <log directory>.migration, beside it.",
)
@click.option("--plan", "plan_id", metavar="ID", help="The plan's id; default: a random one.")
def plan(**options: Any) -> None:
    """Look at every segment and say what will be done and why; nothing is changed.

    Exit status 1: some logs are refused. These are left alone; their replicas elsewhere go on.
    """
    run_with(_plan, options)


def _plan(*, warehouse: str, output: str, dry_run: bool, **options: Any) -> int:
    from kafka_segments.verbs.change.migrate.plan.report import print_plan  # noqa: PLC0415
    from kafka_segments.verbs.change.migrate.plan.run import run_plan  # noqa: PLC0415

    root = absolute_uri(warehouse)
    asked = _asked(warehouse=root, **options)
    if not dry_run:
        require_writable(root)
    with verb_session("migrate plan", warehouse=root, has_few=False) as verb:
        made, planned = run_plan(
            verb.warehouse, asked, verb.caches, verb.work.reads, dry_run=dry_run
        )
        refused = print_plan(made, planned, output, dry_run=dry_run)
    return ExitStatus.FINDINGS if refused else ExitStatus.DONE


def _asked(
    *,
    sources: tuple[str, ...],
    warehouse: str,
    now_ms: int,
    topic_ids: Path | None,
    stage_dir: str | None,
    plan_id: str | None,
    cluster: str | None,
    broker_id: int | None,
    conf: Path | None,
    pairs: tuple[str, ...],
    index_interval_bytes: int | None,
    segment_index_bytes: int | None,
    max_message_bytes: int | None,
    **options: Any,
) -> "MigrationOptions":
    from kafka_segments.engine.derived.topic_configs import TopicConfigs  # noqa: PLC0415
    from kafka_segments.verbs.change.migrate.plan.run import MigrationOptions  # noqa: PLC0415

    settings = load_settings(
        conf,
        pairs,
        index_interval_bytes=index_interval_bytes,
        segment_index_bytes=segment_index_bytes,
        max_message_bytes=max_message_bytes,
    )
    metadata = _of_metadata(warehouse, now_ms) if topic_ids is None else ()
    return MigrationOptions(
        sources=tuple(map(absolute_uri, sources)),
        rules=_rules(settings, **options),
        now_ms=now_ms,
        configs=TopicConfigs.load(settings, metadata=[configs for _, configs in metadata]),
        plan_id=plan_id,
        topic_ids=None if topic_ids is None else _read_topic_ids(topic_ids),
        metadata=[topics for topics, _ in metadata],
        stage_dir=None if stage_dir is None else absolute_uri(stage_dir),
        cluster=cluster,
        broker_id=broker_id,
    )


def _rules(
    settings: "Settings",
    *,
    time_index: str,
    convert: bool,
    no_timestamp_as: str,
    damaged: str,
    **_: Any,
) -> "MigrationRules":
    from kafka_segments.kafka.index.formats.kip33_index import WithoutTimestamps  # noqa: PLC0415
    from kafka_segments.verbs.change.migrate.planned_segment import MigrationRules  # noqa: PLC0415

    rule = "empty" if time_index == _RULES[0] else time_index
    return MigrationRules(
        without_timestamps=WithoutTimestamps(rule),
        convert=convert,
        mtime_for_none=no_timestamp_as == "mtime",
        max_message_bytes=settings.max_message_bytes,
        index_interval_bytes=settings.index_interval_bytes,
        segment_index_bytes=settings.segment_index_bytes,
        producer_id_expiration_ms=settings.producer_id_expiration_ms,
        cut_damaged=damaged == "cut",
    )


def _of_metadata(warehouse: str, now_ms: int) -> "Sequence[tuple[MetadataTopics, MetadataConfigs]]":
    """Return topics and configs of metadata logs at a moment; say on stderr whose they are."""
    from kafka_segments.engine.derived.metadata_configs import read_metadata_configs  # noqa: PLC0415
    from kafka_segments.engine.derived.metadata_topics import read_metadata_topics  # noqa: PLC0415

    def read(at_offset: Mapping[str, int]) -> "Sequence[tuple[MetadataTopics, MetadataConfigs]]":
        topics = read_metadata_topics(warehouse, at_offset)
        return list(zip(topics, read_metadata_configs(warehouse, at_offset), strict=True))

    found = of_clusters(
        read,
        warehouse,
        now_ms=now_ms,
        without="settings, topic ids and replicas are not taken from there",
    )
    for held, _ in found:
        say(
            f"ids, replicas and settings of {len(held.ids)} topics taken from the metadata log of"
            f" cluster {cluster_in_words(held.cluster)}, {moment_text(now_ms)}",
        )
    return found


def _read_topic_ids(file: Path) -> dict[str, str]:

    try:
        return parse_topic_ids(str(file), file.read_text("utf-8"))
    except (CorruptTextError, OSError, UnicodeDecodeError) as error:
        raise UsageError(f"--topic-ids {error}") from None
