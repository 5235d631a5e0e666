"""Decisions about tiered storage: states of remote segments, compared with their objects."""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from kafka_segments.engine.derived.replicas import (
    NOTHING_KNOWN,
    KnownReplicas,
    of_answering_replica,
)
from kafka_segments.engine.tables.keys import Transform
from kafka_segments.engine.tables.long_arithmetic import minus
from kafka_segments.kafka.messages.records import REMOTE_LOG_TOPIC
from kafka_segments.verbs.find.internals.tier.decide.lineage import epochs_with_records

STATES = (
    *("COPY_SEGMENT_STARTED", "COPY_SEGMENT_FINISHED"),
    *("DELETE_SEGMENT_STARTED", "DELETE_SEGMENT_FINISHED"),
)
COPYING, COPIED, DELETING, DELETED = range(4)
PARTITION_STATES = (
    *("DELETE_PARTITION_MARKED", "DELETE_PARTITION_STARTED", "DELETE_PARTITION_FINISHED"),
)
ORPHAN, NO_RECORD = "orphan", "no_record"
_MISSING, _INCOMPLETE, _DISAGREES = "missing", "incomplete", "disagrees"
_UNREADABLE, _LOST_LEADERSHIP = "unreadable", "lost_leadership"
NOT_FOUND = "not_found"
_COPY_UNFINISHED, _DELETE_UNFINISHED = "copy_unfinished", "delete_unfinished"
_NO_LOG = "not known: its log was not found, and not all of the tier was looked into"
_NO_RECORD = f"not known: no record claims it, and not all of {REMOTE_LOG_TOPIC} was read"
_LATER = f"not known: not all of {REMOTE_LOG_TOPIC} was read, where it may say otherwise"
_AHEAD = "not known since when: the time that it was announced with is yet to come"
NO_COPY = (_MISSING, NOT_FOUND, _INCOMPLETE, _DISAGREES, _UNREADABLE, _LOST_LEADERSHIP)
_ADDED = "RemoteLogSegmentMetadataRecord"
_UPDATED = "RemoteLogSegmentMetadataUpdateRecord"
_PARTITION_DELETED = "RemotePartitionDeleteMetadataRecord"
_OF_PARTITION = "struct<name: string, id: string, partition: int>"
_VALUE = (
    f"remoteLogSegmentId struct<topicIdPartition: {_OF_PARTITION}, id: string>,"
    f" topicIdPartition {_OF_PARTITION}, startOffset long, endOffset long, brokerId int,"
    " maxTimestampMs long, eventTimestampMs long, segmentSizeInBytes long,"
    " segmentLeaderEpochs array<struct<leaderEpoch: int, offset: long>>,"
    " remoteLogSegmentState int, remotePartitionDeleteState int"
)
_KEYS = ("cluster", "topic", "topic_id", "partition", "segment_id")
SAID = (
    "start_offset: long, end_offset: long, max_timestamp_ms: long, size_bytes: long,"
    " leader_epochs: array<struct<epoch: int, start_offset: long>>"
)
_NOTHING_YET = f"struct<state: int, ms: long, broker_id: int, refused: int, said: struct<{SAID}>>"


def records_that_count(known: KnownReplicas = NOTHING_KNOWN) -> Transform:
    """Return the valid records of remote segments, of the replicas that answer.

    A record is not valid if its key has a later tombstone.

    Needs: rows of ``internal_records``; ``known``: what the tables know of their replicas.
    Gives: cluster, offset, kind, topic, topic_id, partition, segment_id (null: of a partition),
        value.
    """
    of_key = Window.partitionBy("cluster", "partition", "key")
    is_deleted = F.max(F.when(F.col("is_tombstone"), F.col("offset"))).over(of_key)
    of_partition = F.coalesce(
        "_value.remoteLogSegmentId.topicIdPartition", "_value.topicIdPartition"
    )

    def transform(records: DataFrame) -> DataFrame:
        return (
            records.where((F.col("topic") == REMOTE_LOG_TOPIC) & F.col("offset").isNotNull())
            .transform(of_answering_replica(known))
            .withColumn("_deleted", F.when(F.col("key").isNotNull(), is_deleted))
            .where("kind IS NOT NULL AND value_json IS NOT NULL")
            .where("_deleted IS NULL OR offset > _deleted")
            .withColumn("_value", F.from_json("value_json", _VALUE))
            .select(
                "cluster",
                "offset",
                "kind",
                of_partition["name"].alias("topic"),
                of_partition["id"].alias("topic_id"),
                of_partition["partition"].alias("partition"),
                F.col("_value.remoteLogSegmentId.id").alias("segment_id"),
                F.col("_value").alias("value"),
            )
        )

    return transform


