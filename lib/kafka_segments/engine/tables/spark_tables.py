"""The tables of a warehouse by Spark with Delta, whatever their size and wherever they lie."""

import logging
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import reduce
from operator import and_

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from kafka_segments.engine.choose import expect_many_rows
from kafka_segments.engine.frames.driver_rows import as_arrow, have_same_few
from kafka_segments.engine.frames.local_rows import rows_in_driver, schema_if_cheap
from kafka_segments.engine.spark.settings import setting_shared
from kafka_segments.engine.spark.shared_folders import shares_folder
from kafka_segments.engine.tables.arrow_tables import (
    append_small,
    join_small,
    read_small,
    replace_small,
)
from kafka_segments.engine.tables.catalog import BUILD_TABLES, Table
from kafka_segments.engine.tables.others_rules import refuse_others_rules
from kafka_segments.engine.tables.schemas import newest_versions
from kafka_segments.engine.tables.statements import (
    create_statement,
    delta_table,
    merge_statement,
)
from kafka_segments.engine.tables.table_columns import columns_of
from kafka_segments.engine.tables.upgrades import made_schema
from kafka_segments.files.delta.append import append_files
from kafka_segments.files.delta.commit import ENGINE, SIGNED
from kafka_segments.files.delta.create import create_table
from kafka_segments.files.delta.health import refuse_broken_file
from kafka_segments.files.delta.rows import file_totals
from kafka_segments.files.delta.table_versions import note_versions
from kafka_segments.files.storage.files import place
from kafka_segments.files.storage.folder_lock import commit_lock
from kafka_segments.files.storage.stores import hadoop_uri, store_of
from kafka_segments.files.storage.uris import join_uri

_LOG = logging.getLogger(__name__)
_MOST_TRIES = 5
_SIGNATURE = (f"spark.databricks.delta.commitInfo.{SIGNED}", ENGINE)
"""The setting by which Delta signs the commits that it makes of our statements."""
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


