"""The settings that logs are cleaned by, from all levels that a broker takes them from."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from kafka_segments.errors import CorruptTextError, UsageError
from kafka_segments.kafka.broker_rules.cleaner.log_cleaner import CleanerConfig, keys_of_a_pass
from kafka_segments.kafka.text.checkpoints import java_properties
from kafka_segments.verbs.find.cleaner.decide import Policy

Values = Mapping[str, str]
POLICY = "cleanup.policy"
_ENABLE = "log.cleaner.enable"
_BROKER_KEYS = {
    POLICY: "log.cleanup.policy",
    "min.cleanable.dirty.ratio": "log.cleaner.min.cleanable.ratio",
    "min.compaction.lag.ms": "log.cleaner.min.compaction.lag.ms",
    "max.compaction.lag.ms": "log.cleaner.max.compaction.lag.ms",
    "delete.retention.ms": "log.cleaner.delete.retention.ms",
}
"""Of a topic's keys, those of its broker that hold where the topic has none."""
_NODE_DEFAULTS: dict[str, Any] = {
    _ENABLE: "true",
    "log.cleaner.dedupe.buffer.size": "134217728",
    "log.cleaner.threads": "1",
    "log.cleaner.io.buffer.load.factor": "0.9",
    "producer.id.expiration.ms": "86400000",
}
_SEGMENT_MS = "segment.ms"
KEYS = (*_BROKER_KEYS, *_NODE_DEFAULTS, _SEGMENT_MS)


class NodeConfig(NamedTuple):
    """The settings of a node's cleaner."""

    is_enabled: bool
    dedupe_buffer_bytes: int
    threads: int
    load_factor: float
    producer_expiration_ms: int

    @property
    def keys_of_a_pass(self) -> int:
        """How many keys a thread holds."""
        return keys_of_a_pass(self.dedupe_buffer_bytes, self.threads, self.load_factor)


class Levels(NamedTuple):
    """Where settings come from, the first that has one counts; all by Kafka's keys.

    ``what_if``: asked for, over all others. ``levels``: a broker's own, those of all brokers,
    server.properties.
    """

    what_if: Values
    levels: Sequence[Values]

    def of_topic(self, key: str, topic: Values) -> str | None:
        """Return a topic's setting; None: Kafka's default holds."""
        own = [self.what_if.get(key), topic.get(key)]
        found = [*own, *(level.get(_BROKER_KEYS[key]) for level in self.levels)]
        return next((value for value in found if value is not None), None)

    def of_node(self, key: str) -> str:
        """Return a setting of the node."""
        found = (level.get(key) for level in (self.what_if, *self.levels))
        value = next((value for value in found if value is not None), None)
        return str(_NODE_DEFAULTS[key]) if value is None else value


def policy_of(levels: Levels, topic: Values, set_at: int | None) -> Policy | None:
    """Return a topic's policy; None: no level says so, and the default is `delete`.

    ``set_at``: when the topic's own was set, in ms; None: not known.
    """
    value = levels.of_topic(POLICY, topic)
    is_own = POLICY in topic and POLICY not in levels.what_if
    return None if value is None else Policy(value, set_at if is_own else None)


def cleaner_config(levels: Levels, topic: Values) -> CleanerConfig:
    """Return the settings of a topic.

    Raises:
        UsageError: one is no number.
    """
    kinds: dict[str, Callable[[str], Any]] = {
        "min.cleanable.dirty.ratio": float,
        "min.compaction.lag.ms": int,
        "max.compaction.lag.ms": int,
        "delete.retention.ms": int,
    }
    values = {}
    for key, kind in kinds.items():
        text = levels.of_topic(key, topic)
        if text is not None:
            values[key.replace(".", "_")] = _number(key, text, kind)
    return CleanerConfig(**values)


def rolls_before_ms(changes: Values, *, now_ms: int) -> int | None:
    """Return before which moment segments that still grow must have begun to count as rolled.

    None: no other ``segment.ms`` is asked for, and those that grow are the active ones.

    Raises:
        UsageError: it is no number.
    """
    text = changes.get(_SEGMENT_MS)
    return None if text is None else now_ms - int(_number(_SEGMENT_MS, text, int))


def node_config(levels: Levels) -> NodeConfig:
    """Return the settings of a node.

    Raises:
        UsageError: one is no number.
    """
    buffer, threads, factor, expiration = list(_NODE_DEFAULTS)[1:]
    return NodeConfig(
        levels.of_node(_ENABLE).strip().lower() != "false",
        _number(buffer, levels.of_node(buffer), int),
        _number(threads, levels.of_node(threads), int),
        _number(factor, levels.of_node(factor), float),
        _number(expiration, levels.of_node(expiration), int),
    )


def _number(key: str, text: str, kind: Callable[[str], Any]) -> Any:
    try:
        return kind(text.strip())
    except ValueError:
        raise UsageError(f"{key} is {text!r}, a number expected") from None


def parse_changes(pairs: Sequence[str]) -> dict[str, str]:
    """Read settings that are asked for, as ``key=value``.

    Raises:
        UsageError: a pair is none, or its key is none of ``KEYS``.
    """
    changes = {}
    for pair in pairs:
        key, separator, value = pair.partition("=")
        key = key.strip().replace("_", ".")
        if not separator or key not in KEYS:
            raise UsageError(f"--what-if {pair}: KEY=VALUE expected, KEY one of {', '.join(KEYS)}")
        changes[key] = value.strip()
    return changes


def read_properties(file: Path) -> Values:
    """Read a server.properties file.

    Raises:
        UsageError: it is none, or cannot be read.
    """
    try:
        return java_properties(file.read_text("latin-1"))
    except (OSError, CorruptTextError) as error:
        raise UsageError(f"{file}: {error}") from None