def fold_states(records: DataFrame) -> DataFrame:
    """Fold the records of each remote segment into its state, as Kafka's cache does.

    1. A segment begins with a record in state COPY_SEGMENT_STARTED; a second one replaces it.
       Another state at the beginning is refused.
    2. An update is taken if it repeats the state, or leads from COPY_SEGMENT_STARTED to
       COPY_SEGMENT_FINISHED or DELETE_SEGMENT_STARTED, from COPY_SEGMENT_FINISHED to
       DELETE_SEGMENT_STARTED, or from there to DELETE_SEGMENT_FINISHED. Others are refused.
    3. A segment that is DELETE_SEGMENT_FINISHED is forgotten: it can begin anew.

    Needs: rows of ``records_that_count``.
    Gives: cluster, topic, topic_id, partition, segment_id, state, state_ms, state_broker_id,
        refused_updates, partition_state, start_offset, end_offset, max_timestamp_ms, size_bytes,
        leader_epochs.
    Source: RemoteLogMetadataCache, RemoteLogSegmentState.isValidTransition,
        RemotePartitionMetadataStore.
    """
    partitions = (
        records.where(F.col("kind") == _PARTITION_DELETED)
        .groupBy("cluster", "topic_id", "partition")
        .agg(F.max_by("value.remotePartitionDeleteState", "offset").alias("_partition_state"))
    )
    events = F.sort_array(F.collect_list(_event()))
    folded = F.aggregate(events, F.lit(None).cast(_NOTHING_YET), _next)
    return (
        records.where(F.col("kind").isin(_ADDED, _UPDATED) & F.col("segment_id").isNotNull())
        .groupBy(*_KEYS)
        .agg(folded.alias("_last"))
        .join(partitions, ["cluster", "topic_id", "partition"], how="left")
        .select(
            *_KEYS,
            _named("_last.state", STATES).alias("state"),
            F.col("_last.ms").alias("state_ms"),
            F.col("_last.broker_id").alias("state_broker_id"),
            F.col("_last.refused").alias("refused_updates"),
            _named("_partition_state", PARTITION_STATES).alias("partition_state"),
            "_last.said.*",
        )
    )


def _named(number: str, names: tuple[str, ...]) -> Column:
    return F.get(F.array(*map(F.lit, names)), F.col(number))


def _event() -> Column:
    """Return what a record says of a segment, by its offset first."""
    epochs = F.transform(
        "value.segmentLeaderEpochs",
        lambda entry: F.struct(
            entry["leaderEpoch"].alias("epoch"), entry["offset"].alias("start_offset")
        ),
    )
    said = F.struct(
        F.col("value.startOffset").alias("start_offset"),
        F.col("value.endOffset").alias("end_offset"),
        F.col("value.maxTimestampMs").alias("max_timestamp_ms"),
        F.col("value.segmentSizeInBytes").alias("size_bytes"),
        epochs.alias("leader_epochs"),
    )
    return F.struct(
        "offset",
        (F.col("kind") == _ADDED).alias("is_added"),
        F.col("value.remoteLogSegmentState").alias("state"),
        F.col("value.eventTimestampMs").alias("ms"),
        F.col("value.brokerId").alias("broker_id"),
        said.alias("said"),
    )


def _next(before: Column, event: Column) -> Column:
    state = before["state"]
    is_known = F.coalesce(state != DELETED, F.lit(False))
    begins = (event["state"] == COPYING) & (~is_known | (state == COPYING))
    follows = (
        (event["state"] == state)
        | ((state == COPYING) & event["state"].isin(COPIED, DELETING))
        | ((state == COPIED) & (event["state"] == DELETING))
        | ((state == DELETING) & (event["state"] == DELETED))
    )
    updates = is_known & (event["state"] != COPYING) & follows
    is_taken = F.coalesce(F.when(event["is_added"], begins).otherwise(updates), F.lit(False))
    refused = F.coalesce(before["refused"], F.lit(0)) + F.when(is_taken, 0).otherwise(1)
    return F.struct(
        F.when(is_taken, event["state"]).otherwise(state).alias("state"),
        F.when(is_taken, event["ms"]).otherwise(before["ms"]).alias("ms"),
        F.when(is_taken, event["broker_id"]).otherwise(before["broker_id"]).alias("broker_id"),
        refused.alias("refused"),
        F.when(is_taken & event["is_added"], event["said"]).otherwise(before["said"]).alias("said"),
    ).cast(_NOTHING_YET)


