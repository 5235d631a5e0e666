"""Lag: hold the commits of ``__consumer_offsets`` against the logs that they are of."""

from contextlib import ExitStack
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

from kafka_segments.lag.decide.commits import (
    ask_for_end,
    ask_for_unread,
    decide_commits,
    decide_lag,
    ends_found,
    first_unread,
    of_groups,
)
from kafka_segments.lag.offsets_there import no_offsets
from kafka_segments.lag.tasks import read_commits
from kafka_segments.search.log_tables import READING, LogChoice, LogTables
from kafka_segments.search.run import search_times
from kafka_segments.tables import columns as F
from kafka_segments.tables.keys import LOG_KEYS
from kafka_segments.wire.names import OFFSETS_TOPIC

_LATEST_KAFKA = (4, 3)


@dataclass(frozen=True)
class LagOptions:
    """What the lag is measured of. URIs are absolute.

    Attributes:
        warehouse: URI of the tables.
        choice: the logs whose lag is measured.
        now_ms: the run's clock.
        at_ms: a past moment to measure the lag at; None: now.
        groups: only these consumer groups; empty: all.
    """

    warehouse: str
    choice: LogChoice
    now_ms: int
    at_ms: int | None = None
    groups: tuple[str, ...] = ()


def run_lag(spark: SparkSession, options: LagOptions, caches: ExitStack) -> DataFrame:
    """Measure the lag of consumer groups; return the columns of ``decide_lag``.

    With ``at_ms`` the commits made by that moment are held against each log up to its first record
    after it.

    Raises:
        UsageError: the tables have no segments of ``__consumer_offsets``.
    """
    choice = options.choice
    moment = options.now_ms if options.at_ms is None else options.at_ms
    tables = LogTables(spark, options.warehouse, choice, caches)
    logs = tables.replicas()
    commits = (
        committed_offsets(spark, options.warehouse, caches, cluster=choice.cluster, at_ms=moment)
        .where(choice.partition_condition() | F.col("problem").isNotNull())
        .transform(of_groups(options.groups))
        .join(logs, ["cluster", "topic", "partition"], how="left")
    )
    found = tables.find_by_offset(commits.transform(ask_for_unread))
    return (
        commits.join(first_unread(found), [*LOG_KEYS, "committed_offset"], how="left")
        .join(log_ends(tables, logs, options.at_ms), list(LOG_KEYS), how="left")
        .withColumn("problem", F.coalesce("problem", "unread_problem"))
        .transform(decide_lag(at_ms=moment))
    )


def committed_offsets(
    spark: SparkSession, warehouse: str, caches: ExitStack, *, cluster: str | None, at_ms: int
) -> DataFrame:
    """Read the offsets that counted at ``at_ms``; return the columns of ``decide_commits``.

    Raises:
        UsageError: the tables have no segments of ``__consumer_offsets``.
    """
    choice = LogChoice(topics=(OFFSETS_TOPIC,), cluster=cluster)
    tables = LogTables(spark, warehouse, choice, caches, also=READING)
    logs = tables.replicas().select(*LOG_KEYS)
    segments = tables.segments_as_built().join(logs, list(LOG_KEYS), how="left_semi")
    if segments.isEmpty():
        raise no_offsets(warehouse)
    clusters = segments.select("path", "cluster")
    commits = segments.transform(read_commits).join(clusters, "path", how="inner")
    return commits.transform(decide_commits(at_ms=at_ms))


def log_ends(tables: LogTables, logs: DataFrame, at_ms: int | None) -> DataFrame:
    """Return the end of each log: now, or at a moment its first record with a later timestamp."""
    if at_ms is None:
        return logs.select(*LOG_KEYS, F.col("log_end_offset").alias("end_offset"))
    asked = logs.transform(ask_for_end(at_ms=at_ms))
    return search_times(tables, asked, kafka_version=_LATEST_KAFKA).transform(ends_found)
