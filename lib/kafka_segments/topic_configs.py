"""Which configuration holds for a topic: Kafka's defaults, the broker's, the topic's own."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Self

from pydantic import ValidationError

from kafka_segments.errors import CorruptTextError, UsageError
from kafka_segments.settings import Settings, TopicConfig, describe_problem
from kafka_segments.tables.metadata_configs import HeldConfig, MetadataConfigs
from kafka_segments.wire.kafka_configs import (
    parse_described_configs,
    parse_server_properties,
    topic_defaults,
    topic_settings,
)

Values = dict[str, Any]
_OF_SETTINGS = "--conf, environment or --set"
_COORDINATORS: Values = {"cleanup_policy": "compact", "segment_bytes": 104_857_600}
INTERNAL: dict[str, Values] = {
    "__consumer_offsets": _COORDINATORS,
    "__transaction_state": _COORDINATORS,
    "__share_group_state": {
        "cleanup_policy": "delete",
        "retention_ms": -1,
        "segment_bytes": 104_857_600,
    },
    "__remote_log_metadata": {
        "cleanup_policy": "delete",
        "retention_ms": -1,
        "remote_storage_enable": False,
    },
}
"""What Kafka sets of its own topics when it makes them, as topics' own settings.

Source: GroupCoordinatorService.groupMetadataTopicConfigs, ShareCoordinatorService
.shareGroupStateTopicConfigs, TransactionStateManager.transactionTopicConfigs,
TopicBasedRemoteLogMetadataManager (4.3.1).
"""


class Setting(NamedTuple):
    """A value that holds for a topic, and the level it comes from."""

    value: Any
    level: str


@dataclass(frozen=True)
class TopicConfigs:
    """Configurations by level; each holds only the keys that are set there.

    The first that has a key wins: ``topics``, ``internal`` (Kafka's own topics of which no file
    tells), ``given`` (--set, the environment, --conf), ``brokers`` (dynamic, one broker),
    ``cluster`` (dynamic, all brokers), ``static`` (server.properties), Kafka's defaults.
    ``described_topics`` and ``described_brokers`` count what files of kafka-configs, or the
    metadata log, tell of. ``places`` says where a value stands, by whose it is and its key.
    """

    topics: dict[str, Values]
    given: Values
    brokers: dict[int, Values]
    cluster: Values
    static: Values
    internal: dict[str, Values] = field(default_factory=dict)
    described_topics: int = 0
    described_brokers: int = 0
    places: dict[tuple[str, str], str] = field(default_factory=dict)

    @classmethod
    def load(
        cls,
        settings: Settings,
        *,
        topic_configs: Sequence[Path] = (),
        server_properties: Path | None = None,
        metadata: MetadataConfigs | None = None,
    ) -> Self:
        """Read the files that were named, and take the settings over them.

        ``metadata``: configs of the metadata log, which has all that is set of a topic. With it,
        Kafka's own topics get no defaults from here.

        Raises:
            UsageError: a file that cannot be read, a value that Kafka refuses, or a setting that
                has two values.
        """
        static: Values = {}
        if server_properties is not None:
            text = _text(server_properties)
            with_name = str(server_properties)
            static = _checked(with_name, _parsed(parse_server_properties, with_name, text))
        described = _Described()
        for file in topic_configs:
            described.read(file)
        if metadata is not None:
            described.take_metadata(metadata)
        topics, brokers, places = dict(described.topics), described.brokers, described.places
        known = topics if metadata is None else INTERNAL
        internal = {topic: values for topic, values in INTERNAL.items() if topic not in known}
        for topic, config in settings.topics.items():
            own = config.model_dump(exclude_unset=True)
            topics[topic] = topics.get(topic, {}) | own
            places |= {(_whose(topic), key): _OF_SETTINGS for key in own}
        return cls(
            topics=topics,
            given=settings.model_dump(exclude_unset=True, include=set(TopicConfig.model_fields)),
            brokers={key: values for key, values in brokers.items() if key is not None},
            cluster=brokers.get(None, {}),
            static=static,
            internal=internal,
            described_topics=len(described.topics),
            described_brokers=len(brokers.keys() - {None}),
            places=places,
        )

    def of_topics(self) -> dict[str, Values]:
        """Give what is set of each topic itself, by its owner or by Kafka."""
        names = self.internal.keys() | self.topics.keys()
        return {name: self.internal.get(name, {}) | self.topics.get(name, {}) for name in names}

    def resolve(self, topic: str, broker_id: int) -> dict[str, Setting]:
        """Give each setting of a topic on a broker, and where it comes from."""
        levels = (
            ("Kafka's default", "", TopicConfig().model_dump()),
            ("server.properties", "", self.static),
            ("cluster-wide dynamic", _whose(None), self.cluster),
            ("broker's dynamic", _whose(broker_id), self.brokers.get(broker_id, {})),
            (_OF_SETTINGS, "", self.given),
            ("as Kafka makes this topic", "", self.internal.get(topic, {})),
            ("topic", _whose(topic), self.topics.get(topic, {})),
        )
        return {
            key: Setting(value, self._level(level, whose, key))
            for level, whose, values in levels
            for key, value in values.items()
        }

    def _level(self, level: str, whose: str, key: str) -> str:
        place = self.places.get((whose, key))
        return level if place is None else f"{level}: {place}"


def _whose(resource: str | int | None) -> str:
    """Name a topic, a broker by its id, or (None) the cluster."""
    if resource is None:
        return "the cluster"
    return f"topic {resource}" if isinstance(resource, str) else f"broker {resource}"


class _Described:
    """What several files of kafka-configs tell, with the place of each value."""

    def __init__(self) -> None:
        self.topics: dict[str, Values] = {}
        self.brokers: dict[int | None, Values] = {}
        self.places: dict[tuple[str, str], str] = {}

    def read(self, file: Path) -> None:
        """Take a file's values in.

        Raises:
            UsageError: a file that is none, or a setting that has another value already.
        """
        name = str(file)
        for found in _parsed(parse_described_configs, name, _text(file)):
            if found.topic is not None:
                whose, known = _whose(found.topic), self.topics.setdefault(found.topic, {})
            else:
                whose = _whose(found.broker_id)
                known = self.brokers.setdefault(found.broker_id, {})
            values = _checked(f"{name}, {whose}", found.configs)
            self._take(whose, f"{name} (line {found.line})", known, values)

    def take_metadata(self, metadata: MetadataConfigs) -> None:
        """Take in what the metadata log says.

        Raises:
            UsageError: a value that no broker takes.
        """
        by_resource: dict[tuple[str, str], list[HeldConfig]] = {}
        for config in metadata.configs:
            resource = (config.resource_type, config.resource_name)
            by_resource.setdefault(resource, []).append(config)
        for (kind, resource_name), configs in by_resource.items():
            raw = {config.name: config.value for config in configs}
            if kind == "topic":
                whose, known = _whose(resource_name), self.topics.setdefault(resource_name, {})
                settings_of = topic_settings
            elif resource_name == "" or resource_name.isdecimal():
                broker_id = int(resource_name) if resource_name else None
                whose, known = _whose(broker_id), self.brokers.setdefault(broker_id, {})
                settings_of = partial(_parsed, topic_defaults, "metadata log")
            else:
                continue
            settings = settings_of(raw)
            known |= _checked(f"metadata log, {whose}", settings)
            for config in configs:
                for key, value in settings_of({config.name: config.value}).items():
                    if settings.get(key) == value:
                        self.places[whose, key] = config.place

    def _take(self, whose: str, place: str, known: Values, values: Values) -> None:
        for key, value in values.items():
            if known.setdefault(key, value) != value:
                raise UsageError(
                    f"{whose}: {key.replace('_', '.')} is {known[key]} in"
                    f" {self.places[whose, key]} and {value} in {place}: give"
                    " --topic-configs only the file that holds"
                )
            self.places.setdefault((whose, key), place)


def _text(file: Path) -> str:
    try:
        return file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{file}: {error}") from None


def _parsed(parse: Any, name: str, text: str) -> Any:
    try:
        return parse(name, text)
    except CorruptTextError as error:
        raise UsageError(str(error)) from None


def _checked(name: str, values: dict[str, str]) -> Values:
    try:
        return TopicConfig.model_validate(values).model_dump(exclude_unset=True)
    except ValidationError as error:
        raise UsageError(f"{name}: " + "; ".join(map(describe_problem, error.errors()))) from None
