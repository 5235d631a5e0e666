"""Decide which partitions are tiered, and which offsets of their local logs no copy has."""

from functools import reduce

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from kafka_segments.engine.derived.replicas import PARTITION
from kafka_segments.engine.tables.keys import Transform
from kafka_segments.engine.tables.long_arithmetic import minus, plus
from kafka_segments.verbs.find.internals.tier.decide.tier import COPIED, NO_COPY, STATES


def tiered_partitions(named: DataFrame | None, tiered: DataFrame | None) -> Transform:
    """Return the partitions whose copies and local logs belong together.

    They are those that the metadata names, and that are configured to be copied or have a copy.
    Without metadata of the cluster they are those that have a copy.

    Needs: rows of ``fold_states`` of one cluster; ``named``: rows of ``named_last`` of that one,
        None: there is no metadata; ``tiered``: see ``not_copied``.
    Gives: cluster, topic, partition.
    """
    is_copied = (F.col("state") == STATES[COPIED]) & F.col("partition_state").isNull()

    def transform(claimed: DataFrame) -> DataFrame:
        copied = claimed.where(is_copied)
        if named is None:
            return copied.select(*PARTITION).distinct()
        with_copies = named.join(copied, [*PARTITION, "topic_id"], how="left_semi")
        unnamed = copied.join(named.select("cluster"), "cluster", how="left_anti")
        found = [with_copies, unnamed]
        if tiered is not None:
            found.append(named.join(tiered, ["cluster", "topic"], how="left_semi"))
        return reduce(DataFrame.unionByName, (rows.select(*PARTITION) for rows in found)).distinct()

    return transform


def not_copied(local: DataFrame, *, tiered: DataFrame | None) -> Transform:
    """Find the offsets of local logs of tiered partitions that no copy has.

    1. A partition is tiered if its topic is configured so, or if segments of its topic id were
       announced. If no configs are known, segments of any topic of its name are enough.
    2. A copy counts if it has the topic id of the local log, is finished, its partition is not
       being deleted, and no finding keeps a broker from serving it. If the local log has no topic
       id, copies of any topic of its name count.

    Needs: remote segments with topic_id, state, partition_state, findings; ``local``: cluster,
        topic, partition, local_topic_id, log_start_offset, log_end_offset; ``tiered``: cluster,
        topic, of topics that are configured so (None: no configs are known).
    Gives: cluster, topic, partition, copies (how many of the partition count), from_offset,
        to_offset (both inclusive).
    """
    bounds = ("log_start_offset", "log_end_offset")
    is_same = F.coalesce(F.col("local_topic_id") == F.col("topic_id"), F.lit(True))
    counts = (
        (F.col("state") == STATES[COPIED])
        & F.col("partition_state").isNull()
        & ~F.arrays_overlap("findings", F.array(*map(F.lit, NO_COPY)))
    )
    of_log = Window.partitionBy(*PARTITION)
    before = of_log.orderBy("start_offset", "end_offset").rowsBetween(Window.unboundedPreceding, -1)
    reach = F.greatest("log_start_offset", F.max(plus("end_offset", 1)).over(before))

    def transform(held: DataFrame) -> DataFrame:
        announced = held.where(F.col("state").isNotNull()).join(local, list(PARTITION))
        of_log_ids = announced.where(is_same)
        by_segments = (announced if tiered is None else of_log_ids).select(*PARTITION)
        chosen = by_segments
        if tiered is not None:
            by_config = local.join(tiered, ["cluster", "topic"], how="left_semi").select(*PARTITION)
            chosen = by_segments.unionByName(by_config)
        logs = local.join(chosen, list(PARTITION), how="left_semi")
        copies = of_log_ids.where(counts).select(*PARTITION, *bounds, "start_offset", "end_offset")
        ends = logs.select(
            *PARTITION,
            *bounds,
            F.col("log_end_offset").alias("start_offset"),
            F.lit(None).cast("long").alias("end_offset"),
        )
        gaps = copies.unionByName(ends).select(
            *PARTITION,
            F.count("end_offset").over(of_log).alias("copies"),
            reach.alias("from_offset"),
            minus(F.least("start_offset", "log_end_offset"), 1).alias("to_offset"),
        )
        return gaps.where("from_offset <= to_offset").distinct()

    return transform
