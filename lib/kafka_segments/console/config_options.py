"""Options of the verbs that go by topic configs, as retention, roll, divergence and build do."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from kafka_segments.console.lines import say
from kafka_segments.console.not_known import tell_metadata_problems, tell_not_known
from kafka_segments.engine.derived.cluster_names import cluster_in_words
from kafka_segments.errors import UsageError
from kafka_segments.kafka.text.moments import moment_text
from kafka_segments.kafka.text.names import PartitionFolder, parse_partition_folder

if TYPE_CHECKING:
    from kafka_segments.engine.derived.metadata_configs import MetadataConfigs
    from kafka_segments.engine.derived.topic_configs import TopicConfigs
    from kafka_segments.settings import Settings

_Held = TypeVar("_Held")
_Tell = Callable[[Iterable[str]], None]
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


def load_configs(
    settings: "Settings",
    *,
    topic_configs: Sequence[Path],
    server_properties: Path | None,
    warehouse: str | None,
    now_ms: int,
    decide: bool = False,
) -> "TopicConfigs":
    """Read the files of ``config_file_options``, and say on stderr what was found in them.

    Of topics and brokers of which no file tells those count that their cluster's metadata log had
    at ``now_ms``, if the warehouse (an absolute URI; None: there is none) has its history.
    ``decide``: they decide on all logs of the warehouse, so the verb ends with findings where it
    has metadata or other internal topics, and none of a cluster's metadata counts, unless files
    tell of topics.

    Raises:
        UsageError: as ``TopicConfigs.load``.
    """
    from kafka_segments.engine.derived.topic_configs import TopicConfigs  # noqa: PLC0415

    decide = decide and not topic_configs
    configs = TopicConfigs.load(
        settings,
        topic_configs=topic_configs,
        server_properties=server_properties,
        metadata=() if warehouse is None else _of_metadata(warehouse, now_ms, decide=decide),
    )
    if topic_configs:
        files = ", ".join(map(str, topic_configs))
        say(f"settings of {configs.described.counts()} read from {files}")
    of_others = ", where the files do not tell" if topic_configs else ""
    for cluster, held in configs.metadata.items():
        say(
            f"settings of {held.counts()} taken from the metadata log of cluster"
            f" {cluster_in_words(cluster)}, {moment_text(now_ms)}{of_others}",
        )
    return configs


def _say_all(lines: Iterable[str]) -> None:
    for line in lines:
        say(line)


def _of_metadata(warehouse: str, now_ms: int, *, decide: bool) -> "Sequence[MetadataConfigs]":
    from kafka_segments.engine.derived.metadata_configs import read_metadata_configs  # noqa: PLC0415

    tell = tell_not_known if decide else _say_all
    are = "not known, and the next level decides" if decide else "not taken from there"
    without = f"its topics' settings are {are}; give --topic-configs"

    def read(at_offset: Mapping[str, int]) -> "Sequence[MetadataConfigs]":
        return read_metadata_configs(warehouse, at_offset)

    return of_clusters(read, warehouse, now_ms=now_ms, without=without, tell=tell, of_logs=True)


def of_clusters(
    read: Callable[[Mapping[str, int]], Sequence[_Held]],
    warehouse: str,
    *,
    now_ms: int,
    without: str,
    tell: _Tell = _say_all,
    of_logs: bool = False,
) -> Sequence[_Held]:
    """Return what ``read`` gives of the clusters whose metadata is told as of a moment.

    ``tell`` is given a line of each other cluster, why it is not, and ``without``: what follows
    from that. Where a history lacks something stderr says so, and the verb ends with findings.
    ``read`` is given the offset of each metadata log that the moment stands for. ``of_logs``: the
    clusters that ``build`` found count as well.
    """
    from kafka_segments.engine.derived.metadata_in_tables import (  # noqa: PLC0415
        NoMetadataError,
        clusters_of_logs,
        clusters_with_metadata,
        has_internals,
    )

    try:
        clusters = clusters_with_metadata(warehouse, at_ms=now_ms)
        held = read(clusters.at_offset)
    except NoMetadataError as error:
        tell((f"{warehouse}: {error}: {without}",))
        return ()
    tell_metadata_problems(warehouse, at_offset=clusters.at_offset)
    tell(
        f"cluster {cluster_in_words(cluster)}: the history of its metadata begins at"
        f" {moment_text(begin_ms)}, after {moment_text(now_ms)}: {without}"
        for cluster, begin_ms in clusters.begin_ms.items()
    )
    known = clusters.at_offset.keys() | clusters.begin_ms.keys()
    is_lacking = of_logs and (known or has_internals(warehouse))
    try:
        others = clusters_of_logs(warehouse) - known if is_lacking else set()
    except NoMetadataError as error:
        tell((f"{warehouse}: {error}: of clusters without metadata, {without}",))
        return held
    but = f", but of {', '.join(map(cluster_in_words, sorted(known)))}" if known else ""
    tell(
        f"cluster {cluster_in_words(cluster)}: {warehouse} has no metadata of it{but}: {without}"
        for cluster in sorted(others)
    )
    return held
