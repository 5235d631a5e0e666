"""Whether so much is gone that a disk is missing sooner than that a broker deleted it.

A broker that deletes records leaves a log its last segment. So the segments of logs of which none
is left count: a disk that is not mounted, or another folder under its name, has lost them all.
"""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kafka_segments.engine.sources.broker_identity import file_path, lies_below


def count_lost(
    known: DataFrame, vanished: DataFrame, found: DataFrame, sources: Sequence[str]
) -> DataFrame:
    """Count below each source the segments that are known, and those of logs that are gone.

    Needs: ``known`` and ``vanished``: rows of ``segments``, the latter those that were not found
        again; ``found``: the segments of a listing, of all logs of ``vanished``.
    Gives: the columns of ``sources.missing.Lost``; no row for a source of which nothing is known.
    """
    here = found.select(_folder(file_path()).alias("_folder")).distinct()
    there = vanished.select("path", _folder(F.col("path")).alias("_folder"))
    lost = there.join(here, "_folder", how="left_anti").select("path", F.lit(1).alias("lost"))
    before = known.where(F.col("vanished_at").isNull()).select("path", F.lit(0).alias("lost"))
    of_source = F.coalesce(
        *(F.when(lies_below(F.col("path"), [source]), F.lit(source)) for source in sources)
    )
    return (
        before.unionByName(lost)
        .groupBy(of_source.alias("source"))
        .agg(F.count_if(F.col("lost") == 0).alias("known"), F.sum("lost").alias("lost"))
    )


def _folder(path: Column) -> Column:
    return F.regexp_extract(path, "^(.*)/[^/]*$", 1)
