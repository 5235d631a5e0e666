"""Decide which groups there are, with their type and state, by their live records."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kafka_segments.kafka.messages.records import COMMITS
from kafka_segments.verbs.find.internals.groups.decide.records import LIVE, TOMBSTONE

NOT_KNOWN = "not known"
EMPTY, STABLE, ASSIGNING, RECONCILING = "Empty", "Stable", "Assigning", "Reconciling"
NOT_READY = "NotReady"
CLASSIC, CONSUMER, SHARE, STREAMS = "classic", "consumer", "share", "streams"
_MODERN = {"ConsumerGroup": CONSUMER, "ShareGroup": SHARE, "StreamsGroup": STREAMS}
_METADATA = ("GroupMetadata", *(f"{kind}Metadata" for kind in _MODERN))
_STABLE_MEMBER, _STABLE_IN_STREAMS = 0, 1  # MemberState, of which streams groups have their own
_NO_EPOCH = -1


def live_values() -> list[Column]:
    """Return the aggregates over a group's last records that ``with_group_states`` needs.

    Needs: fate, lost (``lost_records``, and what was not read; null: nothing), and the columns of
        ``internal_records``.
    """
    is_live, is_metadata = F.col("fate") == LIVE, F.col("kind").isin(*_METADATA)
    is_last = F.col("fate").isin(LIVE, TOMBSTONE)
    is_behind = F.coalesce(F.col("offset") >= F.col("lost.until"), F.lit(True))
    classic = F.json_array_length(F.get_json_object("value_json", "$.members"))
    return [
        F.max(_live("GroupMetadata", classic)).alias("_classic_members"),
        F.count_if(is_live).alias("_live"),
        F.first("lost").alias("_lost"),
        F.count_if(is_live & is_behind).alias("_live_behind"),
        F.count_if(is_last & is_metadata & is_behind).alias("_metadata_behind"),
        F.count_if(is_live & is_metadata & ~is_behind).alias("_metadata_in_front"),
        F.max(F.when(is_live & ~F.col("kind").isin(*COMMITS), F.col("problem"))).alias("_garbled"),
        *(
            F.count(_of_type(kind, "Metadata", F.lit(1))).alias(f"_{name}")
            for kind, name in _MODERN.items()
        ),
        F.count(_of_any("MemberMetadata", F.lit(1))).alias("_members"),
        F.max(_of_any("Metadata", _number("epoch"))).alias("_epoch"),
        F.max(_of_any("TargetAssignmentMetadata", _number("assignmentEpoch"))).alias("_target"),
        F.count(_of_any("CurrentMemberAssignment", F.lit(1))).alias("_assigned"),
        F.min(_of_any("CurrentMemberAssignment", _number("memberEpoch"))).alias("_least_epoch"),
        F.max(_of_any("CurrentMemberAssignment", _number("memberEpoch"))).alias("_last_epoch"),
        F.min(_of_any("CurrentMemberAssignment", _number("state"))).alias("_least_state"),
        F.max(_of_any("CurrentMemberAssignment", _number("state"))).alias("_last_state"),
        F.max(
            F.coalesce(
                _of_type("StreamsGroup", "Metadata", _number("validatedTopologyEpoch")),
                _of_type("StreamsGroup", "Metadata", F.lit(_NO_EPOCH)),
            )
        ).alias("_validated"),
        F.max(_of_type("StreamsGroup", "Topology", _number("epoch"))).alias("_topology"),
    ]


def with_group_states(groups: DataFrame) -> DataFrame:
    """Add type, state and number of members of each group.

    1. A live record of group metadata makes a group of the record's type. Commits alone make a
       classic group without members.
    2. A classic group whose record has members is *Stable*, else *Empty*: the states between are
       never written.
    3. A group of another type is *Empty* without members, else *Assigning* while its assignment is
       of an earlier epoch than the group, and *Reconciling* until each member has taken it.
       A share group is only *Empty* or *Stable*, a streams group *NotReady* until its topology
       has been looked at.
    4. Where records are lost, the type is known that a record of group metadata behind them tells,
       be it a tombstone: of a group without such a record one may be among them. So is the state
       of a classic group, which is in that record. A newer group's members have records of their
       own, each of which may be among the lost ones.
    5. Nor is the state known where a record of it cannot be decoded, nor type and state where
       another copy has another record.

    Needs: the aggregates of ``live_values``, and _contradicted (why; null: no other copy has).
    Gives: the other columns, and group_type (``not known``; null: there is no such group),
        group_state (so, too), members (null: no group, or not known), state_doubt (why the state is
        not known; null: it is).
    Source: ConsumerGroup, ShareGroup and StreamsGroup.maybeUpdateGroupState;
        GroupMetadataManager.replay.
    """
    group_type = F.coalesce(
        *(F.when(F.col(f"_{name}") > 0, name) for name in _MODERN.values()),
        F.when(F.col("_live") > 0, CLASSIC),
    )
    is_classic, is_share = group_type == CLASSIC, group_type == SHARE
    members = F.when(is_classic, F.coalesce("_classic_members", F.lit(0))).otherwise(
        F.col("_members")
    )
    target = F.coalesce("_target", F.lit(0))
    stable = F.when(group_type == STREAMS, _STABLE_IN_STREAMS).otherwise(_STABLE_MEMBER)
    all_took_it = (F.col("_least_epoch") == target) & (F.col("_last_epoch") == target)
    all_stable = (F.col("_least_state") == stable) & (F.col("_last_state") == stable)
    are_all_there = F.col("_assigned") == F.col("_members")
    is_reconciled = F.coalesce(all_took_it & all_stable & are_all_there, F.lit(False))
    is_ready = F.coalesce(F.col("_validated") == F.col("_topology"), F.lit(False))
    state = (
        F.when(members == 0, EMPTY)
        .when(is_classic | is_share, STABLE)
        .when((group_type == STREAMS) & ~is_ready, NOT_READY)
        .when(F.col("_epoch") > target, ASSIGNING)
        .when(~is_reconciled, RECONCILING)
        .otherwise(STABLE)
    )
    has_group = group_type.isNotNull()
    doubt = _state_doubt(group_type)
    is_known = doubt.isNull()
    kept = [name for name in groups.columns if not name.startswith("_")]
    return groups.select(
        *kept,
        F.when(_is_type_known(), group_type).otherwise(NOT_KNOWN).alias("group_type"),
        F.when(~is_known, NOT_KNOWN).when(has_group, state).alias("group_state"),
        F.when(is_known & has_group, members).cast("long").alias("members"),
        doubt.alias("state_doubt"),
    )


def _is_type_known() -> Column:
    is_told = (F.col("_metadata_behind") > 0) & (F.col("_metadata_in_front") == 0)
    is_told &= (F.col("_live_behind") > 0) | (F.col("_live") == 0)
    return (F.col("_lost").isNull() | is_told) & F.col("_contradicted").isNull()


def _state_doubt(group_type: Column) -> Column:
    """Return why the state is not known of a group that is taken for one of a type."""
    is_in_one_record = F.coalesce(group_type == CLASSIC, F.lit(True))
    is_known = F.col("_lost").isNull() | (_is_type_known() & is_in_one_record)
    why = F.concat(F.lit("not known: a record of it may be in what is missing: "), "_lost.why")
    of_copies = F.concat(F.lit("not known: "), "_contradicted")
    is_contradicted = F.col("_contradicted").isNotNull()
    return (
        F.when(is_contradicted, of_copies)
        .when(~is_known, why)
        .when(F.col("_garbled").isNotNull(), F.col("_garbled"))
    )


def _live(kind: str, value: Column) -> Column:
    return F.when((F.col("fate") == LIVE) & (F.col("kind") == kind), value)


def _of_type(group: str, record: str, value: Column) -> Column:
    return _live(group + record, value)


def _of_any(record: str, value: Column) -> Column:
    """Return a value from whichever newer group type's record has it by this name."""
    return F.coalesce(*(_of_type(group, record, value) for group in _MODERN))


def _number(field: str) -> Column:
    return F.get_json_object("value_json", f"$.{field}").cast("long")
