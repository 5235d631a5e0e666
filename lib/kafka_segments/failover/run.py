"""Plans: fail over to another cluster, cut for a restore."""

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from kafka_segments.failover.decide import PARTITION, aim_failover, plan_restore
from kafka_segments.lag.decide import COMMIT_KEY
from kafka_segments.lag.run import committed_offsets, one_replica
from kafka_segments.rows.table_reads import read_segments
from kafka_segments.search.decide import locate
from kafka_segments.search.run import LogTables, search
from kafka_segments.tables.bounded import minus
from kafka_segments.tables.keys import LOG_KEYS

_LATEST_KAFKA = (4, 3)


def restore_plan(tables: LogTables, *, at_ms: int) -> DataFrame:
    """Plan the cut of every log to a moment; gives the columns of ``plan_restore``."""
    asked = tables.logs.select(
        *LOG_KEYS, F.col("log_start_offset").alias("least_offset")
    ).withColumn("least_timestamp_ms", F.lit(at_ms + 1).cast("long"))
    found = tables.find(asked.transform(locate.choose_by_timestamp(tables.segments())))
    return found.transform(plan_restore(tables.segments_as_built(), tables.logs))


def failover_plan(
    spark: SparkSession,
    warehouse: str,
    here: LogTables,
    there: LogTables,
    *,
    cluster: str | None,
    group: str,
    max_latency_ms: int,
    now_ms: int,
) -> DataFrame:
    """Plan where a group of one cluster goes on in another.

    Gives: topic, partition, committed_offset, last_timestamp_ms (of the last message consumed),
        least_unread_timestamp_ms, is_margin_enough, target_ms, to_offset (in the other cluster),
        expected_duplicates (offsets there up to the last message consumed), most_duplicates (the
        same, with the latency between the clusters on top), problem.
    """
    logs = one_replica(here.logs)
    commits = (
        committed_offsets(spark, warehouse, here.caches, cluster=cluster, at_ms=now_ms)
        .where(F.col("group_id") == group)
        .where(F.col("committed_offset").isNotNull())
        .select(*COMMIT_KEY, "committed_offset")
        .join(logs, ["cluster", *PARTITION], how="inner")
    )
    aim = aim_failover(max_latency_ms=max_latency_ms)
    aimed = here.keep(_timestamps(here, commits).transform(aim))
    there_to = _offsets_there(there, aimed, max_latency_ms=max_latency_ms)
    return aimed.join(there_to, list(PARTITION), how="left").select(
        *PARTITION,
        "committed_offset",
        "last_timestamp_ms",
        "least_unread_timestamp_ms",
        "is_margin_enough",
        "target_ms",
        "to_offset",
        minus("after_last", "to_offset").alias("expected_duplicates"),
        minus("after_margin", "to_offset").alias("most_duplicates"),
        "problem",
    )


def _timestamps(here: LogTables, commits: DataFrame) -> DataFrame:
    """Read the timestamps of the last message consumed and of the oldest unread one.

    All records of the segments from the one of the last message on are read. Where compaction
    removed the last message, the last one before it in these segments stands for it.
    """
    segments = here.segments_as_built().join(
        commits.select(*LOG_KEYS, "committed_offset"), list(LOG_KEYS), how="inner"
    )
    unread = segments.where(F.col("next_offset") >= F.col("committed_offset"))
    records = unread.transform(
        read_segments(
            rows="records",
            columns=("path", "offset", "timestamp_ms", "is_control", "error"),
            check="full",
        )
    ).where(~F.coalesce("is_control", F.lit(False)))
    is_consumed = F.col("offset") < F.col("committed_offset")
    is_record = F.col("error").isNull()
    is_unread = is_record & ~is_consumed & (F.col("timestamp_ms") >= 0)
    by_log = (
        records.join(unread.select(*LOG_KEYS, "path", "committed_offset"), "path", how="inner")
        .groupBy(*LOG_KEYS)
        .agg(
            F.max_by(
                F.when(is_record & is_consumed, F.col("timestamp_ms")),
                F.when(is_record & is_consumed, F.col("offset")),
            ).alias("last_timestamp_ms"),
            F.min(F.when(is_unread, F.col("timestamp_ms"))).alias("least_unread_timestamp_ms"),
        )
    )
    return commits.join(by_log, list(LOG_KEYS), how="left").select(
        *PARTITION, "committed_offset", "last_timestamp_ms", "least_unread_timestamp_ms"
    )


def _offsets_there(there: LogTables, aimed: DataFrame, *, max_latency_ms: int) -> DataFrame:
    """Find the offsets of each partition's timestamps in the other cluster; else its end."""
    last = F.col("last_timestamp_ms")
    asked = {
        "to_offset": F.col("target_ms"),
        "after_last": last + 1,
        "after_margin": last + 1 + max_latency_ms,
    }
    questions = F.array(
        *(
            F.struct(F.lit(name).alias("question"), target.alias("target_ms"))
            for name, target in asked.items()
        )
    )
    answers = search(
        there,
        aimed.select(*PARTITION, F.inline(questions))
        .where(F.col("target_ms") >= 0)
        .join(one_replica(there.logs), list(PARTITION), how="inner"),
        kafka_version=_LATEST_KAFKA,
    )
    found = F.coalesce("true_offset", "log_end_offset")
    return answers.groupBy(*PARTITION).agg(
        *(F.max(F.when(F.col("question") == name, found)).alias(name) for name in asked),
        F.max("problem").alias("problem"),
    )
