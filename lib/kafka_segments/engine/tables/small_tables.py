"""The tables of a warehouse as a verb on few rows has them: Arrow reads and writes small ones."""

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from kafka_segments.engine.choose import can_work_in_driver
from kafka_segments.engine.frames.local_rows import computed_rows, frame_of_rows, rows_in_driver
from kafka_segments.engine.limits import MOST_UNCHANGED
from kafka_segments.engine.tables.arrow_tables import (
    is_small,
    join_small,
    merge_small,
    read_columns,
    read_small,
)
from kafka_segments.engine.tables.catalog import Table
from kafka_segments.engine.tables.spark_tables import (
    SparkTables,
    constraints_met,
    holds_all,
    without_columns_of_others,
)
from kafka_segments.files.storage.uris import join_uri

_MEETS = "_meets_constraints"


class SmallTables(SparkTables):
    """The tables of a verb that works on few rows: Arrow reads and writes those that are small.

    Delta does what Arrow leaves to it.
    """

    def read(self, table: Table, columns: Sequence[str]) -> DataFrame:
        """Return the rows of a table, those of a small one as they are now."""
        few = read_small(self._spark, join_uri(self._root, table.name), columns)
        if few is None:
            return super().read(table, columns)
        return few if columns else without_columns_of_others(table, few)

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
        few, met = _collected_and_met(table, rows)
        if not self._append_here(table, rows_in_driver(few), met):
            self._append_by_delta(table, few)
        return few

    def replace_few(self, table: Table, rows: DataFrame, where: str) -> tuple[DataFrame, bool]:
        """Replace rows by few, which are computed now."""
        uri = join_uri(self._root, table.name)
        if not is_small(uri):
            return rows, False
        if rows_in_driver(rows) is None:
            rows = rows.select(*table.schema.fieldNames())
        few, met = _collected_and_met(table, rows)
        return few, self._merged_in(table, few, met, where)

    def merge(
        self, table: Table, rows: DataFrame, *, only_in: str | None, deleted: str | None
    ) -> None:
        """Merge few rows into a table that is small, as one of Delta's commits would."""
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
        """Merge few rows; return them as they were computed, and whether it is done."""
        if rows_in_driver(rows) is None:
            named = [] if deleted is None else [deleted]
            rows = rows.select(*table.schema.fieldNames(), *named)
        few, met = _collected_and_met(table, rows)
        found, uri = rows_in_driver(few), join_uri(self._root, table.name)
        is_done = merge_small(uri, found, keys=table.keys, deleted=deleted, constraints=met)
        if is_done:
            join_small(uri)
            self._note(table)
        return few, is_done


def _collected_and_met(table: Table, rows: DataFrame) -> tuple[DataFrame, dict[str, str]]:
    """Collect few rows; return them, and the CHECK constraints that they meet, by name.

    These are all constraints of the table, or no constraint. Where the rows are still to be
    computed, one query computes both.
    """
    if rows_in_driver(rows) is not None:
        return rows, constraints_met(table, rows)
    # Another thread may have met a large table by now: these rows are few all the same.
    found, kind = computed_rows(rows.withColumn(_MEETS, holds_all(table)))
    columns = StructType(kind.fields[:-1])
    few = frame_of_rows(rows.sparkSession, found.drop_columns([_MEETS]), columns)
    is_met = pc.all(found[_MEETS], min_count=0).as_py()
    return few, dict(table.constraints) if is_met else {}
