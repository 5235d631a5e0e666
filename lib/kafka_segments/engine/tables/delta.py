"""The Delta tables of a warehouse: how they are made, read, brought up to date and written."""

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from kafka_segments.engine.choose import has_few_rows
from kafka_segments.engine.frames.local_rows import local_rows
from kafka_segments.engine.spark.shared_folders import shares_folder
from kafka_segments.engine.tables.catalog import (
    QUARANTINED_SEGMENTS,
    SEGMENT_DATA,
    Table,
)
from kafka_segments.engine.tables.keys import SEGMENT_KEYS
from kafka_segments.engine.tables.missing import missing_table
from kafka_segments.engine.tables.small_tables import SmallTables
from kafka_segments.engine.tables.spark_tables import SparkTables
from kafka_segments.engine.tables.upgrades import bring_up_to_date
from kafka_segments.errors import UsageError
from kafka_segments.files.delta.health import refuse_broken_log, version_if_there
from kafka_segments.files.delta.log import remove_log_without_commit
from kafka_segments.files.delta.notes import forget_version
from kafka_segments.files.storage.folder_lock import creation_lock
from kafka_segments.files.storage.uris import join_uri


class Warehouse:
    """The tables under one root URI."""

    def __init__(self, spark: SparkSession, root: str) -> None:
        self.spark = spark
        self.root = root
        self._by_spark = SparkTables(spark, root)
        self._made: set[str] = set()  # tables that exist: none goes away meanwhile

    def uri(self, table: Table) -> str:
        """Return the URI of a table's folder, as Spark reads it."""
        return self._by_spark.uri(table)

    @property
    def _tables(self) -> SparkTables:
        """The tables by the engine that works now: small ones only where Spark sees the same."""
        is_small = has_few_rows(self.spark) and shares_folder(self.spark, self.root)
        return SmallTables(self.spark, self.root) if is_small else self._by_spark

    def version(self, table: Table) -> int | None:
        """Return the version of a table's last commit; None if the table does not exist.

        The commit with version 0 makes the table and adds no rows. Only the names of the files
        in the table's log are read, without a Spark job.

        Raises:
            BrokenTableError: it has no log any more, and was not moved away.
        """
        return version_if_there(join_uri(self.root, table.name))

    def _exists(self, table: Table) -> bool:
        """Tell whether a table exists; its log is looked at until it does."""
        if table.name not in self._made and self.version(table) is not None:
            refuse_broken_log(join_uri(self.root, table.name))
            self._made.add(table.name)
        return table.name in self._made

    def read(self, table: Table, columns: Sequence[str] = ()) -> DataFrame:
        """Return the rows of a table: the named columns that it has, or all of its own.

        Columns that somebody else added are not among these. Where a verb works on few rows, those
        of a small table are read now. Each step of a query costs time for each column there is.

        Raises:
            UsageError: the table does not exist.
        """
        if not self._exists(table):
            raise UsageError(missing_table(self.root, table.name))
        return self._tables.read(table, columns)

    def columns_in_driver(
        self, table: Table, columns: Sequence[str], *, beside_files: bool = False
    ) -> tuple[pa.Table, StructType] | None:
        """Read columns of a table in the driver; None: Spark has to read them.

        The driver reads them where a verb works on few rows, and has to find these among
        ``MOST_UNCHANGED`` at most. Columns that the table lacks are left out.
        ``beside_files``: the rows are compared with files, which executors may see otherwise.
        """
        return self._tables.columns_in_driver(table, columns, beside_files=beside_files)

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
        older release stay: they do not matter to a table that is only read.

        Raises:
            UsageError: the existing table cannot be brought up to date.
        """
        if not self._exists(table):
            with creation_lock(self.root, table.name):
                if self.version(table) is None:
                    remove_log_without_commit(join_uri(self.root, table.name))
                    forget_version(join_uri(self.root, table.name))  # of one that was moved away
                    self._by_spark.make(table)
                    return
        by_spark = self.uri(table)
        bring_up_to_date(self.spark, self.root, table, by_spark=by_spark, is_written=is_written)

    def append(self, table: Table, rows: DataFrame) -> None:
        """Append rows in one commit; other columns than the table's are left out."""
        self._tables.append(table, rows)

    def keep_run(self, table: Table, rows: DataFrame, run_id: str) -> DataFrame:
        """Append the rows of a run to a table, made if need be; return them as they are kept.

        To read them costs less than to work them out once more.
        """
        self.create(table)
        kept = self._tables.keep(table, rows)
        return self.read(table).where(F.col("run_id") == run_id) if kept is None else kept

    def append_values(self, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
        """Append rows in one commit, given as values by column; timestamps are us since 1970."""
        names = table.schema.fieldNames()
        values = [tuple(row[name] for name in names) for row in rows]
        self.append(table, local_rows(self.spark, values, table.schema))

    def fill(self, table: Table, rows: DataFrame, *, where: str, has_none: bool = False) -> None:
        """Replace the rows that meet the condition ``where``; all ``rows`` meet it too.

        An empty table is appended to, which is quicker. So is a table that is known to have no such
        row (``has_none``), and a small one without, if the verb works on few rows. If the commit of
        another run came first, ours has appended rows twice, and they are replaced once more.
        """
        version = self.version(table)
        if version == 0 or has_none or self._tables.is_known_without(table, where):
            self.append(table, rows)
            if self.version(table) in (version, (version or 0) + 1):  # no rows make no commit
                return
        self.replace(table, rows, where=where)

    def fill_changed(
        self, table: Table, rows: DataFrame, *, where: str, may_be_same: bool = False
    ) -> None:
        """Fill as ``fill`` does, and write no more than what changed where the table is small.

        Arrow does it then, if the rows are few. If the commit of another run came first, they are
        replaced once more. ``may_be_same``: the rows are compared with those of the last version,
        and nothing is committed if the table has them already. More than few are computed twice
        then.
        """
        version = self.version(table)
        if version and may_be_same and self._tables.has_same(table, rows, where):
            return
        if version:
            rows, is_done = self._tables.replace_few(table, rows, where)
            if is_done and self.version(table) in (version, version + 1):
                return
        self.fill(table, rows, where=where)

    def fill_with_files(self, table: Table, files: Sequence[str]) -> bool:
        """Make Parquet files of ours on this machine the rows of a table that has none yet.

        False: ``fill`` is to do it. If the commit of another run came first, that takes the rows of
        these files away again.
        """
        if self.version(table) != 0:
            return False
        return self._by_spark.append_files(table, files) and self.version(table) in (0, 1)

    def replace(self, table: Table, rows: DataFrame, *, where: str) -> None:
        """Replace all rows that meet the condition ``where`` by ``rows``, in one commit."""
        self._by_spark.replace(table, rows, where=where)

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

        Where a verb works on few rows, Arrow merges them into a small table, and reads all of its
        files. If the table has no change data feed, rows that it has already make no commit then.
        """
        self._tables.merge(table, rows, only_in=only_in, deleted=deleted)

    def merge_if_any(self, table: Table, rows: DataFrame, *, deleted: str | None = None) -> None:
        """Merge rows of which there may be none, as ``merge`` does."""
        if self._tables.may_have(rows):
            self.merge(table, rows, deleted=deleted)

    def file_totals(self, table: Table) -> tuple[int, int]:
        """Return the number of files of a table, and their bytes."""
        return self._by_spark.file_totals(table)

    def optimize(self, table: Table) -> None:
        """Join the small files of a table."""
        self._by_spark.optimize(table)

    def vacuum(self, table: Table, *, hours: int) -> None:
        """Remove the files that no version of the last hours needs."""
        self._by_spark.vacuum(table, hours=hours)
