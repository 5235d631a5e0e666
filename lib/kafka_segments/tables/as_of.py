"""As-of joins: each row gets the last entry at or below it, by one sort of both together."""

from collections.abc import Callable, Sequence

from pyspark.sql import DataFrame

from kafka_segments.tables import columns as F
from kafka_segments.tables.columns import Window


def last_at_or_below(
    entries: DataFrame, *, keys: Sequence[str], at: str, entry_at: str
) -> Callable[[DataFrame], DataFrame]:
    """Join each row with the last entry of its keys whose ``entry_at`` is not above ``at``.

    1. Values of ``entry_at`` must be unique within the keys.
    2. If there is no such entry, its columns are null.

    Needs: the keys and ``at``; of the entries: the keys and ``entry_at``.
    Gives: the columns of the row, and those of the entry without the keys and ``entry_at``.
    """
    given = [name for name in entries.columns if name not in (*keys, entry_at)]

    def transform(rows: DataFrame) -> DataFrame:
        order = (
            Window.partitionBy(*keys)
            .orderBy("_at", F.col("_entry").isNull())
            .rowsBetween(Window.unboundedPreceding, Window.currentRow)
        )
        marked = entries.select(
            *keys, F.col(entry_at).alias("_at"), F.struct(*given).alias("_entry")
        )
        return (
            rows.withColumns({"_at": F.col(at), "_row": F.lit(True)})
            .unionByName(marked, allowMissingColumns=True)
            .withColumn("_found", F.last("_entry", ignorenulls=True).over(order))
            .where("_row")
            .select(*rows.columns, *(F.col("_found")[name].alias(name) for name in given))
        )

    return transform
