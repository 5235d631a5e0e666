"""Describe logs by their segments: where they begin and end, and their leader epochs."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kafka_segments.engine.derived.replicas import last_epoch
from kafka_segments.engine.tables.keys import LOG_KEYS, Transform

_OF_LOGS = ("log_start_offset", "high_watermark", "leader_epochs", "topic_id")


def describe_logs(logs: DataFrame) -> Transform:
    """Describe each log: where it starts and ends, and its leader epochs.

    1. The log start offset is the checkpoint's, but not below the first segment.
    2. The log's end is the next offset of the last segment.
    3. The epochs are those of the leader epoch file; without one, those that the batches show, and
       null if some segment is known by a first look, which does not show them.
    4. The last epoch is the greatest of both: a crash may leave a file that lacks the last one.

    Needs: rows of ``segments``; ``logs``: rows of ``logs``.
    Gives: the key of a log, log_start_offset, local_start_offset (the same: of what the disk has),
        noted_start (of the checkpoint; null: none), log_end_offset (long), high_watermark,
        leader_epochs (array of epoch, start_offset), topic_id, last_epoch (null: none is known).
    """
    start = F.greatest("_first", "log_start_offset")

    def transform(segments: DataFrame) -> DataFrame:
        is_known = F.count_if(F.col("next_offset").isNotNull()) == F.count("leader_epochs")
        shown = F.array_sort(F.flatten(F.collect_list("leader_epochs")))
        found = segments.groupBy(*LOG_KEYS).agg(
            F.min("base_offset").alias("_first"),
            F.max(F.coalesce("next_offset", "base_offset")).alias("log_end_offset"),
            F.when(is_known, shown).alias("_epochs"),
            F.try_element_at(shown, F.lit(-1))["epoch"].alias("_last_epoch"),
        )
        known = logs.select(*LOG_KEYS, *_OF_LOGS)
        return found.join(known, list(LOG_KEYS), how="left").select(
            *LOG_KEYS,
            start.alias("log_start_offset"),
            start.alias("local_start_offset"),
            F.col("log_start_offset").alias("noted_start"),
            "log_end_offset",
            "high_watermark",
            F.coalesce("leader_epochs", "_epochs").alias("leader_epochs"),
            "topic_id",
            F.greatest("_last_epoch", last_epoch()).alias("last_epoch"),
        )

    return transform
