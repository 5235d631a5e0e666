"""The Delta tables of a warehouse: made from the published schemas, changed by MERGE."""

import logging
from collections.abc import Callable, Sequence
from typing import NamedTuple

from delta.tables import DeltaTable
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession

from kafka_segments.errors import UsageError
from kafka_segments.storage.delta_log import last_version, remove_log_without_commit
from kafka_segments.storage.folder_lock import creation_lock
from kafka_segments.storage.stores import hadoop_uri
from kafka_segments.storage.uris import join_uri
from kafka_segments.tables.keys import LOG_KEYS, SEGMENT_KEYS
from kafka_segments.tables.schemas import schema
from kafka_segments.tables.upgrades import (
    SCHEMA_VERSION,
    change_schema,
    renew_constraints,
    upgraded,
)

_LOG = logging.getLogger(__name__)
_MOST_TRIES = 5
_CONFLICTS = (
    "ConcurrentAppendException",
    "ConcurrentDeleteReadException",
    "ConcurrentDeleteDeleteException",
    "ConcurrentTransactionException",
    "ConcurrentWriteException",
    "DELTA_CONCURRENT",
    "MetadataChangedException",
    "ProtocolChangedException",
)


class Table(NamedTuple):
    """A table of the warehouse: its name, the version of its schema, and its key.

    ``constraints``: names and conditions that Delta holds every row to. ``keeps_changes``: its
    change data feed tells later which rows came and went.
    """

    name: str
    version: int
    keys: tuple[str, ...]
    clustered_by: tuple[str, ...] = ()
    constraints: tuple[tuple[str, str], ...] = ()
    keeps_changes: bool = False

    def properties(self) -> dict[str, str]:
        """Give the table properties that a new table gets."""
        checks = {f"delta.constraints.{name}": condition for name, condition in self.constraints}
        feed = {"delta.enableChangeDataFeed": "true"} if self.keeps_changes else {}
        return {SCHEMA_VERSION: str(self.version), **checks, **feed}


