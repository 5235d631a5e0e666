"""Of which logs it is not known whether they are mirrored, as what says so is not at hand."""

from collections.abc import Collection

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kafka_segments.engine.tables.keys import Transform
from kafka_segments.kafka.text.names import METADATA_TOPIC
from kafka_segments.verbs.copies.divergence.mirror.decide.logs import (
    LOG,
    MIRROR,
    SOURCE,
    is_to_mirror,
)


def unknown_mirrors(logs: DataFrame, source: Collection[str], prefix: str) -> Transform:
    """Name the logs of the source of which it is not known whether they are mirrored.

    1. A log and its mirror are there if one of the replicas that the metadata has in sync is at
       hand; where no metadata names them, if any is.
    2. A log has a mirror if one is at hand, or the metadata of the mirror's cluster names one. If
       there is no such metadata, a log of which nothing is at hand may have one.
    3. A metadata log is of the side on which it lies. If those of both sides do not tell their
       clusters, nothing is known of either.

    Needs (rows): cluster, topic, partition, is_in_sync_there, of all that the metadata names;
        ``logs``: rows of ``frames.listed_logs``; ``source``: the copies of the source, others are
        of the mirror; ``prefix``: what stands in front of the source's names.
    Gives: topic, partition.
    """
    side = F.when(F.col("copy").isin(*source), SOURCE).otherwise(MIRROR).alias("side")
    own = ["side", *LOG]
    there = logs.select(side, *LOG).distinct().withColumn("_is_there", F.lit(True))
    sides = logs.transform(_sides_of_clusters(side))
    mirrors = sides.where(F.col("side") == MIRROR).agg(F.count("*").alias("_mirrors"))
    is_told = F.coalesce("is_in_sync_there", F.lit(True))
    is_untold = F.when(
        F.col("_mirror_is_told").isNull(), F.col("_is_there").isNull() & (F.col("_mirrors") == 0)
    ).otherwise(~(F.col("_is_told") & F.col("_mirror_is_told")))

    def transform(named: DataFrame) -> DataFrame:
        of_sides = named.withColumn("cluster", _name()).join(F.broadcast(sides), "cluster")
        known = of_sides.join(there, own, "full").withColumn("_is_told", is_told)
        mirror = known.where(F.col("side") == MIRROR).select(
            F.col("topic").alias("_mirror"), "partition", F.col("_is_told").alias("_mirror_is_told")
        )
        return (
            known.where((F.col("side") == SOURCE) & is_to_mirror())
            .withColumn("_mirror", F.concat(F.lit(prefix), "topic"))
            .join(mirror, ["_mirror", "partition"], "left")
            .crossJoin(F.broadcast(mirrors))
            .where(is_untold)
            .select(*LOG)
        )

    return transform


def _name() -> Column:
    return F.coalesce("cluster", F.lit(""))


def _sides_of_clusters(side: Column) -> Transform:
    """Say which clusters have a metadata log on which side; see rule 3 of ``unknown_mirrors``."""

    def transform(logs: DataFrame) -> DataFrame:
        metadata = logs.where(F.col("topic") == METADATA_TOPIC)
        clusters = metadata.select(_name().alias("cluster"), side)
        whose = clusters.groupBy("cluster").agg(F.collect_set("side").alias("_sides"))
        told = whose.where((F.col("cluster") != "") | (F.size("_sides") == 1))
        return told.select("cluster", F.explode("_sides").alias("side"))

    return transform
