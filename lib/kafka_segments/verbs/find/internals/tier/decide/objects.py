"""Decide what the objects of a tier tell by themselves, without a record that announces them."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kafka_segments.engine.tables.keys import Transform


def with_topic_ids(topics: DataFrame) -> Transform:
    """Fill in the topic ids that no folder says, by the metadata.

    A name that topics of several clusters have stays without one.

    Needs: rows of ``list_objects``; ``topics``: rows of ``metadata_topics`` that hold still.
    Gives: the same columns.
    """
    ids = topics.groupBy("topic").agg(F.min("topic_id").alias("_id"), F.count("*").alias("_ids"))
    one = F.broadcast(ids.where("_ids = 1").drop("_ids"))

    def transform(objects: DataFrame) -> DataFrame:
        joined = objects.join(one, ["topic"], how="left")
        filled = joined.withColumn("topic_id", F.coalesce("topic_id", "_id"))
        return filled.select(*objects.columns)

    return transform


def rebuildable(objects: DataFrame) -> DataFrame:
    """Keep the segments that are whole, and whose objects say all that is announced.

    In the order in which they are to be announced: of two that begin at the same offset in the
    same epoch, a broker takes the last.

    Needs: rows of ``list_objects``.
    """
    says_enough = (
        F.col("topic_id").isNotNull()
        & (F.size("missing") == 0)
        & F.col("problem").isNull()
        & F.col("found.end_offset").isNotNull()
        & (F.col("found.size_bytes") >= 0)
        & (F.size("found.leader_epochs") > 0)
    )
    announced = F.coalesce("found.event_ms", "last_modified_ms")
    order = ("topic", "topic_id", "partition", announced, "base_offset", "segment_id")
    return objects.where(says_enough).orderBy(*order)
