"""Which logs of several copies are one log, by the names or the ids of their topics, as columns."""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from kafka_segments.engine.tables.keys import Transform
from kafka_segments.files.folders import kinds
from kafka_segments.kafka.text.names import FolderState
from kafka_segments.verbs.copies.divergence.decide.copies import Match

_INTERNAL = "^__"
_PAIRS = "array<struct<own:string,name:string>>"


def matched_topics(match: Match, copies: Sequence[str]) -> Transform:
    """Return topics with one name for all that count as one: logs are compared by name.

    1. If topics are matched by name alone or by id alone, internal topics are left out: each
       cluster has its own.
    2. If topics are matched by id, a topic gets its name in the first of the copies that has it.
       If two ids come to one name, the later one gets its id appended. Topics without an id keep
       their name.

    Needs: rows of ``frames.with_copy``; ``copies``: their names, as the user gave them.
    Gives: the same columns.
    """

    def transform(listed: DataFrame) -> DataFrame:
        if match == Match.BOTH:
            return listed
        own = listed.where(is_matched(match))
        return own if match == Match.NAME else _named_by_id(own, copies)

    return transform


def is_matched(match: Match) -> Column:
    """Tell whether a topic is matched at all: an internal one only by name and id.

    Needs: topic (null: no topic's, which is kept).
    """
    is_internal = F.coalesce(F.col("topic").rlike(_INTERNAL), F.lit(False))
    return F.lit(match == Match.BOTH) | ~is_internal


def _named_by_id(listed: DataFrame, copies: Sequence[str]) -> DataFrame:
    is_live = F.col("folder_state") == FolderState.LIVE
    has_id = (F.col("kind") == kinds.LOG) & is_live & F.col("topic_id").isNotNull()
    topics = listed.where(has_id).select("copy", "topic", "topic_id").distinct()
    place = F.array_position(F.array(*map(F.lit, copies)), F.col("copy"))
    first = topics.groupBy("topic_id").agg(
        F.min(F.struct(place.alias("place"), F.col("topic").alias("name"))).alias("_first")
    )
    of_name = Window.partitionBy("_first.name").orderBy("_first.place", "topic_id")
    told = F.concat("_first.name", F.lit(" ("), "topic_id", F.lit(")"))
    is_first = F.row_number().over(of_name) == 1
    names = first.select(
        "topic_id", F.when(is_first, F.col("_first.name")).otherwise(told).alias("name")
    )
    renamed = (
        topics.join(names, "topic_id", how="inner")
        .where("topic != name")
        .groupBy("copy", F.col("topic").alias("own"))
        .agg(F.min("name").alias("name"))
        .groupBy("copy")
        .agg(F.collect_list(F.struct("own", "name")).alias("_names"))
    )
    pairs = F.coalesce("_names", F.array().cast(_PAIRS))

    def called(topic: Column) -> Column:
        return F.coalesce(F.map_from_entries(pairs)[topic], topic)

    offsets = F.transform("offsets", lambda one: one.withField("topic", called(one["topic"])))
    return (
        listed.join(renamed, "copy", how="left")
        .withColumns({"topic": called(F.col("topic")), "offsets": offsets})
        .drop("_names")
    )
