"""Copies of coordinators' topics that have other records at one offset in one leader epoch.

One leader writes an epoch, so two copies have the same record there, or one of them is damaged or
forged: which one, they do not tell. Compaction, other batches, another codec and another end leave
alike what both copies have.

Each key that some copy has there is in doubt, until a later record of it. Where what a copy has
there is of no key, as a marker, or of one that cannot be decoded, all keys in front of it are.
Source: KIP-101, which follows Raft's log matching property.
"""

from collections.abc import Sequence
from contextlib import ExitStack
from typing import NamedTuple

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from kafka_segments.engine.derived.internal_current import (
    KEYED_TOPICS,
    is_control,
    next_marker,
)
from kafka_segments.engine.derived.known_replicas import known_replicas
from kafka_segments.engine.derived.lost_records import PLACE
from kafka_segments.engine.derived.replicas import PARTITION, KnownReplicas, left_over
from kafka_segments.engine.frames.engines import computed_once
from kafka_segments.engine.tables.catalog import INTERNAL_FILES, INTERNAL_RECORDS
from kafka_segments.engine.tables.delta import Warehouse
from kafka_segments.engine.tables.keys import LOG_KEYS, Transform
from kafka_segments.engine.tables.long_arithmetic import plus
from kafka_segments.kafka.messages import control
from kafka_segments.kafka.messages.records import REMOTE_LOG_TOPIC

_CONTENT = ("kind", "key_version", "value_version", "key_json", "value_json", "key", "value")
_AT = ("offset", "leader_epoch")
_WHY = (
    "the copies of brokers %d (%s) and %d (%s) have other records at offset %d in leader epoch %d,"
    " and do not tell which are right; `kafka-segments divergence` holds them against each other"
)


class Contradicted(NamedTuple):
    """What copies of coordinators' topics contradict.

    Attributes:
        logs: the key of a log, lost (``lost_records``): up to where all keys of it are in doubt.
        keys: rows of ``contradicted_keys``.
    """

    logs: DataFrame
    keys: DataFrame


def contradicted(
    tables: Warehouse, topics: Sequence[str], caches: ExitStack | None = None
) -> Contradicted | None:
    """Return what copies contradict of what internals has read; None: nothing.

    ``topics``: those of coordinators, and ``__remote_log_metadata``, are asked of them.
    ``caches``: the places are looked for now, and kept until it closes; None: they are looked for
    by whoever reads the rows.
    """
    asked = [topic for topic in topics if topic in (*KEYED_TOPICS, REMOTE_LOG_TOPIC)]
    if not asked or not tables.version(INTERNAL_RECORDS) or not tables.version(INTERNAL_FILES):
        return None
    files = tables.read(INTERNAL_FILES, LOG_KEYS).where(F.col("topic").isin(*asked))
    copies = files.distinct().transform(several_copies(known_replicas(tables)))
    told = copies.select("topic", "partition").distinct().collect()
    if not told:
        return None
    names, numbers = ({row[name] for row in told} for name in ("topic", "partition"))
    of_several = F.col("topic").isin(*names) & F.col("partition").isin(*numbers)
    records = tables.read(INTERNAL_RECORDS).where(of_several)
    places = records.transform(contradictions(copies))
    if caches is not None:
        places = computed_once(places, caches)
        if places.isEmpty():
            return None
    place = F.struct(plus("offset", 1).alias("until"), "why").cast(PLACE)
    is_of_any = ~F.col("is_keyed") | (F.col("topic") == REMOTE_LOG_TOPIC)  # which has no keys
    lost = places.where(is_of_any).groupBy(*PARTITION).agg(F.max(place).alias("lost"))
    logs = copies.join(lost, list(PARTITION)).select(*LOG_KEYS, "lost")
    return Contradicted(logs, records.transform(contradicted_keys(copies, places)))


def several_copies(known: KnownReplicas) -> Transform:
    """Keep the logs of partitions that have more than one copy.

    A log that is left over from a topic that was deleted is no copy. One that does not tell its
    topic id is taken for one of its partition's topic.

    Needs: the key of a log; ``known``: what the tables know of their replicas.
    Gives: the key of a log, topic_id (null: none of the copies tells it).
    """
    of_partition = Window.partitionBy(*PARTITION)
    topic_id = F.coalesce("topic_id", F.max("topic_id").over(of_partition))
    is_one_of_several = F.count("*").over(of_partition) > 1

    def transform(logs: DataFrame) -> DataFrame:
        if known.logs is None:
            told = logs.withColumn("topic_id", F.lit(None).cast("string"))
        else:
            ids = known.logs.select(*LOG_KEYS, "topic_id")
            told = logs.join(ids, list(LOG_KEYS), how="left")
        if known.named is not None:
            gone = told.transform(left_over(known.named)).select(*LOG_KEYS)
            told = told.join(gone, list(LOG_KEYS), how="left_anti")
        told = told.withColumns({"topic_id": topic_id, "_is_it": is_one_of_several})
        return told.where("_is_it").select(*LOG_KEYS, "topic_id")

    return transform