def hold_against_objects(objects: DataFrame, *, cluster: str) -> Transform:
    """Add the objects of each remote segment, and rows of segments that no record claims.

    Needs: rows of ``fold_states``; ``objects``: rows of ``list_objects``; ``cluster``: the one that
        objects without a record are given.
    Gives: the same, objects, stored_bytes (0: there are none), last_modified_ms, path, missing
        (objects that a whole segment has), found (what its object says), problem.
    """
    ours = objects.select(
        "segment_id",
        *(F.col(name).alias(f"_{name}") for name in ("topic", "topic_id", "partition")),
        *("objects", "stored_bytes", "last_modified_ms", "path", "missing", "found", "problem"),
    )
    is_orphan = F.col("state").isNull() & F.col("refused_updates").isNull()

    def or_found(name: str) -> Column:
        return F.when(is_orphan, F.col(f"found.{name}")).otherwise(F.col(name)).alias(name)

    def transform(claimed: DataFrame) -> DataFrame:
        return claimed.join(ours, ["segment_id"], how="full").select(
            F.coalesce("cluster", F.lit(cluster)).alias("cluster"),
            *(F.coalesce(name, f"_{name}").alias(name) for name in ("topic", "topic_id")),
            F.coalesce("partition", "_partition").alias("partition"),
            *("segment_id", "state", "state_ms", "state_broker_id", "partition_state"),
            F.coalesce("refused_updates", F.lit(0)).alias("refused_updates"),
            *map(or_found, ("start_offset", "end_offset", "max_timestamp_ms")),
            *map(or_found, ("leader_epochs", "size_bytes")),
            "path",
            F.coalesce("objects", F.lit(0)).cast("int").alias("objects"),
            F.coalesce("stored_bytes", F.lit(0)).cast("long").alias("stored_bytes"),
            *("last_modified_ms", "missing", "found", "problem"),
            is_orphan.alias("is_unclaimed"),
            _differences().alias("differences"),
        )

    return transform


def _differences() -> Column:
    """Return in words where an object contradicts the records of its segment."""
    end, is_of_headers = F.col("found.end_offset"), F.col("found.source") == "headers"
    ends_otherwise = F.when(is_of_headers, end > F.col("end_offset")).otherwise(
        end != F.col("end_offset")
    )
    told = {
        "topic id": _difference(F.col("topic_id"), F.col("_topic_id")),
        "partition": _difference(F.col("partition"), F.col("_partition")),
        "start offset": _difference(F.col("start_offset"), F.col("found.start_offset")),
        "end offset": F.when(ends_otherwise, _both(F.col("end_offset"), end)),
        "greatest timestamp": _difference(
            F.col("max_timestamp_ms"),
            F.when(F.col("found.max_timestamp_ms") >= 0, F.col("found.max_timestamp_ms")),
        ),
        "bytes": _difference(F.col("size_bytes"), F.col("found.size_bytes")),
        "leader epochs": _difference(
            epochs_with_records("leader_epochs"), epochs_with_records("found.leader_epochs")
        ),
    }
    named = [F.concat(F.lit(f"{name} "), text) for name, text in told.items()]
    return F.filter(F.array(*named), lambda text: text.isNotNull())


def _difference(announced: Column, found: Column) -> Column:
    return F.when(announced != found, _both(announced, found))


def _both(announced: Column, found: Column) -> Column:
    return F.concat(_text(announced), F.lit(", its object says "), _text(found))


def _text(value: Column) -> Column:
    named = F.to_json(F.struct(value.alias("v")))  # {"v":…}
    return named.substr(F.lit(6), F.length(named) - 6)


