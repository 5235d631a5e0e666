"""Decide what the steps of a migration work on, and what became of each log."""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from kafka_segments.engine.tables.keys import LOG_KEYS
from kafka_segments.engine.tables.long_arithmetic import plus, total
from kafka_segments.engine.tables.outcomes import Outcome
from kafka_segments.kafka.wire.header_layout import HEADER_BYTES
from kafka_segments.verbs.change.migrate.decide.actions import NOTED, SegmentAction, Step

OF_PLANNED_SEGMENT = (
    "path",
    "root",
    "next_base_offset",
    "size_bytes",
    "mtime_ns",
    "action",
    "cut_bytes",
)
"""The columns of a plan that a ``PlannedSegment`` is made of, besides base_offset."""
_INDEX_BYTES = 8 + 12  # an entry of both


def staged_bytes() -> Column:
    """Return about how many bytes staging writes for a segment; a closed log that stays is linked.

    Needs: action, size_bytes, expected_bytes, next_base_offset, rules.
    """
    is_link = (
        ~F.col("action").isin(SegmentAction.CONVERT, SegmentAction.CUT)
        & F.col("next_base_offset").isNotNull()
    )
    log = F.when(is_link, F.lit(0)).otherwise(F.col("expected_bytes"))
    interval = F.get_json_object("rules", "$.index_interval_bytes").cast("long")
    between = F.greatest(interval, F.lit(HEADER_BYTES))
    entries = F.floor(F.col("expected_bytes") / between) + 1
    return plus(log, _INDEX_BYTES * entries)


def bytes_to_stage(plan: DataFrame) -> DataFrame:
    """Return how many bytes are still to be written into each folder.

    Needs: is_staged (boolean), root, and what ``staged_bytes`` needs.
    Gives: root, needed_bytes.
    """
    needed = total(staged_bytes()).alias("needed_bytes")
    return plan.where("NOT is_staged").groupBy("root").agg(needed)


def logs_of_segments(segments: DataFrame) -> DataFrame:
    """Return a row for each log: its planned segments in order, and one of their problems.

    Needs: plan_id, the key, path, root, next_base_offset, size_bytes, mtime_ns, action,
    log_start_offset, topic_id, rules, cut_bytes, problem (string, null: none), is_failed (boolean).
    Gives: plan_id, the key, folder, root, segment_count, size_bytes, log_start_offset, topic_id,
    rules, segments, problem, is_failed.
    """
    segment = F.struct("base_offset", *OF_PLANNED_SEGMENT)
    return segments.groupBy("plan_id", *LOG_KEYS).agg(
        F.min(F.regexp_replace("path", "/[^/]*$", "")).alias("folder"),
        F.min("root").alias("root"),
        F.count("*").alias("segment_count"),
        total("size_bytes").alias("size_bytes"),
        F.max("log_start_offset").alias("log_start_offset"),
        F.max("topic_id").alias("topic_id"),
        F.min("rules").alias("rules"),
        F.sort_array(F.collect_list(segment)).alias("segments"),
        F.min("problem").alias("problem"),
        F.max("is_failed").alias("is_failed"),
    )


def with_replicas(proofs: DataFrame) -> DataFrame:
    """Add a problem to segments whose replicas hold other records at the same offsets.

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
    """Return a row for each log: the newest event of each step, and what it notes of the log.

    Gives: the key and, named for each step, a struct or null.
    """
    event = F.struct("sequence", "at", "run_id", "status", "message", *NOTED)

    def newest(step: str) -> Column:
        return F.max(F.when(F.col("step") == step, event)).alias(step)

    steps = [newest(step) for step in Step]
    return events.groupBy(*LOG_KEYS).agg(*steps)


def with_refusals(segments: DataFrame) -> DataFrame:
    """Add why the plan refuses a segment.

    Needs: action, path, reason (string).
    Gives: the same with problem (string, null: not refused) and is_failed (false).
    """
    refusal = F.when(F.col("action") == SegmentAction.REFUSE, F.concat_ws(": ", "path", "reason"))
    return segments.withColumns({"problem": refusal, "is_failed": F.lit(False)})


def with_proof_problems(proofs: DataFrame) -> DataFrame:
    """Name the segment in the problem of its proof; add that the machine has caused none of them.

    Needs: path, problem (string, null: proven).
    Gives: the same with is_failed (false).
    """
    named = F.when(F.col("problem").isNotNull(), F.concat_ws(": ", "path", "problem"))
    return proofs.withColumns({"problem": named, "is_failed": F.lit(False)})


def with_outcomes(logs: DataFrame) -> DataFrame:
    """Add how a step with each log ended.

    Needs: problem (string, null: none), is_failed (boolean).
    Gives: the same with status (an ``Outcome``) and message (string).
    """
    status = (
        F.when(F.col("problem").isNull(), Outcome.DONE)
        .when(F.col("is_failed"), Outcome.FAILED)
        .otherwise(Outcome.REFUSED)
    )
    return logs.withColumns({"status": status, "message": F.coalesce("problem", F.lit(""))})
