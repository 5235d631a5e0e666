"""Decide where a group goes on in another cluster, and where logs are cut for a restore."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kafka_segments.engine.tables.findings import is_finding
from kafka_segments.engine.tables.keys import LOG_KEYS, Transform
from kafka_segments.engine.tables.long_arithmetic import minus
from kafka_segments.kafka.text.names import METADATA_TOPIC
from kafka_segments.verbs.find.search.decide.locate import KAFKA
from kafka_segments.verbs.find.search.decide.unread import with_unread

PARTITION = ("topic", "partition")
_AROUND = ("last_timestamp_ms", "least_unread_timestamp_ms")
_NO_LOG = "not known: the tables have no log of it; build with the disk of a broker that has it"
_NO_LOG_THERE = (
    "not known: the tables of the other cluster have no log of it; build with the disk of a broker"
    " that has it"
)
_NO_TIME = "not known: no message around the committed offset has a timestamp to search for"
_UNREAD_AROUND = "not known: a message around the committed offset may not have been read: "
_KRAFTS_OWN = "KRaft's own log: kept whole, a cluster's metadata is not cut by time"


def aim_failover(*, max_latency_ms: int) -> Transform:
    """Decide which timestamp to search for in the other cluster.

    1. It is the timestamp of the last message consumed, less the greatest latency between the
       clusters: within it, the order of messages may differ.
    2. Where an unread message is older than that, it is the timestamp of that message. So every
       unread message of this cluster lies, in the other, at or after the offset found.
    3. If no message was consumed, or its last one is gone, it is that of the oldest unread one.

    Needs: last_timestamp_ms (of the last message consumed; null: none), least_unread_timestamp_ms
        (null: none); any other columns.
    Gives: these, target_ms (null: nothing is known), is_margin_enough.
    Source: KIP-33, use cases.
    """
    last, unread = F.col("last_timestamp_ms"), F.col("least_unread_timestamp_ms")
    by_margin = F.greatest(F.when(last >= 0, minus(last, max_latency_ms)), F.lit(0))
    with_margin = F.when(last >= 0, by_margin)

    def transform(groups: DataFrame) -> DataFrame:
        return groups.withColumn("target_ms", F.least(with_margin, unread)).withColumn(
            "is_margin_enough", F.coalesce(unread >= with_margin, F.lit(True))
        )

    return transform


def in_doubt(commits: DataFrame) -> DataFrame:
    """Say which commits do not tell where the group goes on.

    Needs: commits_doubt, problem (why a commit cannot be read; null: it can), and of the log that a
        commit is of: doubt, log_end_offset (null: there is no such log).
    Gives: the same, doubt (null: none), without commits_doubt and problem.
    """
    no_log = F.when(F.col("log_end_offset").isNull(), F.lit(_NO_LOG))
    no_commit = F.concat(F.lit("not known: "), "problem")
    told = commits.withColumn("doubt", F.coalesce("commits_doubt", no_commit, "doubt", no_log))
    return told.drop("commits_doubt", "problem")


def segments_around(commits: DataFrame) -> Transform:
    """Keep the segment of each log that holds the last message consumed, and all later ones.

    Where compaction removed that message, the last one before it in these segments counts.

    Needs: rows of ``segments``; ``commits``: the key of a log, committed_offset.
    Gives: the same, committed_offset.
    """
    committed = commits.select(*LOG_KEYS, "committed_offset")

    def transform(segments: DataFrame) -> DataFrame:
        of_groups = segments.join(committed, list(LOG_KEYS), how="inner")
        return of_groups.where(F.col("next_offset") >= F.col("committed_offset"))

    return transform


def sum_up_records(records: DataFrame) -> DataFrame:
    """Return the timestamps around the committed offset of each log.

    Needs: the key of a log, committed_offset, is_active, damage (of the segment), and of records
        path, offset, timestamp_ms, is_control, error.
    Gives: the key of a log, last_timestamp_ms (of the last message consumed; null: none),
        least_unread_timestamp_ms (of the oldest unread message that has one; null: none),
        unread_problem (what could not be read; null: nothing, or the end of an active segment
        that a running broker is writing to).
    """
    is_left_open = F.col("damage").isNotNull() & ~is_finding()
    problem = F.concat(F.lit(_UNREAD_AROUND), F.concat_ws(": ", "path", "error"))
    is_record = F.col("error").isNull() & ~F.coalesce("is_control", F.lit(False))
    is_consumed = is_record & (F.col("offset") < F.col("committed_offset"))
    is_unread = is_record & ~is_consumed & (F.col("timestamp_ms") >= 0)
    return records.groupBy(*LOG_KEYS).agg(
        F.max_by(
            F.when(is_consumed, F.col("timestamp_ms")), F.when(is_consumed, F.col("offset"))
        ).alias("last_timestamp_ms"),
        F.min(F.when(is_unread, F.col("timestamp_ms"))).alias("least_unread_timestamp_ms"),
        F.max(F.when(F.col("error").isNotNull() & ~is_left_open, problem)).alias("unread_problem"),
    )


def ask_other_cluster(*, max_latency_ms: int) -> Transform:
    """Ask the other cluster for the target, and for the ends of what the group reads again.

    Needs: what ``aim_failover`` gives.
    Gives: topic, partition, question (to_offset, after_last, after_margin), target_ms (long, not
        negative).
    """
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

    def transform(aimed: DataFrame) -> DataFrame:
        return aimed.select(*PARTITION, F.inline(questions)).where(F.col("target_ms") >= 0)

    return transform


def plan_failover(answers: DataFrame) -> Transform:
    """Say where the group goes on, and how many messages it reads again.

    An answer without a record is the end of the log there; if there is a problem, it is not known.
    Without any answer ``problem`` says why: nothing was to be asked, or there is no such log there.
    Where messages around the committed offset could not be read, one of these may be the oldest
    that is unread: then nothing but the committed offset is told.

    Needs: what ``aim_failover`` gives, committed_offset, unread_problem; ``answers``: of the other
        cluster to ``ask_other_cluster``.
    Gives: topic, partition, committed_offset, last_timestamp_ms, least_unread_timestamp_ms,
        is_margin_enough, target_ms, to_offset (in the other cluster), expected_duplicates
        (offsets there up to the last message consumed), most_duplicates (the same, with the
        latency between the clusters on top), problem.
    """
    end = F.when(F.col("problem").isNull(), F.col("log_end_offset"))
    found = F.coalesce("true_offset", end)
    names = ("to_offset", "after_last", "after_margin")
    there = answers.groupBy(*PARTITION).agg(
        *(F.max(F.when(F.col("question") == name, found)).alias(name) for name in names),
        F.max("problem").alias("problem"),
        F.lit(True).alias("_is_answered"),
    )
    why = F.when(F.col("target_ms") >= 0, F.lit(_NO_LOG_THERE)).otherwise(F.lit(_NO_TIME))
    unanswered = F.when(F.col("_is_answered").isNull(), why)
    is_read = F.col("unread_problem").isNull()
    values = {
        **{name: F.col(name) for name in (*_AROUND, "is_margin_enough", "target_ms", "to_offset")},
        "expected_duplicates": minus("after_last", "to_offset"),
        "most_duplicates": minus("after_margin", "to_offset"),
    }

    def transform(aimed: DataFrame) -> DataFrame:
        return aimed.join(there, list(PARTITION), how="left").select(
            *PARTITION,
            "committed_offset",
            *(F.when(is_read, value).alias(name) for name, value in values.items()),
            F.coalesce("unread_problem", "problem", unanswered).alias("problem"),
        )

    return transform


RESTORED = (
    "last_offset_kept",
    "file",
    "cut_position",
    "early_records",
    "segments_needed",
    "bytes_needed",
)
"""The columns that say how a log is cut."""


def ask_restore(*, at_ms: int) -> Transform:
    """Ask each log for its first record later than a moment.

    Needs: the key of a log, log_start_offset.
    Gives: the key of a log, least_offset, least_timestamp_ms (long).
    """

    def transform(logs: DataFrame) -> DataFrame:
        return logs.select(
            *LOG_KEYS,
            F.col("log_start_offset").alias("least_offset"),
            F.lit(at_ms + 1).cast("long").alias("least_timestamp_ms"),
        )

    return transform


def plan_restore(segments: DataFrame, logs: DataFrame, gaps: DataFrame | None = None) -> Transform:
    """Cut each log before its first record later than a moment.

    1. The cut is at the start of that record's batch, as Kafka cuts. So earlier records of the
       same batch go too: ``early_records`` counts their offsets.
    2. A log without such a record is kept whole. So is KRaft's own log, and ``problem`` says so.
    3. The segments up to the cut are needed, and their bytes up to it.
    4. Where records may be missing before the cut, as behind a damage, or what was found could not
       be read, it is not known: ``problem`` says why, and all else is null.

    Needs: rows of ``find_first_records`` for the moment + 1; ``segments``: rows of ``segments``;
        ``logs``: log_start_offset, log_end_offset, high_watermark; ``gaps``: rows of
        ``first_gaps``, None: there are none.
    Gives: the key of a log, last_offset_kept (null: nothing is left), file, cut_position
        (bytes; null: kept whole), early_records, segments_needed, bytes_needed, problem.
    Source: LogSegment.truncateTo.
    """
    end = F.coalesce("_later.batch_offset", "log_end_offset")
    found_later = F.col("_later.offset")
    early = F.coalesce(minus(found_later, "_later.batch_offset"), F.lit(0)).cast("long")
    values = (
        F.when(end > F.col("log_start_offset"), minus(end, 1)),
        F.col("file"),
        F.col("_later.position"),
        early,
        F.col("segments_needed"),
        F.col("bytes_needed"),
    )
    plan = dict(zip(RESTORED, values, strict=True))
    is_known = F.col("_why").isNull()
    krafts_own = F.when(F.col("topic") == METADATA_TOPIC, F.lit(_KRAFTS_OWN))

    def transform(found: DataFrame) -> DataFrame:
        bounds = logs.select(*LOG_KEYS, "log_start_offset", "log_end_offset")
        cuts = segments.join(_cuts(found), list(LOG_KEYS), how="left").groupBy(*LOG_KEYS)
        return (
            cuts.agg(*_needed_for_cut())
            .join(bounds, list(LOG_KEYS), how="inner")
            .transform(with_unread(segments, logs, gaps, found=found_later))
            .withColumn("_why", F.coalesce("problem", "unread"))
            .select(
                *LOG_KEYS,
                *(F.when(is_known, value).alias(name) for name, value in plan.items()),
                F.coalesce("_why", krafts_own).alias("problem"),
            )
        )

    return transform


def _cuts(found: DataFrame) -> DataFrame:
    """Return of each log the first record that goes, as ``_later``, and a problem."""
    is_krafts = F.col("topic") == METADATA_TOPIC
    is_true = (F.col("role") != KAFKA) & F.col("found_offset").isNotNull() & ~is_krafts
    record = F.struct(
        F.col("found_offset").alias("offset"),
        F.col("base_offset").alias("segment"),
        F.col("found_batch_offset").alias("batch_offset"),
        "path",
        F.col("found_position").alias("position"),
    )
    return found.groupBy(*LOG_KEYS).agg(
        F.min(F.when(is_true, record)).alias("_later"), F.max("problem").alias("problem")
    )


def _needed_for_cut() -> list[Column]:
    """Return the sums over the segments of a log up to its cut."""
    is_needed = F.col("_later").isNull() | (F.col("base_offset") <= F.col("_later.segment"))
    is_cut = F.coalesce(F.col("base_offset") == F.col("_later.segment"), F.lit(False))
    kept = F.when(is_cut, F.col("_later.position")).otherwise(F.col("valid_bytes"))
    needed = is_needed & (kept > 0)
    last_file = F.max_by(F.when(needed, F.col("path")), F.when(needed, F.col("base_offset")))
    return [
        F.first("_later").alias("_later"),
        F.first("problem").alias("problem"),
        F.count_if(needed).alias("segments_needed"),
        F.coalesce(F.sum(F.when(needed, kept)), F.lit(0)).alias("bytes_needed"),
        last_file.alias("file"),
    ]
