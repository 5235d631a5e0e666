"""Which configuration holds for a topic: Kafka's defaults, the broker's, the topic's own."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Self

from pydantic import ValidationError

from kafka_segments.errors import CorruptTextError, UsageError
from kafka_segments.settings import Settings, TopicConfig, describe_problem
from kafka_segments.wire.kafka_configs import parse_described_configs, parse_server_properties

Values = dict[str, Any]
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
    ``described_topics`` and ``described_brokers`` count what files of kafka-configs tell of.
    """

    topics: dict[str, Values]
    given: Values
    brokers: dict[int, Values]
    cluster: Values
    static: Values
    internal: dict[str, Values] = field(default_factory=dict)
    described_topics: int = 0
    described_brokers: int = 0

    @classmethod
    def load(
        cls,
        settings: Settings,
        *,
        topic_configs: Sequence[Path] = (),
        server_properties: Path | None = None,
    ) -> Self:
        """Read the files that were named, and take the settings over them.

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
        topics, brokers = dict(described.topics), described.brokers
        internal = {topic: values for topic, values in INTERNAL.items() if topic not in topics}
        for topic, config in settings.topics.items():
            topics[topic] = topics.get(topic, {}) | config.model_dump(exclude_unset=True)
        return cls(
            topics=topics,
            given=settings.model_dump(exclude_unset=True, include=set(TopicConfig.model_fields)),
            brokers={key: values for key, values in brokers.items() if key is not None},
            cluster=brokers.get(None, {}),
            static=static,
            internal=internal,
            described_topics=len(described.topics),
            described_brokers=len(brokers.keys() - {None}),
        )

    def of_topics(self) -> dict[str, Values]:
        """Give what is set of each topic itself, by its owner or by Kafka."""
        names = self.internal.keys() | self.topics.keys()
        return {name: self.internal.get(name, {}) | self.topics.get(name, {}) for name in names}

    def resolve(self, topic: str, broker_id: int) -> dict[str, Setting]:
        """Give each setting of a topic on a broker, and where it comes from."""
        levels = {
            "Kafka's default": TopicConfig().model_dump(),
            "server.properties": self.static,
            "cluster-wide dynamic": self.cluster,
            "broker's dynamic": self.brokers.get(broker_id, {}),
            "--conf, environment or --set": self.given,
            "as Kafka makes this topic": self.internal.get(topic, {}),
            "topic": self.topics.get(topic, {}),
        }
        return {
            key: Setting(value, level)
            for level, values in levels.items()
            for key, value in values.items()
        }


class _Described:
    """What several files of kafka-configs tell, with the place of each value."""

    def __init__(self) -> None:
        self.topics: dict[str, Values] = {}
        self.brokers: dict[int | None, Values] = {}
        self._places: dict[tuple[str, str], str] = {}

    def read(self, file: Path) -> None:
        """Take a file's values in.

        Raises:
            UsageError: a file that is none, or a setting that has another value already.
        """
        name = str(file)
        for found in _parsed(parse_described_configs, name, _text(file)):
            if found.topic is not None:
                whose, known = f"topic {found.topic}", self.topics.setdefault(found.topic, {})
            else:
                whose = "the cluster" if found.broker_id is None else f"broker {found.broker_id}"
                known = self.brokers.setdefault(found.broker_id, {})
            values = _checked(f"{name}, {whose}", found.configs)
            self._take(whose, f"{name} (line {found.line})", known, values)

    def _take(self, whose: str, place: str, known: Values, values: Values) -> None:
        for key, value in values.items():
            if known.setdefault(key, value) != value:
                raise UsageError(
                    f"{whose}: {key.replace('_', '.')} is {known[key]} in"
                    f" {self._places[whose, key]} and {value} in {place}: give"
                    " --topic-configs only the file that holds"
                )
            self._places.setdefault((whose, key), place)


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
