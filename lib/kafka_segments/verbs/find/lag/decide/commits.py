"""Decide which commits count, and how far behind they are."""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from kafka_segments.engine.tables.keys import LOG_KEYS, Transform
from kafka_segments.engine.tables.long_arithmetic import minus
from kafka_segments.kafka.messages.records import COMMITS

COMMIT_KEY = ("cluster", "group_id", "topic", "partition")
UP_TO_DATE, BEHIND, AHEAD = "up to date", "behind", "ahead of the log's end"
NO_FINDINGS = (UP_TO_DATE, BEHIND)
"""Statuses that nobody must look at."""
EXPIRED, COMPACTED = "unread records deleted", "unread records compacted away"
NO_LOG, NO_COMMIT = "log not in the tables", "no commit left from that time"
NOT_READABLE, NOT_KNOWN = "not readable", "not known"
_COMMIT_MARKER = 1
NO_OFFSET = -1


def decide_commits(*, at_ms: int) -> Transform:
    """Choose each group's last commit of each partition that counted at ``at_ms``.

    1. A commit in a transaction counts if its producer's next marker is COMMIT, and from this
       marker's time on. It does not count if that marker is ABORT, or if there is no marker yet.
    2. The last record of a key counts; a tombstone deletes the key.
    3. Where all records that are left of a key are later than ``at_ms``, its row has no offset:
       compaction has removed the record that counted then.
    4. What could not be read stays as a row with ``problem``: the commits in it are not known, or
       that of its key, if that is known. The end of a log that is being written is none.
    5. Of a key whose last record lies in front of lost records, or of what could not be read, it is
       not known what counts, be it a tombstone or a commit whose marker was not seen: a later
       commit, or its marker, may be among them. A key that only another copy has is such a one.

    Needs: cluster, commits_doubt (why the partition's log does not answer; null: it does), lost (of
        the log, see ``lost_records``; null: nothing), unread_until (see ``with_unread_until``) and
        the columns of ``read_commits``.
    Gives: cluster, group_id, topic, partition, committed_offset (null: case 3),
        commit_timestamp_ms, problem (null: none), commits_doubt, offsets_partition.
    Source: OffsetMetadataManager.replay, replayEndTransactionMarker.
    """
    following = (
        Window.partitionBy("cluster", "offsets_partition", "producer_id")
        .orderBy("position")
        .rowsBetween(1, Window.unboundedFollowing)
    )
    key = ("cluster", "group_id", "topic", "topic_partition")
    latest = Window.partitionBy(*key).orderBy(F.desc("_is_known"), F.desc("position"))
    ended = F.struct("control_type", "record_timestamp_ms")
    next_marker = F.when(F.col("control_type").isNotNull(), ended)
    marker = F.first(next_marker, ignorenulls=True).over(following)
    is_plain = F.col("producer_id").isNull()
    until = F.coalesce("position", "unread_until")
    unread = F.when(is_unread(), F.struct(until.alias("until"), F.col("problem").alias("why")))
    of_log = Window.partitionBy("cluster", "offsets_partition")
    lost = F.greatest(F.max(unread).over(of_log), F.col("lost"))
    why = F.format_string(
        "not known: a later commit may be in what is missing of __consumer_offsets-%d: %s",
        "offsets_partition",
        "_lost.why",
    )
    is_lost = F.coalesce(~is_unread() & (F.col("position") < F.col("_lost.until")), F.lit(False))
    doubt = F.coalesce("commits_doubt", F.when(is_lost, why))
    is_committed = F.col("_marker.control_type") == _COMMIT_MARKER
    has_ended = F.coalesce(
        is_committed & (F.col("_marker.record_timestamp_ms") <= at_ms), F.lit(False)
    )
    timestamp = F.coalesce("commit_timestamp_ms", "record_timestamp_ms")
    is_known = F.coalesce(timestamp <= at_ms, F.lit(True)) & (is_plain | has_ended)
    is_tombstone = F.col("committed_offset").isNull() & F.col("problem").isNull()

    def transform(commits: DataFrame) -> DataFrame:
        return (
            commits.where(F.col("problem").isNull() | until.isNotNull())
            .withColumns({"_marker": marker, "_lost": lost})
            .withColumn("_doubt", doubt)
            .where(F.col("group_id").isNotNull())
            .where(is_plain | is_unread() | is_committed | F.col("_doubt").isNotNull())
            .withColumn("_is_known", is_unread() | is_known)
            .withColumn("_rank", F.row_number().over(latest))
            .where("_rank = 1")
            .where(~is_tombstone | ~F.col("_is_known") | F.col("_doubt").isNotNull())
            .select(
                "cluster",
                "group_id",
                "topic",
                F.col("topic_partition").alias("partition"),
                F.when(F.col("_is_known"), F.col("committed_offset")).alias("committed_offset"),
                F.when(F.col("_is_known"), F.col("commit_timestamp_ms")).alias(
                    "commit_timestamp_ms"
                ),
                "problem",
                F.col("_doubt").alias("commits_doubt"),
                "offsets_partition",
            )
        )

    return transform


