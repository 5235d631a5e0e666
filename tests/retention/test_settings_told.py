"""The settings that decided, and where each comes from, in few lines."""

from kafka_segments.engine.derived.logs_in_tables import KnownLog
from kafka_segments.engine.derived.metadata_configs import ConfigAtOffset, MetadataConfigs
from kafka_segments.engine.derived.topic_configs import TopicConfigs
from kafka_segments.settings import Settings
from kafka_segments.verbs.judge.retention.report_settings import settings_in_short

MANY = 10_000


def _held(topic: str, value: int, offset: int) -> ConfigAtOffset:
    return ConfigAtOffset("topic", topic, "retention.ms", str(value), offset, 1_000 * offset, False)


def test_each_cluster_has_a_line_for_each_value_and_origin_with_its_topics() -> None:
    held = [_held("clicks", 50, 4), _held("orders", 50, 5), _held("views", 60, 6)]
    configs = TopicConfigs.load(
        Settings.load(None, ["retention.bytes=7"]), metadata=[MetadataConfigs("a", tuple(held))]
    )
    topics = ("clicks", "orders", "views", "w", "x", "y", "z", "__cluster_metadata")
    logs = [KnownLog("a", topic, broker) for topic in topics for broker in (1, 2)]

    assert settings_in_short(configs, [*logs, KnownLog("b", "orders", 1)]) == [
        "settings that decided in cluster a:",
        "  retention.ms = 604800000 (7 d 0 h)   [Kafka's default]: 4 topics",
        "  retention.ms = 50 (0.050 s)   [topic: metadata log, offsets 4 to 5]: clicks, orders",
        "  retention.ms = 60 (0.060 s)   [topic: metadata log, offset 6, since 1970-01-01"
        " 00:00:06.000 UTC]: views",
        "  retention.bytes = 7   [--conf, environment or --set]: 7 topics",
        "  cleanup.policy = delete   [Kafka's default]: 7 topics",
        "  file.delete.delay.ms = 60000 (1 min 0 s)   [Kafka's default]: 7 topics",
        "  remote.storage.enable = false   [Kafka's default]: 7 topics",
        "settings that decided in cluster b:",
        "  retention.ms = 604800000 (7 d 0 h)   [Kafka's default]: orders",
        "  retention.bytes = 7   [--conf, environment or --set]: orders",
        "  cleanup.policy = delete   [Kafka's default]: orders",
        "  file.delete.delay.ms = 60000 (1 min 0 s)   [Kafka's default]: orders",
        "  remote.storage.enable = false   [Kafka's default]: orders",
    ]


def test_many_topics_with_a_value_each_stay_readable() -> None:
    held = tuple(_held(f"t{number}", number + 1, number) for number in range(MANY))
    configs = TopicConfigs.load(Settings.load(None, []), metadata=[MetadataConfigs("a", held)])

    lines = settings_in_short(configs, {KnownLog("a", f"t{number}", 1) for number in range(MANY)})

    assert len(lines) == 11
    others = [line for line in lines if "other values" in line]
    assert others[0].startswith("  retention.ms: 9995 other values   [topic: metadata log, offsets")
    assert others[0].endswith(": 9995 topics")