SEGMENTS = Table(
    "segments",
    2,
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
# As benchmarks/clustering.py measured: docs/compaction.md.
_ENTRIES_CLUSTERED_BY = ("topic", "partition")
OFFSET_INDEX = Table(
    "offset_index",
    1,
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
TIME_INDEX = Table(
    "time_index",
    1,
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
LOGS = Table("logs", 1, LOG_KEYS)
LOG_DIRS = Table("log_dirs", 1, LOG_KEYS[:3])
UNRECOGNIZED_FILES = Table("unrecognized_files", 1, ("cluster", "broker_id", "path"))
RUNS = Table("runs", 1, ("run_id",))
RETENTION_DECISIONS = Table("retention_decisions", 1, ("run_id", *SEGMENT_KEYS))
ROLL_DECISIONS = Table("roll_decisions", 2, ("run_id", *SEGMENT_KEYS))
INDEX_AUDITS = Table("index_audits", 1, ("run_id", "path"))
RETENTION_PLANS = Table("retention_plans", 2, ("plan_id", *SEGMENT_KEYS))
MIGRATION_INVENTORY = Table("migration_inventory", 1, ("run_id", *SEGMENT_KEYS))
MIGRATION_OBSTACLES = Table("migration_obstacles", 1, ("run_id", *LOG_KEYS, "code", "example"))
MIGRATION_PLANS = Table("migration_plans", 2, ("plan_id", *SEGMENT_KEYS))
MIGRATION_PROOFS = Table("migration_proofs", 1, ("plan_id", *SEGMENT_KEYS))
MIGRATION_EVENTS = Table("migration_events", 2, ("run_id", *LOG_KEYS))
VALIDATION_RESULTS = Table("validation_results", 1, ("run_id", "table_name", "expectation"))
QUARANTINED_SEGMENTS = Table("quarantined_segments", 1, SEGMENT_KEYS)
_SEGMENT_DATA = (SEGMENTS.name, OFFSET_INDEX.name, TIME_INDEX.name)
BUILD_TABLES = (SEGMENTS, OFFSET_INDEX, TIME_INDEX, LOGS, LOG_DIRS, UNRECOGNIZED_FILES, RUNS)


class Warehouse:
    """The tables under one root URI."""

    def __init__(self, spark: SparkSession, root: str) -> None:
        self.spark = spark
        self.root = root
        self._hadoop_root = hadoop_uri(root)

    def uri(self, table: Table) -> str:
        """Give where a table lies, for Spark."""
        return join_uri(self._hadoop_root, table.name)

    def version(self, table: Table) -> int | None:
        """Give the version of a table's last commit, None where there is no table.

        Version 0 makes the table and holds no rows. The log's file names tell, without a job.
        """
        return last_version(join_uri(self.root, table.name))

    def read(self, table: Table) -> DataFrame:
        """Read a table.

        Raises:
            UsageError: there is none.
        """
        if self.version(table) is None:
            raise UsageError(f"{self.root} has no table {table.name}: run `kafka-segments build`")
        return self.spark.read.format("delta").load(self.uri(table))

    def read_published(self, table: Table) -> DataFrame:
        """Read what analysts may see: without segments that failed a fatal expectation.

        Raises:
            UsageError: there is no such table.
        """
        rows = self.read(table)
        may_be_set_aside = table.name in _SEGMENT_DATA
        if not may_be_set_aside or self.version(QUARANTINED_SEGMENTS) is None:
            return rows
        set_aside = self.read(QUARANTINED_SEGMENTS).select(*SEGMENT_KEYS)
        return rows.join(set_aside, list(SEGMENT_KEYS), how="left_anti")

    def create(self, table: Table) -> None:
        """Make a table where there is none; bring one of an older version up to date.

        A new table has comments, NOT NULL, constraints and its schema's version.

        Raises:
            UsageError: the table that is there cannot be brought up to date.
        """
        if self.version(table) is None:
            with creation_lock(self.root, table.name):
                if self.version(table) is None:
                    self._make(table)
                    return
        published = schema(f"{table.name}.v{table.version}")
        uri = self.uri(table)
        renew_constraints(self.spark, uri, table.constraints)
        if upgraded(self.read(table).schema, published, uri=uri) is None:
            return
        with creation_lock(self.root, table.name):
            after = upgraded(self.read(table).schema, published, uri=uri)
            if after is not None:
                change_schema(self.spark, uri, after, table.version)

    def _make(self, table: Table) -> None:
        remove_log_without_commit(join_uri(self.root, table.name))
        builder = (
            DeltaTable.createIfNotExists(self.spark)
            .location(self.uri(table))
            .addColumns(schema(f"{table.name}.v{table.version}"))
        )
        for name, value in table.properties().items():
            builder = builder.property(name, value)
        if table.clustered_by:
            builder = builder.clusterBy(*table.clustered_by)
        builder.execute()

    def append(self, table: Table, rows: DataFrame) -> None:
        """Append rows, in one commit."""
        columns = schema(f"{table.name}.v{table.version}").fieldNames()
        rows.select(*columns).write.format("delta").mode("append").save(self.uri(table))

    def fill(self, table: Table, rows: DataFrame, *, where: str) -> None:
        """Put rows that all meet ``where`` in the place of those that do, if there are any.

        Into a table without rows they are appended, which is quicker. Where another run's
        commit came before ours, they are then put again, so nothing stands there twice.
        """
        if self.version(table) == 0:
            self.append(table, rows)
            if self.version(table) in (0, 1):  # no rows, no commit
                return
        self.replace(table, rows, where=where)

    def replace(self, table: Table, rows: DataFrame, *, where: str) -> None:
        """Put rows in the place of all that meet ``where``, in one commit."""
        columns = schema(f"{table.name}.v{table.version}").fieldNames()
        writer = rows.select(*columns).write.format("delta").mode("overwrite")
        self.retried(table, lambda: writer.option("replaceWhere", where).save(self.uri(table)))

    def merge(
        self,
        table: Table,
        rows: DataFrame,
        *,
        only_in: str | None = None,
        deleted: str | None = None,
    ) -> None:
        """Update rows by key and insert new ones, in one commit.

        ``only_in`` is a condition on the table ``t`` that all of ``rows`` meet, so that files
        of other rows are not read. Rows where ``s.<deleted>`` is true go.
        """
        condition = " AND ".join(f"t.{key} = s.{key}" for key in table.keys)
        if only_in is not None:
            condition = f"{only_in} AND {condition}"
        columns = schema(f"{table.name}.v{table.version}").fieldNames()
        values: dict[str, str | Column] = {column: f"s.{column}" for column in columns}
        merge = (
            DeltaTable.forPath(self.spark, self.uri(table))
            .alias("t")
            .merge(rows.alias("s"), condition)
        )
        if deleted is not None:
            merge = merge.whenMatchedDelete(f"s.{deleted}")
        merge = merge.whenMatchedUpdate(set=values).whenNotMatchedInsert(
            "true" if deleted is None else f"NOT s.{deleted}", values=values
        )
        self.retried(table, merge.execute)

    def retried(self, table: Table, write: Callable[[], object]) -> None:
        """Write, and again where another run's commit came between."""
        for attempt in range(1, _MOST_TRIES + 1):
            try:
                write()
            except PySparkException as error:
                if attempt == _MOST_TRIES or not _is_conflict(error):
                    raise
                _LOG.info("%s: another run committed first, try %s", table.name, attempt + 1)
            else:
                return


def _is_conflict(error: PySparkException) -> bool:
    text = f"{type(error).__name__} {error}"
    return any(name in text for name in _CONFLICTS)


def sql_text(value: str) -> str:
    """Quote a string as a SQL literal: paths and topics are data, not code."""
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def in_any(column: str, values: Sequence[str]) -> str:
    """Give the SQL condition that a column has one of some values."""
    return f"{column} IN ({', '.join(map(sql_text, values))})"
