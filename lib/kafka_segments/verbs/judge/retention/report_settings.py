"""Settings in words: which value holds for which topics, and where it comes from."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kafka_segments.console.lines import say
from kafka_segments.console.output import duration
from kafka_segments.engine.derived.cluster_names import cluster_in_words
from kafka_segments.engine.derived.logs_in_tables import KnownLog, logs_of_topics
from kafka_segments.engine.derived.topic_configs import (
    Setting,
    Source,
    TopicConfigs,
    kafka_key,
    settings_that_count,
)
from kafka_segments.kafka.text.names import METADATA_TOPIC
from kafka_segments.settings import RetentionConfig

_UNLIMITED = 2**63 - 1
_MOST_VALUES, _MOST_TOPICS = 5, 3


def setting_text(key: str, setting: Setting) -> str:
    """Return a setting as Kafka writes it, and where it comes from."""
    return f"{kafka_key(key)} = {_value_in_words(key, setting)}   [{setting.origin}]"


def _value_in_words(key: str, setting: Setting) -> str:
    if key.endswith("_ms") and 0 < setting.value < _UNLIMITED:
        return f"{setting.text} ({duration(setting.value)})"
    return setting.text or "(empty)"


def print_retention_settings(
    warehouse: str, configs: TopicConfigs, topics: Collection[str] = ()
) -> None:
    """Print on stderr the settings of retention of topics, and where they come from.

    ``topics``: their names; empty: of all. Of tables that are too large to be read without Spark
    nothing is printed.
    """
    logs = logs_of_topics(warehouse) or ()
    if topics:
        logs = {log for log in logs if log.topic in topics}
    for line in settings_in_short(configs, logs):
        say(f"{line}")


@dataclass
class _Holders:
    """The topics for which a setting has one value of one origin, and the places it stands at."""

    topics: set[str] = field(default_factory=set)
    sources: set[Source] = field(default_factory=set)

    def text(self) -> str:
        """Name the topics, or count them."""
        if len(self.topics) > _MOST_TOPICS:
            return f"{len(self.topics)} topics"
        return ", ".join(sorted(self.topics))


_Origin = tuple[str, str | None]


def settings_in_short(configs: TopicConfigs, logs: Iterable[KnownLog]) -> list[str]:
    """Say which values the settings of retention have, for how many topics, and from where.

    A cluster has a line for each value and origin; of a setting with many values the most usual.
    """
    by_cluster: dict[str, dict[str, dict[tuple[Any, _Origin], _Holders]]] = {}
    for log in sorted(logs):
        if log.topic == METADATA_TOPIC:  # a topic's settings do not hold for it
            continue
        settings = settings_that_count(configs.of(log.cluster).resolve(log.topic, log.broker_id))
        values = by_cluster.setdefault(log.cluster, {})
        for key, setting in settings.items():
            if key in RetentionConfig.model_fields:
                source = setting.source
                origin = setting.level, None if source is None else source.name
                holders = values.setdefault(key, {}).setdefault((setting.value, origin), _Holders())
                holders.topics.add(log.topic)
                holders.sources |= {source} if source is not None else set()
    lines = []
    for cluster, values in by_cluster.items():
        lines.append(f"settings that decided in cluster {cluster_in_words(cluster)}:")
        for key, found in values.items():
            lines += [f"  {line}" for line in _lines_of(key, found)]
    return lines


def _lines_of(key: str, found: Mapping[tuple[Any, _Origin], _Holders]) -> list[str]:
    most_first = sorted(found.items(), key=lambda item: -len(item[1].topics))
    shown = most_first if len(most_first) <= _MOST_VALUES + 1 else most_first[:_MOST_VALUES]
    lines = [
        f"{kafka_key(key)} = {_value_in_words(key, Setting(value, origin[0]))}"
        f"   [{_origin_in_words(origin, holders.sources)}]: {holders.text()}"
        for (value, origin), holders in shown
    ]
    rest = most_first[len(shown) :]
    by_origin: dict[_Origin, list[_Holders]] = {}
    for (_, origin), holders in rest:
        by_origin.setdefault(origin, []).append(holders)
    for origin, several in by_origin.items():
        merged = _Holders(
            {topic for holders in several for topic in holders.topics},
            {source for holders in several for source in holders.sources},
        )
        lines.append(
            f"{kafka_key(key)}: {len(several)} other values"
            f"   [{_origin_in_words(origin, merged.sources)}]: {merged.text()}"
        )
    return lines


def _origin_in_words(origin: _Origin, sources: Iterable[Source]) -> str:
    level, name = origin
    places = sorted(sources)
    if name is None:
        return level
    if len(places) == 1:
        return f"{level}: {places[0].text}"
    numbers = [place.number for place in places if place.number is not None]
    return f"{level}: {name}, {places[0].unit}s {min(numbers)} to {max(numbers)}"
