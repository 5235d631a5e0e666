"""Decide how far behind share groups are, by what the share coordinator wrote down."""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from kafka_segments.engine.derived.contradicted_keys import with_contradicted
from kafka_segments.engine.derived.internal_current import SHARE_SNAPSHOT, SHARE_UPDATE
from kafka_segments.engine.derived.lost_records import with_lost, with_unread
from kafka_segments.engine.derived.replicas import (
    NOTHING_KNOWN,
    PARTITION,
    KnownReplicas,
    with_doubt,
)
from kafka_segments.engine.tables.keys import Transform
from kafka_segments.engine.tables.long_arithmetic import minus
from kafka_segments.kafka.messages.records import SHARES_TOPIC
from kafka_segments.verbs.find.lag.decide.commits import (
    AHEAD,
    BEHIND,
    EXPIRED,
    NO_FINDINGS,
    NO_LOG,
    NOT_KNOWN,
    UP_TO_DATE,
)

NOT_BEGUN, NO_STATE = "nothing read yet", "no state left from that time"
NO_SHARE_FINDINGS = (*NO_FINDINGS, NOT_BEGUN)
"""Statuses that no one must look at."""
_KEY = ("cluster", "group_id", "topic_id", "partition")
_KEY_JSON = "STRUCT<groupId: STRING, topicId: STRING, partition: INT>"
_NONE = -1


def decide_share_states(
    *,
    at_ms: int,
    known: KnownReplicas = NOTHING_KNOWN,
    lost: DataFrame | None = None,
    others: DataFrame | None = None,
    keys: DataFrame | None = None,
) -> Transform:
    """Tell what the share coordinator had of each partition of each share group at a moment.

    1. The last snapshot counts, and the updates behind it: the last start offset that one of them
       has, and the last number of records behind it that are done with.
    2. A tombstone deletes the state.
    3. Where all that is left of a state is later than ``at_ms``, its row says so.
    4. Of a state whose last snapshot lies in front of lost records, or of what could not be read,
       it is not known whether it still holds: a later record may be among them. Nor of one of
       whose records that count one cannot be decoded, nor, where the copy that answers has lost
       records, of one that only another copy has.

    Needs: rows of ``internal_records``; ``known``: what the tables know of their replicas;
        ``lost``: rows of ``lost_records``, None: there are none; ``others``: rows of
        ``internal_records`` of other copies of the logs in ``lost``, None: there are none;
        ``keys``: rows of ``contradicted_keys``, None: there are none.
    Gives: cluster, group_id, topic_id, partition, is_known (false: case 3), start_offset (null:
        the group has read nothing), delivery_complete_count (null: not known), state_offset (of
        the last record), state_ms, state_doubt (why the state is not known; null: it is).
    Source: ShareCoordinatorShard.handleShareSnapshot, handleShareUpdate, merge.
    """
    value = "STRUCT<startOffset: BIGINT, deliveryCompleteCount: BIGINT>"
    is_snapshot = F.col("_is_known") & (F.col("kind") == SHARE_SNAPSHOT)
    of_key = Window.partitionBy(*_KEY)
    last_snapshot = F.max(F.when(is_snapshot, F.col("offset"))).over(of_key)
    is_counted = F.col("_is_known") & (
        F.col("_snapshot").isNull() | (F.col("offset") >= F.col("_snapshot"))
    )
    start = F.when(F.col("_value.startOffset") != _NONE, F.col("_value.startOffset"))
    count = F.coalesce("_value.deliveryCompleteCount", F.lit(_NONE))
    counted = F.when(is_counted, F.col("offset"))
    last_count = F.max_by(count, counted)
    place = F.max(F.greatest("unread", "lost"))
    why = F.format_string(
        "not known: a later record may be in what is missing of __share_group_state-%d: %s",
        F.max("_state_partition"),
        place["why"],
    )
    is_lost = F.coalesce(F.max("_snapshot"), F.lit(_NONE)) < place["until"]
    no_word = F.when(is_counted, F.coalesce("problem", "contradicted"))
    garbled = F.max_by(no_word, F.when(no_word.isNotNull(), F.col("offset")))
    why_garbled = F.concat(F.lit("not known: a record of it tells nothing: "), garbled)
    doubt = F.coalesce(F.max("doubt"), F.when(is_lost, why), why_garbled)

    def transform(records: DataFrame) -> DataFrame:
        states = (
            records.where(F.col("topic") == SHARES_TOPIC)
            .transform(with_doubt(known))
            .transform(with_unread)
            .transform(with_contradicted(keys))
            .transform(with_lost(lost))
            .transform(_with_keys)
            .withColumn("_value", F.from_json("value_json", value))
            .select(
                "cluster",
                *_key_fields(),
                *("offset", "timestamp_ms", "kind", "is_tombstone", "_value", "problem"),
                *("contradicted", "doubt", "unread", "lost"),
                F.col("partition").alias("_state_partition"),
                (F.col("timestamp_ms") <= at_ms).alias("_is_known"),
            )
            .transform(_with_keys_of(others, lost))
            .withColumn("_snapshot", last_snapshot)
            .groupBy(*_KEY)
            .agg(
                F.max("_is_known").alias("is_known"),
                F.max_by(start, F.when(start.isNotNull(), counted)).alias("start_offset"),
                F.when(last_count != _NONE, last_count).alias("delivery_complete_count"),
                F.max(counted).alias("state_offset"),
                F.max_by("timestamp_ms", counted).alias("state_ms"),
                doubt.alias("state_doubt"),
                F.max_by("is_tombstone", counted).alias("_is_deleted"),
            )
        )
        is_deleted = F.coalesce("_is_deleted", F.lit(False)) & F.col("state_doubt").isNull()
        return states.where(~is_deleted).drop("_is_deleted")

    return transform


