"""Which copies are used for advice on elections, and why others are left out, as columns."""

from collections.abc import Collection, Mapping

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kafka_segments.engine.tables.keys import Transform
from kafka_segments.errors import UsageError
from kafka_segments.kafka.text.names import METADATA_TOPIC

LOG = ("topic", "partition")
STATE = ("topic_id", "isr", "elr", "registered", "terms", "elects_any")
"""What the metadata log says of a partition."""


def broker_ids(node_ids: Mapping[str, Collection[int]]) -> dict[str, int]:
    """Return the broker's id of each copy; ``node_ids``: those of its meta.properties, by its name.

    1. Where these say nothing, the name of the copy may be the id.
    2. A copy is of one broker, and no other copy is of that.

    Raises:
        UsageError: it is not known which broker's a copy is, or two are of one.
    """
    ids: dict[str, int] = {}
    for name, told in sorted(node_ids.items()):
        is_id = not told and name.isascii() and name.isdigit()
        numbers = sorted({int(name)} if is_id else set(told))
        if len(numbers) != 1:
            said = " and ".join(map(str, numbers)) or "nothing"
            raise UsageError(
                f"copy {name}: meta.properties say {said} of its node id: each copy is of one"
                " broker; where that file is missing, name the copy by the id, as in --copy"
                " 1=/data/logs"
            )
        ids[name] = numbers[0]
    brokers = list(ids.values())
    for name, broker in ids.items():
        if brokers.count(broker) > 1:
            raise UsageError(f"copy {name} is of broker {broker}, as another one is: leave one")
    return ids


def with_use(states: DataFrame, brokers: DataFrame, cluster: str) -> Transform:
    """Add to each copy of a log what the metadata log says, and why the copy is not used.

    1. The metadata log must have the partition.
    2. A copy whose log directory names another cluster is of that one's topic.
    3. A copy with another topic id is of another topic of that name, such as a deleted one.
    4. The broker must be one of the partition's replicas.

    Needs: rows of ``listed_logs``; ``states``: topic, partition and ``STATE``; ``brokers``: copy,
        broker_id; ``cluster``: of the metadata log, empty: not known.
    Gives: the same columns, broker_id, those of ``STATE`` without topic_id, and reason (null: the
        copy is used).
    """
    known = states.withColumnRenamed("topic_id", "_known_id")
    is_elsewhere = (F.col("cluster") != cluster) & F.lit(cluster != "")
    is_other = F.col("topic_id") != F.col("_known_id")
    is_replica = F.array_contains("registered", F.col("broker_id"))
    reason = (
        F.when(F.col("_known_id").isNull(), "the metadata log has no such partition")
        .when(
            is_elsewhere,
            F.format_string(
                "it is of cluster %s, the metadata log of %s", "cluster", F.lit(cluster)
            ),
        )
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
