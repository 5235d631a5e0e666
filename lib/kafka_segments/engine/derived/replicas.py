"""Which replica of a partition answers for it: the one rule of all verbs."""

from typing import NamedTuple

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from kafka_segments.engine.derived.lost_records import with_lost
from kafka_segments.engine.tables.keys import LOG_KEYS, Transform
from kafka_segments.engine.tables.long_arithmetic import plus
from kafka_segments.kafka.broker_rules.gaps import LACKS_END
from kafka_segments.kafka.text.names import METADATA_TOPIC

PARTITION = ("cluster", "topic", "partition")
_NO_BROKER = -1
_NOT_NAMED = (
    "not known: the metadata, as far as it was read, has no such partition: the log is left over"
    " from one that was deleted, or newer; build with --internals, with a controller's disk among"
    " the sources"
)
_DROPPED = ("topic_id", "last_epoch")
_EPOCHS = "array<struct<epoch: int, start_offset: bigint>>"


class KnownReplicas(NamedTuple):
    """What the tables know of replicas besides their records; None: there is no such table.

    Attributes:
        logs: the key of a log, topic_id, leader_epochs; rows of ``logs``.
        named: cluster, topic, partition, topic_id, replicas, in_sync (ids of the brokers in the ISR
            or the ELR), as the metadata has them last.
        lost: the key of a log, lost; rows of ``lost_records`` of Kafka's own topics.
        built: rows of ``describe_logs`` of Kafka's own topics.
    """

    logs: DataFrame | None = None
    named: DataFrame | None = None
    lost: DataFrame | None = None
    built: DataFrame | None = None


NOTHING_KNOWN = KnownReplicas()


def left_over(named: DataFrame) -> Transform:
    """Keep the logs that are of another topic id than the metadata gives the topic.

    They are left over from a topic that was deleted. A log that does not tell its topic id is
    none of these.

    Needs: the key of a log, topic_id; ``named``: see ``KnownReplicas``.
    Gives: the key of a log, doubt (why it does not answer).
    """
    topics = named.groupBy("cluster", "topic").agg(F.max("topic_id").alias("_named_id"))
    doubt = F.format_string(
        "not known: the log has topic id %s, and the metadata gives the topic %s: it is left over"
        " from a topic that was deleted",
        "topic_id",
        "_named_id",
    )

    def transform(logs: DataFrame) -> DataFrame:
        joined = logs.join(F.broadcast(topics), ["cluster", "topic"], how="inner")
        of_another = joined.where(F.col("topic_id") != F.col("_named_id"))
        return of_another.select(*LOG_KEYS, doubt.alias("doubt"))

    return transform


def out_of_metadata(named: DataFrame) -> Transform:
    """Keep the logs that are ``left_over``, and those of partitions that the metadata lacks.

    KRaft's own log is none of these. Of a cluster without metadata it is not asked.

    Needs, gives: as ``left_over``.
    """

    def transform(logs: DataFrame) -> DataFrame:
        gone = logs.transform(left_over(named))
        absent = _with_named(logs.select(*LOG_KEYS), named).where(_is_absent())
        absent = absent.select(*LOG_KEYS, F.lit(_NOT_NAMED).alias("doubt"))
        return gone.unionByName(absent.join(gone, list(LOG_KEYS), "left_anti"))

    return transform


def is_of_another_topic(topic_id: str | None, named_id: str | None) -> bool:
    """Tell of one log what ``left_over`` tells of rows; ``named_id``: of its topic, None: none."""
    return None not in (topic_id, named_id) and topic_id != named_id


def with_left_over(logs: DataFrame, named: DataFrame | None) -> Transform:
    """Add ``is_left_over``: whether a row's log is one of ``left_over``.

    Needs: the key of a log; ``logs``: rows of ``logs``; ``named``: see ``left_over``, None: no
        metadata names any topic.
    Gives: the same, is_left_over.
    """
    if named is None:
        return lambda rows: rows.withColumn("is_left_over", F.lit(False))
    known = logs.transform(left_over(named)).select(*LOG_KEYS, F.lit(True).alias("_is_it"))

    def transform(rows: DataFrame) -> DataFrame:
        joined = rows.join(F.broadcast(known), list(LOG_KEYS), how="left")
        is_it = F.coalesce("_is_it", F.lit(False))
        return joined.withColumn("is_left_over", is_it).drop("_is_it")

    return transform


