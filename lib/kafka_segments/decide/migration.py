"""Decide what a migration does with each segment, and which logs it can take on."""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from kafka_segments.decide.build_plan import LOG_KEYS
from kafka_segments.wire.names import METADATA_TOPIC

KEEP, INDEXES, CONVERT, REFUSE = "keep", "indexes", "convert", "refuse"
STAGE, VERIFY, APPLY, ROLLBACK = "stage", "verify", "apply", "rollback"
DONE, REFUSED = "done", "refused"


def decide_migration(segments: DataFrame) -> DataFrame:
    """Say what is done with each segment, why, and what to look at.

    1. ``keep`` in the log of KRaft's own metadata.
    2. ``refuse`` where there is a problem: a broker would not load the segment.
    3. ``convert`` where a conversion was tried and not refused.
    4. ``indexes`` where its index files are not those it is to have, else ``keep``.

    Needs: ``problem``, ``damage``, ``conversion_refusal`` (string), ``converted_bytes`` (long,
        null: no conversion), ``index_findings``, ``conversion_hazards`` (array of string),
        size_bytes (long), was_clean_shutdown (boolean), ``topic_id``, ``own_topic_id`` (string).
    Gives: the same with action, reason, expected_bytes (long), hazards (array of string).
    """
    is_refused = F.col("problem").isNotNull()
    is_converted = F.col("converted_bytes").isNotNull() & F.col("conversion_refusal").isNull()
    findings = F.array_join("index_findings", "; ")
    converted = F.concat_ws("; ", F.lit("it has messages v0 or v1"), F.nullif(findings, F.lit("")))
    is_metadata = F.col("topic") == METADATA_TOPIC
    action = (
        F.when(is_metadata, KEEP)
        .when(is_refused, REFUSE)
        .when(is_converted, CONVERT)
        .when(F.size("index_findings") > 0, INDEXES)
        .otherwise(KEEP)
    )
    reason = (
        F.when(is_metadata, "KRaft's own log, no topic")
        .when(is_refused, F.col("problem"))
        .when(is_converted, converted)
        .when(F.size("index_findings") > 0, findings)
        .otherwise("its index files are those it is to have")
    )
    return segments.select(
        "*",
        action.alias("action"),
        reason.alias("reason"),
        F.when(is_converted, F.col("converted_bytes"))
        .otherwise(F.col("size_bytes"))
        .alias("expected_bytes"),
        _hazards().alias("hazards"),
    )


def _hazards() -> Column:
    is_loaded = F.col("problem").isNull()
    damage = F.when(is_loaded, F.concat(F.lit("a broker's recovery cuts it: "), "damage"))
    refusal = F.concat(F.lit("it is not converted: "), "conversion_refusal")
    unclean = F.when(
        ~F.col("was_clean_shutdown"),
        "no .kafka_cleanshutdown: a broker recovers segments from the recovery point on once more",
    )
    stray = F.when(
        F.col("own_topic_id").isNull() & F.col("topic_id").isNull(),
        "no partition.metadata: a KRaft broker renames the folder to -stray and starts with an"
        " empty log; create the topic first and plan with --topic-ids",
    )
    return F.concat(
        F.array_compact(F.array(damage, refusal, unclean, stray)), F.col("conversion_hazards")
    )


def with_whole_logs(segments: DataFrame) -> DataFrame:
    """Add ``is_migrated``: whether the log of a segment is migrated.

    1. A log with a segment that is refused is left alone as a whole.
    2. So is one of which every segment keeps its files, and that gets no topic id.
    """
    log = Window.partitionBy(*LOG_KEYS).rowsBetween(
        Window.unboundedPreceding, Window.unboundedFollowing
    )
    is_given_id = F.col("topic_id").isNotNull()
    is_changed = F.max(F.col("action").isin(INDEXES, CONVERT) | is_given_id).over(log)
    is_refused = F.max(F.col("action") == REFUSE).over(log)
    return segments.withColumn("is_migrated", is_changed & ~is_refused)


def logs_of_segments(segments: DataFrame) -> DataFrame:
    """Give one row a log: its planned segments in order, and a problem of any of them.

    Needs: the key, path, root, next_base_offset, size_bytes, mtime_ns, action, log_start_offset,
        topic_id, problem (string, null: none).
    Gives: the key, folder, root, segment_count, size_bytes, log_start_offset, topic_id, segments,
        problem.
    """
    segment = F.struct(
        "base_offset", "path", "root", "next_base_offset", "size_bytes", "mtime_ns", "action"
    )
    return segments.groupBy(*LOG_KEYS).agg(
        F.min(F.regexp_replace("path", "/[^/]*$", "")).alias("folder"),
        F.min("root").alias("root"),
        F.count("*").alias("segment_count"),
        F.sum("size_bytes").alias("size_bytes"),
        F.max("log_start_offset").alias("log_start_offset"),
        F.max("topic_id").alias("topic_id"),
        F.sort_array(F.collect_list(segment)).alias("segments"),
        F.min("problem").alias("problem"),
    )


def with_replicas(proofs: DataFrame) -> DataFrame:
    """Add a problem where segments of the same offsets hold other records in another log directory.

    Needs: topic, partition, base_offset, log_dir, migrated_record_count, migrated_digest, problem.
    """
    replicas = Window.partitionBy("topic", "partition", "base_offset", "migrated_record_count")
    whole = replicas.rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)
    first, last = (f("migrated_digest").over(whole) for f in (F.min, F.max))
    where = F.array_join(F.sort_array(F.collect_set("log_dir").over(whole)), ", ")
    differs = F.when(
        first != last, F.concat(F.lit("its replicas do not hold the same records: "), where)
    )
    return proofs.withColumn("problem", F.coalesce("problem", differs))


def latest_steps(events: DataFrame) -> DataFrame:
    """Give one row a log: the newest event's moment, status and message of each step.

    Gives: the key and, named for each step, a struct or null.
    """
    event = F.struct("sequence", "at", "run_id", "status", "message")

    def newest(step: str) -> Column:
        return F.max(F.when(F.col("step") == step, event)).alias(step)

    steps = [newest(step) for step in (STAGE, VERIFY, APPLY, ROLLBACK)]
    return events.groupBy(*LOG_KEYS).agg(*steps)