def with_keys_of(others: DataFrame, unread: DataFrame) -> Transform:
    """Add the keys that other copies of partitions name, where the copy that answers lacks records.

    A key whose last record in such a copy is a tombstone is none of them.

    Needs: what ``decide_commits`` does; ``others``: the same columns of other copies, without
        commits_doubt, lost and unread_until; ``unread``: cluster, partition, commits_doubt, lost of
        the copies that answer.
    Gives: the same, a row of each such key in front of all records.
    """
    key = ("cluster", "offsets_partition", "group_id", "topic", "topic_partition")
    is_there = F.coalesce("committed_offset", F.when(F.col("problem").isNotNull(), NO_OFFSET))
    last = F.max_by(is_there, "position").alias("_last")
    of_partition = unread.select(
        *("cluster", F.col("partition").alias("offsets_partition"), "commits_doubt", "lost")
    )

    def transform(commits: DataFrame) -> DataFrame:
        named = others.where(F.col("group_id").isNotNull() & ~is_unread())
        keys = named.groupBy(*key).agg(last).where("_last IS NOT NULL").drop("_last")
        rows = keys.join(F.broadcast(of_partition), ["cluster", "offsets_partition"])
        rows = rows.withColumn("position", F.lit(NO_OFFSET).cast("long"))
        return commits.unionByName(rows, allowMissingColumns=True)

    return transform


def with_contradicted_commits(keys: DataFrame, logs: DataFrame) -> Transform:
    """Put rows in the place of commits that are other ones in other copies: nothing is known.

    Needs: what ``decide_commits`` does; ``keys``: rows of ``contradicted_keys``; ``logs``: the key
        of a log, commits_doubt, lost of the copies that answer.
    Gives: the same, with commits_doubt of each such key at its offset.
    """
    key = F.from_json("key_json", "struct<`group`: string, topic: string, partition: int>")
    why = F.concat(F.lit("not known: "), "contradicted")
    at = ("cluster", "offsets_partition", "position")
    rows = (
        keys.where(F.col("kind").isin(*COMMITS))
        .join(logs, list(LOG_KEYS))
        .withColumn("_key", key)
        .select(
            "cluster",
            F.col("partition").alias("offsets_partition"),
            F.col("offset").alias("position"),
            F.col("timestamp_ms").alias("record_timestamp_ms"),
            F.col("_key.group").alias("group_id"),
            F.col("_key.topic").alias("topic"),
            F.col("_key.partition").alias("topic_partition"),
            F.coalesce("commits_doubt", why).alias("commits_doubt"),
            "lost",
        )
    )

    def transform(commits: DataFrame) -> DataFrame:
        own = commits.join(rows.select(*at), list(at), "left_anti")
        return own.unionByName(rows, allowMissingColumns=True)

    return transform


