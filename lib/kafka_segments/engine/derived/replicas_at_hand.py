"""Which replicas that the metadata names are among the logs at hand: one rule of all verbs."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kafka_segments.engine.derived.replicas import PARTITION
from kafka_segments.engine.tables.keys import Transform

_NOTHING = "array<struct<cluster: string, broker_id: int, topic_id: string>>"


def named_last(partitions: DataFrame) -> DataFrame:
    """Return the partitions that the metadata names last.

    Needs: rows of ``metadata_partitions``.
    Gives: cluster, topic, partition, topic_id, replicas, in_sync (the ISR and the ELR).
    """
    held = partitions.where(F.col("until_offset").isNull())
    in_sync = F.array_union("isr", "elr").alias("in_sync")
    return held.select(*PARTITION, "topic_id", "replicas", in_sync)


def with_logs_at_hand(logs: DataFrame) -> Transform:
    """Say of each partition which of its replicas are not among some logs.

    1. A log of another cluster or topic id is not of the partition: it is left over. What is not
       known of a log or of the metadata counts as the same.
    2. A log whose broker is not known can be any replica. Where there are as many of these as
       brokers without a log, no replica is absent.

    Needs: rows of ``named_last``; ``logs``: cluster, broker_id, topic, partition, topic_id (null:
        not known).
    Gives: the same, absent (the brokers whose replica is not there), is_there (some log of the
        partition is), is_in_sync_there (one of a broker in sync is).
    """
    log = F.struct("cluster", "broker_id", "topic_id")
    of_name = logs.groupBy("topic", "partition").agg(F.collect_list(log).alias("_logs"))

    def is_of_partition(one: Column) -> Column:
        return _may_be(one["cluster"], "cluster") & _may_be(one["topic_id"], "topic_id")

    of_partition = F.filter(F.coalesce("_logs", F.array().cast(_NOTHING)), is_of_partition)
    brokers = F.transform("_of_it", lambda one: one["broker_id"])
    known = F.filter(brokers, lambda broker: broker.isNotNull())
    unknown = F.size(brokers) - F.size(known)
    lacking = F.array_except("replicas", known)
    absent = F.when(F.size(lacking) > unknown, lacking).otherwise(F.array().cast("array<int>"))

    def transform(named: DataFrame) -> DataFrame:
        joined = named.join(of_name, ["topic", "partition"], "left")
        return (
            joined.withColumn("_of_it", of_partition)
            .withColumns(
                {
                    "absent": absent,
                    "is_there": F.size("_of_it") > 0,
                    "is_in_sync_there": (unknown > 0) | F.arrays_overlap("in_sync", known),
                }
            )
            .select(*named.columns, "absent", "is_there", "is_in_sync_there")
        )

    return transform


def _may_be(value: Column, named: str) -> Column:
    return F.coalesce(value == F.col(named), F.lit(True))


def without_log(named: DataFrame, logs: DataFrame) -> dict[str, list[str]]:
    """Name the partitions of each cluster that the metadata names, and of which there is no log.

    Needs: as ``with_logs_at_hand``.
    """
    lacking = named.transform(with_logs_at_hand(logs)).where(~F.col("is_there"))
    found: dict[str, list[str]] = {}
    for cluster, topic, partition in lacking.select(*PARTITION).orderBy(*PARTITION).collect():
        found.setdefault(cluster, []).append(f"{topic}-{partition}")
    return found
