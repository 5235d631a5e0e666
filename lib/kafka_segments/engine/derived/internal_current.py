"""What internal topics say last of each key, and the markers of transactions in them."""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from kafka_segments.engine.derived.contradicted_keys import with_contradicted
from kafka_segments.engine.derived.replicas import (
    PARTITION,
    KnownReplicas,
    left_over,
    of_answering_replica,
)
from kafka_segments.engine.tables.keys import LOG_KEYS, Transform
from kafka_segments.kafka.messages import control
from kafka_segments.kafka.messages.messages import SHARES
from kafka_segments.kafka.messages.records import COMMITS, SHARES_TOPIC, TRANSACTIONS_TOPIC, UNKNOWN
from kafka_segments.kafka.text.names import OFFSETS_TOPIC

KEYED_TOPICS = (OFFSETS_TOPIC, SHARES_TOPIC, TRANSACTIONS_TOPIC)
"""The internal topics whose state is the last value of each key."""
_CONTROL_KINDS = tuple({layout.name for layout in control.RECORDS.values()})
_ADDED = ("_until", "_doubt", "_marker", "_counts", "_is_own", "contradicted")
_ORDER = ("_is_own", "_counts", "offset")
SHARE_SNAPSHOT, SHARE_UPDATE = (records.kind for records in SHARES)


def is_control() -> Column:
    """Tell whether a row is a control record, be it of a type that is known or not."""
    has_type = F.get_json_object("key_json", "$.type").isNotNull()
    return F.col("kind").isin(*_CONTROL_KINDS) | ((F.col("kind") == UNKNOWN) & has_type)


def group_of_key() -> Column:
    """Return the group that a record's key names; null: none.

    Needs: key_json.
    """
    names = ("group", "groupId")
    return F.coalesce(*(F.get_json_object("key_json", f"$.{name}") for name in names))


def next_marker() -> Column:
    """Return the type of the next marker of a record's producer in its log; null: there is none.

    Needs: rows of ``internal_records``.
    """
    return _of_next_marker(F.get_json_object("key_json", "$.type").cast("int"))


def _of_next_marker(value: Column) -> Column:
    marker = F.when(F.col("kind") == control.END_TXN_MARKER.name, value)
    later = (
        Window.partitionBy(*LOG_KEYS, "producer_id")
        .orderBy(F.desc("offset"))
        .rowsBetween(Window.unboundedPreceding, -1)
    )
    return F.last(marker, ignorenulls=True).over(later)


