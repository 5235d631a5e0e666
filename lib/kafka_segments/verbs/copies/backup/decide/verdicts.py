"""Whether a backup holds what its cluster held at the backup's moment, as columns."""

from enum import StrEnum
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kafka_segments.engine.tables.keys import Transform
from kafka_segments.files.folders import kinds
from kafka_segments.verbs.copies.backup.decide.ends import LOG, Moment, at
from kafka_segments.verbs.copies.divergence.decide.copies import UNSOUND, DifferenceKind

_WENT_ON = (DifferenceKind.FORK, DifferenceKind.AHEAD)
_MISS = "struct<from_offset:bigint,until_offset:bigint,kind:string,detail:string>"


class BackupVerdict(StrEnum):
    """What a backup holds of a log of the cluster."""

    COMPLETE = "complete"
    INCOMPLETE = "incomplete"
    UNKNOWN = "not known"
    """The cluster has more than the backup, and nothing tells since when."""
    MISSING = "missing"
    """The log was there at the moment, and the backup has none of it."""
    MADE_LATER = "made later"
    """The backup has none of it, and it was made after the moment."""


def absent_logs(logs: DataFrame, *, backup: str) -> DataFrame:
    """Return the cluster's copies of logs that the backup lacks, or has of another topic.

    Needs: rows of ``divergence``'s ``listed_logs``.
    Gives: copy, topic, partition, log_dir.
    """
    is_other = F.col("copy") != backup
    held = logs.where(~is_other & ~F.col("has_many_ids")).select(*LOG)
    return (
        logs.where(is_other).join(held, list(LOG), how="left_anti").select("copy", *LOG, "log_dir")
    )


def only_in_backup(logs: DataFrame, *, backup: str) -> DataFrame:
    """Return the logs of the backup that the cluster has no more.

    Needs: rows of ``divergence``'s ``listed_logs``.
    Gives: topic, partition.
    """
    is_backup = F.col("copy") == backup
    others = logs.where(~is_backup).select(*LOG)
    return logs.where(is_backup).select(*LOG).join(others, list(LOG), how="left_anti")


def first_batches(segments: DataFrame) -> DataFrame:
    """Return where to look up the first batch of each log.

    Needs: rows of ``divergence``'s ``chosen_segments``.
    Gives: topic, partition, path, size_bytes, position, offset.
    """
    file = F.struct("path", "size_bytes", F.col("base_offset").alias("offset"))
    first = F.min_by(file, "base_offset").alias("_first")
    held = segments.where("size_bytes > 0").groupBy(*LOG).agg(first)
    return held.select(*LOG, "_first.*", F.lit(0).alias("position"))


def noted_logs(listed: DataFrame, *, backup: str) -> DataFrame:
    """Return the logs that the backup's own ``replication-offset-checkpoint`` names.

    Needs: rows of ``divergence``'s ``with_copy``.
    Gives: topic, partition.
    """
    own = listed.where((F.col("kind") == kinds.LOG_DIR) & (F.col("copy") == backup))
    noted = own.select(F.inline("offsets")).where("high_watermark IS NOT NULL")
    return noted.select(*LOG).distinct()


def named_logs(partitions: DataFrame, *, moment: Moment) -> DataFrame:
    """Return what a metadata log tells of partitions at the moment.

    What its snapshot names can be older than the snapshot.

    Needs: rows of ``metadata_partitions``, of one cluster.
    Gives: topic, partition, was_there, is_made_later; both false if it does not tell.
    """
    is_later = F.col("from_ms") > moment.ms
    may_be_there = ~is_later | F.col("is_from_snapshot")

    def held_until(ms: int) -> Column:
        return F.coalesce(F.col("until_ms") > ms, F.lit(True))

    return partitions.groupBy(*LOG).agg(
        F.max((F.col("from_ms") <= moment.past_ms) & held_until(moment.ms)).alias("was_there"),
        (F.max(is_later) & ~F.max(may_be_there & held_until(moment.past_ms))).alias(
            "is_made_later"
        ),
    )


