"""A workaround: Spark plans what was persisted with all the steps that lead to it.

``localCheckpoint`` cuts a plan, too, but nobody can let go of its rows at the end of a verb. So
classes of Spark that are not public do it. Spark 4.2.0 needs this still; with a public way to let
go of such rows it can go.
"""

from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import DataFrame


def plan_of_kept_rows(kept: DataFrame) -> DataFrame:
    """Return a persisted DataFrame of a classic session as one whose plan is its rows alone.

    A vendor's Spark may have other plans than Apache's: there it is returned as it is.
    """
    try:
        return _cut(kept)
    except (Py4JError, TypeError):
        return kept


def _cut(kept: DataFrame) -> DataFrame:
    spark = kept.sparkSession
    caches = spark._jsparkSession.sharedState().cacheManager()
    cached = caches.lookupCachedData(kept._jdf).get().cachedRepresentation()
    # Spark 4.2 fails to join such a plan with itself if it says how its rows are ordered.
    no_order = cached.outputOrdering().take(0)
    columns = kept._jdf.queryExecution().analyzed().output()
    rows = cached.copy(columns, cached.cacheBuilder(), no_order)
    getattr(rows, "statsOfPlanToCache_$eq")(cached.statsOfPlanToCache())
    jvm: Any = spark.sparkContext._jvm
    dataset = jvm.org.apache.spark.sql.classic.Dataset
    return DataFrame(dataset.ofRows(spark._jsparkSession, rows), spark)
