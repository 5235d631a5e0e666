"""Decide what a migration does with each segment, and which logs it takes on."""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from kafka_segments.engine.tables.keys import LOG_KEYS
from kafka_segments.kafka.text.names import METADATA_TOPIC
from kafka_segments.verbs.change.migrate.decide.actions import SegmentAction


def decide_migration(segments: DataFrame) -> DataFrame:
    """Decide what is done with each segment, why, and what to look at.

    1. ``keep`` in KRaft's own logs, which have other rules than a topic's.
    2. ``refuse`` where there is a problem: a broker would not load the segment, or would cut it.
    3. ``convert`` where a conversion was tried and not refused.
    4. ``cut`` where bytes stay behind that recovery would cut off.
    5. ``indexes`` where the index files are not those that the segment is to have.
    6. ``keep`` otherwise.

    Needs: ``problem``, ``unmodelled``, ``damage``, ``conversion_refusal`` (string),
    ``converted_bytes`` (long, null: no conversion), ``cut_bytes`` (long, null: not known),
    ``index_findings``, ``conversion_hazards`` (array of string), size_bytes (long),
    was_clean_shutdown (boolean), ``topic_id``, ``own_topic_id`` (string).
    Gives: the same with action, reason, expected_bytes (long), hazards (array of string); topic_id
    is null in the logs of rule 1.
    """
    is_metadata = F.col("topic") == METADATA_TOPIC
    metadata = F.when(is_metadata, "KRaft's own log, no topic: it has rules of its own")
    unmodelled = F.coalesce(metadata, F.col("unmodelled"))
    is_kept = unmodelled.isNotNull()
    is_refused = F.col("problem").isNotNull()
    is_converted = F.col("converted_bytes").isNotNull() & F.col("conversion_refusal").isNull()
    is_cut = F.coalesce(F.col("cut_bytes") > 0, F.lit(False))
    findings = F.nullif(F.array_join("index_findings", "; "), F.lit(""))
    legacy = F.when(is_converted, "it has messages v0 or v1")
    cut = F.when(
        is_cut,
        F.format_string(
            "its last %d bytes stay behind, as recovery cuts them off: %s", "cut_bytes", "damage"
        ),
    )
    found = F.nullif(F.concat_ws("; ", legacy, cut, findings), F.lit(""))
    action = (
        F.when(is_kept, SegmentAction.KEEP)
        .when(is_refused, SegmentAction.REFUSE)
        .when(is_converted, SegmentAction.CONVERT)
        .when(is_cut, SegmentAction.CUT)
        .when(findings.isNotNull(), SegmentAction.INDEXES)
        .otherwise(SegmentAction.KEEP)
    )
    as_it_is = F.lit("its index files are those it is to have")
    kept_bytes = F.col("size_bytes") - F.coalesce("cut_bytes", F.lit(0))
    return segments.select(
        *(name for name in segments.columns if name not in ("topic_id", "cut_bytes")),
        F.when(~is_kept, F.col("topic_id")).alias("topic_id"),
        F.when(~is_kept, F.col("cut_bytes")).alias("cut_bytes"),
        action.alias("action"),
        F.coalesce(unmodelled, "problem", found, as_it_is).alias("reason"),
        F.when(is_kept, F.col("size_bytes"))
        .when(is_converted, F.col("converted_bytes"))
        .otherwise(kept_bytes)
        .alias("expected_bytes"),
        F.when(is_kept, F.array().cast("array<string>")).otherwise(_hazards(cut)).alias("hazards"),
    )


def _hazards(cut: Column) -> Column:
    lost = F.concat(F.lit("records are lost on this replica: "), cut)
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
        F.array_compact(F.array(lost, refusal, unclean, stray)), F.col("conversion_hazards")
    )


def with_whole_logs(segments: DataFrame) -> DataFrame:
    """Add ``is_migrated``: whether the log of a segment is migrated.

    1. A log is left alone as a whole if one of its segments is refused.
    2. So is a log that needs no topic id and whose segments all keep their files.
    3. Replicas of such a log in other log directories are migrated; their ``hazards`` say so.
    """
    log = Window.partitionBy(*LOG_KEYS).rowsBetween(
        Window.unboundedPreceding, Window.unboundedFollowing
    )
    is_given_id = F.col("topic_id").isNotNull()
    is_changed = F.max(
        F.col("action").isin(SegmentAction.INDEXES, SegmentAction.CONVERT, SegmentAction.CUT)
        | is_given_id
    ).over(log)
    is_refused = F.max(F.col("action") == SegmentAction.REFUSE).over(log)
    is_kept_legacy = F.max(F.col("conversion_refusal").isNotNull()).over(log)
    return (
        segments.withColumns({"_is_refused": is_refused, "_is_kept_legacy": is_kept_legacy})
        .withColumn("is_migrated", is_changed & ~F.col("_is_refused"))
        .withColumn(
            "hazards", F.when(~F.col("is_migrated"), F.col("hazards")).otherwise(_with_replicas())
        )
        .drop("_is_refused", "_is_kept_legacy")
    )


def _with_replicas() -> Column:
    """Add a hazard to logs of which replicas in other log directories are treated otherwise."""
    replicas = Window.partitionBy("cluster", "topic", "partition").rowsBetween(
        Window.unboundedPreceding, Window.unboundedFollowing
    )
    where = F.format_string("broker %d, %s", "broker_id", "log_dir")

    def others(flag: str, words: str) -> Column:
        found = F.array_sort(F.collect_set(F.when(F.col(flag), where)).over(replicas))
        said = F.concat(F.lit(words), F.array_join(found, "; "))
        return F.when(~F.col(flag) & (F.size(found) > 0), said)

    said = F.array(
        others("_is_refused", "a replica is refused and stays as it is: "),
        others("_is_kept_legacy", "a replica has segments that are not converted: "),
    )
    return F.concat("hazards", F.array_compact(said))
