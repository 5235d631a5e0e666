"""Which configuration holds for a topic: Kafka's defaults, the broker's, the topic's own."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Self

from pydantic import ValidationError

from kafka_segments.engine.derived.metadata_configs import ConfigAtOffset, MetadataConfigs
from kafka_segments.errors import CorruptTextError, UsageError
from kafka_segments.kafka.text.kafka_configs import (
    parse_described_configs,
    parse_server_properties,
    topic_defaults,
    topic_settings,
)
from kafka_segments.kafka.text.moments import moment_text
from kafka_segments.settings import Settings, TopicConfig, describe_problem

Values = dict[str, Any]
Sources = dict[tuple[str | int | None, str], "Source"]
METADATA_LOG = "metadata log"
_TIERED = ("local_retention_ms", "local_retention_bytes", "remote_log_copy_disable")
_DEFAULTS: Values = TopicConfig().model_dump()
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


class Source(NamedTuple):
    """Where a value stands: in a file or log, at which line or offset, and since when."""

    name: str
    number: int | None = None
    since: str = ""

    @property
    def unit(self) -> str:
        """Return what the number is one of."""
        return "offset" if self.name == METADATA_LOG else "line"

    @property
    def text(self) -> str:
        """Return it in words."""
        if self.number is None:
            return self.name
        if self.name != METADATA_LOG:
            return f"{self.name} ({self.unit} {self.number})"
        return f"{self.name}, {self.unit} {self.number}, {self.since}"


class Setting(NamedTuple):
    """A value that holds for a topic, and where it comes from: the level, and the place there."""

    value: Any
    level: str
    source: Source | None = None

    @property
    def text(self) -> str:
        """Return the value as Kafka writes it."""
        return str(self.value).lower() if isinstance(self.value, bool) else str(self.value)

    @property
    def origin(self) -> str:
        """Return where it comes from, in words."""
        return self.level if self.source is None else f"{self.level}: {self.source.text}"


def kafka_key(key: str) -> str:
    """Return a setting's name as Kafka writes it."""
    return key.replace("_", ".")


def settings_that_count(settings: Mapping[str, Setting]) -> dict[str, Setting]:
    """Leave out what holds in tiered or in compacted topics alone, where the topic is none."""
    others = () if settings["remote_storage_enable"].value else _TIERED
    if "compact" not in settings["cleanup_policy"].value:
        others = *others, "log_cleaner_enable"
    return {key: setting for key, setting in settings.items() if key not in others}


@dataclass(frozen=True)
class Described:
    """What files of kafka-configs, or a cluster's metadata log, set of topics and brokers.

    ``brokers`` are by id, and None for all brokers. ``sources`` says where a value stands, by whose
    it is and its key.
    """

    topics: dict[str, Values] = field(default_factory=dict)
    brokers: dict[int | None, Values] = field(default_factory=dict)
    sources: Sources = field(default_factory=dict)

    def under(self, other: Self) -> "Described":
        """Return what is told here of topics and brokers of which the other does not tell."""
        told = other.topics.keys() | other.brokers.keys()
        sources = {key: source for key, source in self.sources.items() if key[0] not in told}
        return Described(
            self.topics | other.topics, self.brokers | other.brokers, sources | other.sources
        )

    def only(self, keys: Collection[str]) -> "Described":
        """Return the same of some settings, without where they stand; it tells of the same."""

        def chosen(values: Values) -> Values:
            return {key: value for key, value in values.items() if key in keys}

        topics = {topic: chosen(values) for topic, values in self.topics.items()}
        return Described(topics, {whose: chosen(values) for whose, values in self.brokers.items()})

    def counts(self) -> str:
        """Return in words of how many topics and brokers something is told."""
        brokers = len(self.brokers.keys() - {None})
        of_cluster = " and of the cluster" if self.brokers.get(None) else ""
        return f"{len(self.topics)} topics and {brokers} brokers{of_cluster}"


