"""Decide whether ``__consumer_offsets`` loads on a release, and what room its groups take.

Each replica is judged by itself, because each may become the coordinator's.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kafka_segments.engine.derived.internal_current import group_of_key, is_control
from kafka_segments.engine.derived.lost_records import with_lost
from kafka_segments.engine.tables.findings import is_unreadable
from kafka_segments.engine.tables.keys import LOG_KEYS, Transform
from kafka_segments.kafka.broker_rules.group_records import GroupRecordRules
from kafka_segments.kafka.messages.records import COMMITS, UNKNOWN
from kafka_segments.kafka.text.names import OFFSETS_TOPIC
from kafka_segments.verbs.find.internals.groups.decide.records import (
    LIVE,
    SUPERSEDED,
    TOMBSTONE,
    with_fates,
    with_sizes,
)
from kafka_segments.verbs.find.internals.groups.decide.states import live_values, with_group_states

LOADS, SKIPS, FAILS, DAMAGED = "loads", "skips", "fails", "damaged"
_BY_HARM = (LOADS, SKIPS, FAILS, DAMAGED)
_STATE = {"group_type": "string", "group_state": "string", "members": "long"}


def decide_groups(
    rules: GroupRecordRules, lost: DataFrame | None = None, keys: DataFrame | None = None
) -> Transform:
    """Decide for each partition of ``__consumer_offsets`` if it loads, and sum up what is in it.

    Needs: rows of ``internal_records`` with what is known of their files (``with_file_facts``);
        ``lost``: up to where it is not known what is current (``lost_of_replicas``), None: of all
        logs it is; ``keys``: rows of ``unsettled``, None: there are none.
    Gives: the log's keys, group_id (null: the row is of the whole partition), group_type (``not
        known``; null: there is no such group, though records are left), group_state (so, too),
        members (null: as group_type); load (the worst of its records), refused_records (which the
        release does not read), first_refused_offset, reason (of that one, or why the group's state
        is not known); records, live_records, superseded_records, tombstones; bytes,
        live_bytes, superseded_bytes, tombstone_bytes, cleanable_bytes (of superseded records and
        tombstones outside the active segment). The bytes of a partition include control
        records and what cannot be read.
    """

    def transform(records: DataFrame) -> DataFrame:
        rows = (
            records.where(F.col("topic") == OFFSETS_TOPIC)
            .transform(judge_records(rules))
            .transform(with_sizes)
            .transform(with_fates)
            .transform(with_lost(lost))
        )
        sums = _sums()
        no_group = {name: F.lit(None).cast(kind) for name, kind in _STATE.items()}
        whole = rows.groupBy(*LOG_KEYS).agg(*(sum_.alias(name) for name, sum_ in sums.items()))
        whole = whole.withColumns({"group_id": F.lit(None).cast("string"), **no_group})
        groups = (
            rows.where(F.col("group_id").isNotNull())
            .groupBy(*LOG_KEYS, "group_id")
            .agg(*(sum_.alias(name) for name, sum_ in sums.items()), *live_values())
            .transform(_with_contradicted(keys))
            .transform(with_group_states)
            .withColumn("reason", F.coalesce("reason", "state_doubt"))
            .drop("state_doubt")
        )
        return groups.unionByName(whole).select(*LOG_KEYS, "group_id", *_STATE, *sums)

    return transform


def _with_contradicted(keys: DataFrame | None) -> Transform:
    """Add ``_contradicted``: why another copy has another record of a group; null: none has.

    A commit in place of another one of its key says nothing else of its group.
    """
    if keys is None:
        return lambda groups: groups.withColumn("_contradicted", F.lit(None).cast("string"))
    tells = ~(F.col("kind").isin(*COMMITS) & F.col("is_only_key"))
    of_keys = keys.where(tells).withColumn("group_id", group_of_key())
    of_groups = of_keys.groupBy(*LOG_KEYS, "group_id").agg(F.max("contradicted").alias("_why"))

    def transform(groups: DataFrame) -> DataFrame:
        joined = groups.join(of_groups, [*LOG_KEYS, "group_id"], how="left")
        return joined.withColumnRenamed("_why", "_contradicted")

    return transform


def judge_records(rules: GroupRecordRules) -> Transform:
    """Add to each row what the group coordinator of a release does with it.

    1. What cannot be read of a file is *damaged*: it depends on more whether a broker truncates
       it, fails at it or takes it as it is. A last batch that is still being written is no damage.
    2. The coordinator *skips* a record of a type that the release does not know, or *fails* at it,
       as the release does.
    3. It *fails* at a record whose value has a version that it does not know, or whose bytes do
       not fit. Tombstones have no value; control records are passed over.
    4. It *loads* all others.

    Needs: rows of ``internal_records`` of ``__consumer_offsets``.
    Gives: the same, and load, reason (null: it loads).
    Source: CoordinatorLoaderImpl; GroupMetadataManager.doLoadGroupsAndOffsets.
    """
    versions = F.create_map(
        *(F.lit(number) for pair in rules.last_versions.items() for number in pair)
    )
    last = F.try_element_at(versions, F.col("key_version"))
    is_lost = F.col("kind").isNull()
    is_unknown = F.col("key_version").isNotNull() & last.isNull()
    is_too_new = F.col("value_version").isNotNull() & ~F.col("value_version").between(0, last)
    load = (
        F.when(is_lost, F.when(is_unreadable(), DAMAGED).otherwise(LOADS))
        .when(is_control(), LOADS)
        .when(is_unknown, SKIPS if rules.skips_unknown else FAILS)
        .when(is_too_new | F.col("problem").isNotNull(), FAILS)
        .otherwise(LOADS)
    )
    name = F.when(F.col("kind") == UNKNOWN, F.lit("the record")).otherwise(F.col("kind"))
    unknown = F.format_string("%s is of type %d, which is not known", name, "key_version")
    known = F.format_string("%s has version %d, 0 to %d are known", name, "value_version", last)
    reason = F.when(is_unknown, unknown).when(is_too_new, known).otherwise(F.col("problem"))

    def transform(records: DataFrame) -> DataFrame:
        judged = records.withColumn("load", load)
        why = F.when(is_lost, F.col("problem")).otherwise(reason)
        return judged.withColumn("reason", F.when(F.col("load") != LOADS, why))

    return transform


def _sums() -> dict[str, Column]:
    fate = F.col("fate")
    is_refused = F.col("load") != LOADS
    is_dead = fate.isin(SUPERSEDED, TOMBSTONE)
    place = F.when(is_refused, F.struct(F.coalesce("offset", "base_offset"), "file", "row"))
    harm = F.array_position(F.array(*map(F.lit, _BY_HARM)), F.col("load"))
    return {
        "load": F.element_at(F.array(*map(F.lit, _BY_HARM)), F.max(harm).cast("int")),
        "refused_records": F.count_if(is_refused),
        "first_refused_offset": F.min(F.when(is_refused, F.col("offset"))),
        "reason": F.min_by("reason", place),
        "records": F.count("fate"),
        "live_records": F.count_if(fate == LIVE),
        "superseded_records": F.count_if(fate == SUPERSEDED),
        "tombstones": F.count_if(fate == TOMBSTONE),
        "bytes": _bytes_of(F.lit(True)),
        "live_bytes": _bytes_of(fate == LIVE),
        "superseded_bytes": _bytes_of(fate == SUPERSEDED),
        "tombstone_bytes": _bytes_of(fate == TOMBSTONE),
        "cleanable_bytes": _bytes_of(is_dead & ~F.col("is_active")),
    }


def _bytes_of(condition: Column) -> Column:
    sum_ = F.sum(F.when(condition, F.col("record_bytes")))
    return F.round(F.coalesce(sum_, F.lit(0.0))).cast("long")
