"""Configurations as Kafka's files and tools write them: server.properties, kafka-configs.

Values stay text. A broker's key becomes the topic's key that it is the default of, with ``_`` for
``.``. Source: ServerTopicConfigSynonyms, AbstractKafkaConfig.logRetentionTimeMillis, ConfigCommand.
"""

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import javaproperties

from kafka_segments.errors import CorruptTextError

BROKER_KEYS = {
    "log.retention.bytes": "retention_bytes",
    "log.cleanup.policy": "cleanup_policy",
    "log.segment.delete.delay.ms": "file_delete_delay_ms",
    "log.local.retention.ms": "local_retention_ms",
    "log.local.retention.bytes": "local_retention_bytes",
    "log.segment.bytes": "segment_bytes",
    "log.index.size.max.bytes": "segment_index_bytes",
    "log.index.interval.bytes": "index_interval_bytes",
    "log.cleaner.enable": "log_cleaner_enable",
    "log.cleaner.max.compaction.lag.ms": "max_compaction_lag_ms",
    "log.message.timestamp.type": "message_timestamp_type",
    "message.max.bytes": "max_message_bytes",
}
TOPIC_KEYS = {
    "retention.ms": "retention_ms",
    "retention.bytes": "retention_bytes",
    "cleanup.policy": "cleanup_policy",
    "file.delete.delay.ms": "file_delete_delay_ms",
    "local.retention.ms": "local_retention_ms",
    "local.retention.bytes": "local_retention_bytes",
    "remote.storage.enable": "remote_storage_enable",
    "remote.log.copy.disable": "remote_log_copy_disable",
    "segment.bytes": "segment_bytes",
    "segment.ms": "segment_ms",
    "segment.jitter.ms": "segment_jitter_ms",
    "segment.index.bytes": "segment_index_bytes",
    "index.interval.bytes": "index_interval_bytes",
    "max.compaction.lag.ms": "max_compaction_lag_ms",
    "message.timestamp.type": "message_timestamp_type",
    "max.message.bytes": "max_message_bytes",
}
GONE_KEYS = (
    "message.format.version",
    "log.message.format.version",
    "message.timestamp.difference.max.ms",
    "log.message.timestamp.difference.max.ms",
    "message.downconversion.enable",
    "log.message.downconversion.enable",
    "inter.broker.protocol.version",
    "zookeeper.connect",
)
"""Settings of clusters before 4.0 that a 4.x broker ignores."""
_MS_OF = {"log.retention.ms": 1, "log.retention.minutes": 60_000, "log.retention.hours": 3_600_000}
_ROLL_MS_OF = {
    "segment_ms": {"log.roll.ms": 1, "log.roll.hours": 3_600_000},
    "segment_jitter_ms": {"log.roll.jitter.ms": 1, "log.roll.jitter.hours": 3_600_000},
}
_NUMBER = re.compile(r"[+-]?[0-9]+", re.ASCII)
_HEADER = re.compile(
    r"(?:(?:Dynamic|All|Default) configs?|Configs) for "
    r"(?P<entity>brokers in the cluster|[a-z-]+)(?:[ :]'?(?P<name>[^' ]+)'?)? are:? ?(?P<inline>.*)"
)
_ENTRY = re.compile(r"\s+(\S+?)=(.*?)(?: sensitive=(?:true|false) synonyms=\{.*\})?")
_NEXT_INLINE = re.compile(r",(?=[a-z][a-z.]*=)")
_UNSET = "null"


class DescribedConfigs(NamedTuple):
    """The settings that ``kafka-configs --describe`` prints for one topic or broker.

    ``topic`` is None for brokers; ``broker_id`` is None for the defaults of the whole cluster.
    ``line`` is the number of the line that names the topic or broker.
    """

    topic: str | None
    broker_id: int | None
    configs: dict[str, str]
    line: int


class GoneSetting(NamedTuple):
    """A setting of ``GONE_KEYS`` that is set.

    ``topic`` and ``broker_id`` are None if it is of all brokers, and ``cluster`` if a file has it.
    """

    topic: str | None
    broker_id: int | None
    key: str
    value: str
    cluster: str | None = None


def find_gone_in_properties(name: str, text: str) -> list[GoneSetting]:
    """Return the settings of ``GONE_KEYS`` in a server.properties file.

    Raises:
        CorruptTextError: the text is not Java properties.
    """
    properties = _properties(name, text)
    return [GoneSetting(None, None, key, properties[key]) for key in GONE_KEYS if key in properties]


