"""Decide whether the coordinator's log was read well enough to say that a transaction hangs."""

from collections.abc import Iterable, Mapping
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kafka_segments.engine.derived.cluster_names import lines_of_clusters
from kafka_segments.engine.derived.replicas import PARTITION
from kafka_segments.engine.tables.keys import LOG_KEYS, Transform
from kafka_segments.engine.tables.long_arithmetic import MOST, minus
from kafka_segments.kafka.messages.records import TRANSACTIONS_TOPIC
from kafka_segments.kafka.text.plain_text import first_of

CHECKPOINTED_EACH_MS = 10_000
"""Twice replica.high.watermark.checkpoint.interval.ms, as it is by default."""
_MOST_NAMED = 8
_ADD = "add the disk of a broker that has it as --source of `kafka-segments build --internals`"
_ALL = "not known: no metadata of the cluster says how many partitions __transaction_state has; "


def sum_up_replicas(segments: DataFrame, garbled: DataFrame) -> Transform:
    """Say of the replica that answers for a partition what was not read, and how new it is.

    1. A log that is in doubt tells nothing. Of one that has lost records, what lies in front of
       them is not known: a later record of the same id may be among them. One whose value cannot
       be decoded may name any producer.
    2. The topic is compacted alone: its log begins at offset 0.
    3. A replica is as new as its last file. Where it reaches its checkpointed high watermark, it is
       as new as the last file of its disk, less the time in which checkpoints are made.

    Needs: replicas as ``choose_replica`` gives them, with high_watermark and lost
        (``lost_records``, and what was not read); ``segments``: rows of ``segments`` of files that
        are there, of all topics; ``garbled``: rows of ``garbled_ids``.
    Gives: cluster, partition, unread (why it was not read soundly; null: it was), unread_until (of
        records from here on it is known that they are the last ones of their id), seen_ms.
    """
    disks = segments.groupBy(*LOG_KEYS[:3]).agg(F.max("last_modified_ms").alias("_disk_ms"))
    files = segments.groupBy(*LOG_KEYS).agg(F.max("last_modified_ms").alias("_file_ms"))
    is_late = F.col("log_start_offset") > 0
    late = F.when(is_late, F.concat(F.lit("its first segments are missing: "), F.lit(_ADD)))
    lost = F.concat(F.lit("records are missing in it: "), F.col("lost.why"))
    no_id = F.when(F.col("garbled").isNotNull(), 0)
    until = F.when(F.col("doubt").isNotNull(), MOST).otherwise(
        F.coalesce("lost.until", F.when(is_late, F.col("log_start_offset")), no_id)
    )
    disk_ms = minus("_disk_ms", CHECKPOINTED_EACH_MS)
    is_whole = F.col("log_end_offset") >= F.col("high_watermark")

    def transform(replicas: DataFrame) -> DataFrame:
        return (
            replicas.join(files, list(LOG_KEYS))
            .join(disks, list(LOG_KEYS[:3]), "left")
            .join(garbled, ["cluster", "partition"], "left")
            .select(
                "cluster",
                "partition",
                F.coalesce("doubt", lost, late, "garbled").alias("unread"),
                until.alias("unread_until"),
                F.greatest("_file_ms", F.when(is_whole, disk_ms)).alias("seen_ms"),
            )
        )

    return transform


def judge_state_logs(read: DataFrame) -> Transform:
    """Say of each partition of the coordinator's log whether it was read soundly.

    Needs: rows of ``KnownReplicas.named`` of the coordinator's topic; ``read``: rows of
        ``sum_up_replicas``.
    Gives: cluster, state_partition, unread (null: read soundly), unread_until, seen_ms.
    """
    missing = F.when(F.col("_is_there").isNull(), F.lit("no log of it was read: " + _ADD))
    name = F.concat(F.lit("not known: __transaction_state-"), F.col("partition").cast("string"))
    why = F.concat(name, F.lit(": "), F.coalesce(missing, F.col("unread")))
    there = read.withColumn("_is_there", F.lit(True))

    def transform(named: DataFrame) -> DataFrame:
        return (
            named.select(*PARTITION)
            .join(there, ["cluster", "partition"], "left")
            .select(
                "cluster",
                F.col("partition").alias("state_partition"),
                why.alias("unread"),
                F.coalesce("unread_until", F.when(why.isNotNull(), MOST)).alias("unread_until"),
                "seen_ms",
            )
        )

    return transform


