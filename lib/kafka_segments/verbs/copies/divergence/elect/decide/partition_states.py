"""What the metadata log says of each partition whose election is advised on, as columns."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kafka_segments.engine.tables.keys import Transform
from kafka_segments.verbs.copies.divergence.elect.decide.usable_copies import LOG, STATE

_UNCLEAN = "unclean.leader.election.enable"


def partition_states(configs: DataFrame) -> Transform:
    """Say of each partition who leads it, who did in each epoch, and whether any replica may.

    1. The partition is as its last row has it.
    2. The members of a leader epoch are those of ISR and ELR, as both were at the end of the epoch.
    3. Any replica may lead where the topic enables unclean elections; where it says nothing, where
       a broker or the default of all does.

    Needs: rows of ``metadata_partitions`` of one cluster; ``configs``: of its ``metadata_configs``.
    Gives: topic, partition and ``STATE``: registered are the replicas, terms an array of epoch,
        leader and members, the first epoch first.
    """
    own = (*LOG, "topic_id")
    is_set = (F.col("name") == _UNCLEAN) & F.col("until_offset").isNull()
    is_enabled = F.coalesce(F.col("value") == "true", F.lit(False))
    held = configs.where(is_set).select("resource_type", "resource_name", is_enabled.alias("_is"))
    of_topic = held.where("resource_type = 'topic'").select(
        F.col("resource_name").alias("topic"), F.col("_is").alias("_own")
    )
    of_brokers = held.where("resource_type = 'broker'").agg(
        F.coalesce(F.bool_or("_is"), F.lit(False)).alias("_any")
    )
    term = F.struct(F.col("leader_epoch").alias("epoch"), "leader", "members")

    def transform(rows: DataFrame) -> DataFrame:
        ends = rows.groupBy(*own, "leader_epoch").agg(
            F.max_by("leader", "from_offset").alias("leader"),
            F.max_by(F.array_union("isr", "elr"), "from_offset").alias("members"),
        )
        terms = ends.groupBy(*own).agg(F.sort_array(F.collect_list(term)).alias("terms"))
        last = rows.where("until_offset IS NULL").withColumnRenamed("replicas", "registered")
        return (
            last.join(terms, list(own), how="inner")
            .join(F.broadcast(of_topic), "topic", how="left")
            .crossJoin(F.broadcast(of_brokers))
            .withColumn("elects_any", F.coalesce("_own", "_any"))
            .select(*LOG, *STATE)
        )

    return transform
