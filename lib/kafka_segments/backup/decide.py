"""Whether a backup holds what its cluster held at the backup's moment, as columns."""

from enum import StrEnum
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kafka_segments.divergence.decide.copies import UNSOUND, Kind
from kafka_segments.sources import kinds
from kafka_segments.tables.keys import Transform

LOG = ("topic", "partition")
_WENT_ON = (Kind.FORK, Kind.AHEAD)
_MISS = "struct<from_offset:bigint,until_offset:bigint,kind:string,detail:string>"


class Verdict(StrEnum):
    """What a backup holds of a log of the cluster."""

    COMPLETE = "complete"
    INCOMPLETE = "incomplete"
    MISSING = "missing"
    """The log was there at the moment, and the backup has none of it."""
    MADE_LATER = "made later"
    """The backup has none of it, and nothing tells that it was there."""


def absent_logs(logs: DataFrame, *, backup: str) -> DataFrame:
    """Give the cluster's copies of logs that the backup lacks, or has of another topic.

    Needs: rows of ``divergence``'s ``listed_logs``.
    Gives: copy, topic, partition.
    """
    is_other = F.col("copy") != backup
    held = logs.where(~is_other & (F.size("topic_ids") <= 1)).select(*LOG)
    return logs.where(is_other).join(held, list(LOG), how="left_anti").select("copy", *LOG)


def first_batches(segments: DataFrame) -> DataFrame:
    """Ask for the first batch of each log.

    Needs: rows of ``divergence``'s ``chosen_segments``.
    Gives: topic, partition, path, size_bytes, offset.
    """
    file = F.struct("path", "size_bytes", F.col("base_offset").alias("offset"))
    first = F.min_by(file, "base_offset").alias("_first")
    held = segments.where("size_bytes > 0").groupBy(*LOG).agg(first)
    return held.select(*LOG, "_first.*")


def next_batches(compared: DataFrame, *, backup: str) -> Transform:
    """Ask for the first batch of the cluster that lies behind the end of the backup's log.

    Needs: rows of ``divergence``'s ``chosen_segments``; ``compared``: rows of ``divergences``.
    Gives: topic, partition, path, size_bytes, offset.
    """
    is_behind = (F.col("kind") == Kind.BEHIND) & F.array_contains("copies", backup)
    behind = (
        compared.where(is_behind)
        .groupBy(*LOG)
        .agg(
            F.min("from_offset").alias("offset"),
            F.min_by("right_copies", "from_offset").alias("_holders"),
        )
    )
    file = F.struct("path", "size_bytes", "offset")

    def transform(segments: DataFrame) -> DataFrame:
        held = segments.join(behind, list(LOG), how="inner").where(
            F.array_contains("_holders", F.col("copy")) & (F.col("base_offset") <= F.col("offset"))
        )
        last = F.max_by(file, "base_offset").alias("_last")
        return held.groupBy(*LOG).agg(last).select(*LOG, "_last.*")

    return transform


def noted_logs(listed: DataFrame, *, backup: str) -> DataFrame:
    """Give the logs that the backup's own ``replication-offset-checkpoint`` names.

    Needs: rows of ``divergence``'s ``with_copy``.
    Gives: topic, partition.
    """
    own = listed.where((F.col("kind") == kinds.LOG_DIR) & (F.col("copy") == backup))
    noted = own.select(F.inline("offsets")).where("high_watermark IS NOT NULL")
    return noted.select(*LOG).distinct()


def missing_logs(first: DataFrame, noted: DataFrame, *, moment_ms: int) -> Transform:
    """Tell of each absent log whether it was there at the moment.

    1. It was if the backup's own checkpoint names it, or its first batch is not younger than the
       moment, or has no timestamp.
    2. Else nothing tells so: it was made later, is empty, or what was there has been deleted.

    Needs: rows of ``absent_logs``; ``first``: topic, partition, timestamp_ms of the first batch;
        ``noted``: rows of ``noted_logs``.
    Gives: topic, partition, detail (null: it was made later).
    """
    is_old = F.col("timestamp_ms") <= moment_ms
    detail = (
        F.when(F.col("_is_noted"), "the backup's own checkpoint names it")
        .when(F.col("timestamp_ms") < 0, "its records have no timestamps, so it may be older")
        .when(is_old, F.concat(F.lit("it holds records of "), _moment("timestamp_ms")))
    )

    def transform(absent: DataFrame) -> DataFrame:
        return (
            absent.select(*LOG)
            .distinct()
            .join(first, list(LOG), how="left")
            .join(noted.withColumn("_is_noted", F.lit(True)), list(LOG), how="left")
            .select(*LOG, detail.alias("detail"))
        )

    return transform


