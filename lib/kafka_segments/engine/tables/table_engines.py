"""The tables of a warehouse by its two engines: Spark with Delta, and Arrow for small tables."""

import logging
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import reduce
from operator import and_

import pyarrow as pa
import pyarrow.compute as pc
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from kafka_segments.engine.choose import can_work_in_driver, expect_many_rows
from kafka_segments.engine.frames.local_rows import (
    computed_rows,
    frame_of_rows,
    rows_in_driver,
    schema_if_cheap,
)
from kafka_segments.engine.limits import MOST_UNCHANGED
from kafka_segments.engine.spark.shared_folders import shares_folder
from kafka_segments.engine.tables.catalog import BUILD_TABLES, Table
from kafka_segments.engine.tables.others_rules import refuse_others_rules
from kafka_segments.engine.tables.schemas import newest_versions
from kafka_segments.engine.tables.small_tables import (
    append_small,
    is_small,
    merge_small,
    read_columns,
    read_small,
)
from kafka_segments.engine.tables.statements import merge_statement
from kafka_segments.files.storage.delta_health import refuse_broken_file
from kafka_segments.files.storage.folder_lock import commit_lock
from kafka_segments.files.storage.stores import hadoop_uri, store_of
from kafka_segments.files.storage.table_versions import note_versions
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


class SparkTables:
    """The tables under one root URI, read and written by Delta."""

    def __init__(self, spark: SparkSession, root: str) -> None:
        self._spark = spark
        self._root = root
        self._hadoop_root = hadoop_uri(root)

    def uri(self, table: Table) -> str:
        """Return the URI of a table's folder, as Spark reads it."""
        return join_uri(self._hadoop_root, table.name)

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
            return _without_columns_of_others(table, rows) if is_cheap else rows
        there = rows.columns
        return rows.select(*(name for name in columns if name in there))

    def columns_in_driver(
        self, table: Table, columns: Sequence[str], *, beside_files: bool
    ) -> tuple[pa.Table, StructType] | None:
        """Return columns that the driver reads; None: Spark has to read them."""
        return None

    def append(self, table: Table, rows: DataFrame) -> DataFrame | None:
        """Append rows in one commit; return them as they are kept; None: read them to know."""
        chosen = rows.select(*table.schema.fieldNames())
        writer = chosen.write.format("delta").mode("append")
        with self.alone(table):
            writer.save(self.uri(table))
        self._note(table)
        return None

    def is_known_without(self, table: Table, where: str) -> bool:
        """Tell whether a small table has no row that meets ``where``; of others it is not asked."""
        return False

    def replace(self, table: Table, rows: DataFrame, *, where: str) -> None:
        """Replace all rows that meet the condition ``where`` by ``rows``, in one commit."""
        columns = table.schema.fieldNames()
        writer = rows.select(*columns).write.format("delta").mode("overwrite")
        self.retried(table, lambda: writer.option("replaceWhere", where).save(self.uri(table)))

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
            self.retried(table, lambda: self._spark.sql(statement))
        finally:
            self._spark.catalog.dropTempView(source)

    def may_have(self, rows: DataFrame) -> bool:
        """Tell whether there may be rows to merge; a query asks."""
        return not rows.isEmpty()

    def _note(self, table: Table) -> None:
        """Note the log of a table that was written; a build notes those of its own in the end."""
        if table not in BUILD_TABLES and self.sees_logs():
            note_versions(self._root, (table.name,))

    def sees_logs(self) -> bool:
        """Tell whether this process sees what Spark commits: not on a disk of another machine."""
        return not store_of(self._root).is_local or shares_folder(self._spark, self._root)

    @contextmanager
    def alone(self, table: Table) -> Iterator[None]:
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

    def retried(self, table: Table, write: Callable[[], object]) -> None:
        """Write, and write again each time that another run committed in between."""
        for attempt in range(1, _MOST_TRIES + 1):
            try:
                with self.alone(table):
                    write()
            except (PySparkException, Py4JJavaError) as error:
                if attempt == _MOST_TRIES or not _is_conflict(error):
                    raise
                _LOG.info("%s: another run committed first, try %s", table.name, attempt + 1)
            else:
                self._note(table)
                return


class SmallTables(SparkTables):
    """The tables of a verb that works on few rows: Arrow reads and writes those that are small.

    Delta does what Arrow leaves to it.
    """

    def read(self, table: Table, columns: Sequence[str]) -> DataFrame:
        """Return the rows of a table, those of a small one as they are now."""
        few = read_small(self._spark, join_uri(self._root, table.name), columns)
        if few is None:
            return super().read(table, columns)
        return few if columns else _without_columns_of_others(table, few)

    def columns_in_driver(
        self, table: Table, columns: Sequence[str], *, beside_files: bool
    ) -> tuple[pa.Table, StructType] | None:
        """Return columns of ``MOST_UNCHANGED`` rows at most."""
        if beside_files and not can_work_in_driver(self._spark):
            return None
        return read_columns(join_uri(self._root, table.name), columns, most_rows=MOST_UNCHANGED)

    def append(self, table: Table, rows: DataFrame) -> DataFrame:
        """Append few rows; return the table's columns of them, as they were computed."""
        if rows_in_driver(rows) is None:
            rows = rows.select(*table.schema.fieldNames())
        held, met = _held_and_met(table, rows)
        found, uri = rows_in_driver(held), join_uri(self._root, table.name)
        if append_small(uri, found, constraints=met):
            self._note(table)
        else:
            super().append(table, held)
        return held

    def is_known_without(self, table: Table, where: str) -> bool:
        """Tell whether a small table has no row that meets ``where``."""
        rows = self.read(table, ())
        return rows_in_driver(rows) is not None and rows.where(where).isEmpty()

    def merge(
        self, table: Table, rows: DataFrame, *, only_in: str | None, deleted: str | None
    ) -> None:
        """Merge few rows at once into a table that is small."""
        if is_small(join_uri(self._root, table.name)):
            rows, is_done = self._merge_few(table, rows, deleted)
            if is_done:
                return
        super().merge(table, rows, only_in=only_in, deleted=deleted)

    def may_have(self, rows: DataFrame) -> bool:
        """Tell whether there may be rows to merge; to ask costs as much as to merge few."""
        return True

    def _merge_few(
        self, table: Table, rows: DataFrame, deleted: str | None
    ) -> tuple[DataFrame, bool]:
        """Merge few rows at once; return them as they were computed, and whether it is done."""
        if rows_in_driver(rows) is None:
            named = [] if deleted is None else [deleted]
            rows = rows.select(*table.schema.fieldNames(), *named)
        held, met = _held_and_met(table, rows)
        found, uri = rows_in_driver(held), join_uri(self._root, table.name)
        is_done = merge_small(uri, found, keys=table.keys, deleted=deleted, constraints=met)
        if is_done:
            self._note(table)
        return held, is_done


def _without_columns_of_others(table: Table, rows: DataFrame) -> DataFrame:
    if table.name not in newest_versions():  # somebody else's table
        return rows
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
