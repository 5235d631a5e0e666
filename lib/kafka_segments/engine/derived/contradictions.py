"""Copies of coordinators' topics that have other records at one offset in one leader epoch.

One leader writes an epoch, so two copies have the same record there, or one of them is damaged or
forged: which one, they do not tell. Compaction, other batches, another codec and another end leave
alike what both copies have.
Source: KIP-101, which follows Raft's log matching property.
"""

from collections.abc import Sequence

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from kafka_segments.engine.derived.internal_current import KEYED_TOPICS
from kafka_segments.engine.derived.known_replicas import known_replicas
from kafka_segments.engine.derived.lost_records import PLACE
from kafka_segments.engine.derived.replicas import PARTITION, KnownReplicas, left_over
from kafka_segments.engine.tables.catalog import INTERNAL_FILES, INTERNAL_RECORDS
from kafka_segments.engine.tables.delta import Warehouse
from kafka_segments.engine.tables.keys import LOG_KEYS, Transform
from kafka_segments.engine.tables.long_arithmetic import plus

_CONTENT = ("kind", "key_version", "value_version", "key_json", "value_json", "key", "value")
_WHY = (
    "the copies of brokers %d (%s) and %d (%s) have other records at offset %d in leader epoch %d,"
    " and do not tell which are right; `kafka-segments divergence` holds them against each other"
)


def contradicted_logs(tables: Warehouse, topics: Sequence[str]) -> DataFrame | None:
    """Return ``contradictions`` of what internals has read; None: no partition has two copies.

    ``topics``: those of coordinators among them are asked.

    Gives: the key of a log, lost.
    """
    asked = [topic for topic in topics if topic in KEYED_TOPICS]
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
    return copies.join(records.transform(contradictions(copies)), list(PARTITION)).select(
        *LOG_KEYS, "lost"
    )


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
    """Return up to where copies of a partition have other records at an offset in an epoch.

    What a copy does not have, or cannot be read of it, contradicts nothing.

    Needs: rows of ``internal_records``; ``copies``: rows of ``several_copies``.
    Gives: cluster, topic, partition, lost (``lost_records``); no row where none has.
    """
    least, most = F.col("_least"), F.col("_most")
    why = F.format_string(
        _WHY,
        *(one[name] for one in (least, most) for name in ("broker_id", "log_dir")),
        *("offset", "leader_epoch"),
    )
    place = F.struct(plus("offset", 1).alias("until"), why.alias("why")).cast(PLACE)
    by_content = F.struct(F.xxhash64(*_CONTENT).alias("content"), "broker_id", "log_dir")
    is_record = (F.col("leader_epoch") >= 0) & F.col("offset").isNotNull()
    is_record &= F.col("kind").isNotNull()

    def transform(records: DataFrame) -> DataFrame:
        return (
            records.where(is_record)
            .join(F.broadcast(copies), list(LOG_KEYS))
            .groupBy(*PARTITION, "topic_id", "offset", "leader_epoch")
            .agg(F.min(by_content).alias("_least"), F.max(by_content).alias("_most"))
            .where(least["content"] != most["content"])
            .groupBy(*PARTITION)
            .agg(F.max(place).alias("lost"))
        )

    return transform
