"""The configs that clusters' metadata logs had at a moment, out of the tables, without Spark."""

from collections.abc import Mapping
from typing import NamedTuple

from kafka_segments.engine.derived.metadata_in_tables import rows_held
from kafka_segments.engine.tables.catalog import METADATA_CONFIGS

_WITH_SETTINGS = ("topic", "broker")


class ConfigAtOffset(NamedTuple):
    """A config of a topic or a broker: its resource, its name and value, and since when it held.

    ``resource_name`` of a broker is empty for the default of the whole cluster.
    """

    resource_type: str
    resource_name: str
    name: str
    value: str
    from_offset: int
    from_ms: int
    is_from_snapshot: bool


class MetadataConfigs(NamedTuple):
    """What the metadata log of a cluster says of the configs of topics and brokers at a moment."""

    cluster: str
    configs: tuple[ConfigAtOffset, ...]


def read_metadata_configs(
    warehouse: str, at_offset: Mapping[str, int]
) -> tuple[MetadataConfigs, ...]:
    """Return the configs of each cluster that held at an offset of its metadata log.

    ``warehouse``: URI of the tables; ``at_offset``: as ``clusters_with_metadata`` gives it.

    Raises:
        NoMetadataError: only Spark can read the table.
    """
    held: dict[str, list[ConfigAtOffset]] = {cluster: [] for cluster in sorted(at_offset)}
    for row in rows_held(warehouse, METADATA_CONFIGS.name, ConfigAtOffset._fields, at_offset):
        if row["resource_type"] in _WITH_SETTINGS:
            config = ConfigAtOffset(**{name: row[name] for name in ConfigAtOffset._fields})
            held[row["cluster"]].append(config)
    return tuple(
        MetadataConfigs(cluster, tuple(sorted(configs))) for cluster, configs in held.items()
    )