def missing_logs(
    first: DataFrame, noted: DataFrame, named: DataFrame, *, moment: Moment
) -> Transform:
    """Decide for each absent log whether it was there at the moment.

    1. It was if the backup's own checkpoint names it.
    2. It was, or was made later, as the metadata log says.
    3. It was if its first batch is not younger than the moment by a broker's clock, or
       ``MARGIN_MS`` older by its producer's.
    4. It is not known if it has no batch, or its first one cannot be read, has no timestamp, or has
       offsets in front that are gone; or if its producer dated that one shortly before the moment:
       it can have been on its way to the broker. Nor is it, where the user did not give the
       moment, of a first batch in the last ``MARGIN_MS`` before it.
    5. Else its first record is younger: it was made later.

    Needs: rows of ``absent_logs``; ``first``: topic, partition, and offset (where its file begins),
        timestamp_ms and is_of_broker of the first batch; ``noted``: rows of ``noted_logs``;
        ``named``: rows of ``named_logs``.
    Gives: topic, partition, detail (why it was there; null: nothing says so), doubt (why it is not
        known; null: it is). Both are null if it was made later.
    """
    past = F.when(F.col("is_of_broker"), moment.past_ms).otherwise(moment.past_of_producers_ms)
    is_stamped = F.col("timestamp_ms") >= 0
    detail = (
        F.when(F.col("_is_noted"), "the backup's own checkpoint names it")
        .when(
            is_stamped & (F.col("timestamp_ms") <= past) & ~_is_made_later(),
            F.concat(F.lit("it holds records of "), at("timestamp_ms")),
        )
        .when(F.col("was_there"), "the metadata log says that it was there")
    )

    def transform(absent: DataFrame) -> DataFrame:
        return (
            absent.select(*LOG)
            .distinct()
            .join(first, list(LOG), how="left")
            .join(noted.withColumn("_is_noted", F.lit(True)), list(LOG), how="left")
            .join(named, list(LOG), how="left")
            .withColumn("detail", detail)
            .select(*LOG, "detail", _doubt(moment).alias("doubt"))
        )

    return transform


def _doubt(moment: Moment) -> Column:
    """Return why it is not known whether an absent log was there, see ``missing_logs``."""
    if moment.is_given:
        dated, why = "its producer dated its first batch", "and it can have been on its way"
    else:
        dated, why = "its first batch is of", "and --moment would tell whether it was made later"
    return (
        F.when(F.col("detail").isNotNull() | _is_made_later(), F.lit(None))
        .when(F.col("offset").isNull(), "it holds no batch that tells since when it is there")
        .when(F.col("timestamp_ms").isNull(), "its first batch cannot be read")
        .when(F.col("timestamp_ms") < 0, "its records have no timestamps, so it may be older")
        .when(
            F.col("timestamp_ms") <= moment.ms,
            F.concat(F.lit(f"{dated} "), at("timestamp_ms"), F.lit(f", {why}")),
        )
        .when(
            F.col("offset") > 0, "what lay in front of its first batch is gone, so it may be older"
        )
    )


def _is_made_later() -> Column:
    return F.coalesce("is_made_later", F.lit(False))


def missed_ranges(copies: DataFrame, ends: DataFrame, *, backup: str) -> Transform:
    """Return the ranges of offsets that the backup lacks, though the cluster has them.

    1. Damage in the backup, offsets that it lost, and records that contradict the cluster's.
    2. Offsets in front of the backup's log, if no copy of the cluster begins as late.
    3. Offsets behind its end that were there at its moment.

    Needs: rows of ``divergences``; ``copies``: rows of ``divergence``'s ``described``; ``ends``:
        rows of ``decide_ends.judged_ends``.
    Gives: topic, partition, from_offset, until_offset, kind, detail.
    """
    is_backup = F.col("copy") == backup
    own = copies.where(is_backup).select(*LOG, F.col("start").alias("_start"))
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
                    "kind": F.lit(DifferenceKind.LATER_START.value),
                    "detail": F.concat(F.lit("the backup begins at "), F.col("_start")),
                }
            )
        )
        missed = ends.where("is_missed")
        parts = (lacking, starts.select(*columns), missed.select(*columns))
        return reduce(DataFrame.unionByName, parts)

    return transform