def _with_keys(records: DataFrame) -> DataFrame:
    states = records.where(F.col("kind").isin(SHARE_SNAPSHOT, SHARE_UPDATE))
    named = states.where(F.col("key_json").isNotNull())
    return named.withColumn("_key", F.from_json("key_json", _KEY_JSON))


def _with_keys_of(others: DataFrame | None, lost: DataFrame | None) -> Transform:
    """Add the keys of other copies of logs that have lost records, without a record."""
    if others is None or lost is None:
        return lambda states: states
    of_partition = lost.where("lost IS NOT NULL").select(*PARTITION, "lost")
    is_deleted = F.max_by("is_tombstone", "offset")
    rows = (
        others.transform(_with_keys)
        .groupBy(*PARTITION, "_key")
        .agg(is_deleted.alias("_is_deleted"))
        .where("NOT _is_deleted")
        .join(F.broadcast(of_partition), list(PARTITION))
        .select("cluster", *_key_fields(), "lost", F.col("partition").alias("_state_partition"))
    )
    return lambda states: states.unionByName(rows, allowMissingColumns=True)


def _key_fields() -> list[Column]:
    fields = {"groupId": "group_id", "topicId": "topic_id", "partition": "partition"}
    return [F.col(f"_key.{field}").alias(name) for field, name in fields.items()]


def with_topic_names(names: DataFrame) -> Transform:
    """Name the topics of states, which have their ids; an id stands for a name that is not known.

    Needs: cluster, topic_id; ``names``: cluster, topic_id (null: not known), topic; several rows
        may say the same.
    Gives: the same, topic.
    """
    known = names.where(F.col("topic_id").isNotNull()).groupBy("cluster", "topic_id")
    one = known.agg(F.min("topic").alias("topic"))

    def transform(states: DataFrame) -> DataFrame:
        named = states.join(one, ["cluster", "topic_id"], how="left")
        return named.withColumn("topic", F.coalesce("topic", "topic_id"))

    return transform


def with_log_ends(ends: DataFrame) -> Transform:
    """Add where the log of each state begins and ends.

    The end is not told of a log with another topic id: it is of a topic that was made anew under
    the name.

    Needs: cluster, topic, topic_id, partition; ``ends``: cluster, topic, partition, log_topic_id
        (null: not known), log_start_offset, end_offset, doubt.
    Gives: the same, and the columns of ``ends``; end_offset is null where there is no such log.
    """
    is_its_log = F.coalesce(F.col("log_topic_id") == F.col("topic_id"), F.lit(True))

    def transform(states: DataFrame) -> DataFrame:
        joined = states.join(ends, ["cluster", "topic", "partition"], how="left")
        return joined.withColumn("end_offset", F.when(is_its_log, F.col("end_offset")))

    return transform


def decide_share_lag(states: DataFrame) -> DataFrame:
    """Decide how far behind each share group is: the end less the start less what is done with.

    Records between the start offset and the end that the group has acknowledged, archived or
    rejected are no lag; those that a member holds just now are. No lag is told before the group
    has read anything.

    Needs: rows of ``decide_share_states``, and topic, log_start_offset, end_offset (null: the log
        is not in the tables), doubt (why the end is not known; null: it is).
    Gives: cluster, group_id, topic, partition, status, start_offset, delivery_complete_count,
        log_start_offset, end_offset, offset_lag (null: none is told), state_offset, state_ms,
        problem (why nothing is known; null: it is).
    Source: GroupCoordinatorService.computeShareGroupLagAndBuildResponse; KIP-1226.
    """
    ahead = minus("end_offset", "start_offset")
    problem = F.coalesce("state_doubt", "doubt")
    return states.select(
        *("cluster", "group_id", "topic", "partition"),
        _status().alias("status"),
        *("start_offset", "delivery_complete_count", "log_start_offset", "end_offset"),
        F.when(problem.isNull(), minus(ahead, "delivery_complete_count")).alias("offset_lag"),
        *("state_offset", "state_ms"),
        problem.alias("problem"),
    )


def _status() -> Column:
    start, end = F.col("start_offset"), F.col("end_offset")
    left = minus(minus(end, start), "delivery_complete_count")
    return (
        F.when(F.coalesce("state_doubt", "doubt").isNotNull(), NOT_KNOWN)
        .when(~F.col("is_known"), NO_STATE)
        .when(end.isNull(), NO_LOG)
        .when(start.isNull() | F.col("delivery_complete_count").isNull(), NOT_BEGUN)
        .when(start > end, AHEAD)
        .when(start < F.col("log_start_offset"), EXPIRED)
        .when(left == 0, UP_TO_DATE)
        .otherwise(BEHIND)
    )