def contradictions(copies: DataFrame) -> Transform:
    """Return where copies of a partition have other records at an offset in an epoch.

    What a copy does not have, or cannot be read of it, contradicts nothing.

    Needs: rows of ``internal_records``; ``copies``: rows of ``several_copies``.
    Gives: cluster, topic, partition, offset, leader_epoch, why, is_keyed (false: what one has there
        is of no key, or of one that cannot be decoded).
    """
    least, most = F.col("_least"), F.col("_most")
    why = F.format_string(
        _WHY,
        *(one[name] for one in (least, most) for name in ("broker_id", "log_dir")),
        *_AT,
    )
    by_content = F.struct(F.xxhash64(*_CONTENT).alias("content"), "broker_id", "log_dir")

    def transform(records: DataFrame) -> DataFrame:
        return (
            records.where(_is_record())
            .join(F.broadcast(copies), list(LOG_KEYS))
            .groupBy(*PARTITION, "topic_id", *_AT)
            .agg(
                F.min(by_content).alias("_least"),
                F.max(by_content).alias("_most"),
                F.min(_is_keyed()).alias("is_keyed"),
            )
            .where(least["content"] != most["content"])
            .select(*PARTITION, *_AT, why.alias("why"), "is_keyed")
        )

    return transform


def contradicted_keys(copies: DataFrame, places: DataFrame) -> Transform:
    """Return the keys that some copy of a partition has where copies contradict each other.

    Needs: rows of ``internal_records``; ``copies``: rows of ``several_copies``; ``places``: rows of
        ``contradictions``.
    Gives, for each of the copies: the key of a log, offset, leader_epoch, timestamp_ms (the
        earliest), kind, key_version, key_json, key, contradicted (why), is_only_key (all copies
        have a value of this key there, or all a tombstone).
    """
    keyed = places.where("is_keyed").select(*PARTITION, *_AT, F.col("why").alias("contradicted"))
    logs = copies.select(*LOG_KEYS)
    is_only = F.count("*").over(Window.partitionBy(*PARTITION, *_AT)) == 1
    is_alike = F.coalesce(F.min("is_tombstone") == F.max("is_tombstone"), F.lit(True))

    def transform(records: DataFrame) -> DataFrame:
        named = (
            records.where(_is_record())
            .join(F.broadcast(logs), list(LOG_KEYS))
            .join(keyed, [*PARTITION, *_AT])
            .groupBy(*PARTITION, *_AT, "kind", "key_version", "key_json", "key", "contradicted")
            .agg(F.min("timestamp_ms").alias("timestamp_ms"), is_alike.alias("_is_alike"))
            .withColumn("is_only_key", is_only & F.col("_is_alike"))
            .drop("_is_alike")
        )
        return logs.join(named, list(PARTITION))

    return transform


def _is_record() -> Column:
    is_record = (F.col("leader_epoch") >= 0) & F.col("offset").isNotNull()
    return is_record & F.col("kind").isNotNull()


def _is_keyed() -> Column:
    has_key = F.col("problem").isNull() | F.col("key_json").isNotNull()
    return has_key & ~F.coalesce(is_control(), F.lit(False))


def unsettled(keys: DataFrame) -> Transform:
    """Keep the rows of keys that have no later record that counts in their log.

    Needs: rows of ``internal_records``; ``keys``: rows of ``contradicted_keys``.
    Gives: the columns of ``keys``.
    """
    needs_none = F.coalesce("producer_id", F.lit(-1)) < 0
    counts = needs_none | F.coalesce(next_marker() == control.COMMIT, F.lit(False))
    of_key = [*LOG_KEYS, "kind", "key_json"]

    def transform(records: DataFrame) -> DataFrame:
        last = records.withColumn("_counts", counts).where("_counts")
        ends = last.groupBy(*of_key).agg(F.max("offset").alias("_last"))
        joined = keys.join(ends, of_key, "left")
        is_last = F.coalesce(F.col("_last") <= F.col("offset"), F.lit(True))
        return joined.where(is_last).select(*keys.columns)

    return transform