def missed_ranges(
    copies: DataFrame, behind: DataFrame, *, backup: str, moment_ms: int | None
) -> Transform:
    """Give the ranges of offsets that the backup lacks, though the cluster has them.

    1. Damage in the backup, offsets that it lost, and records that contradict the cluster's.
    2. Offsets in front of the backup's log, if no copy of the cluster begins as late.
    3. Offsets behind its end, below the high watermark that the backup itself noted.
    4. With a moment also what follows the end, if the first batch there is not younger.

    Needs: rows of ``divergences``; ``copies``: rows of ``divergence``'s ``described``; ``behind``:
        topic, partition, timestamp_ms of the batch behind the backup's end.
    Gives: topic, partition, from_offset, until_offset, kind, detail.
    """
    is_backup = F.col("copy") == backup
    own = copies.where(is_backup).select(*LOG, F.col("start").alias("_start"), "high_watermark")
    others = copies.where(~is_backup).groupBy(*LOG)
    concerns = F.array_contains("copies", backup)
    columns = (*LOG, "from_offset", "until_offset", "kind", "detail")

    def transform(compared: DataFrame) -> DataFrame:
        lacking = compared.where(concerns & F.col("kind").isin(*UNSOUND)).select(*columns)
        starts = (
            others.agg(F.max("start").alias("from_offset"), F.max("end").alias("_end"))
            .join(own, list(LOG), how="inner")
            .withColumn("until_offset", F.least("_start", "_end"))
            .where("from_offset < until_offset")
            .withColumns(
                {
                    "kind": F.lit(Kind.LATER_START.value),
                    "detail": F.concat(F.lit("the backup begins at "), F.col("_start")),
                }
            )
        )
        ends = (
            compared.where(concerns & (F.col("kind") == Kind.BEHIND))
            .groupBy(*LOG)
            .agg(F.min("from_offset").alias("from_offset"), F.max("until_offset").alias("_until"))
            .join(own, list(LOG), how="inner")
            .join(behind, list(LOG), how="left")
            .transform(_missed_end(moment_ms))
        )
        parts = (lacking, starts.select(*columns), ends.select(*columns))
        return reduce(DataFrame.unionByName, parts)

    return transform


def _missed_end(moment_ms: int | None) -> Transform:
    is_noted = F.coalesce(F.col("from_offset") < F.col("high_watermark"), F.lit(False))
    is_old = F.lit(False)
    if moment_ms is not None:
        is_old = F.coalesce(F.col("timestamp_ms") <= moment_ms, F.lit(False))
    noted = F.concat(
        F.lit("the backup ends there, and notes the high watermark "), F.col("high_watermark")
    )
    old = F.concat(F.lit("the backup ends there, and a batch of "), _moment("timestamp_ms"))
    until = F.least("_until", "high_watermark")
    return lambda ends: ends.where(is_noted | is_old).withColumns(
        {
            "until_offset": F.when(is_old, F.col("_until")).otherwise(until),
            "kind": F.lit(Kind.BEHIND.value),
            "detail": F.when(is_old, F.concat(old, F.lit(" follows"))).otherwise(noted),
        }
    )


def judged_logs(
    logs: DataFrame, copies: DataFrame, missing: DataFrame, compared: DataFrame, *, backup: str
) -> Transform:
    """Say of each log of the cluster whether the backup holds it, and up to where.

    Needs: rows of ``missed_ranges``; ``logs``: rows of ``listed_logs``; ``copies``: rows of
        ``described``; ``missing``: rows of ``missing_logs``; ``compared``: rows of ``divergences``.
    Gives: topic, partition, verdict, complete_until (the backup holds every offset below, null: it
        holds none), misses (ranges, ascending), since (what the cluster has done since that is no
        miss: it went on with other records).
    """
    wanted = logs.where(F.col("copy") != backup).select(*LOG).distinct()
    ends = copies.where(F.col("copy") == backup).select(*LOG, "end")
    went_on = compared.where(F.col("kind").isin(*_WENT_ON) & F.array_contains("copies", backup))
    note = F.format_string("%s from %d on: %s", "kind", "from_offset", "detail")
    since = went_on.groupBy(*LOG).agg(F.array_sort(F.collect_list(note)).alias("since"))
    absent = missing.select(*LOG, F.lit(True).alias("_is_absent"), "detail")
    one = F.struct("from_offset", "until_offset", "kind", "detail").cast(_MISS)
    whole = F.struct(F.lit(None), F.lit(None), F.lit("missing log"), F.col("detail")).cast(_MISS)
    nothing = F.array().cast(f"array<{_MISS}>")

    def transform(missed: DataFrame) -> DataFrame:
        ranges = missed.groupBy(*LOG).agg(F.array_sort(F.collect_list(one)).alias("_ranges"))
        found = reduce_left(wanted, absent, ends, ranges, since)
        verdict = (
            F.when(F.col("_is_absent") & F.col("detail").isNull(), Verdict.MADE_LATER.value)
            .when(F.col("_is_absent"), Verdict.MISSING.value)
            .when(F.size(F.coalesce("_ranges", nothing)) > 0, Verdict.INCOMPLETE.value)
            .otherwise(Verdict.COMPLETE.value)
        )
        first = F.get(F.col("_ranges.from_offset"), F.lit(0))
        return found.select(
            *LOG,
            verdict.alias("verdict"),
            F.coalesce(first, F.col("end")).alias("complete_until"),
            F.when(verdict == Verdict.MISSING, F.array(whole))
            .otherwise(F.coalesce("_ranges", nothing))
            .alias("misses"),
            F.coalesce("since", F.array().cast("array<string>")).alias("since"),
        )

    return transform


def reduce_left(logs: DataFrame, *others: DataFrame) -> DataFrame:
    """Return logs with what other frames have of them."""
    for other in others:
        logs = logs.join(other, list(LOG), how="left")
    return logs


def _moment(column: str) -> Column:
    return F.concat(
        F.date_format(F.timestamp_millis(F.col(column)), "yyyy-MM-dd HH:mm:ss"), F.lit(" UTC")
    )
