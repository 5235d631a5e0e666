"""Which copies are used for advice on elections, and why others are left out, as columns."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kafka_segments.tables.keys import Transform
from kafka_segments.wire.names import METADATA_TOPIC

LOG = ("topic", "partition")
STATE = ("topic_id", "isr", "elr", "registered", "terms", "elects_any")
"""What the metadata log says of a partition."""


def with_use(states: DataFrame, brokers: DataFrame) -> Transform:
    """Add to each copy of a log what the metadata log says, and why the copy is not used.

    1. The metadata log must have the partition.
    2. A copy with another topic id is of another topic of that name, such as a deleted one.
    3. The broker must be one of the partition's replicas.

    Needs: rows of ``listed_logs``; ``states``: topic, partition and ``STATE``; ``brokers``: copy,
        broker_id.
    Gives: the same columns, broker_id, those of ``STATE`` without topic_id, and reason (null: the
        copy is used).
    """
    known = states.withColumnRenamed("topic_id", "_known_id")
    is_other = F.col("topic_id") != F.col("_known_id")
    is_replica = F.array_contains("registered", F.col("broker_id"))
    reason = (
        F.when(F.col("_known_id").isNull(), "the metadata log has no such partition")
        .when(
            is_other,
            F.format_string(
                "its topic id is %s, that of the topic %s: another topic of that name",
                "topic_id",
                "_known_id",
            ),
        )
        .when(
            ~is_replica,
            F.format_string(
                "broker %d is none of the replicas %s",
                "broker_id",
                F.array_join(F.col("registered").cast("array<string>"), " "),
            ),
        )
    )

    def transform(logs: DataFrame) -> DataFrame:
        return (
            logs.where(F.col("topic") != METADATA_TOPIC)
            .join(F.broadcast(brokers), "copy", how="inner")
            .join(known, list(LOG), how="left")
            .withColumn("reason", reason)
            .drop("_known_id")
        )

    return transform
