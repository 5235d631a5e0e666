"""The tables of a warehouse: their names, schemas, keys and constraints."""

from typing import TYPE_CHECKING, NamedTuple

from kafka_segments.engine.tables.keys import LOG_KEYS, SEGMENT_KEYS
from kafka_segments.engine.tables.schemas import newest_versions, schema
from kafka_segments.files.delta.properties import (
    CHANGE_FEED,
    MEASURED_COLUMNS,
    constraint_properties,
)

if TYPE_CHECKING:
    from pyspark.sql.types import StructType  # who only asks for names does not wait for Spark

SCHEMA_VERSION = "kafkaSegments.schemaVersion"
# Said of each table, as a platform's defaults may be others: with any of them engines that know
# Delta's reader version 1 alone could not read it. See docs/engines.md.
_READABLE_BY_ALL = {
    "delta.enableDeletionVectors": "false",
    "delta.columnMapping.mode": "none",
    "delta.checkpointPolicy": "classic",
}
_ALSO_LOOKED_UP_BY = ("run_id", "largest_timestamp_ms")


class Table(NamedTuple):
    """A table of the warehouse: its name, the version of its schema, and its key.

    ``constraints`` are names and conditions of CHECK constraints. With
    ``keeps_changes`` the table has a change data feed, which tells later which rows came and
    went.
    """

    name: str
    version: int
    keys: tuple[str, ...]
    clustered_by: tuple[str, ...] = ()
    constraints: tuple[tuple[str, str], ...] = ()
    keeps_changes: bool = False

    @property
    def schema(self) -> "StructType":
        """The schema that is published for this version of the table."""
        return schema(f"{self.name}.v{self.version}")

    def retired_columns(self) -> set[str]:
        """Return the columns that only earlier versions of the schema have."""
        before = (schema(f"{self.name}.v{version}") for version in range(1, self.version))
        return {name for of in before for name in of.fieldNames()} - set(self.schema.fieldNames())

    def properties(self) -> dict[str, str]:
        """Return the table properties that a new table gets."""
        checks = constraint_properties(dict(self.constraints))
        feed = {CHANGE_FEED: "true"} if self.keeps_changes else {}
        # Delta measures 32 columns of each file by itself, which costs more than writing few rows.
        measured = {MEASURED_COLUMNS: ",".join(self._looked_up_by())}
        return {SCHEMA_VERSION: str(self.version), **_READABLE_BY_ALL, **measured, **checks, **feed}

    def _looked_up_by(self) -> list[str]:
        """Return the columns by which files are passed over: its key, its run, its time."""
        names = self.schema.fieldNames()
        also = [name for name in _ALSO_LOOKED_UP_BY if name in names and name not in self.keys]
        return [*self.keys, *also]


def _newest(
    name: str,
    keys: tuple[str, ...],
    clustered_by: tuple[str, ...] = (),
    constraints: tuple[tuple[str, str], ...] = (),
    *,
    keeps_changes: bool = False,
) -> Table:
    """Return a table with the newest version of its schema that is published."""
    version = newest_versions()[name]
    return Table(name, version, keys, clustered_by, constraints, keeps_changes)


