"""As-of joins: each row gets the last entry at or below it, by one sort of both together."""

from collections.abc import Sequence

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from kafka_segments.engine.tables.keys import Transform


def last_at_or_below(
    entries: DataFrame, *, keys: Sequence[str], at: str, entry_at: str, given: Sequence[str]
) -> Transform:
    """Join each row with the last entry of its keys whose ``entry_at`` is not above ``at``.

    1. Values of ``entry_at`` must be unique within the keys.
    2. If there is no such entry, its columns are null.

    Needs: the keys and ``at``; of the entries: the keys, ``entry_at`` and ``given``.
    Gives: the columns of the row, and those of the entry that ``given`` names.
    """
    marked = entries.select(*keys, entry_at, F.struct(*given).alias("_entry"))
    join = last_of_each_at_or_below(marked, keys=keys, at=at, entry_at=entry_at, kinds=("_entry",))

    def transform(rows: DataFrame) -> DataFrame:
        found = (F.col("_entry")[name].alias(name) for name in given)
        return rows.transform(join).select("*", *found).drop("_entry")

    return transform


def last_of_each_at_or_below(
    entries: DataFrame, *, keys: Sequence[str], at: str, entry_at: str, kinds: Sequence[str]
) -> Transform:
    """Join each row with the last entry of each of several kinds, by one join.

    Each of ``kinds`` is a column of the entries, which is null in those of other kinds. Within a
    kind and the keys values of ``entry_at`` must be unique.

    Needs: the keys and ``at``; of the entries: the keys, ``entry_at`` and the kinds.
    Gives: the columns of the row, and the kinds: null where there is no such entry.
    """

    def transform(rows: DataFrame) -> DataFrame:
        order = (
            Window.partitionBy(*reversed(keys))  # the last ones differ most: few are compared
            .orderBy("_at", "_is_row")
            .rowsBetween(Window.unboundedPreceding, Window.currentRow)
        )
        others = entries.select(
            *keys, F.col(entry_at).alias("_at"), F.lit(False).alias("_is_row"), *kinds
        )
        return (
            rows.withColumns({"_at": F.col(at), "_is_row": F.lit(True)})
            .unionByName(others, allowMissingColumns=True)
            .withColumns({name: F.last(name, ignorenulls=True).over(order) for name in kinds})
            .where("_is_row")
            .drop("_at", "_is_row")
        )

    return transform
