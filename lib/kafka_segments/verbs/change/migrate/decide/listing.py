"""Find the segments that a plan is about, and what forbids migrating them."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kafka_segments.engine.sources.broker_identity import has_segment_id
from kafka_segments.engine.tables.keys import Transform
from kafka_segments.files.folders import kinds
from kafka_segments.kafka.text.names import FolderState

_LOG_KEY = ["log_dir", "topic", "partition"]


def segments_of_listing(listed: DataFrame) -> DataFrame:
    """Return the segments of a listing, with what is known of their logs and log directories.

    Needs: rows of ``list_sources``.
    Gives: the columns of a segment with was_clean_shutdown (boolean), log_start_offset (long),
    own_topic_id (string: that of ``partition.metadata``).
    """
    own = listed.where(F.col("kind") == kinds.LOG).select(
        "source", "relative_path", F.col("topic_id").alias("own_topic_id")
    )
    segments = _with_log_dirs(listed).drop("topic_id")
    return segments.join(own, ["source", "relative_path"], how="left")


def with_topic_ids(given_ids: DataFrame, keys: list[str]) -> Transform:
    """Add the ids of topics.

    ``given_ids``: ``keys`` (topic, or cluster and topic), given_topic_id (string).

    Needs: cluster, topic, own_topic_id.
    Gives: the same, given_topic_id (string: that of the topic), topic_id (string: the one that the
    log gets; null: the log has one, or none is known).
    """
    topic_id = F.when(F.col("own_topic_id").isNull(), F.col("given_topic_id"))

    def transform(segments: DataFrame) -> DataFrame:
        joined = segments.join(F.broadcast(given_ids), keys, how="left")
        return joined.withColumn("topic_id", topic_id)

    return transform


def with_rules(rules: DataFrame, of_others: str) -> Transform:
    """Add the rules by which the segments of a topic on a broker are migrated.

    Needs: cluster, topic, broker_id; ``rules``: the same and rules (string), of some topics.
    Gives: the same, rules.
    """

    def transform(segments: DataFrame) -> DataFrame:
        joined = segments.join(F.broadcast(rules), ["cluster", "topic", "broker_id"], how="left")
        return joined.withColumn("rules", F.coalesce("rules", F.lit(of_others)))

    return transform


def _with_log_dirs(listed: DataFrame) -> DataFrame:
    """Return segments with the start of their log, and whether its broker stopped cleanly."""
    log_dirs = listed.where(F.col("kind") == kinds.LOG_DIR)
    is_clean = F.col("meta.was_clean_shutdown")
    starts = log_dirs.select("log_dir", F.inline("offsets"))
    return (
        listed.where(F.col("kind") == kinds.SEGMENT)
        .join(
            F.broadcast(log_dirs.select("log_dir", is_clean.alias("was_clean_shutdown"))),
            "log_dir",
            how="left",
        )
        .join(F.broadcast(starts.select(*_LOG_KEY, "log_start_offset")), _LOG_KEY, how="left")
        .withColumn("was_clean_shutdown", F.coalesce("was_clean_shutdown", F.lit(False)))
        .withColumn("log_start_offset", F.coalesce("log_start_offset", F.lit(0)))
        .drop("reason")
    )


def with_listing_problems(segments: DataFrame) -> DataFrame:
    """Add to ``problem`` what forbids migrating the log of a segment.

    1. An object of tiered storage is not in a broker's log directory.
    2. The log's folder is being moved or deleted.
    3. The log has another topic id than its topic.

    Needs: name, folder_state, own_topic_id, given_topic_id (string), problem (string, null: the
    segment itself has none).
    Gives: the same columns.
    """
    is_moved = F.col("folder_state") != FolderState.LIVE.value
    moved = F.concat(
        F.lit("its folder is marked -"), "folder_state", F.lit(": finish that move first")
    )
    other_id = F.concat(
        F.lit("its partition.metadata has topic id "),
        "own_topic_id",
        F.lit(", the topic's is "),
        "given_topic_id",
    )
    is_other_id = F.col("own_topic_id") != F.col("given_topic_id")
    tiered = F.lit("an object of tiered storage: migrate the brokers' log directories")
    problem = F.coalesce(
        F.when(has_segment_id(), tiered),
        F.when(is_moved, moved),
        F.when(is_other_id, other_id),
        "problem",
    )
    return segments.withColumn("problem", problem)


def staged_root(stage_dir: str | None, plan_id: str) -> Column:
    """Return the folder of the staged folders of a log directory.

    ``stage_dir`` None: the log directory's own name with ``.migration`` behind it.

    Needs: log_dir.
    """
    if stage_dir is None:
        return F.concat("log_dir", F.lit(f".migration/{plan_id}"))
    return F.concat(F.lit(f"{stage_dir}/{plan_id}"), "log_dir")
