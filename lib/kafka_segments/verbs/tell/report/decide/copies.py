"""What the last comparison of copies says of each partition, for the map of the report."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

_LOG = ("topic", "partition")
_EQUAL = "equal"


def map_logs(compared: DataFrame) -> DataFrame:
    """Return for each partition which copies hold it, and how they differ.

    Needs: rows of one run of ``divergences``.
    Gives: topic, partition, is_finding, held (names of copies), differing (copy, is_finding, kind
        of its worst difference).
    """
    is_other = F.col("kind") != _EQUAL
    holders = F.coalesce("held_by", F.array_union("copies", "right_copies"))
    named = F.flatten(F.collect_list(holders))
    held = compared.groupBy(*_LOG).agg(F.array_sort(F.array_distinct(named)).alias("held"))
    each = compared.where(is_other).select(
        *_LOG, F.explode("copies").alias("copy"), "is_finding", "kind"
    )
    worst = F.max(F.struct("is_finding", "kind"))
    of_copy = each.groupBy(*_LOG, "copy").agg(worst.alias("_worst"))
    differing = of_copy.groupBy(*_LOG).agg(
        F.array_sort(F.collect_list(F.struct("copy", "_worst.is_finding", "_worst.kind"))).alias(
            "differing"
        ),
        F.bool_or("_worst.is_finding").alias("is_finding"),
    )
    nothing = F.array().cast(differing.schema["differing"].dataType)
    return held.join(differing, list(_LOG), how="left").select(
        *_LOG,
        F.coalesce("is_finding", F.lit(False)).alias("is_finding"),
        "held",
        F.coalesce("differing", nothing).alias("differing"),
    )


def is_by_headers() -> Column:
    """Tell whether a range is equal as far as the headers of its batches say.

    Needs: kind, detail.
    """
    return (F.col("kind") == _EQUAL) & (F.col("detail") != "")


def first_to_look_at() -> list[Column]:
    """Return the order by which partitions are kept where not all are."""
    return [F.desc("is_finding"), F.size("differing") == 0, *map(F.col, _LOG)]