SEGMENTS = _newest(
    "segments",
    SEGMENT_KEYS,
    constraints=(
        ("base_offset_not_negative", "base_offset >= 0"),
        ("size_not_negative", "size_bytes >= 0"),
        ("valid_not_negative", "coalesce(valid_bytes, 0) >= 0"),
        ("truncated_not_negative", "coalesce(truncated_bytes, 0) >= 0"),
        ("timestamp_source", "largest_timestamp_source IN ('record', 'last_modified')"),
    ),
    keeps_changes=True,
)
# Above this base offset an index entry can lie past the last offset, where Kafka's longs wrap.
_MOST_RELATIVE = 2**31 - 1
_LAST_FULL_BASE = 2**63 - 1 - _MOST_RELATIVE
# benchmarks/clustering.py compares other choices; docs/compaction.md has its figures.
_ENTRIES_CLUSTERED_BY = ("topic", "partition")
OFFSET_INDEX = _newest(
    "offset_index",
    (*SEGMENT_KEYS, "offset"),
    _ENTRIES_CLUSTERED_BY,
    (
        (
            "offset_within_reach",
            f"CASE WHEN base_offset > {_LAST_FULL_BASE} THEN offset >= base_offset OR offset < 0"
            f" ELSE offset BETWEEN base_offset AND base_offset + {_MOST_RELATIVE} END",
        ),
        ("position_not_negative", "position >= 0"),
    ),
)
TIME_INDEX = _newest(
    "time_index",
    (*SEGMENT_KEYS, "timestamp_ms"),
    _ENTRIES_CLUSTERED_BY,
    (
        ("timestamp_not_negative", "timestamp_ms >= 0"),
        (
            "offset_not_below_base",
            f"offset >= base_offset OR (offset < 0 AND base_offset > {_LAST_FULL_BASE})",
        ),
    ),
)
LOGS = _newest("logs", LOG_KEYS)
LOG_DIRS = _newest("log_dirs", LOG_KEYS[:3])
UNRECOGNIZED_FILES = _newest("unrecognized_files", ("cluster", "broker_id", "path"))
RUNS = _newest("runs", ("run_id",))
RETENTION_DECISIONS = _newest("retention_decisions", ("run_id", *SEGMENT_KEYS))
ROLL_DECISIONS = _newest("roll_decisions", ("run_id", *SEGMENT_KEYS))
INDEX_AUDITS = _newest("index_audits", ("run_id", "path"))
DIVERGENCES = _newest("divergences", ("run_id", "topic", "partition", "row"))
OFFSET_RANGES = _newest("offset_ranges", ("path",))
RETENTION_PLANS = _newest("retention_plans", ("plan_id", *SEGMENT_KEYS))
MIGRATION_INVENTORY = _newest("migration_inventory", ("run_id", *SEGMENT_KEYS))
MIGRATION_OBSTACLES = _newest("migration_obstacles", ("run_id", *LOG_KEYS, "code", "example"))
MIGRATION_PLANS = _newest("migration_plans", ("plan_id", *SEGMENT_KEYS))
MIGRATION_PROOFS = _newest("migration_proofs", ("plan_id", *SEGMENT_KEYS))
MIGRATION_EVENTS = _newest("migration_events", ("run_id", *LOG_KEYS))
INTERNAL_RECORDS = _newest("internal_records", (*LOG_KEYS, "file", "row"))
INTERNAL_FILES = _newest("internal_files", (*LOG_KEYS, "file"))
REMOTE_SEGMENTS = _newest("remote_segments", ("cluster", "topic", "partition", "segment_id"))


def _history(name: str, *keys: str) -> Table:
    """Return a table of what was so from one offset of a cluster's metadata log to another."""
    ends = ("ends_after_it_begins", "until_offset IS NULL OR until_offset > from_offset")
    return _newest(name, ("cluster", *keys, "from_offset"), constraints=(ends,))


METADATA_TOPICS = _history("metadata_topics", "topic_id")
METADATA_PARTITIONS = _history("metadata_partitions", "topic_id", "partition")
METADATA_CONFIGS = _history("metadata_configs", "resource_type", "resource_name", "name")
METADATA_BROKERS = _history("metadata_brokers", "node_id")
METADATA_FEATURES = _history("metadata_features", "name")
METADATA_ENTRIES = _history("metadata_entries", "kind", "name")
METADATA_PROBLEMS = _newest("metadata_problems", ("cluster", "number"))
VALIDATION_RESULTS = _newest("validation_results", ("run_id", "table_name", "expectation"))
QUARANTINED_SEGMENTS = _newest("quarantined_segments", SEGMENT_KEYS)
BUILD_TABLES = (SEGMENTS, OFFSET_INDEX, TIME_INDEX, LOGS, LOG_DIRS, UNRECOGNIZED_FILES, RUNS)
METADATA_TABLES = (
    METADATA_TOPICS,
    METADATA_PARTITIONS,
    METADATA_CONFIGS,
    METADATA_BROKERS,
    METADATA_FEATURES,
    METADATA_ENTRIES,
)
SEGMENT_DATA = (SEGMENTS, OFFSET_INDEX, TIME_INDEX)
"""The tables whose rows belong to a segment: a quarantined one's are not published."""
ALL_TABLES = tuple(table for table in [*vars().values()] if isinstance(table, Table))
"""Every table that is named in this module."""