def find_gone_in_described(name: str, text: str) -> list[GoneSetting]:
    """Return the settings of ``GONE_KEYS`` in the output of ``kafka-configs --describe``.

    Raises:
        CorruptTextError: the text is not that tool's output.
    """
    found = []
    for _, header, entries in _blocks(name, text):
        entity, subject = header["entity"], header["name"]
        topic = subject if entity == "topic" else None
        is_broker = entity == "broker" and subject.isdecimal()
        broker_id = int(subject) if is_broker else None
        found += [
            GoneSetting(topic, broker_id, key, entries[key]) for key in GONE_KEYS if key in entries
        ]
    return found


def parse_server_properties(name: str, text: str) -> dict[str, str]:
    """Return the topics' defaults in a server.properties file, as text; other keys are left out.

    Raises:
        CorruptTextError: the text is not Java properties, or a broker refuses its retention.
    """
    return topic_defaults(name, _properties(name, text))


def _properties(name: str, text: str) -> dict[str, str]:
    try:
        return dict(javaproperties.loads(text))
    except javaproperties.InvalidUEscapeError as error:
        raise CorruptTextError(name, str(error)) from None


def parse_described_configs(name: str, text: str) -> list[DescribedConfigs]:
    """Return the settings that ``kafka-configs --describe`` printed for topics, brokers or both.

    Raises:
        CorruptTextError: the text is not that tool's output, or a broker refuses a retention.
    """
    found = []
    for number, header, entries in _blocks(name, text):
        entity, subject = header["entity"], header["name"]
        if entity == "topic":
            found.append(DescribedConfigs(subject, None, topic_settings(entries), number))
        elif entity == "broker" and not subject.isdecimal():
            raise CorruptTextError(name, f"{subject!r} is no broker id (line {number})")
        elif entity in ("broker", "brokers in the cluster"):
            broker_id = int(subject) if subject else None
            defaults = topic_defaults(name, entries)
            found.append(DescribedConfigs(None, broker_id, defaults, number))
    if not found:
        raise CorruptTextError(
            name, "no configs of a topic or broker, as `kafka-configs --describe` prints them"
        )
    return found


def topic_settings(configs: Mapping[str, str]) -> dict[str, str]:
    """Return a topic's configs under the names of our settings; other keys are left out."""
    return {TOPIC_KEYS[key]: value for key, value in configs.items() if key in TOPIC_KEYS}


def _blocks(name: str, text: str) -> Iterator[tuple[int, re.Match[str], dict[str, str]]]:
    """Return the number of each header's line, the header, and the entries below or beside it."""
    block: tuple[int, re.Match[str], dict[str, str]] | None = None
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        header = _HEADER.fullmatch(line.rstrip())
        if header is not None:
            if block is not None:
                yield block
            inline = _NEXT_INLINE.split(header["inline"]) if header["inline"] else []
            pairs = (entry.partition("=") for entry in inline)
            block = number, header, {key: value for key, _, value in pairs}
            continue
        entry = _ENTRY.fullmatch(line.rstrip())
        if entry is None or block is None:
            raise CorruptTextError(
                name, f"{line.strip()[:80]!r} is no line of `kafka-configs --describe`: {number}"
            )
        if entry[2] != _UNSET and block[2].setdefault(entry[1], entry[2]) != entry[2]:
            raise CorruptTextError(
                name, f"{entry[1]} is {block[2][entry[1]]} and {entry[2]} (line {number})"
            )
    if block is not None:
        yield block


def topic_defaults(name: str, properties: Mapping[str, str]) -> dict[str, str]:
    """Return the topics' defaults among a broker's configs, under the names of our settings.

    ``name`` says in an error where the configs stand.

    Raises:
        CorruptTextError: a broker refuses a retention.
    """
    found = {
        topic_key: properties[key] for key, topic_key in BROKER_KEYS.items() if key in properties
    }
    for key, unit_ms in _MS_OF.items():  # the first that is set wins
        if key in properties:
            found["retention_ms"] = str(_retention_ms(name, key, properties[key], unit_ms))
            break
    for topic_key, units in _ROLL_MS_OF.items():
        given = [key for key in units if key in properties]
        if given:
            value = _number(name, given[0], properties[given[0]], units[given[0]])
            found[topic_key] = str(value * units[given[0]])
    return found


def _number(name: str, key: str, text: str, unit_ms: int) -> int:
    """Return a number; as in Kafka, milliseconds are of type LONG, larger units of type INT."""
    kind, bits = ("LONG", 64) if unit_ms == 1 else ("INT", 32)
    value = int(text) if _NUMBER.fullmatch(text.strip()) else 2**bits
    if not -(2 ** (bits - 1)) <= value < 2 ** (bits - 1):
        raise CorruptTextError(name, f"{key} is {text!r}: not a number of type {kind}")
    return value


def _retention_ms(name: str, key: str, text: str, unit_ms: int) -> int:
    value = _number(name, key, text, unit_ms)
    if value == 0:
        raise CorruptTextError(name, f"{key} is 0: -1 (unlimited) or 1 and more expected")
    return value * unit_ms if value > 0 else -1
