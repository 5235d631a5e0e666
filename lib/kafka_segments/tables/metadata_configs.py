"""The configs that a cluster's metadata log had at a moment, out of the tables, without Spark."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from kafka_segments.storage.delta_rows import read_small_table
from kafka_segments.storage.uris import join_uri
from kafka_segments.tables.catalog import METADATA_CONFIGS, METADATA_FEATURES
from kafka_segments.wire.moments import moment_text

_MOST_BYTES = 256 * 1024 * 1024
_HELD = ("cluster", "from_offset", "from_ms", "until_ms", "is_from_snapshot")
_CONFIG = ("resource_type", "resource_name", "name", "value")
_WITH_SETTINGS = ("topic", "broker")


class HeldConfig(NamedTuple):
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

    @property
    def place(self) -> str:
        """Where the metadata log has it, in words."""
        since = "before" if self.is_from_snapshot else "since"
        return f"metadata log, offset {self.from_offset}, {since} {moment_text(self.from_ms)}"


class MetadataConfigs(NamedTuple):
    """What the metadata log of a cluster says of the configs of topics and brokers at a moment."""

    cluster: str
    configs: tuple[HeldConfig, ...]


class NoMetadataConfigsError(Exception):
    """Why a warehouse that has metadata does not tell the configs."""


def read_metadata_configs(warehouse: str, *, at_ms: int) -> MetadataConfigs | None:
    """Return the configs that held at a moment; None: the warehouse has no metadata.

    ``warehouse``: URI of the tables.

    Raises:
        NoMetadataConfigsError: several clusters have metadata there, the history begins later, or
            the table is too large to be read without Spark.
    """
    cluster = cluster_with_metadata(warehouse, at_ms=at_ms)
    if cluster is None:
        return None
    held = (
        HeldConfig(**{name: row[name] for name in HeldConfig._fields})
        for row in rows_held(warehouse, METADATA_CONFIGS.name, _CONFIG, at_ms=at_ms)
        if row["resource_type"] in _WITH_SETTINGS
    )
    return MetadataConfigs(cluster, tuple(sorted(held)))


def cluster_with_metadata(warehouse: str, *, at_ms: int) -> str | None:
    """Return the cluster whose metadata a warehouse has; None: it has none.

    Raises:
        NoMetadataConfigsError: several clusters have metadata there, or the history begins later.
    """
    features = _rows(warehouse, METADATA_FEATURES.name, _HELD)
    begins: dict[str, int] = {}
    for row in features or []:
        begins[row["cluster"]] = min(row["from_ms"], begins.get(row["cluster"], row["from_ms"]))
    if not begins:
        return None
    if len(begins) > 1:
        raise NoMetadataConfigsError(
            f"it has the metadata of {len(begins)} clusters, {', '.join(sorted(begins))}"
        )
    ((cluster, begin_ms),) = begins.items()
    if at_ms < begin_ms:
        raise NoMetadataConfigsError(
            f"the history of its metadata begins at {moment_text(begin_ms)}, after"
            f" {moment_text(at_ms)}"
        )
    return cluster


def rows_held(
    warehouse: str, table: str, columns: Sequence[str], *, at_ms: int
) -> Iterator[dict[str, Any]]:
    """Yield the rows of a metadata table that held at a moment.

    Raises:
        NoMetadataConfigsError: the table is too large to be read without Spark.
    """
    rows = _rows(warehouse, table, (*columns, *_HELD))
    if rows is None:
        raise NoMetadataConfigsError(f"its table {table} is too large to be read")
    for row in rows:
        if row["from_ms"] <= at_ms and (row["until_ms"] is None or row["until_ms"] > at_ms):
            yield row


def _rows(warehouse: str, table: str, columns: Sequence[str]) -> list[dict[str, Any]] | None:
    return read_small_table(join_uri(warehouse, table), columns, most_bytes=_MOST_BYTES)
