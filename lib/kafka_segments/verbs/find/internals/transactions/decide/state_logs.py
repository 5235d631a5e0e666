"""Decide whether the coordinator's log was read well enough to say that a transaction hangs."""

from collections.abc import Iterable, Mapping
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.window import Window

from kafka_segments.engine.tables.cluster_names import lines_of_clusters
from kafka_segments.engine.tables.keys import LOG_KEYS, Transform
from kafka_segments.engine.tables.long_arithmetic import minus, plus
from kafka_segments.engine.tables.replicas import PARTITION
from kafka_segments.kafka.messages.records import TRANSACTIONS_TOPIC
from kafka_segments.kafka.wire.plain_text import first_of

CHECKPOINTED_EACH_MS = 10_000
"""Twice replica.high.watermark.checkpoint.interval.ms, as it is by default."""
_MOST_NAMED = 8
_ADD = "add the disk of a broker that has it as --source of `kafka-segments build --internals`"
_AGAIN = "run `kafka-segments build --internals` again on the same sources"
_ALL = "not known: no metadata of the cluster says how many partitions __transaction_state has; "


def sum_up_replicas(segments: DataFrame, records: DataFrame) -> Transform:
    """Say of the replica that answers for a partition what was not read, and how new it is.

    1. Internals must have read each file that a build found, as it was then.
    2. All records must be readable: behind one that is not, anything may follow. So it is with an
       incomplete batch at the end.
    3. The topic is compacted alone: its log begins at offset 0. Gaps from the cleaner's offset on
       are lost records, too.
    4. A replica is as new as its last file. Where it reaches its checkpointed high watermark, it is
       as new as the last file of its disk, less the time in which checkpoints are made.

    Needs: replicas as ``choose_replica`` gives them, with high_watermark and cleaner_offset;
        ``segments``: rows of ``segments`` of files that are there, of all topics; ``records``: rows
        of ``internal_records`` of the coordinator's log, with size_bytes (``with_file_facts``).
    Gives: cluster, partition, unread (why it was not read soundly; null: it was), seen_ms.
    """
    disks = segments.groupBy(*LOG_KEYS[:3]).agg(F.max("last_modified_ms").alias("_disk_ms"))
    files = records.groupBy(*LOG_KEYS, "base_offset", "size_bytes").agg(
        F.min("problem").alias("_problem"), F.lit(True).alias("_is_read")
    )
    gaps = records.transform(_gaps)
    unread = (F.col("size_bytes") > 0) & F.col("_is_read").isNull()
    cleaned = F.coalesce("cleaner_offset", F.lit(0))
    why = F.coalesce(
        "doubt",
        _when(F.col("_unread_file"), "internals did not read it as it was built: ", _AGAIN),
        _when(F.col("_problem").isNotNull(), "it cannot be read to its end: ", F.col("_problem")),
        _when(F.col("_first") > 0, "its first segments are missing: ", _ADD),
        _when(F.col("_gap") > cleaned, "records are missing in it: ", _ADD),
    )
    disk_ms = minus("_disk_ms", CHECKPOINTED_EACH_MS)
    is_whole = F.col("log_end_offset") >= F.col("high_watermark")

    def transform(replicas: DataFrame) -> DataFrame:
        of_state = segments.join(replicas.select(*LOG_KEYS), list(LOG_KEYS), "left_semi")
        read = of_state.join(files, [*LOG_KEYS, "base_offset", "size_bytes"], "left")
        sums = read.groupBy(*LOG_KEYS).agg(
            F.max(unread).alias("_unread_file"),
            F.min("_problem").alias("_problem"),
            F.min("base_offset").alias("_first"),
            F.max("last_modified_ms").alias("_file_ms"),
        )
        return (
            replicas.join(sums, list(LOG_KEYS))
            .join(gaps, list(LOG_KEYS), "left")
            .join(disks, list(LOG_KEYS[:3]), "left")
            .select(
                "cluster",
                "partition",
                why.alias("unread"),
                F.greatest("_file_ms", F.when(is_whole, disk_ms)).alias("seen_ms"),
            )
        )

    return transform


def _when(condition: Column, words: str, more: str | Column) -> Column:
    text = F.lit(more) if isinstance(more, str) else more
    return F.when(condition, F.concat(F.lit(words), text))


def _gaps(records: DataFrame) -> DataFrame:
    """Return of each log the last offset before which offsets are missing."""
    before = F.lag("offset").over(Window.partitionBy(*LOG_KEYS).orderBy("offset"))
    gap = F.when(F.col("offset") > plus(F.coalesce("_before", F.lit(-1)), 1), F.col("offset"))
    found = records.where("offset IS NOT NULL").select(*LOG_KEYS, "offset", before.alias("_before"))
    return found.groupBy(*LOG_KEYS).agg(F.max(gap).alias("_gap"))


def judge_state_logs(read: DataFrame) -> Transform:
    """Say of each partition of the coordinator's log whether it was read soundly.

    Needs: rows of ``KnownReplicas.named`` of the coordinator's topic; ``read``: rows of
        ``sum_up_replicas``.
    Gives: cluster, state_partition, unread (null: read soundly), seen_ms.
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

    Needs: cluster, state_partition (null: no partition names the producer); ``judged``: rows of
        ``judge_state_logs``.
    Gives: the same, own_unread, all_unread (why; null: read soundly), seen_ms (how new the
        producer's partition is; else the oldest of all).
    """
    own = judged.select(
        "cluster",
        "state_partition",
        F.col("unread").alias("own_unread"),
        F.col("seen_ms").alias("_own_ms"),
    )
    first_unread = F.min(F.when(F.col("unread").isNotNull(), F.struct("state_partition", "unread")))
    every = judged.groupBy("cluster").agg(
        first_unread.alias("_unread"),
        F.min("seen_ms").alias("_all_ms"),
        F.count("*").alias("_partitions"),
    )
    nothing = F.when(F.col("_partitions").isNull(), F.lit(_ALL + _ADD))

    def transform(opened: DataFrame) -> DataFrame:
        joined = opened.join(F.broadcast(own), ["cluster", "state_partition"], "left")
        return joined.join(F.broadcast(every), ["cluster"], "left").select(
            *opened.columns,
            F.coalesce("own_unread", nothing).alias("own_unread"),
            F.coalesce("_unread.unread", nothing).alias("all_unread"),
            F.coalesce("_own_ms", "_all_ms").alias("seen_ms"),
        )

    return transform