def unread_lines(judged: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return a line for each reason for which partitions of the coordinator's log were not read.

    Of several clusters each line names its own. ``judged``: rows of ``judge_state_logs``.
    """
    rows = sorted(judged, key=lambda row: (row["cluster"], row["state_partition"]))
    found = [
        (row["cluster"], f"{TRANSACTIONS_TOPIC}-{row['state_partition']}", row["unread"])
        for row in rows
        if row["unread"] is not None
    ]
    return _lines_by_reason(found, {row["cluster"] for row in rows})


def hidden_lines(logs: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return a line for each reason for which logs do not tell all transactions that are open.

    ``logs``: cluster, topic, partition, why.
    """
    more = "transactions that are open there may be missing here"
    rows = sorted(logs, key=lambda row: (row["cluster"], row["topic"], row["partition"]))
    found = [
        (row["cluster"], f"{row['topic']}-{row['partition']}", f"{row['why']}: {more}")
        for row in rows
    ]
    return _lines_by_reason(found, {row["cluster"] for row in rows})


def _lines_by_reason(found: Iterable[tuple[str, str, str]], clusters: set[str]) -> list[str]:
    """Return a line for each cluster and reason; ``found``: cluster, a log's name, the reason."""
    named: dict[tuple[str, str], list[str]] = {}
    for cluster, name, why in found:
        reason = why
        for said in ("not known: ", f"{name}: ", "not known: "):
            reason = reason.removeprefix(said)
        named.setdefault((cluster, reason), []).append(name)
    lines = (
        (cluster, f"not known: {first_of(names, _MOST_NAMED)}: {reason}")
        for (cluster, reason), names in named.items()
    )
    return lines_of_clusters(lines, clusters)


def with_reading(judged: DataFrame) -> Transform:
    """Add what was not read of the coordinator's log, of all of it and of a producer's partition.

    Needs: cluster, state_partition (null: no partition names the producer), state_offset (of the
        last record of its id; null: that is not left); ``judged``: rows of ``judge_state_logs``.
    Gives: the same, own_unread (null, too, where what was not read lies in front of that record),
        all_unread (why; null: read soundly), seen_ms (how new the producer's partition is; else
        the oldest of all).
    """
    own = judged.select(
        "cluster",
        "state_partition",
        F.col("unread").alias("_own_unread"),
        F.col("unread_until").alias("_own_until"),
        F.col("seen_ms").alias("_own_ms"),
    )
    first_unread = F.min(F.when(F.col("unread").isNotNull(), F.struct("state_partition", "unread")))
    every = judged.groupBy("cluster").agg(
        first_unread.alias("_unread"),
        F.min("seen_ms").alias("_all_ms"),
        F.count("*").alias("_partitions"),
    )
    nothing = F.when(F.col("_partitions").isNull(), F.lit(_ALL + _ADD))
    is_behind = F.coalesce(F.col("state_offset") >= F.col("_own_until"), F.lit(False))
    own_unread = F.when(~is_behind, F.col("_own_unread"))

    def transform(opened: DataFrame) -> DataFrame:
        joined = opened.join(F.broadcast(own), ["cluster", "state_partition"], "left")
        return joined.join(F.broadcast(every), ["cluster"], "left").select(
            *opened.columns,
            F.coalesce(own_unread, nothing).alias("own_unread"),
            F.coalesce("_unread.unread", nothing).alias("all_unread"),
            F.coalesce("_own_ms", "_all_ms").alias("seen_ms"),
        )

    return transform
