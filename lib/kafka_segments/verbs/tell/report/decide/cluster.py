"""Decide what the report says of a cluster's metadata: who leads, and which partitions are ill."""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from kafka_segments.engine.tables.keys import Transform

_MIN_ISR = "min.insync.replicas"
_OF_KAFKA = 1  # Kafka's default of min.insync.replicas
_NO_LEADER = -1


def judge_partitions(configs: DataFrame, brokers: DataFrame) -> Transform:
    """Add to each partition how its replicas are.

    min.insync.replicas is the topic's, else the default of the cluster in the metadata, else 1.
    What server.properties says is not known.

    Needs: rows of ``metadata_partitions``; ``configs``, ``brokers``: rows of the tables of these
        names; of all three only rows that still hold.
    Gives: cluster, topic, partition, leader, preferred_leader, replicas, isr, min_isr, from_ms,
        is_offline (no leader), is_under_min_isr, is_under_replicated, has_offline_replica.
    """
    wanted = configs.where(F.col("name") == _MIN_ISR)
    least = F.expr("try_cast(value AS INT)")
    of_topic = wanted.where("resource_type = 'topic'").select(
        "cluster", F.col("resource_name").alias("topic"), least.alias("_of_topic")
    )
    of_cluster = wanted.where("resource_type = 'broker' AND resource_name = ''").select(
        "cluster", least.alias("_of_cluster")
    )
    serving = brokers.where("NOT is_fenced").groupBy("cluster")
    alive = serving.agg(F.collect_set("node_id").alias("_alive"))

    def transform(partitions: DataFrame) -> DataFrame:
        known = (
            partitions.join(F.broadcast(of_topic), ["cluster", "topic"], how="left")
            .join(F.broadcast(of_cluster), ["cluster"], how="left")
            .join(F.broadcast(alive), ["cluster"], how="left")
        )
        min_isr = F.coalesce("_of_topic", "_of_cluster", F.lit(_OF_KAFKA))
        return known.select(
            *("cluster", "topic", "partition", "leader"),
            F.get("replicas", F.lit(0)).alias("preferred_leader"),
            *("replicas", "isr"),
            min_isr.alias("min_isr"),
            "from_ms",
            (F.col("leader") == _NO_LEADER).alias("is_offline"),
            (F.size("isr") < min_isr).alias("is_under_min_isr"),
            (F.size("isr") < F.size("replicas")).alias("is_under_replicated"),
            (F.size(F.array_except("replicas", "_alive")) > 0).alias("has_offline_replica"),
        )

    return transform


def count_partitions(judged: DataFrame) -> DataFrame:
    """Count the partitions, and those with each illness.

    Needs: rows of ``judge_partitions``.
    """
    return judged.agg(
        F.count("*").alias("partitions"),
        F.count_if("is_offline").alias("offline"),
        F.count_if("is_under_min_isr").alias("under_min_isr"),
        F.count_if("is_under_replicated").alias("under_replicated"),
        F.count_if("has_offline_replica").alias("with_offline_replica"),
        F.max("from_ms").alias("last_ms"),
    )


def count_leaders(brokers: DataFrame) -> Transform:
    """Count what each broker leads, and what it would lead if the preferred leaders did.

    Needs: rows of ``judge_partitions``; ``brokers``: rows of ``metadata_brokers``.
    Gives: cluster, node_id, is_fenced (null: not registered), leads, preferred, replicas.
    """
    led = (F.col("leader") == F.col("node_id")).cast("int")
    preferred = (F.col("preferred_leader") == F.col("node_id")).cast("int")

    def transform(judged: DataFrame) -> DataFrame:
        held = judged.withColumn("node_id", F.explode("replicas"))
        counted = held.groupBy("cluster", "node_id").agg(
            F.sum(led).alias("leads"),
            F.sum(preferred).alias("preferred"),
            F.count("*").alias("replicas"),
        )
        known = brokers.select("cluster", "node_id", "is_fenced")
        joined = known.join(counted, ["cluster", "node_id"], how="full")
        numbers = [F.coalesce(n, F.lit(0)).alias(n) for n in ("leads", "preferred", "replicas")]
        return joined.select("cluster", "node_id", "is_fenced", *numbers)

    return transform


def is_ill() -> Column:
    """Tell whether someone must look at a partition."""
    return F.col("is_offline") | F.col("is_under_min_isr") | F.col("is_under_replicated")


def last_changes(changes: DataFrame, *, rows: int) -> DataFrame:
    """Keep the last changes; column ``of`` has the number of all changes.

    Needs: rows of ``decide_changes``.
    """
    counted = changes.withColumn("of", F.count("*").over(Window.partitionBy(F.lit(0))))
    return counted.orderBy(F.desc("ms"), F.desc("offset"), "kind", "name").limit(rows)