def decide_findings(
    *,
    now_ms: int,
    grace_ms: int,
    is_listed: bool,
    has_seen_all: bool = True,
    has_all_records: bool = True,
) -> Transform:
    """Decide what is wrong with each remote segment.

    1. ``copy_unfinished``, ``delete_unfinished``: the copy or the deletion began ``grace_ms`` or
       longer ago, and nothing says that it ended. One that begins as much later than now was
       announced by a clock that is ahead: how long ago that was is not known.
    2. ``partition_delete_unfinished``: the deletion of its partition began and did not end.
    3. ``orphan``: it has objects that no record claims, or that are gone by the last record.
       ``no_record``: no record claims them, but not all records are at hand (not
       ``has_all_records``): whether another one does is not known.
    4. ``missing``: the copy is finished, but its log is not in the tier; ``incomplete``: its log
       is, but another of its objects is not. ``not_found``: its log was not found, but not all of
       the tier was looked into (not ``has_seen_all``), or not all records are at hand, one of which
       may delete it: whether it is missing is not known.
    5. ``disagrees``: its object contradicts the records; ``unreadable``: it cannot be read.
    6. ``lost_leadership``: its leader epochs are not in the partition's lineage, so no broker
       serves it, and none deletes it by retention.
    7. ``refused_updates``: Kafka passes over some of its records.
    8. Without all records at hand each of these may be otherwise: the detail says so.

    Without ``is_listed`` there are no findings about objects.

    Needs: the columns of ``hold_against_objects``, is_in_lineage (null: not known).
    Gives: the same, findings (array), detail (what differs; null: nothing).
    """
    is_gone = (F.col("state") == STATES[DELETED]) | (
        F.col("partition_state") == PARTITION_STATES[-1]
    )
    is_gone = F.coalesce(is_gone, F.lit(False))
    age_ms = minus(F.lit(now_ms), "state_ms")
    is_ahead = age_ms <= -max(grace_ms, 1)
    is_old = (age_ms >= grace_ms) | is_ahead
    is_copied = (F.col("state") == STATES[COPIED]) & ~is_gone
    has_log = ~F.array_contains("missing", ".log")
    is_there = is_copied & F.coalesce(has_log, F.lit(False))
    is_unclaimed = F.col("is_unclaimed") & F.lit(not has_all_records)
    objects = {
        NO_RECORD: (F.col("objects") > 0) & is_unclaimed,
        ORPHAN: (F.col("objects") > 0) & (F.col("is_unclaimed") | is_gone) & ~is_unclaimed,
        _MISSING if has_seen_all and has_all_records else NOT_FOUND: is_copied
        & ~F.coalesce(has_log, F.lit(False)),
        _INCOMPLETE: is_there & (F.size("missing") > 0),
        _DISAGREES: is_there & (F.size("differences") > 0),
        _UNREADABLE: is_there & F.col("problem").isNotNull(),
    }
    kinds = {
        _COPY_UNFINISHED: (F.col("state") == STATES[COPYING]) & is_old & ~is_gone,
        _DELETE_UNFINISHED: (F.col("state") == STATES[DELETING]) & is_old & ~is_gone,
        "partition_delete_unfinished": F.col("partition_state").isin(*PARTITION_STATES[:-1])
        & ~is_gone,
        **(objects if is_listed else {}),
        _LOST_LEADERSHIP: is_copied & ~F.col("is_in_lineage"),
        "refused_updates": (F.col("refused_updates") > 0) & ~is_gone,
    }
    named = [F.when(F.coalesce(holds, F.lit(False)), kind) for kind, holds in kinds.items()]
    findings = F.filter(F.array(*named), lambda kind: kind.isNotNull())
    lacks = F.transform("missing", lambda suffix: F.concat(F.lit("no "), suffix))
    nothing = F.array().cast("array<string>")
    is_not_found = F.array_contains(findings, NOT_FOUND)
    is_claimed = (F.size(findings) > 0) & ~F.col("is_unclaimed")
    is_later_ahead = is_ahead & F.arrays_overlap(
        findings, F.array(F.lit(_COPY_UNFINISHED), F.lit(_DELETE_UNFINISHED))
    )
    not_known = {
        _NO_LOG: is_not_found & F.lit(not has_seen_all),
        _NO_RECORD: F.array_contains(findings, NO_RECORD),
        _LATER: is_claimed & F.lit(not has_all_records),
        _AHEAD: F.coalesce(is_later_ahead, F.lit(False)),
    }
    parts = F.concat(
        F.when(is_there, F.coalesce("differences", nothing)).otherwise(nothing),
        F.when(F.col("objects") > 0, F.coalesce(lacks, nothing)).otherwise(nothing),
        F.filter(F.array("problem"), lambda text: text.isNotNull()),
        *(
            F.when(holds, F.array(F.lit(why))).otherwise(nothing)
            for why, holds in not_known.items()
        ),
        F.when(F.col("refused_updates") > 0, F.array(_refused())).otherwise(nothing),
    )
    detail = F.concat_ws("; ", parts)

    decided = {"findings": findings, "detail": F.when(detail != "", detail)}
    if not is_listed:
        decided["objects"] = F.lit(None).cast("int")
        decided["stored_bytes"] = F.lit(None).cast("long")
    return lambda held: held.withColumns(decided)


def _refused() -> Column:
    return F.concat(F.col("refused_updates").cast("string"), F.lit(" updates that Kafka refuses"))


def sum_findings(held: DataFrame) -> DataFrame:
    """Count the segments and bytes of each finding."""
    found = held.select(F.explode("findings").alias("finding"), "stored_bytes")
    return found.groupBy("finding").agg(
        F.count("*").alias("segments"), F.coalesce(F.sum("stored_bytes"), F.lit(0)).alias("bytes")
    )
