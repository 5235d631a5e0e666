"""Decide which logs lie on a broker that the cluster has not assigned them to."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kafka_segments.engine.tables.keys import Transform


def with_assignment(assigned: DataFrame) -> Transform:
    """Add a hazard to logs whose replicas the metadata has on other brokers.

    Needs: cluster, topic, partition, broker_id (-1: not known), hazards; ``assigned``: cluster,
        topic, partition, assigned_replicas (array of broker ids).
    Gives: the same rows and columns.
    """
    is_elsewhere = (F.col("broker_id") >= 0) & ~F.array_contains(
        "assigned_replicas", F.col("broker_id")
    )
    said = F.concat(
        F.lit("the metadata has its replicas on brokers "),
        F.array_join(F.col("assigned_replicas").cast("array<string>"), ", "),
        F.lit(": a KRaft broker with another id renames the folder to -stray"),
    )
    elsewhere = F.array_compact(F.array(F.when(is_elsewhere, said)))

    def transform(segments: DataFrame) -> DataFrame:
        joined = segments.join(F.broadcast(assigned), ["cluster", "topic", "partition"], how="left")
        hazards = F.concat("hazards", elsewhere)
        return joined.withColumn("hazards", hazards).select(*segments.columns)

    return transform
