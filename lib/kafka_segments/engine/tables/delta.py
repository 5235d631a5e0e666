"""The Delta tables of a warehouse: how they are made, read, brought up to date and written."""

import logging
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import reduce
from operator import and_
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from kafka_segments.engine.choose import can_work_in_driver, expect_many_rows, has_few_rows
from kafka_segments.engine.frames.local_rows import (
    computed_rows,
    frame_of_rows,
    local_rows,
    rows_in_driver,
)
from kafka_segments.engine.limits import MOST_UNCHANGED
from kafka_segments.engine.spark.connect import is_connect
from kafka_segments.engine.spark.shared_folders import shares_folder
from kafka_segments.engine.tables.catalog import (
    BUILD_TABLES,
    QUARANTINED_SEGMENTS,
    SEGMENT_DATA,
    Table,
)
from kafka_segments.engine.tables.keys import SEGMENT_KEYS
from kafka_segments.engine.tables.missing import missing_table
from kafka_segments.engine.tables.small_tables import (
    append_small,
    is_small,
    merge_small,
    read_columns,
    read_small,
)
from kafka_segments.engine.tables.statements import create_statement, delta_table, merge_statement
from kafka_segments.engine.tables.upgrades import bring_up_to_date, made_schema
from kafka_segments.errors import UsageError
from kafka_segments.files.storage.delta_append import append_files
from kafka_segments.files.storage.delta_create import create_table
from kafka_segments.files.storage.delta_health import refuse_broken_log, version_if_there
from kafka_segments.files.storage.delta_log import remove_log_without_commit
from kafka_segments.files.storage.delta_rows import file_totals
from kafka_segments.files.storage.files import place
from kafka_segments.files.storage.folder_lock import commit_lock, creation_lock
from kafka_segments.files.storage.stores import hadoop_uri, store_of
from kafka_segments.files.storage.table_versions import forget_version, note_versions
from kafka_segments.files.storage.uris import join_uri