@dataclass(frozen=True)
class ClusterConfigs:
    """The configurations of a cluster by level; each holds only the keys that are set there.

    The first that has a key wins: ``topics``, ``internal`` (Kafka's own topics of which nothing
    tells), ``given`` (--set, the environment, --conf), ``brokers`` (dynamic, one broker; of None:
    all brokers), ``static`` (server.properties), Kafka's defaults.
    """

    topics: dict[str, Values]
    given: Values
    brokers: dict[int | None, Values]
    static: Values
    internal: dict[str, Values]
    sources: Sources

    def only(self, keys: Collection[str]) -> Self:
        """Return the same of some settings, without where they stand."""

        def chosen(values: Values) -> Values:
            return {key: value for key, value in values.items() if key in keys}

        topics = {topic: own for topic, values in self.topics.items() if (own := chosen(values))}
        brokers = {whose: own for whose, values in self.brokers.items() if (own := chosen(values))}
        internal = {topic: chosen(values) for topic, values in self.internal.items()}
        return replace(
            self,
            topics=topics,
            given=chosen(self.given),
            brokers=brokers,
            static=chosen(self.static),
            internal=internal,
            sources={},
        )

    def of_topics(self) -> dict[str, Values]:
        """Return what is set of each topic itself, by its owner or by Kafka."""
        names = self.internal.keys() | self.topics.keys()
        return {name: self.internal.get(name, {}) | self.topics.get(name, {}) for name in names}

    def of_brokers(self) -> dict[int, Values]:
        """Return what is set of each broker itself."""
        return {key: values for key, values in self.brokers.items() if key is not None}

    def below_brokers(self) -> Values:
        """Return what holds for a topic where nothing is set of it or of its broker."""
        return _DEFAULTS | self.static | self.brokers.get(None, {})

    def resolve(self, topic: str, broker_id: int) -> dict[str, Setting]:
        """Return each setting of a topic on a broker, and where it comes from."""
        levels: tuple[tuple[str, str | int | None, Values], ...] = (
            ("Kafka's default", "", _DEFAULTS),
            ("server.properties", "", self.static),
            ("cluster-wide dynamic", None, self.brokers.get(None, {})),
            ("broker's dynamic", broker_id, self.brokers.get(broker_id, {})),
            (_OF_SETTINGS, "", self.given),
            ("as Kafka makes this topic", "", self.internal.get(topic, {})),
            ("topic", topic, self.topics.get(topic, {})),
        )
        return {
            key: Setting(value, level, self.sources.get((whose, key)))
            for level, whose, values in levels
            for key, value in values.items()
        }


@dataclass(frozen=True)
class TopicConfigs:
    """The configurations of several clusters.

    ``clusters`` are those with a metadata log; ``others`` holds for all others. ``described`` is
    what files tell, ``metadata`` what each cluster's log does, and ``held`` its configs as Kafka
    has them.
    """

    others: ClusterConfigs
    clusters: dict[str, ClusterConfigs] = field(default_factory=dict)
    described: Described = field(default_factory=Described)
    metadata: dict[str, Described] = field(default_factory=dict)
    held: tuple[MetadataConfigs, ...] = ()

    @classmethod
    def load(
        cls,
        settings: Settings,
        *,
        topic_configs: Sequence[Path] = (),
        server_properties: Path | None = None,
        metadata: Sequence[MetadataConfigs] = (),
    ) -> Self:
        """Read the files that were named, and take the settings over them.

        ``metadata``: configs of metadata logs, which have all that is set of a cluster's topics.
        With it, Kafka's own topics get no defaults from here. Of a topic or broker of which a file
        tells, what the metadata log has does not count.

        Raises:
            UsageError: a file that cannot be read, a value that Kafka refuses, or a setting that
                has two values.
        """
        static: Values = {}
        if server_properties is not None:
            text = _text(server_properties)
            with_name = str(server_properties)
            static = _checked(with_name, _parsed(parse_server_properties, with_name, text))
        files = _Reader()
        for file in topic_configs:
            files.read(file)
        given = settings.model_dump(exclude_unset=True, include=set(TopicConfig.model_fields))
        topics, sources = dict(files.described.topics), dict(files.described.sources)
        for topic, config in settings.topics.items():
            own = config.model_dump(exclude_unset=True)
            topics[topic] = topics.get(topic, {}) | own
            sources |= {(topic, key): Source(_OF_SETTINGS) for key in own}
        known = files.described.topics
        others = ClusterConfigs(
            topics=topics,
            given=given,
            brokers=files.described.brokers,
            static=static,
            internal={topic: own for topic, own in INTERNAL.items() if topic not in known},
            sources=sources,
        )
        return cls(others, described=files.described).and_of(metadata)

    def and_of(self, metadata: Sequence[MetadataConfigs]) -> Self:
        """Return the same with what metadata logs have, see ``load``.

        Raises:
            UsageError: a value that Kafka refuses.
        """
        logs = {held.cluster: _of_metadata(held) for held in metadata}
        clusters = {cluster: self._under_files(log) for cluster, log in logs.items()}
        return replace(
            self,
            clusters=self.clusters | clusters,
            metadata=self.metadata | logs,
            held=(*self.held, *metadata),
        )

    def _under_files(self, log: Described) -> ClusterConfigs:
        """Return a cluster's configurations: its log's, where files and settings tell nothing."""
        untold = log.under(self.described)
        own, told = self.others.topics, self.described.topics
        topics = untold.topics | {
            topic: values if topic in told else untold.topics.get(topic, {}) | values
            for topic, values in own.items()
        }
        return replace(
            self.others,
            topics=topics,
            brokers=untold.brokers,
            internal={},
            sources=untold.sources | self.others.sources,
        )

    def only(self, keys: Collection[str]) -> Self:
        """Return the configurations of some settings, without where they are from."""
        clusters = {cluster: configs.only(keys) for cluster, configs in self.clusters.items()}
        return type(self)(self.others.only(keys), clusters, self.described.only(keys))

    def of(self, cluster: str) -> ClusterConfigs:
        """Return the configurations of a cluster."""
        return self.clusters.get(cluster, self.others)


