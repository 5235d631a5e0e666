"""Which configuration holds for a topic: Kafka's defaults, the broker's, the topic's own."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Self

from pydantic import ValidationError

from kafka_segments.errors import CorruptTextError, UsageError
from kafka_segments.settings import Settings, TopicConfig, describe_problem
from kafka_segments.wire.kafka_configs import parse_described_configs, parse_server_properties

Values = dict[str, Any]


class Setting(NamedTuple):
    """A value that holds for a topic, and the level it comes from."""

    value: Any
    level: str


@dataclass(frozen=True)
class TopicConfigs:
    """Configurations by level; each holds only the keys that are set there.

    The first that has a key wins: ``topics``, ``given`` (--set, the environment, --conf),
    ``brokers`` (dynamic, one broker), ``cluster`` (dynamic, all brokers), ``static``
    (server.properties), Kafka's defaults.
    """

    topics: dict[str, Values]
    given: Values
    brokers: dict[int, Values]
    cluster: Values
    static: Values

    @classmethod
    def load(
        cls,
        settings: Settings,
        *,
        topic_configs: Path | None = None,
        server_properties: Path | None = None,
    ) -> Self:
        """Read the files that were named, and take the settings over them.

        Raises:
            UsageError: a file that cannot be read, or a value that Kafka refuses.
        """
        static: Values = {}
        if server_properties is not None:
            text = _text(server_properties)
            with_name = str(server_properties)
            static = _checked(with_name, _parsed(parse_server_properties, with_name, text))
        topics: dict[str, Values] = {}
        brokers: dict[int | None, Values] = {}
        if topic_configs is not None:
            name = str(topic_configs)
            for found in _parsed(parse_described_configs, name, _text(topic_configs)):
                if found.topic is None:
                    brokers[found.broker_id] = _checked(name, found.configs)
                else:
                    topics[found.topic] = _checked(f"{name}, topic {found.topic}", found.configs)
        for topic, config in settings.topics.items():
            topics[topic] = topics.get(topic, {}) | config.model_dump(exclude_unset=True)
        return cls(
            topics=topics,
            given=settings.model_dump(exclude_unset=True, include=set(TopicConfig.model_fields)),
            brokers={key: values for key, values in brokers.items() if key is not None},
            cluster=brokers.get(None, {}),
            static=static,
        )

    def resolve(self, topic: str, broker_id: int) -> dict[str, Setting]:
        """Give each setting of a topic on a broker, and where it comes from."""
        levels = {
            "Kafka's default": TopicConfig().model_dump(),
            "server.properties": self.static,
            "cluster-wide dynamic": self.cluster,
            "broker's dynamic": self.brokers.get(broker_id, {}),
            "--conf, environment or --set": self.given,
            "topic": self.topics.get(topic, {}),
        }
        return {
            key: Setting(value, level)
            for level, values in levels.items()
            for key, value in values.items()
        }


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