def made_later(topics: DataFrame, *, at_ms: int) -> Transform:
    """Add to logs why they do not tell of ``at_ms``: the topic was made, or made again, after it.

    Needs: rows of logs with cluster, topic, doubt; ``topics``: rows of ``metadata_topics``.
    Gives: the same rows.
    """
    is_later = F.col("until_offset").isNull() & (F.col("from_ms") > at_ms)
    made = topics.where(is_later & ~F.col("is_from_snapshot"))
    later = made.groupBy("cluster", "topic").agg(F.max("topic_id").alias("_made_id"))
    why = F.format_string(
        "not known: the topic was made with id %s after that moment; what the log of its name then"
        " held is not told",
        "_made_id",
    )

    def transform(logs: DataFrame) -> DataFrame:
        joined = logs.join(F.broadcast(later), ["cluster", "topic"], how="left")
        doubt = F.coalesce("doubt", F.when(F.col("_made_id").isNotNull(), why))
        return joined.withColumn("doubt", doubt).drop("_made_id")

    return transform


def is_unread() -> Column:
    """Tell whether a row is of what could not be read, be it a commit of whichever key.

    Needs: group_id, problem.
    """
    return F.col("problem").isNotNull() & (F.col("group_id") == "")


def of_groups(groups: Sequence[str], may_hold: Column) -> Transform:
    """Keep the commits of these groups, and what could not be read; no groups: all.

    ``may_hold``: tells whether what could not be read may hold one of them.
    """

    def transform(commits: DataFrame) -> DataFrame:
        asked = F.col("group_id").isin(*groups) | (is_unread() & may_hold)
        return commits.where(asked) if groups else commits

    return transform


def ask_for_unread(commits: DataFrame) -> DataFrame:
    """Ask each log for the first record at or after each committed offset that is not read up.

    Needs: the key of a log, committed_offset, log_start_offset, log_end_offset (long).
    Gives: the key of a log, committed_offset, least_offset; each once.
    """
    return (
        commits.where(F.col("committed_offset") < F.col("log_end_offset"))
        .select(
            *LOG_KEYS,
            "committed_offset",
            F.greatest("committed_offset", "log_start_offset").alias("least_offset"),
        )
        .distinct()
    )


def first_unread(found: DataFrame) -> DataFrame:
    """Return the first unread record of each log and committed offset.

    The first segment that has it, or cannot be searched, answers: what lies behind does not count.

    Needs: rows of ``find_first_records`` with committed_offset.
    Gives: the key of a log, committed_offset, first_unread_offset, first_unread_timestamp_ms
        (null: there is none, or it is not known), unread_problem (null: none).
    """
    answer = F.struct("base_offset", "found_offset", "found_timestamp_ms", "problem")
    answers = F.col("found_offset").isNotNull() | F.col("problem").isNotNull()
    return (
        found.groupBy(*LOG_KEYS, "committed_offset")
        .agg(F.min(F.when(answers, answer)).alias("_first"))
        .select(
            *LOG_KEYS,
            "committed_offset",
            F.col("_first.found_offset").alias("first_unread_offset"),
            F.col("_first.found_timestamp_ms").alias("first_unread_timestamp_ms"),
            F.col("_first.problem").alias("unread_problem"),
        )
    )


def unread_may_be_lost() -> Column:
    """Return why the first unread record of a commit may be another than was found; null: none is.

    Needs: committed_offset, first_unread_offset (null: none was found), log_start_offset, lost (of
        the log, see ``lost_records``; null: nothing).
    """
    committed, unread = F.col("committed_offset"), F.col("first_unread_offset")
    is_in_front = (committed < F.col("lost.until")) & (committed >= F.col("log_start_offset"))
    why = F.concat(F.lit("unread records may be in what is missing: "), F.col("lost.why"))
    return F.when(is_in_front & (unread.isNull() | (unread > committed)), why)


def ask_for_end(*, at_ms: int) -> Transform:
    """Ask each log where it ended at a moment: at its first record with a later timestamp.

    Gives: the same, question, target_ms.
    """
    target_ms = F.lit(at_ms + 1).cast("long")
    return lambda logs: logs.withColumns({"question": F.lit("end"), "target_ms": target_ms})


def ends_found(answers: DataFrame) -> DataFrame:
    """Return where each log ended; one without a later record ended where it does now.

    Needs: answers to ``ask_for_end``.
    Gives: the key of a log, end_offset (null: not known), end_problem (why not).
    """
    end = F.when(F.col("problem").isNull(), F.coalesce("true_offset", "log_end_offset"))
    return answers.select(*LOG_KEYS, end.alias("end_offset"), F.col("problem").alias("end_problem"))


