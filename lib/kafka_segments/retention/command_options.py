"""Options of the verbs that decide by topic configs: retention, roll, migrate."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kafka_segments.broker_rules.versions import LATEST
from kafka_segments.console.options import clock, load_settings, shared_options
from kafka_segments.errors import CorruptTextError, UsageError
from kafka_segments.wire.moments import moment_text
from kafka_segments.wire.names import PartitionFolder, parse_partition_folder

if TYPE_CHECKING:
    from kafka_segments.retention.run import RetentionOptions
    from kafka_segments.settings import Settings
    from kafka_segments.tables.metadata_configs import MetadataConfigs
    from kafka_segments.topic_configs import TopicConfigs

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


def log_of(text: str) -> PartitionFolder:
    """Return the topic and partition that a text such as ``orders-0`` names.

    Raises:
        UsageError: it names none.
    """
    folder = parse_partition_folder(text)
    if folder is None:
        raise UsageError(f"{text}: topic-partition expected, such as orders-0")
    return folder


def config_file_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that name files with configurations of brokers and topics."""
    command = click.option(
        "--server-properties",
        type=_FILE,
        metavar="FILE",
        help="The brokers' server.properties, for the topics' defaults.",
    )(command)
    return click.option(
        "--topic-configs",
        type=_FILE,
        multiple=True,
        metavar="FILE",
        help="What `kafka-configs --describe` printed of topics and brokers; repeatable.",
    )(command)


def decision_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that every retention decision takes."""
    command = click.option(
        "--kafka-version",
        default=LATEST,
        show_default=True,
        metavar="VERSION",
        help="The release whose rules hold, 0.8 and later.",
    )(shared_options(command))
    command = click.option(
        "--remote-offsets",
        type=_FILE,
        metavar="FILE",
        help="What `kafka-get-offsets --time latest-tiered` printed, for tiered topics.",
    )(command)
    return config_file_options(command)


def load_configs(
    settings: "Settings",
    *,
    topic_configs: Sequence[Path],
    server_properties: Path | None,
    warehouse: str,
    now_ms: int,
) -> "TopicConfigs":
    """Read the files of ``config_file_options``, and say on stderr what was found in them.

    Without files of topics' settings those count that the metadata log had at ``now_ms``, if the
    warehouse, an absolute URI, has its history.

    Raises:
        UsageError: as ``TopicConfigs.load``.
    """
    from kafka_segments.topic_configs import TopicConfigs  # noqa: PLC0415

    metadata = None if topic_configs else _of_metadata(warehouse, now_ms)
    configs = TopicConfigs.load(
        settings,
        topic_configs=topic_configs,
        server_properties=server_properties,
        metadata=metadata,
    )
    found = None
    if topic_configs:
        found = f"read from {', '.join(map(str, topic_configs))}"
    elif metadata is not None:
        found = f"taken from the metadata log of cluster {metadata.cluster}, {moment_text(now_ms)}"
    if found is not None:
        click.echo(
            f"settings of {configs.described_topics} topics and {configs.described_brokers}"
            f" brokers{' and of the cluster' if configs.cluster else ''} {found}",
            err=True,
        )
    return configs


def _of_metadata(warehouse: str, now_ms: int) -> "MetadataConfigs | None":
    from kafka_segments.tables.metadata_configs import (  # noqa: PLC0415
        NoMetadataConfigsError,
        read_metadata_configs,
    )

    try:
        return read_metadata_configs(warehouse, at_ms=now_ms)
    except NoMetadataConfigsError as error:
        click.echo(
            f"{warehouse}: {error}: topics' settings are not taken from there; give"
            " --topic-configs",
            err=True,
        )
        return None


def retention_options(
    *,
    warehouse: str,
    conf: Path | None,
    pairs: tuple[str, ...],
    now_ms: int | None,
    topic_configs: Sequence[Path],
    server_properties: Path | None,
    remote_offsets: Path | None,
    kafka_version: str,
    **_: Any,
) -> "RetentionOptions":
    """Read what ``decision_options`` were given into ``RetentionOptions``.

    Raises:
        UsageError: a file that cannot be read, or a setting or release that is not known.
    """
    from kafka_segments.retention.decide.rules import RetentionRules  # noqa: PLC0415
    from kafka_segments.retention.run import RetentionOptions  # noqa: PLC0415
    from kafka_segments.storage.files import absolute_uri  # noqa: PLC0415
    from kafka_segments.wire.tiered_offsets import parse_tiered_offsets  # noqa: PLC0415

    offsets = []
    if remote_offsets is not None:
        try:
            offsets = parse_tiered_offsets(str(remote_offsets), remote_offsets.read_text("utf-8"))
        except CorruptTextError as error:
            raise UsageError(str(error)) from None
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"{remote_offsets}: {error}") from None
    root, moment = absolute_uri(warehouse), clock() if now_ms is None else now_ms
    return RetentionOptions(
        warehouse=root,
        configs=load_configs(
            load_settings(conf, pairs),
            topic_configs=topic_configs,
            server_properties=server_properties,
            warehouse=root,
            now_ms=moment,
        ),
        rules=RetentionRules.of(kafka_version),
        now_ms=moment,
        remote_offsets=tuple(offsets),
    )
