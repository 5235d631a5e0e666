"""Settings that Kafka 4 does not have, in the metadata logs of clusters."""

from collections.abc import Iterator

from kafka_segments.engine.derived.topic_configs import TopicConfigs
from kafka_segments.kafka.text.kafka_configs import GONE_KEYS, GoneSetting


def removed_in_metadata(configs: TopicConfigs) -> Iterator[GoneSetting]:
    """Yield what the metadata sets of ``GONE_KEYS`` for topics and brokers that no file names."""
    for held in configs.held:
        for config in held.configs:
            resource = config.resource_name
            is_topic = config.resource_type == "topic"
            topic = resource if is_topic else None
            broker_id = int(resource) if not is_topic and resource.isdecimal() else None
            described = configs.described.topics if is_topic else configs.described.brokers
            if config.name in GONE_KEYS and (topic if is_topic else broker_id) not in described:
                yield GoneSetting(topic, broker_id, config.name, config.value, held.cluster)
