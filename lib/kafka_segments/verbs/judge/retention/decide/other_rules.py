"""Decide which logs do not go and roll by the rules of a topic's log."""

from typing import NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kafka_segments.kafka.text.names import METADATA_TOPIC

METADATA_LOG, REMOTE_COPY, LEFT_OVER = "metadata_log", "remote_copy", "left_over"
_WITH_ID = r"/[0-9]{20}-[A-Za-z0-9_-]{22,36}\.log$"


class OtherRules(NamedTuple):
    """A kind of log that no topic's rules hold for: its code, and what to say of it."""

    code: str
    words: str
    remedy: str
    roll_words: str


OTHER_RULES = (
    OtherRules(
        METADATA_LOG,
        "KRaft's own log: it goes behind its snapshots, by metadata.max.retention.bytes and .ms",
        "none here: its broker or controller cleans it after a snapshot",
        "KRaft's own log: it rolls by metadata.log.segment.bytes and .ms, which are not read",
    ),
    OtherRules(
        REMOTE_COPY,
        "a copy in tiered storage: the leader deletes it, by all remote segments and their epochs",
        "none here: the leader's remote log manager deletes it",
        "a copy in tiered storage: no broker appends to it",
    ),
    OtherRules(
        LEFT_OVER,
        "the log has another topic id than the metadata gives the topic: it is left over from a"
        " topic that was deleted, whose settings are not known",
        "look into partition.metadata; a broker that starts renames the folder to -stray",
        "left over from a topic that was deleted: no broker appends to it",
    ),
)
"""Source: KafkaRaftLog.maybeClean and createLog (KafkaMetadataLog before 4.1),
RemoteLogManager.RLMExpirationTask.cleanupExpiredRemoteLogSegments."""


def with_other_rules(segments: DataFrame) -> DataFrame:
    """Add ``other_rules``: the code of ``OTHER_RULES`` that a segment falls under; null: none.

    Needs: topic; path, if copies in tiered storage are to be found; is_left_over, if logs of other
        topic ids are.
    """
    code = F.when(F.col("topic") == METADATA_TOPIC, METADATA_LOG)
    if "path" in segments.columns:
        code = code.when(F.col("path").rlike(_WITH_ID), REMOTE_COPY)
    if "is_left_over" in segments.columns:
        code = code.when(F.col("is_left_over"), LEFT_OVER)
    return segments.withColumn("other_rules", code)


def roll_words() -> Column:
    """Return in words why no roll is decided for a segment; null where one is."""
    cases = (F.when(F.col("other_rules") == rules.code, rules.roll_words) for rules in OTHER_RULES)
    return F.coalesce(*cases)


def words_over_all() -> Column:
    """Return which other rules hold for some segment of a group, in words; null: none.

    Spark adds up numbers as rows come, and sorts them first where texts are compared.
    """
    numbered = list(enumerate(OTHER_RULES))
    places = (F.when(F.col("other_rules") == rules.code, place) for place, rules in numbered)
    last = F.max(F.coalesce(*places))
    return F.coalesce(*(F.when(last == place, rules.words) for place, rules in numbered))