_LOG = logging.getLogger(__name__)
_MOST_TRIES = 5
_MEETS = "_meets_constraints"
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
        self._made: set[str] = set()  # tables that are known to exist: none goes away meanwhile

    def uri(self, table: Table) -> str:
        """Return the URI of a table's folder, as Spark reads it."""
        return join_uri(self._hadoop_root, table.name)

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
        of a small table are read at once. Each step of a query costs time for each column there is.

        Raises:
            UsageError: the table does not exist.
        """
        if not self._exists(table):
            raise UsageError(missing_table(self.root, table.name))
        if self._has_few():
            few = read_small(self.spark, join_uri(self.root, table.name), columns)
            if few is not None:
                return few if columns else _without_columns_of_others(table, few)
        expect_many_rows(self.spark)
        rows = self.spark.read.format("delta").load(self.uri(table))
        if not columns:
            # A client would ask its server for the columns.
            return rows if is_connect(self.spark) else _without_columns_of_others(table, rows)
        there = rows.columns
        return rows.select(*(name for name in columns if name in there))

    def columns_in_driver(
        self, table: Table, columns: Sequence[str], *, beside_files: bool = False
    ) -> tuple[pa.Table, StructType] | None:
        """Read columns of a table in the driver; None: Spark has to read them.

        The driver reads them where a verb works on few rows, and has to find these among
        ``MOST_UNCHANGED`` at most. Columns that the table lacks are left out.
        ``beside_files``: the rows are held against files, which executors may see otherwise.
        """
        if not self._has_few() or (beside_files and not can_work_in_driver(self.spark)):
            return None
        return read_columns(join_uri(self.root, table.name), columns, most_rows=MOST_UNCHANGED)

    def _has_few(self) -> bool:
        """Tell whether a verb works on few rows, of tables that Spark sees as this process does."""
        return has_few_rows(self.spark) and shares_folder(self.spark, self.root)

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
                    self._make(table)
                    return
        by_spark = self.uri(table)
        bring_up_to_date(self.spark, self.root, table, by_spark=by_spark, is_written=is_written)

    def _make(self, table: Table) -> None:
        """Make a table; on this machine as Delta would and without it."""
        if self._is_here():
            create_table(
                join_uri(self.root, table.name),
                schema=made_schema(table.schema).json(),
                properties=table.properties(),
                clustered_by=table.clustered_by,
            )
            return
        self.spark.sql(create_statement(table, self.uri(table)))

    def _is_here(self) -> bool:
        """Tell whether the tables lie on a disk of this machine, on which Spark sees them too."""
        return store_of(self.root).is_local and shares_folder(self.spark, self.root)

    def append(self, table: Table, rows: DataFrame) -> None:
        """Append rows in one commit; other columns than the table's are left out."""
        if self._has_few():
            self._append_few(table, rows)
        else:
            self._append_by_delta(table, rows)

    def _append_few(self, table: Table, rows: DataFrame) -> DataFrame:
        """Append few rows; return the table's columns of them, as they were computed."""
        if rows_in_driver(rows) is None:
            rows = rows.select(*table.schema.fieldNames())
        held, met = _held_and_met(table, rows)
        found, uri = rows_in_driver(held), join_uri(self.root, table.name)
        if append_small(uri, found, constraints=met):
            self._note(table)
        else:
            self._append_by_delta(table, held)
        return held

    def _note(self, table: Table) -> None:
        """Note the log of a table that was written; a build notes those of its own in the end."""
        if table not in BUILD_TABLES and self._sees_logs():
            note_versions(self.root, (table.name,))

    def _sees_logs(self) -> bool:
        """Tell whether this process sees what Spark commits: not on a disk of another machine."""
        return not store_of(self.root).is_local or shares_folder(self.spark, self.root)

    def _append_by_delta(self, table: Table, rows: DataFrame) -> None:
        chosen = rows.select(*table.schema.fieldNames())
        writer = chosen.write.format("delta").mode("append")
        with self._alone(table):
            writer.save(self.uri(table))
        self._note(table)

    def keep_run(self, table: Table, rows: DataFrame, run_id: str) -> DataFrame:
        """Append the rows of a run to a table, made if need be; return them as they are kept.

        To read them costs less than to work them out once more.
        """
        self.create(table)
        if self._has_few():
            return self._append_few(table, rows)
        self.append(table, rows)
        return self.read(table).where(F.col("run_id") == run_id)

    def append_values(
        self, table: Table, rows: Sequence[Mapping[str, Any]], stamp: Mapping[str, Column]
    ) -> None:
        """Append rows, given as values by column, in one commit.

        ``stamp`` has the columns that are the same in every row.
        """
        columns = StructType([field for field in table.schema if field.name not in stamp])
        values = [tuple(row[name] for name in columns.fieldNames()) for row in rows]
        frame = local_rows(self.spark, values, columns)
        self.append(table, frame.withColumns(dict(stamp)))

    def fill(self, table: Table, rows: DataFrame, *, where: str) -> None:
        """Replace the rows that meet the condition ``where``; all ``rows`` meet it too.

        An empty table is appended to, which is quicker. So is a small table without such rows, if
        the verb works on few rows. If the commit of another run came first, ours
        has appended rows twice, and they are replaced once more.
        """
        version = self.version(table)
        if version == 0 or self._is_known_without(table, where):
            self.append(table, rows)
            if self.version(table) in (version, (version or 0) + 1):  # no rows make no commit
                return
        self.replace(table, rows, where=where)

    def _is_known_without(self, table: Table, where: str) -> bool:
        """Tell whether a small table, read as one of few rows, has none that meets ``where``."""
        if not self._has_few():
            return False
        rows = self.read(table)
        return rows_in_driver(rows) is not None and rows.where(where).isEmpty()

    def fill_with_files(self, table: Table, files: Sequence[str]) -> bool:
        """Make Parquet files of ours on this machine the rows of a table that has none yet.

        False: ``fill`` is to do it. If the commit of another run came first, that takes the rows of
        these files away again.
        """
        if not self._is_here() or self.version(table) != 0:
            return False
        uri, paths = join_uri(self.root, table.name), [place(file).path for file in files]
        is_done = append_files(uri, paths, constraints=dict(table.constraints))
        return is_done and self.version(table) in (0, 1)

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

        Where a verb works on few rows Arrow merges them into a small table, of whose files it reads
        all; without a change data feed rows that are there as they are make no commit then.
        """
        if self._has_few() and is_small(join_uri(self.root, table.name)):
            rows, is_done = self._merge_few(table, rows, deleted)
            if is_done:
                return
        source = f"_rows_of_{table.name}_{uuid.uuid4().hex}"
        statement = merge_statement(
            table, self.uri(table), source, only_in=only_in, deleted=deleted
        )
        rows.createTempView(source)
        try:
            self.retried(table, lambda: self.spark.sql(statement))
        finally:
            self.spark.catalog.dropTempView(source)

    def merge_if_any(self, table: Table, rows: DataFrame) -> None:
        """Merge rows of which there may be none, as ``merge`` does."""
        if self._has_few() or not rows.isEmpty():
            self.merge(table, rows)

    def _merge_few(
        self, table: Table, rows: DataFrame, deleted: str | None
    ) -> tuple[DataFrame, bool]:
        """Merge few rows at once; return them as they were computed, and whether it is done."""
        if rows_in_driver(rows) is None:
            named = [] if deleted is None else [deleted]
            rows = rows.select(*table.schema.fieldNames(), *named)
        held, met = _held_and_met(table, rows)
        found, uri = rows_in_driver(held), join_uri(self.root, table.name)
        is_done = merge_small(uri, found, keys=table.keys, deleted=deleted, constraints=met)
        if is_done:
            self._note(table)
        return held, is_done

    def file_totals(self, table: Table) -> tuple[int, int]:
        """Return the number of files of a table, and their bytes; its log tells, or Spark."""
        found = file_totals(join_uri(self.root, table.name))
        if found is not None:
            return found
        detail = self.spark.sql(f"DESCRIBE DETAIL {delta_table(self.uri(table))}")
        files, size_bytes = detail.select("numFiles", "sizeInBytes").collect()[0]
        return files, size_bytes

    def optimize(self, table: Table) -> None:
        """Join the small files of a table."""
        statement = f"OPTIMIZE {delta_table(self.uri(table))}"
        self.retried(table, lambda: self.spark.sql(statement))
        if table in BUILD_TABLES and self._sees_logs():
            note_versions(self.root, (table.name,))

    def vacuum(self, table: Table, *, hours: int) -> None:
        """Remove the files that no version of the last hours needs."""
        with self._alone(table):
            self.spark.sql(f"VACUUM {delta_table(self.uri(table))} RETAIN {hours} HOURS")

    def _alone(self, table: Table) -> AbstractContextManager[None]:
        """Return the lock under which Spark commits to a table: it would replace another commit."""
        return commit_lock(join_uri(self.root, table.name))

    def retried(self, table: Table, write: Callable[[], object]) -> None:
        """Write, and write again each time that another run committed in between."""
        for attempt in range(1, _MOST_TRIES + 1):
            try:
                with self._alone(table):
                    write()
            except (PySparkException, Py4JJavaError) as error:
                if attempt == _MOST_TRIES or not _is_conflict(error):
                    raise
                _LOG.info("%s: another run committed first, try %s", table.name, attempt + 1)
            else:
                self._note(table)
                return


def _without_columns_of_others(table: Table, rows: DataFrame) -> DataFrame:
    there, own = rows.columns, set(table.schema.fieldNames())
    return rows if own.issuperset(there) else rows.select(*(name for name in there if name in own))


def _held_and_met(table: Table, rows: DataFrame) -> tuple[DataFrame, dict[str, str]]:
    """Collect few rows; return them, and the constraints that they are known to meet, by name.

    These are all constraints of the table, or no constraint. Where the rows are still to be
    computed, one query computes both.
    """
    holds = (F.coalesce(F.expr(condition), F.lit(False)) for _, condition in table.constraints)
    hold_all = reduce(and_, holds, F.lit(True))
    if rows_in_driver(rows) is not None:
        is_met = not table.constraints or rows.where(~hold_all).isEmpty()
        return rows, dict(table.constraints) if is_met else {}
    # Another thread may have met a large table by now: these rows are few all the same.
    found, kind = computed_rows(rows.withColumn(_MEETS, hold_all))
    columns = StructType(kind.fields[:-1])
    held = frame_of_rows(rows.sparkSession, found.drop_columns([_MEETS]), columns)
    is_met = pc.all(found[_MEETS], min_count=0).as_py()
    return held, dict(table.constraints) if is_met else {}


def _is_conflict(error: Exception) -> bool:
    text = f"{type(error).__name__} {error}"
    return any(name in text for name in _CONFLICTS)
