"""The Delta tables of a warehouse: how they are made, read, brought up to date and written."""

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from delta.tables import DeltaTable
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.types import StructType

from kafka_segments.errors import UsageError
from kafka_segments.storage.delta_log import last_version, remove_log_without_commit
from kafka_segments.storage.folder_lock import creation_lock
from kafka_segments.storage.stores import hadoop_uri
from kafka_segments.storage.uris import join_uri
from kafka_segments.tables.catalog import QUARANTINED_SEGMENTS, SEGMENT_DATA, Table
from kafka_segments.tables.keys import SEGMENT_KEYS
from kafka_segments.tables.missing import missing_table
from kafka_segments.tables.upgrades import change_schema, renew_constraints, upgraded

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


class Warehouse:
    """The tables under one root URI."""

    def __init__(self, spark: SparkSession, root: str) -> None:
        self.spark = spark
        self.root = root
        self._hadoop_root = hadoop_uri(root)

    def uri(self, table: Table) -> str:
        """Return the URI of a table's folder, as Spark reads it."""
        return join_uri(self._hadoop_root, table.name)

    def version(self, table: Table) -> int | None:
        """Return the version of a table's last commit; None if the table does not exist.

        The commit with version 0 makes the table and adds no rows. Only the names of the files
        in the table's log are read, without a Spark job.
        """
        return last_version(join_uri(self.root, table.name))

    def read(self, table: Table) -> DataFrame:
        """Return the rows of a table.

        Raises:
            UsageError: the table does not exist.
        """
        if self.version(table) is None:
            raise UsageError(missing_table(self.root, table.name))
        return self.spark.read.format("delta").load(self.uri(table))

    def read_published(self, table: Table) -> DataFrame:
        """Return the rows of a table without those of quarantined segments.

        Raises:
            UsageError: the table does not exist.
        """
        rows = self.read(table)
        is_of_segments = table.name in {data.name for data in SEGMENT_DATA}
        if not is_of_segments or not self.version(QUARANTINED_SEGMENTS):  # none, or without rows
            return rows
        quarantined = self.read(QUARANTINED_SEGMENTS).select(*SEGMENT_KEYS)
        return rows.join(quarantined, list(SEGMENT_KEYS), how="left_anti")

    def create(self, table: Table, *, is_written: bool = True) -> None:
        """Make a table if it does not exist; bring one of an older version up to date.

        A new table gets comments, NOT NULL, constraints and the version of its schema.
        ``is_written`` says that rows will be written next. Without it the constraints of an
        older release stay: they do not matter to a table that is only read, and reading them
        costs a query.

        Raises:
            UsageError: the existing table cannot be brought up to date.
        """
        if self.version(table) is None:
            with creation_lock(self.root, table.name):
                if self.version(table) is None:
                    self._make(table)
                    return
        uri = self.uri(table)
        if is_written:
            renew_constraints(self.spark, uri, table.constraints)
        if upgraded(self.read(table).schema, table.schema, uri=uri) is None:
            return
        with creation_lock(self.root, table.name):
            after = upgraded(self.read(table).schema, table.schema, uri=uri)
            if after is not None:
                change_schema(self.spark, uri, after, table.version)

    def _make(self, table: Table) -> None:
        remove_log_without_commit(join_uri(self.root, table.name))
        builder = (
            DeltaTable.createIfNotExists(self.spark)
            .location(self.uri(table))
            .addColumns(table.schema)
        )
        for name, value in table.properties().items():
            builder = builder.property(name, value)
        if table.clustered_by:
            builder = builder.clusterBy(*table.clustered_by)
        builder.execute()

    def append(self, table: Table, rows: DataFrame) -> None:
        """Append rows in one commit; other columns than the table's are left out."""
        columns = table.schema.fieldNames()
        rows.select(*columns).write.format("delta").mode("append").save(self.uri(table))

    def append_values(
        self, table: Table, rows: Sequence[Mapping[str, Any]], stamp: Mapping[str, Column]
    ) -> None:
        """Append rows, given as values by column, in one commit.

        ``stamp`` has the columns that are the same in every row.
        """
        columns = StructType([field for field in table.schema if field.name not in stamp])
        values = [tuple(row[name] for name in columns.fieldNames()) for row in rows]
        frame = self.spark.createDataFrame(values, columns)
        self.append(table, frame.withColumns(dict(stamp)))

    def fill(self, table: Table, rows: DataFrame, *, where: str) -> None:
        """Replace the rows that meet the condition ``where``; all ``rows`` meet it too.

        Rows are appended to a table that has none yet, which is quicker. If the commit of
        another run came first, ours has appended rows twice, and they are replaced once more.
        """
        if self.version(table) == 0:
            self.append(table, rows)
            if self.version(table) in (0, 1):  # 0: there were no rows, so no commit was made
                return
        self.replace(table, rows, where=where)

    def replace(self, table: Table, rows: DataFrame, *, where: str) -> None:
        """Replace all rows that meet the condition ``where`` by ``rows``, in one commit."""
        columns = table.schema.fieldNames()
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

        ``only_in`` is a condition on the table ``t`` that all ``rows`` meet: files whose rows
        cannot meet it are not read. ``deleted`` names a boolean column of ``rows``; where it is
        true the row is deleted.
        """
        condition = " AND ".join(f"t.{key} = s.{key}" for key in table.keys)
        if only_in is not None:
            condition = f"{only_in} AND {condition}"
        columns = table.schema.fieldNames()
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
        """Write, and write again each time that another run committed in between."""
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
    """Return a string as a SQL literal, quoted: paths and topics are data, not code."""
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def in_any(column: str, values: Sequence[str]) -> str:
    """Return the SQL condition that a column has one of the values."""
    return f"{column} IN ({', '.join(map(sql_text, values))})"