def _in_words(resource: str | int | None) -> str:
    """Name a topic, a broker by its id, or (None) the cluster."""
    if resource is None:
        return "the cluster"
    return f"topic {resource}" if isinstance(resource, str) else f"broker {resource}"


class _Reader:
    """Reads files of kafka-configs, and holds what they tell together."""

    def __init__(self) -> None:
        self.described = Described()

    def read(self, file: Path) -> None:
        """Take a file's values in.

        Raises:
            UsageError: a file that is none, or a setting that has another value already.
        """
        name, described = str(file), self.described
        for found in _parsed(parse_described_configs, name, _text(file)):
            whose: str | int | None
            if found.topic is not None:
                whose, known = found.topic, described.topics.setdefault(found.topic, {})
            else:
                whose = found.broker_id
                known = described.brokers.setdefault(found.broker_id, {})
            values = _checked(f"{name}, {_in_words(whose)}", found.configs)
            self._take(whose, Source(name, found.line), known, values)

    def _take(self, whose: str | int | None, source: Source, known: Values, values: Values) -> None:
        for key, value in values.items():
            if known.setdefault(key, value) != value:
                raise UsageError(
                    f"{_in_words(whose)}: {kafka_key(key)} is {known[key]} in"
                    f" {self.described.sources[whose, key].text} and {value} in {source.text}:"
                    " give --topic-configs only the file that holds"
                )
            self.described.sources.setdefault((whose, key), source)


def _of_metadata(metadata: MetadataConfigs) -> Described:
    """Return what a metadata log says.

    Raises:
        UsageError: a value that no broker takes.
    """
    described = Described()
    by_resource: dict[tuple[str, str], list[ConfigAtOffset]] = {}
    for config in metadata.configs:
        resource = (config.resource_type, config.resource_name)
        by_resource.setdefault(resource, []).append(config)
    for (kind, resource_name), configs in by_resource.items():
        raw = {config.name: config.value for config in configs}
        whose: str | int | None
        if kind == "topic":
            whose, known = resource_name, described.topics.setdefault(resource_name, {})
            settings_of = topic_settings
        elif resource_name == "" or resource_name.isdecimal():
            whose = int(resource_name) if resource_name else None
            known = described.brokers.setdefault(whose, {})
            settings_of = partial(_parsed, topic_defaults, METADATA_LOG)
        else:
            continue
        settings = settings_of(raw)
        of_cluster = f"metadata log of cluster {metadata.cluster}"
        known |= _checked(f"{of_cluster}, {_in_words(whose)}", settings)
        for config in configs:
            since = "before" if config.is_from_snapshot else "since"
            source = Source(
                METADATA_LOG, config.from_offset, f"{since} {moment_text(config.from_ms)}"
            )
            for key, value in settings_of({config.name: config.value}).items():
                if settings.get(key) == value:
                    described.sources[whose, key] = source
    return described


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
