"""Decide which segments a build reads: new ones, changed ones, none that are known.

Every function takes rows of a listing (``sources.listed.Listed``) or of table ``segments``.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kafka_segments.sources.broker_identity import file_path
from kafka_segments.tables.keys import SEGMENT_KEYS, Transform

SCAN, RETOUCH, SAME = "scan", "retouch", "same"


def plan_scan(
    known: DataFrame | None, *, options: str, full: bool, needs_next: bool = False
) -> Transform:
    """Mark what a build does with each segment found.

    1. ``scan``: not known, or its size, mtime or the options differ, or ``full``; with
       ``needs_next`` also where the next segment's base offset differs.
    2. ``retouch``: known and unchanged, but it became or ceased to be the active segment.
    3. ``same``: nothing to do.

    Needs: rows of kind segment with cluster and broker_id; ``known``: rows of ``segments``.
    Gives: the same with ``fingerprint``, ``is_known``, ``index_format_before`` and ``plan``.
    """
    depends_on = ["size_bytes", "mtime_ns", *(["next_base_offset"] if needs_next else [])]
    fingerprint = F.concat_ws("/", *depends_on, F.lit(options))

    def transform(found: DataFrame) -> DataFrame:
        marked = found.withColumn("fingerprint", fingerprint)
        if known is None:
            return marked.withColumns(
                {
                    "is_known": F.lit(False),
                    "index_format_before": F.lit(None).cast("string"),
                    "plan": F.lit(SCAN),
                }
            )
        before = known.select(
            *SEGMENT_KEYS,
            F.col("fingerprint").alias("_fingerprint"),
            F.col("is_active").alias("_is_active"),
            F.col("index_format").alias("index_format_before"),
            F.col("vanished_at").isNotNull().alias("_had_vanished"),
        )
        is_same = F.col("fingerprint").eqNullSafe(F.col("_fingerprint")) & ~F.lit(full)
        is_touched = F.col("_had_vanished") | (F.col("is_active") != F.col("_is_active"))
        return (
            marked.join(before, list(SEGMENT_KEYS), how="left")
            .withColumn("is_known", F.col("_is_active").isNotNull())
            .withColumn(
                "plan",
                F.when(~is_same, SCAN).when(is_touched, RETOUCH).otherwise(SAME),
            )
            .drop("_fingerprint", "_is_active", "_had_vanished")
        )

    return transform


def retouched(planned: DataFrame) -> Transform:
    """Give the known rows of segments to retouch, with what is true of them now."""
    now = planned.where(F.col("plan") == RETOUCH).select(
        *SEGMENT_KEYS, F.col("is_active").alias("_is_active")
    )

    def transform(known: DataFrame) -> DataFrame:
        return (
            known.join(now, list(SEGMENT_KEYS), how="inner")
            .withColumn("is_active", F.col("_is_active"))
            .withColumn("vanished_at", F.lit(None).cast("timestamp"))
            .drop("_is_active")
        )

    return transform


def vanished(found: DataFrame, unseen: DataFrame, *, now: Column) -> Transform:
    """Give the known rows of segments that are gone, marked.

    What lies below a folder that could not be listed, or at a link that was not followed, has not
    vanished, as far as one can tell.
    """
    hidden = unseen.select(F.concat(file_path(), F.lit("/")).alias("_unseen"))
    is_hidden = F.concat("path", F.lit("/")).startswith(F.col("_unseen"))

    def transform(known: DataFrame) -> DataFrame:
        return (
            known.where(F.col("vanished_at").isNull())
            .join(found.select(*SEGMENT_KEYS), list(SEGMENT_KEYS), how="left_anti")
            .join(F.broadcast(hidden), is_hidden, how="left_anti")
            .withColumns({"is_active": F.lit(False), "vanished_at": now})
        )

    return transform
