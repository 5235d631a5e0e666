"""Choose what an audit looks at from what was listed."""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from kafka_segments.engine.tables.keys import Transform
from kafka_segments.files.folders import kinds

_LOG = ("log_dir", "topic", "partition")
_IN_A_LOG = "^[0-9]{20}[.](log|index|timeindex|txnindex|snapshot)$|^leader-epoch-checkpoint$"


def choose_folders(listed: DataFrame) -> DataFrame:
    """Choose the folders of logs, and the links in their place that are not followed.

    Needs: rows of ``list_sources``.
    Gives: the same, is_clean, recovery_point, log_start_offset, high_watermark (null: none is
        noted); reason says why a folder is not looked into, null: it is.
    """
    is_link = F.col("kind") == kinds.NOT_FOLLOWED
    path = F.concat_ws("/", F.nullif("relative_path", F.lit("")), "name")
    folders = listed.where(
        F.col("kind").isin(kinds.LOG, kinds.UNLISTED) | (is_link & ~F.col("name").rlike(_IN_A_LOG))
    ).withColumns(
        {
            "relative_path": F.when(is_link, path).otherwise(F.col("relative_path")),
            "reason": F.when(F.col("kind") != kinds.LOG, F.col("reason")),
        }
    )
    noted = ("recovery_point", "log_start_offset", "high_watermark")
    return folders.transform(_with_noted(listed, *noted))


def choose_segments(listed: DataFrame) -> DataFrame:
    """Choose the segments, and say which of them a broker's start would recover.

    1. A log directory is clean where it has the marker of a clean stop. It is clean, too, where a
       broker left no file of its own at all, as in a backup.
    2. Where it is not clean, a start recovers the segment that holds the recovery point, and all
       segments after it.

    Needs: rows of ``list_sources`` with the columns of ``with_broker``.
    Gives: the same of segments, is_clean, is_recovered (boolean), log_start_offset, cleaner_offset
        (null: not noted), has_cleaner_offsets (whether the cleaner's checkpoint is at hand).
    Source: LogManager.loadLogs, LogLoader.recoverLog.
    """
    following = Window.partitionBy("source", "relative_path").orderBy("base_offset")
    next_base = F.min("base_offset").over(following.rowsBetween(1, 1))
    recovery_point = F.coalesce(F.col("recovery_point"), F.lit(0))
    is_behind = F.col("_next_base").isNull() | (F.col("_next_base") > recovery_point)
    return (
        listed.where(F.col("kind") == kinds.SEGMENT)
        .transform(_with_noted(listed, "recovery_point", "log_start_offset", "cleaner_offset"))
        .withColumn("_next_base", next_base)
        .withColumn("is_recovered", ~F.col("is_clean") & is_behind)
    )


def _with_noted(listed: DataFrame, *offsets: str) -> Transform:
    """Add is_clean, has_cleaner_offsets, and what checkpoints note of each log."""
    log_dirs = listed.where(F.col("kind") == kinds.LOG_DIR)
    has_cleaner_offsets = F.col("meta.has_cleaner_offsets").alias("has_cleaner_offsets")
    states = log_dirs.select("log_dir", _is_clean().alias("is_clean"), has_cleaner_offsets)
    noted = log_dirs.select("log_dir", F.inline("offsets")).select(*_LOG, *offsets)
    return lambda rows: (
        rows.join(F.broadcast(states), "log_dir", how="left")
        .join(F.broadcast(noted), list(_LOG), how="left")
        .withColumns(
            {
                "is_clean": F.coalesce("is_clean", F.lit(True)),
                "has_cleaner_offsets": F.coalesce("has_cleaner_offsets", F.lit(False)),
            }
        )
    )


def _is_clean() -> Column:
    is_no_brokers = (
        F.col("meta.version").isNull()
        & F.col("meta.cluster_id").isNull()
        & F.col("meta.node_id").isNull()
        & (F.size("offsets") == 0)
        & ~F.col("meta.has_lock_file")
    )
    return F.col("meta.was_clean_shutdown") | is_no_brokers