def choose_replica(named: DataFrame | None) -> Transform:
    """Keep of each partition the replica that answers for it.

    1. A log of another topic id than the metadata gives the topic is left over: it never answers.
    2. Of the others that of the latest leader epoch answers: a longer log of an earlier epoch is a
       deposed leader's.
    3. Of these one that the metadata has in sync, then the one with the greatest end, then one that
       has lost no records, or the earliest ones, then the first by the rest of its key.
    4. Its answer is in doubt if the metadata has none of the brokers in sync whose logs are at
       hand, or if no metadata tells which of several topic ids is the topic's.
    5. So it is if the cluster's metadata has no such partition; its own log alone is none of it.
    6. It is in doubt, too, if it ends below a high watermark that is checkpointed for a log of the
       same epoch: what is missing behind its end was committed.

    Needs: the key of a log, topic_id (null: not known), last_epoch (null: none), log_end_offset,
        high_watermark (of the log's checkpoint; null: none), lost (``lost_records``; null: none);
        ``named``: see ``KnownReplicas``.
    Gives: the same rows, one for each partition, without topic_id and last_epoch, but with doubt
        (why its answer is not known; null: it is).
    Source: UnifiedLog.latestEpoch and logEndOffset, which followers truncate to; KIP-101, KIP-279.
    """
    of_partition = Window.partitionBy(*PARTITION)
    rest = [key for key in LOG_KEYS if key not in PARTITION]
    order = of_partition.orderBy(
        *(F.desc(name) for name in ("last_epoch", "_is_in_sync", "log_end_offset")),
        F.col("lost.until").asc_nulls_first(),
        *rest,
    )
    is_of_topic = F.col("_named_id").isNull() | F.col("topic_id").isNull()
    is_of_topic |= F.col("topic_id") == F.col("_named_id")
    is_in_sync = F.col("_in_sync").isNull() | (F.col("broker_id") == _NO_BROKER)
    is_in_sync |= F.array_contains("_in_sync", F.col("broker_id"))
    has_ids = F.min("topic_id").over(of_partition) != F.max("topic_id").over(of_partition)
    epoch = F.coalesce("last_epoch", F.lit(-1)).alias("epoch")
    reached = F.max(F.struct(epoch, F.col("high_watermark").alias("offset"))).over(of_partition)

    def transform(logs: DataFrame) -> DataFrame:
        return (
            _with_named(logs, named)
            .where(is_of_topic)
            .withColumn("_is_in_sync", is_in_sync)
            .withColumns(
                {
                    "_reached": reached,
                    "_turn": F.row_number().over(order),
                    "_some_in_sync": F.max("_is_in_sync").over(of_partition),
                    "_has_ids": F.col("_named_id").isNull() & F.coalesce(has_ids, F.lit(False)),
                }
            )
            .where(F.col("_turn") == 1)
            .select(*(name for name in logs.columns if name not in _DROPPED), _doubt())
        )

    return transform


def _with_named(logs: DataFrame, named: DataFrame | None) -> DataFrame:
    if named is None:
        kinds = {
            "_named_id": "string",
            "_in_sync": "array<int>",
            "_is_named": "boolean",
            "_has_names": "boolean",
        }
        return logs.withColumns({name: F.lit(None).cast(kind) for name, kind in kinds.items()})
    known = named.select(
        *PARTITION,
        F.col("topic_id").alias("_named_id"),
        F.col("in_sync").alias("_in_sync"),
        F.lit(True).alias("_is_named"),
    )
    clusters = named.select("cluster", F.lit(True).alias("_has_names")).distinct()
    of_cluster = logs.join(F.broadcast(clusters), "cluster", how="left")
    return of_cluster.join(F.broadcast(known), list(PARTITION), how="left")


def _is_absent() -> Column:
    """Tell whether a log's cluster has metadata that lacks its partition; needs ``_with_named``."""
    is_of_metadata = F.col("_has_names").isNotNull() & (F.col("topic") != METADATA_TOPIC)
    return is_of_metadata & F.col("_is_named").isNull()


def _doubt() -> Column:
    out_of_sync = F.concat(
        F.lit("not known: of the brokers that the metadata has in sync ("),
        F.concat_ws(", ", F.col("_in_sync").cast("array<string>")),
        F.lit(") no log was read; add the disks of one as --source"),
    )
    of_several_ids = F.lit(
        "not known: its logs have several topic ids, and no metadata tells which is the topic's;"
        " build with --internals, with a controller's disk among the sources"
    )
    doubt = (
        F.when(F.col("_has_ids"), of_several_ids)
        .when(~F.col("_some_in_sync"), out_of_sync)
        .when(_is_absent(), F.lit(_NOT_NAMED))
    )
    return F.coalesce(doubt, cut_short(F.col("_reached.offset"))).alias("doubt")