class SparkTables:
    """The tables under one root URI, read and written by Delta."""

    def __init__(self, spark: SparkSession, root: str) -> None:
        self._spark = spark
        self._root = root
        self._hadoop_root = hadoop_uri(root)

    def uri(self, table: Table) -> str:
        """Return the URI of a table's folder, as Spark reads it."""
        return join_uri(self._hadoop_root, table.name)

    def make(self, table: Table) -> None:
        """Make a table that there is not; on this machine as Delta would, and without it."""
        if not self._is_on_this_machine():
            with setting_shared(self._spark, *_SIGNATURE):
                self._spark.sql(create_statement(table, self.uri(table)))
            return
        create_table(
            join_uri(self._root, table.name),
            schema=made_schema(table.schema).json(),
            properties=table.properties(),
            clustered_by=table.clustered_by,
        )

    def read(self, table: Table, columns: Sequence[str]) -> DataFrame:
        """Return the rows of a table: the named columns that it has, or all of its own."""
        expect_many_rows(self._spark)
        try:
            rows = self._spark.read.format("delta").load(self.uri(table))
        except (PySparkException, Py4JJavaError) as error:
            refuse_broken_file(join_uri(self._root, table.name), error)
            raise
        if not columns:
            is_cheap = schema_if_cheap(rows) is not None
            return without_columns_of_others(table, rows) if is_cheap else rows
        there = rows.columns
        return rows.select(*(name for name in columns if name in there))

    def columns_in_driver(
        self, table: Table, columns: Sequence[str], *, beside_files: bool
    ) -> tuple[pa.Table, StructType] | None:
        """Return columns that the driver reads; None: Spark has to read them."""
        return None

    def keep(self, table: Table, rows: DataFrame) -> DataFrame | None:
        """Append rows in one commit; return them as they are kept; None: read them to know."""
        self.append(table, rows)
        return None

    def append(self, table: Table, rows: DataFrame) -> None:
        """Append rows in one commit; those that the driver has as ``append_small`` does."""
        found = rows_in_driver(rows) if self._is_on_this_machine() else None
        if found is None or not self._append_here(table, found, constraints_met(table, rows)):
            self._append_by_delta(table, rows)

    def _append_by_delta(self, table: Table, rows: DataFrame) -> None:
        chosen = rows.transform(columns_of(table))
        writer = chosen.write.format("delta").mode("append")
        self._retried(table, lambda: writer.save(self.uri(table)))

    def _append_here(self, table: Table, rows: pa.Table, met: Mapping[str, str]) -> bool:
        """Append rows to a table that the driver sees; False: Delta is to do it.

        ``met``: the constraints that the rows meet, by name.
        """
        uri = join_uri(self._root, table.name)
        is_done = append_small(uri, rows, constraints=met)
        if is_done:
            join_small(uri)
            self._note(table)
        return is_done

    def append_files(self, table: Table, files: Sequence[str]) -> bool:
        """Make Parquet files of ours on this machine rows of a table; False: nothing was done."""
        if not self._is_on_this_machine():
            return False
        uri, paths = join_uri(self._root, table.name), [place(file).path for file in files]
        return append_files(uri, paths, constraints=dict(table.constraints))

    def is_known_without(self, table: Table, where: str) -> bool:
        """Tell whether a small table has no row that meets ``where``; of others it is not asked."""
        if not self._is_on_this_machine():
            return False
        few = read_small(self._spark, join_uri(self._root, table.name))
        return few is not None and few.where(where).isEmpty()

    def has_same(self, table: Table, rows: DataFrame, where: str) -> bool:
        """Tell whether the rows of a table that meet ``where`` are these, in whichever order."""
        few = None
        if rows_in_driver(rows) is not None and self._is_on_this_machine():
            few = read_small(self._spark, join_uri(self._root, table.name))
        if few is not None:
            return have_same_few(few.where(where), rows, table.schema, keys=table.keys)
        kept = self.read(table, ()).where(where).transform(columns_of(table))
        others = rows.select(*kept.columns)
        return kept.count() == others.count() and others.exceptAll(kept).isEmpty()

    def replace_few(self, table: Table, rows: DataFrame, where: str) -> tuple[DataFrame, bool]:
        """Replace few rows without Spark; return them as they are known now.

        False: nothing was done, as the rows or those of the table are not few, or Delta is to do
        it.
        """
        found = rows_in_driver(rows) if self._is_on_this_machine() else None
        if found is None:
            return rows, False
        return rows, self._merged_in(table, found, constraints_met(table, rows), where)

    def _merged_in(self, table: Table, rows: pa.Table, met: Mapping[str, str], where: str) -> bool:
        """Replace rows of a small table by few that the driver has; False: as ``replace_few``."""
        uri = join_uri(self._root, table.name)
        kept = read_small(self._spark, uri)
        if kept is None:
            return False
        replaced = as_arrow(kept.where(where))
        is_done = replace_small(uri, replaced, rows, keys=table.keys, constraints=met)
        if is_done:
            self._note(table)
        return is_done

    def replace(self, table: Table, rows: DataFrame, *, where: str) -> None:
        """Replace all rows that meet the condition ``where`` by ``rows``, in one commit."""
        chosen = rows.transform(columns_of(table))
        writer = chosen.write.format("delta").mode("overwrite")
        self._retried(table, lambda: writer.option("replaceWhere", where).save(self.uri(table)))

    def merge(
        self, table: Table, rows: DataFrame, *, only_in: str | None, deleted: str | None
    ) -> None:
        """Update rows by key, insert new ones and delete some, as ``Warehouse.merge`` says."""
        source = f"_rows_of_{table.name}_{uuid.uuid4().hex}"
        statement = merge_statement(
            table, self.uri(table), source, only_in=only_in, deleted=deleted
        )
        rows.createTempView(source)
        try:
            self._retried(table, lambda: self._spark.sql(statement))
        finally:
            self._spark.catalog.dropTempView(source)

    def may_have(self, rows: DataFrame) -> bool:
        """Tell whether there may be rows to merge; a query asks."""
        return not rows.isEmpty()

    def file_totals(self, table: Table) -> tuple[int, int]:
        """Return the number of files of a table, and their bytes; its log tells, or Spark."""
        found = file_totals(join_uri(self._root, table.name))
        if found is not None:
            return found
        detail = self._spark.sql(f"DESCRIBE DETAIL {delta_table(self.uri(table))}")
        files, size_bytes = detail.select("numFiles", "sizeInBytes").collect()[0]
        return files, size_bytes

    def optimize(self, table: Table) -> None:
        """Join the small files of a table."""
        statement = f"OPTIMIZE {delta_table(self.uri(table))}"
        self._retried(table, lambda: self._spark.sql(statement))
        if table in BUILD_TABLES and self._sees_logs():
            note_versions(self._root, (table.name,))

    def vacuum(self, table: Table, *, hours: int) -> None:
        """Remove the files that no version of the last hours needs."""
        with self._alone(table):
            self._spark.sql(f"VACUUM {delta_table(self.uri(table))} RETAIN {hours} HOURS")

    def _note(self, table: Table) -> None:
        """Note the log of a table that was written; a build notes those of its own in the end."""
        if table not in BUILD_TABLES and self._sees_logs():
            note_versions(self._root, (table.name,))

    def _sees_logs(self) -> bool:
        """Tell whether this process sees what Spark commits: not on a disk of another machine."""
        return not store_of(self._root).is_local or shares_folder(self._spark, self._root)

    def _is_on_this_machine(self) -> bool:
        """Tell whether the tables lie on a disk of this machine, on which Spark sees them too."""
        return store_of(self._root).is_local and shares_folder(self._spark, self._root)

    @contextmanager
    def _alone(self, table: Table) -> Iterator[None]:
        """Hold the lock under which Spark commits to a table: it would replace another commit.

        Raises:
            UsageError: somebody else gave the table a property or constraint that refuses the rows.
        """
        uri = join_uri(self._root, table.name)
        with commit_lock(uri):
            try:
                yield
            except (PySparkException, Py4JJavaError) as error:
                refuse_others_rules(table, uri, error)
                raise

    def _retried(self, table: Table, write: Callable[[], object]) -> None:
        """Write, and write again each time that another run committed in between."""
        for attempt in range(1, _MOST_TRIES + 1):
            try:
                with self._alone(table), setting_shared(self._spark, *_SIGNATURE):
                    write()
            except (PySparkException, Py4JJavaError) as error:
                if attempt == _MOST_TRIES or not _is_conflict(error):
                    raise
                _LOG.info("%s: another run committed first, try %s", table.name, attempt + 1)
            else:
                self._note(table)
                return


def constraints_met(table: Table, rows: DataFrame) -> dict[str, str]:
    """Return the CHECK constraints that rows meet, by name: all of the table, or no constraint.

    Rows that the driver has are asked by a query, if there are any.
    """
    found = rows_in_driver(rows)
    is_met = not table.constraints or (found is not None and not len(found))
    is_met = is_met or rows.where(~holds_all(table)).isEmpty()
    return dict(table.constraints) if is_met else {}


def holds_all(table: Table) -> Column:
    """Tell whether a row meets all CHECK constraints of a table."""
    holds = (F.coalesce(F.expr(condition), F.lit(False)) for _, condition in table.constraints)
    return reduce(and_, holds, F.lit(True))


def without_columns_of_others(table: Table, rows: DataFrame) -> DataFrame:
    """Leave out the columns that somebody else added to a table of ours."""
    if table.name not in newest_versions():  # somebody else's table
        return rows
    there, own = rows.columns, set(table.schema.fieldNames())
    return rows if own.issuperset(there) else rows.select(*(name for name in there if name in own))


def _is_conflict(error: Exception) -> bool:
    text = f"{type(error).__name__} {error}"
    return any(name in text for name in _CONFLICTS)