def decide_lag(*, at_ms: int) -> Transform:
    """Decide how far behind each commit is at ``at_ms``, in offsets and in time.

    1. The lag in offsets is the log's end less the committed offset. It is below 0 where the
       commit is ahead of the end. A committed offset of -1 means that there is none: no lag.
    2. The lag in time is ``at_ms`` less the timestamp of the first unread record.
    3. Where records from the committed offset on are gone, the first record that is left is
       younger than the first unread one was. Then the true lag in time is greater:
       ``is_time_lag_least``. Where the log could not be searched, how many are gone is not known.
    4. Where the commits or the log's end are in doubt, no lag is told; ``problem`` says why, and
       where there is no commit, why no end is told.

    Needs: cluster, group_id, topic, partition, committed_offset, commit_timestamp_ms,
        log_start_offset and end_offset (null: log not in the tables), first_unread_offset,
        first_unread_timestamp_ms (null: none), problem, commits_doubt, doubt (of the log; null:
        none).
    Gives: cluster, group_id, topic, partition, status, committed_offset, commit_timestamp_ms,
        log_start_offset, end_offset, offset_lag, first_unread_offset,
        first_unread_timestamp_ms, time_lag_ms, gone_offsets, is_time_lag_least, problem.
    Source: ConsumerGroupCommand.ConsumerGroupService.getLag.
    """
    committed, end = F.col("committed_offset"), F.col("end_offset")
    unread = F.col("first_unread_offset")
    is_read_up = committed >= end
    has_timestamp = F.col("first_unread_timestamp_ms") >= 0
    is_searched = F.col("problem").isNull()
    is_told_gone = ~is_read_up & (unread.isNotNull() | is_searched)
    gone = F.when(is_told_gone, minus(F.least(F.coalesce(unread, end), end), committed))
    gone_offsets = F.when(is_searched, F.coalesce(gone, F.when(is_read_up, F.lit(0))))

    doubt = F.coalesce("commits_doubt", F.when(committed.isNotNull(), F.col("doubt")))
    is_told = F.coalesce("commits_doubt", "doubt").isNull()
    no_end = F.coalesce("doubt", F.when(end.isNull(), F.lit(NO_LOG)))
    of_log = ("end_offset", "first_unread_offset", "first_unread_timestamp_ms")
    told = {name: F.when(is_told, F.col(name)) for name in of_log}
    told["problem"] = F.coalesce("_doubt", "problem")

    def transform(commits: DataFrame) -> DataFrame:
        return (
            commits.withColumn("_doubt", doubt)
            .withColumns(told)
            .select(
                *COMMIT_KEY,
                _status().alias("status"),
                "committed_offset",
                "commit_timestamp_ms",
                "log_start_offset",
                "end_offset",
                F.when(committed != NO_OFFSET, F.try_subtract(end, committed)).alias("offset_lag"),
                F.when(~is_read_up, unread).alias("first_unread_offset"),
                F.when(~is_read_up, F.col("first_unread_timestamp_ms")).alias(
                    "first_unread_timestamp_ms"
                ),
                F.when(is_read_up, F.lit(0))
                .when(has_timestamp, minus(at_ms, "first_unread_timestamp_ms"))
                .cast("long")
                .alias("time_lag_ms"),
                gone_offsets.cast("long").alias("gone_offsets"),
                F.coalesce(gone > 0, F.lit(False)).alias("is_time_lag_least"),
                F.coalesce("problem", F.when(committed.isNull(), no_end)).alias("problem"),
            )
        )

    return transform


def _status() -> Column:
    committed, end = F.col("committed_offset"), F.col("end_offset")
    return (
        F.when(F.col("_doubt").isNotNull(), NOT_KNOWN)
        .when(F.col("problem").isNotNull(), NOT_READABLE)
        .when(committed.isNull(), NO_COMMIT)
        .when(end.isNull(), NO_LOG)
        .when(committed > end, AHEAD)
        .when(committed == end, UP_TO_DATE)
        .when(committed < F.col("log_start_offset"), EXPIRED)
        .when(
            F.col("first_unread_offset").isNull() | (F.col("first_unread_offset") > committed),
            COMPACTED,
        )
        .otherwise(BEHIND)
    )