def cut_short(high_watermark: Column) -> Column:
    """Return why a log does not tell its end: it lies below a high watermark; null: it does.

    Needs: log_end_offset.
    """
    why = F.format_string(
        f"not known: {LACKS_END}; add a whole copy as --source",
        "log_end_offset",
        high_watermark,
    )
    return F.when(F.col("log_end_offset") < high_watermark, why)


def ends_below_start() -> Column:
    """Return why a log tells neither its start nor its end: it ends below its start; null: it does.

    Needs: log_start_offset, log_end_offset.
    Source: LogLoader.load, which then deletes all segments.
    """
    why = F.format_string(
        "not known: the log ends at offset %d, below offset %d, where its checkpoint notes that it"
        " begins: a start of the broker deletes all of its segments; add a whole copy as --source",
        "log_end_offset",
        "log_start_offset",
    )
    return F.when(F.col("log_end_offset") < F.col("log_start_offset"), why)


def lost_logs(segments: DataFrame) -> Transform:
    """Keep the logs of which no segment was ever found, though something tells that they had any.

    A log whose segments have vanished is none of them: they were there, and may have been deleted.

    Needs: the key of a log, high_watermark; ``segments``: rows of ``segments``.
    Gives: the key of a log, lost (why it is not known).
    """
    why = F.format_string(
        "not known: no segment of the log is there, though the high watermark %d is checkpointed"
        " for it; add a whole copy as --source",
        "high_watermark",
    )

    def transform(logs: DataFrame) -> DataFrame:
        had_records = logs.where(F.col("high_watermark") > 0)
        found = segments.select(*LOG_KEYS)
        return had_records.join(found, list(LOG_KEYS), how="left_anti").select(
            *LOG_KEYS, why.alias("lost")
        )

    return transform


def last_epoch() -> Column:
    """Return the last leader epoch that a log has by its leader_epochs; null: none.

    An entry behind log_end_offset does not count: a broker drops it as it loads the log.

    Source: UnifiedLog.loadProducerState, LeaderEpochFileCache.truncateFromEndAsyncFlush.
    """
    end = F.col("log_end_offset")
    there = F.filter("leader_epochs", lambda entry: entry["start_offset"] <= end)
    return F.array_max(F.transform(there, lambda entry: entry["epoch"]))


def of_answering_replica(known: KnownReplicas) -> Transform:
    """Keep the records of the replica that answers for each partition, see ``choose_replica``.

    Needs: rows of ``internal_records``.
    Gives: the same rows.
    """
    return lambda records: records.transform(with_doubt(known)).drop("doubt")


def with_doubt(known: KnownReplicas) -> Transform:
    """Keep the same records, with ``doubt``: why what they say is not known (null: it is)."""

    def transform(records: DataFrame) -> DataFrame:
        chosen = records.transform(answering_logs(known)).select(*LOG_KEYS, "doubt")
        return records.join(F.broadcast(chosen), list(LOG_KEYS), how="inner")

    return transform


def answering_logs(known: KnownReplicas) -> Transform:
    """Choose the replica that answers for each partition.

    A log that a build has found is judged by its segments, though none of its records may have been
    read; another one by its records.

    Needs: rows of ``internal_records``, of all logs of their partitions.
    Gives: the key of a log, log_end_offset, doubt (null: none).
    """

    def transform(records: DataFrame) -> DataFrame:
        logs = records.groupBy(*LOG_KEYS).agg(
            F.max("leader_epoch").alias("_record_epoch"),
            plus(F.max("offset"), 1).alias("log_end_offset"),
        )
        if known.logs is None:
            kinds = {"topic_id": "string", "leader_epochs": _EPOCHS}
            nothing = {name: F.lit(None).cast(kind) for name, kind in kinds.items()}
            told = logs.withColumns(nothing)
        else:
            told = logs.join(F.broadcast(known.logs), list(LOG_KEYS), how="left")
        epoch = F.greatest("_record_epoch", last_epoch())
        # What the cleaner removed at the end of a log shows here as missing, and is not.
        no_checkpoint = F.lit(None).cast("bigint").alias("high_watermark")
        own = ("topic_id", "log_end_offset", no_checkpoint)
        ranked = told.select(*LOG_KEYS, epoch.alias("last_epoch"), *own)
        if known.built is not None:
            built = known.built.select(*ranked.columns)
            built = built.join(ranked.select(*PARTITION).distinct(), list(PARTITION), "left_semi")
            others = ranked.join(built.select(*LOG_KEYS), list(LOG_KEYS), "left_anti")
            ranked = others.unionByName(built)
        chosen = ranked.transform(with_lost(known.lost)).transform(choose_replica(known.named))
        return chosen.drop("high_watermark", "lost")

    return transform
