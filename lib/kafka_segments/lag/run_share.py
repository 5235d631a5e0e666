"""Lag of share groups: hold the share coordinator's states against the logs that they are of."""

from contextlib import ExitStack

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from kafka_segments.errors import UsageError
from kafka_segments.generated.records import SHARES_TOPIC
from kafka_segments.lag.decide.share import (
    decide_share_lag,
    decide_share_states,
    with_log_ends,
    with_topic_names,
)
from kafka_segments.lag.run import LagOptions, log_ends
from kafka_segments.search.log_tables import LogTables
from kafka_segments.tables.catalog import INTERNAL_RECORDS, LOGS, METADATA_TOPICS
from kafka_segments.tables.delta import Warehouse
from kafka_segments.tables.keys import LOG_KEYS


def run_share_lag(spark: SparkSession, options: LagOptions, caches: ExitStack) -> DataFrame:
    """Measure the lag of share groups; return the columns of ``decide_share_lag``.

    With ``at_ms`` the states written by that moment are held against each log up to its first
    record after it.

    Raises:
        UsageError: the tables have no records of ``__share_group_state``.
    """
    tables, choice = Warehouse(spark, options.warehouse), options.choice
    moment = options.now_ms if options.at_ms is None else options.at_ms
    records = tables.read(INTERNAL_RECORDS)
    if choice.cluster is not None:
        records = records.where(F.col("cluster") == choice.cluster)
    if records.where(F.col("topic") == SHARES_TOPIC).isEmpty():
        raise UsageError(
            f"{options.warehouse} has no records of {SHARES_TOPIC}: run `kafka-segments internals"
            " --source` on the log directories of the brokers that have it"
        )
    logs = LogTables(spark, options.warehouse, choice, caches)
    replicas = logs.replicas()
    ends = (
        log_ends(logs, replicas, options.at_ms)
        .join(replicas.select(*LOG_KEYS, "log_start_offset"), list(LOG_KEYS), how="inner")
        .join(_ids(tables), list(LOG_KEYS), how="left")
    )
    states = records.transform(decide_share_states(at_ms=moment))
    if options.groups:
        states = states.where(F.col("group_id").isin(*options.groups))
    return (
        states.transform(with_topic_names(_names(tables)))
        .where(choice.partition_condition())
        .transform(with_log_ends(ends))
        .transform(decide_share_lag)
    )


def _ids(tables: Warehouse) -> DataFrame:
    return tables.read(LOGS).select(*LOG_KEYS, F.col("topic_id").alias("log_topic_id"))


def _names(tables: Warehouse) -> DataFrame:
    """Return cluster, topic_id and topic of all that the tables name."""
    names = tables.read(LOGS).select("cluster", "topic_id", "topic")
    if tables.version(METADATA_TOPICS) is not None:
        known = tables.read(METADATA_TOPICS).select("cluster", "topic_id", "topic")
        names = names.unionByName(known)
    return names