def judged_logs(
    logs: DataFrame,
    copies: DataFrame,
    missing: DataFrame,
    ends: DataFrame,
    compared: DataFrame,
    *,
    backup: str,
) -> Transform:
    """Decide for each log of the cluster whether the backup holds it, and up to which offset.

    Needs: rows of ``missed_ranges``; ``logs``: rows of ``listed_logs``; ``copies``: rows of
        ``described``; ``missing``: rows of ``missing_logs``; ``ends``: rows of
        ``decide_ends.judged_ends``; ``compared``: rows of ``divergences``.
    Gives: topic, partition, verdict, complete_until (the backup holds every offset below; null: it
        holds none), misses (ranges, ascending), doubt (what it may miss; null: nothing), since
        (what the cluster has done since then, which the backup does not miss).
    """
    wanted = logs.where(F.col("copy") != backup).select(*LOG).distinct()
    own = copies.where(F.col("copy") == backup).select(*LOG, "end")
    untold = ends.where("NOT is_missed").groupBy(*LOG)
    doubts = untold.agg(F.min_by("detail", "from_offset").alias("doubt"))
    went_on = compared.where(F.col("kind").isin(*_WENT_ON) & F.array_contains("copies", backup))
    note = F.format_string("%s from %d on: %s", "kind", "from_offset", "detail")
    since = went_on.groupBy(*LOG).agg(F.array_sort(F.collect_list(note)).alias("since"))
    absent = missing.select(
        *LOG, F.lit(True).alias("_is_absent"), "detail", F.col("doubt").alias("_doubt")
    )
    one = F.struct("from_offset", "until_offset", "kind", "detail").cast(_MISS)
    whole = F.struct(F.lit(None), F.lit(None), F.lit("missing log"), F.col("detail")).cast(_MISS)
    nothing = F.array().cast(f"array<{_MISS}>")

    def transform(missed: DataFrame) -> DataFrame:
        ranges = missed.groupBy(*LOG).agg(F.array_sort(F.collect_list(one)).alias("_ranges"))
        found = reduce_left(wanted, absent, own, ranges, doubts, since)
        doubt = F.coalesce("doubt", "_doubt")
        verdict = (
            F.when(F.col("_is_absent") & F.col("detail").isNotNull(), BackupVerdict.MISSING.value)
            .when(F.size(F.coalesce("_ranges", nothing)) > 0, BackupVerdict.INCOMPLETE.value)
            .when(doubt.isNotNull(), BackupVerdict.UNKNOWN.value)
            .when(F.col("_is_absent"), BackupVerdict.MADE_LATER.value)
            .otherwise(BackupVerdict.COMPLETE.value)
        )
        first = F.get(F.col("_ranges.from_offset"), F.lit(0))
        return found.select(
            *LOG,
            verdict.alias("verdict"),
            F.coalesce(first, F.col("end")).alias("complete_until"),
            F.when(verdict == BackupVerdict.MISSING, F.array(whole))
            .otherwise(F.coalesce("_ranges", nothing))
            .alias("misses"),
            doubt.alias("doubt"),
            F.coalesce("since", F.array().cast("array<string>")).alias("since"),
        )

    return transform


def reduce_left(logs: DataFrame, *others: DataFrame) -> DataFrame:
    """Return logs with what other frames have of them."""
    for other in others:
        logs = logs.join(other, list(LOG), how="left")
    return logs
