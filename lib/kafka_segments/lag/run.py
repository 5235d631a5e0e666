"""Lag: commits of ``__consumer_offsets`` against the logs they are of."""

from collections.abc import Sequence
from contextlib import ExitStack

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from kafka_segments.lag.commits import read_commits
from kafka_segments.lag.decide import decide_commits, decide_lag
from kafka_segments.lag.offsets_there import no_offsets
from kafka_segments.search.decide import locate
from kafka_segments.search.run import LogChoice, LogTables, search
from kafka_segments.tables.keys import LOG_KEYS
from kafka_segments.wire.names import OFFSETS_TOPIC


def one_replica(logs: DataFrame) -> DataFrame:
    """Keep, of the replicas of each partition in a cluster, the one with the greatest end."""
    order = Window.partitionBy("cluster", "topic", "partition").orderBy(
        F.desc("log_end_offset"), "broker_id", "log_dir"
    )
    return (
        logs.withColumn("_replica", F.row_number().over(order))
        .where(F.col("_replica") == 1)
        .drop("_replica")
    )


def committed_offsets(
    spark: SparkSession, warehouse: str, caches: ExitStack, *, cluster: str | None, at_ms: int
) -> DataFrame:
    """Read the offsets that counted at ``at_ms``, as ``decide_commits`` gives them.

    Raises:
        UsageError: the tables know no ``__consumer_offsets``.
    """
    choice = LogChoice(topics=(OFFSETS_TOPIC,), cluster=cluster)
    tables = LogTables(spark, warehouse, choice, caches)
    logs = one_replica(tables.logs).select(*LOG_KEYS)
    segments = tables.segments_as_built().join(logs, list(LOG_KEYS), how="left_semi")
    if segments.isEmpty():
        raise no_offsets(warehouse)
    clusters = segments.select("path", "cluster")
    commits = segments.transform(read_commits).join(clusters, "path", how="inner")
    return commits.transform(decide_commits(at_ms=at_ms))


def measure_lag(
    spark: SparkSession,
    warehouse: str,
    choice: LogChoice,
    caches: ExitStack,
    *,
    now_ms: int,
    at_ms: int | None = None,
    groups: Sequence[str] = (),
) -> DataFrame:
    """Measure the lag of every group; gives the columns of ``decide_lag``.

    With ``at_ms`` it is the lag at that moment: of the commits made by then, against the logs up
    to the first record after it.
    """
    moment = now_ms if at_ms is None else at_ms
    tables = LogTables(spark, warehouse, choice, caches)
    logs = one_replica(tables.logs)
    commits = committed_offsets(
        spark, warehouse, caches, cluster=choice.cluster, at_ms=moment
    ).where(choice.partition_condition() | F.col("problem").isNotNull())
    if groups:
        commits = commits.where(F.col("group_id").isin(*groups, ""))
    known = commits.join(logs, ["cluster", "topic", "partition"], how="left")
    unread = _first_unread(tables, known)
    ends = logs.select(*LOG_KEYS, F.col("log_end_offset").alias("end_offset"))
    if at_ms is not None:
        ends = _ends_at(tables, logs, at_ms)
    return (
        known.join(unread, [*LOG_KEYS, "committed_offset"], how="left")
        .join(ends, list(LOG_KEYS), how="left")
        .withColumn("problem", F.coalesce("problem", "unread_problem"))
        .transform(decide_lag(at_ms=moment))
    )


def _first_unread(tables: LogTables, commits: DataFrame) -> DataFrame:
    """Find the first record at or after each committed offset."""
    asked = (
        commits.where(F.col("committed_offset") < F.col("log_end_offset"))
        .select(
            *LOG_KEYS,
            "committed_offset",
            F.greatest("committed_offset", "log_start_offset").alias("least_offset"),
        )
        .distinct()
    )
    found = tables.find(asked.transform(locate.choose_by_offset(tables.segments())))
    record = F.struct("found_offset", "found_timestamp_ms")
    return (
        found.groupBy(*LOG_KEYS, "committed_offset")
        .agg(
            F.min(F.when(F.col("found_offset").isNotNull(), record)).alias("_first"),
            F.max("problem").alias("unread_problem"),
        )
        .select(
            *LOG_KEYS,
            "committed_offset",
            F.col("_first.found_offset").alias("first_unread_offset"),
            F.col("_first.found_timestamp_ms").alias("first_unread_timestamp_ms"),
            "unread_problem",
        )
    )


def _ends_at(tables: LogTables, logs: DataFrame, at_ms: int) -> DataFrame:
    """Find where each log ended at a moment: at its first record with a later timestamp."""
    asked = logs.withColumn("question", F.lit("end")).withColumn(
        "target_ms", F.lit(at_ms + 1).cast("long")
    )
    answers = search(tables, asked, kafka_version=(4, 3))
    return answers.select(
        *LOG_KEYS, F.coalesce("true_offset", "log_end_offset").alias("end_offset")
    )
