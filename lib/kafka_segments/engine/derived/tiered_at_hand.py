"""What the tables of a warehouse know of tiered topics, and of what their tier has."""

from pyspark.sql import DataFrame

from kafka_segments.engine.derived.replicas import PARTITION
from kafka_segments.engine.derived.tier_fronts import TIERED_BY
from kafka_segments.engine.frames.driver_rows import with_values
from kafka_segments.engine.tables.catalog import METADATA_CONFIGS, REMOTE_SEGMENTS
from kafka_segments.engine.tables.delta import Warehouse


def tiered_settings(tables: Warehouse) -> DataFrame | None:
    """Return the rows of ``metadata_configs`` that may tell of tiered topics, past ones too.

    None: no metadata says it.
    """
    if tables.version(METADATA_CONFIGS) is None:
        return None
    names = ("cluster", "resource_type", "resource_name", "name", "value", "until_offset")
    return with_values(tables.read(METADATA_CONFIGS, names), {"name": (TIERED_BY,)})


def copies_at_hand(tables: Warehouse) -> DataFrame | None:
    """Return what ``tier_fronts`` takes of ``remote_segments``; None: there is no such table."""
    if tables.version(REMOTE_SEGMENTS) is None:
        return None
    of_segment = ("state", "partition_state", "findings", "start_offset", "end_offset")
    return tables.read(REMOTE_SEGMENTS, (*PARTITION, *of_segment, "max_timestamp_ms"))
