"""The tables of a warehouse as a verb on few rows has them: Arrow reads and writes small ones."""

from collections.abc import Sequence
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
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
from kafka_segments.engine.tables.table_columns import columns_of
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

    def append(self, table: Table, rows: DataFrame) -> None:
        """Append few rows in one commit."""
        self._append_few(table, rows)

    def keep(self, table: Table, rows: DataFrame) -> DataFrame:
        """Append few rows; return the table's columns of them, as they were computed."""
        return self._append_few(table, rows).frame(self._spark)

    def _append_few(self, table: Table, rows: DataFrame) -> "_Computed":
        found = _computed(table, rows)
        if not self._append_here(table, found.rows, found.met):
            self._append_by_delta(table, found.frame(self._spark))
        return found

    def replace_few(self, table: Table, rows: DataFrame, where: str) -> tuple[DataFrame, bool]:
        """Replace rows by few, which are computed now."""
        uri = join_uri(self._root, table.name)
        if not is_small(uri):
            return rows, False
        found = _computed(table, rows)
        is_done = self._merged_in(table, found.rows, found.met, where)
        return rows if is_done else found.frame(self._spark), is_done

    def merge(
        self, table: Table, rows: DataFrame, *, only_in: str | None, deleted: str | None
    ) -> None:
        """Merge few rows into a table that is small, as one of Delta's commits would."""
        if is_small(join_uri(self._root, table.name)):
            found = _computed(table, rows, *[] if deleted is None else [deleted])
            if self._merge_few(table, found, deleted):
                return
            rows = found.frame(self._spark)
        super().merge(table, rows, only_in=only_in, deleted=deleted)

    def may_have(self, rows: DataFrame) -> bool:
        """Tell whether there may be rows to merge; to ask costs as much as to merge few."""
        return True

    def _merge_few(self, table: Table, found: "_Computed", deleted: str | None) -> bool:
        """Merge few rows; False: Delta is to do it."""
        uri, met = join_uri(self._root, table.name), found.met
        is_done = merge_small(uri, found.rows, keys=table.keys, deleted=deleted, constraints=met)
        if is_done:
            join_small(uri)
            self._note(table)
        return is_done


class _Computed(NamedTuple):
    """Few rows that the driver has; ``met`` are the CHECK constraints that they meet, by name.

    These are all constraints of their table, or no constraint.
    """

    rows: pa.Table
    columns: StructType
    met: dict[str, str]

    def frame(self, spark: SparkSession) -> DataFrame:
        return frame_of_rows(spark, self.rows, self.columns)


def _computed(table: Table, rows: DataFrame, *others: str) -> _Computed:
    """Compute few rows, of which the columns of a table are wanted, and ``others``.

    Where they are still to be computed, one query looks at the constraints, too.
    """
    if rows_in_driver(rows) is not None:
        return _Computed(*computed_rows(rows), constraints_met(table, rows))
    # Another thread may have met a large table by now: these rows are few all the same.
    chosen = rows.transform(columns_of(table, *others)).withColumn(_MEETS, holds_all(table))
    found, kind = computed_rows(chosen)
    is_met = pc.all(found[_MEETS], min_count=0).as_py()
    met = dict(table.constraints) if is_met else {}
    return _Computed(found.drop_columns([_MEETS]), StructType(kind.fields[:-1]), met)