def current_records(
    known: KnownReplicas, problems: DataFrame | None = None, keys: DataFrame | None = None
) -> Transform:
    """Keep the last record of each key of the topics that coordinators keep their state in.

    1. Of several replicas of a partition the one that answers for it counts (``choose_replica``).
    2. A commit with a producer id counts if the producer's next marker is COMMIT. It does not count
       if that marker is ABORT, or if there is no marker yet.
    3. Keys are equal if they say the same, whatever their version; keys that are not decoded, if
       their bytes are.
    4. A tombstone is kept as such: its key has nothing any more. Records that cannot be read are
       kept too: what their key has is not known.
    5. An update of a share group's state goes with a later snapshot of it, be it a tombstone.
    6. Where a log does not tell what is current, ``problem`` says so, and a commit whose marker was
       not seen, or not in front of what is missing, is kept where its key has nothing else.
    7. So is what another copy of the log has last of a key that the log does not name, if that is
       no tombstone: nothing is known of such a key but that there may be something.

    Needs: rows of ``internal_records``; ``problems``: rows of ``internal_problems``, None: there
        are none.
    Gives: the same columns.
    Source: OffsetMetadataManager.replay, TransactionStateManager.loadTransactionMetadata,
        ShareCoordinatorShard.replay.
    """
    is_commit = F.col("kind").isin(*COMMITS)
    waits = is_commit & (F.col("producer_id") >= 0)
    waits &= ~F.coalesce("is_tombstone", F.lit(False))
    may_have_ended = F.coalesce(F.col("_marker") >= F.col("_until"), F.col("_marker").isNull())
    is_committed = F.coalesce(next_marker() == control.COMMIT, F.lit(False))
    counts = ~F.coalesce(waits, F.lit(False)) | is_committed | F.col("contradicted").isNotNull()
    of_key = Window.partitionBy("cluster", "topic", "partition", "_kind", "_key")
    of_state = Window.partitionBy("cluster", "topic", "partition", "_key", "_is_own")
    snapshot = F.max(F.when(F.col("kind") == SHARE_SNAPSHOT, F.col("offset"))).over(of_state)
    is_dead = F.coalesce(
        (F.col("kind") == SHARE_UPDATE) & (F.col("offset") < snapshot), F.lit(False)
    )

    def transform(records: DataFrame) -> DataFrame:
        keyed = records.where(F.col("topic").isin(*KEYED_TOPICS))
        return (
            keyed.transform(of_answering_replica(known))
            .transform(with_contradicted(keys))
            .transform(_with_doubt(problems))
            .transform(_with_other_copies(keyed, known, problems))
            .withColumn("_marker", _of_next_marker(F.col("offset")))
            .withColumn("_counts", counts)
            .withColumn("_key", F.coalesce("key_json", F.hex("key")))
            .withColumn("_kind", F.when(is_commit, COMMITS[-1]).otherwise(F.col("kind")))
            .where(F.col("_counts") | (F.col("_doubt").isNotNull() & may_have_ended))
            .where(F.col("_key").isNotNull() & F.col("offset").isNotNull())
            .where(~F.coalesce(is_control(), F.lit(False)))
            .withColumn("_is_dead", is_dead)
            .withColumn("_turn", F.row_number().over(of_key.orderBy(*map(F.desc, _ORDER))))
            .where("_turn = 1 AND NOT _is_dead AND (_is_own OR NOT coalesce(is_tombstone, false))")
            .withColumn("problem", F.coalesce("problem", "_doubt"))
            .drop(*_ADDED, "_kind", "_key", "_is_dead", "_turn")
        )

    return transform


def _with_doubt(problems: DataFrame | None) -> Transform:
    """Add ``_doubt``: why it is not known whether a record is current; null: it is.

    Needs: contradicted.
    """
    said = F.lit("not known whether it is current: ")
    contradicted = F.concat(said, "contradicted")
    if problems is None:
        added = {"_until": F.lit(None).cast("long"), "_doubt": contradicted}
        return lambda records: records.withColumns(added)
    why = F.concat(said, "problem")
    of_log = problems.select(*LOG_KEYS, F.col("until_offset").alias("_until"), why.alias("_why"))
    is_in_front = F.col("_until").isNull() | (F.col("offset") < F.col("_until"))

    def transform(records: DataFrame) -> DataFrame:
        joined = records.join(F.broadcast(of_log), list(LOG_KEYS), how="left")
        doubt = F.coalesce(F.when(is_in_front, F.col("_why")), contradicted)
        return joined.withColumn("_doubt", doubt).select(*records.columns, "_until", "_doubt")

    return transform


def _with_other_copies(
    keyed: DataFrame, known: KnownReplicas, problems: DataFrame | None
) -> Transform:
    """Add ``_is_own``, and the records of other copies of logs that do not tell what is current.

    Needs: what ``_with_doubt`` gives; ``keyed``: rows of ``internal_records`` of all copies.
    Gives: the same, of other copies with ``_doubt``, and without ``_is_own``.
    """
    if problems is None:
        return lambda records: records.withColumn("_is_own", F.lit(True))
    why = F.concat(F.lit("not known whether it is current: only another copy has it: "), "problem")
    own = F.struct("broker_id", "log_dir")
    of_partition = problems.select(*PARTITION, own.alias("_own"), why.alias("_doubt"))
    others = keyed.join(F.broadcast(of_partition), list(PARTITION)).where(own != F.col("_own"))
    if known.logs is not None and known.named is not None:
        gone = known.logs.transform(left_over(known.named)).select(*LOG_KEYS)
        others = others.join(F.broadcast(gone), list(LOG_KEYS), "left_anti")
    others = others.drop("_own").withColumn("_is_own", F.lit(False))

    def transform(records: DataFrame) -> DataFrame:
        of_own = records.withColumn("_is_own", F.lit(True))
        return of_own.unionByName(others, allowMissingColumns=True)

    return transform
