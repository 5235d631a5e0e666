"""Which replica of an internal topic's partition speaks for it."""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from kafka_segments.tables.keys import LOG_KEYS


def of_furthest_replica(records: DataFrame) -> DataFrame:
    """Keep the rows of the replica that reaches furthest, of each partition of a cluster.

    Another may hold what the cleaner has removed there.

    Needs: rows of ``internal_records``.
    """
    of_log = Window.partitionBy(*LOG_KEYS)
    of_replicas = Window.partitionBy("cluster", "topic", "partition")
    replica = F.struct(F.max("offset").over(of_log), "broker_id", "log_dir")
    return (
        records.withColumn("_replica", replica)
        .withColumn("_furthest", F.max("_replica").over(of_replicas))
        .where(F.col("_replica") == F.col("_furthest"))
        .drop("_replica", "_furthest")
    )
