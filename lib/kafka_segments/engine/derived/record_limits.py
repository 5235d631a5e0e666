"""The max.decompressed.message.bytes that topics have by the metadata in the tables."""

from kafka_segments.engine.derived.metadata_configs import read_metadata_configs
from kafka_segments.engine.derived.metadata_in_tables import clusters_with_metadata
from kafka_segments.kafka.broker_rules.record_lookups import MOST_RECORD_BYTES, RecordLimits

_LATEST_MS = 2**63 - 1


def read_record_limits(warehouse: str) -> RecordLimits:
    """Return what holds of each cluster's topics and brokers in the end; empty: nothing is set.

    ``warehouse``: URI of the tables.

    Raises:
        NoMetadataError: only Spark can read one of the tables.
    """
    at_offset = clusters_with_metadata(warehouse, at_ms=_LATEST_MS).at_offset
    return {
        (held.cluster, config.resource_type, config.resource_name): int(config.value)
        for held in read_metadata_configs(warehouse, at_offset)
        for config in held.configs
        if config.name == MOST_RECORD_BYTES and config.value.isdecimal()
    }
