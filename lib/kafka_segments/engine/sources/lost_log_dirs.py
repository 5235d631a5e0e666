"""Log directories that were there before and of which nothing is left, as columns."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kafka_segments.engine.tables.keys import Transform
from kafka_segments.files.folders import kinds


def lost_log_dirs(listed: DataFrame) -> Transform:
    """Keep the log directories that are none any more: they may be disks that are not mounted.

    A broker that deleted or moved all logs of one leaves its ``meta.properties`` and checkpoints.

    Needs: log_dir, known, lost (what was known there, and how much of it is gone); ``listed``: rows
        of a listing.
    Gives: the columns of ``sources.missing.Lost``.
    """
    there = listed.where(F.col("kind") == kinds.LOG_DIR).select("log_dir").distinct()
    return lambda counted: (
        counted.where("lost = known")
        .join(there, "log_dir", how="left_anti")
        .select(F.col("log_dir").alias("source"), "known", "lost")
    )
