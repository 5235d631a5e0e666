"""Decide whether a remote segment lies in its partition's lineage of leader epochs."""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from kafka_segments.engine.derived.described_logs import describe_logs
from kafka_segments.engine.tables.keys import LOG_KEYS, Transform

_OF_PARTITION = ("cluster", "topic", "partition")
_PLAIN_LOG = "(^|/)[0-9]{20}[.]log$"  # a name with an id is of the tier


def epochs_with_records(epochs: str) -> Column:
    """Return leader epochs in order, without those in which no record was written.

    Source: RemoteLogManager.buildFilteredLeaderEpochMap.
    """
    ordered = F.array_sort(F.col(epochs))
    return F.filter(
        ordered,
        lambda entry, place: (
            ~F.coalesce(
                F.get(ordered, place + 1)["start_offset"] == entry["start_offset"], F.lit(False)
            )
        ),
    )


def is_within_lineage() -> Column:
    """Tell whether a broker takes a remote segment for one of the leader's log: if all rules hold.

    1. Its last epoch lies between the first and the last of the lineage.
    2. Its epochs before the lineage's first are passed over: retention cut the lineage there.
    3. The first of its other epochs is in the lineage, and does not begin earlier than there,
       unless it is the lineage's first. The next ones follow as in the lineage, with equal offsets.
    4. It ends before the next epoch of the lineage begins, and before the log's end.

    Needs: leader_epochs, end_offset (of the segment), lineage (array of epoch, start_offset),
        log_end_offset.
    Source: RemoteLogManager.isRemoteSegmentWithinLeaderEpochs.
    """
    lineage = F.array_sort("lineage")
    held = epochs_with_records("leader_epochs")
    first_epoch = F.get(lineage, F.lit(0))["epoch"]
    last_epoch = F.get(lineage, F.size(lineage) - 1)["epoch"]
    kept = F.filter(held, lambda entry: entry["epoch"] >= first_epoch)
    first, last = F.get(kept, F.lit(0)), F.get(kept, F.size(kept) - 1)
    # 0-based; array_position gives 0 where there is none.
    place = F.array_position(F.transform(lineage, lambda entry: entry["epoch"]), first["epoch"]) - 1
    others = F.greatest(F.size(kept) - 1, F.lit(0))
    follow = F.slice(kept, F.lit(2), others) == F.slice(lineage, place + 2, others)
    begins = (place == 0) | (first["start_offset"] >= F.get(lineage, place)["start_offset"])
    after = F.get(lineage, place + F.size(kept))["start_offset"]
    is_within = (
        (F.size(kept) > 0)
        & (last["epoch"] <= last_epoch)
        & (place >= 0)
        & begins
        & (after.isNull() | (F.col("end_offset") < after))
        & (F.col("end_offset") < F.col("log_end_offset"))
    )
    is_known = (F.size("lineage") > 0) & (F.size(held) > 0)
    return F.when(is_known, F.when(is_within, follow).otherwise(F.lit(False)))


def goes_beyond_log() -> Column:
    """Tell whether a remote segment goes beyond the end of the local log that was read.

    A leader copies nothing behind the end of its log. So the disk is older than the segment, or a
    lagging follower's, and it is not known whether the segment is in the lineage.

    1. It ends behind the log, in the last epoch of the lineage.
    2. Or it has later epochs, the first of which begins at the log's end or behind it.

    Needs: as ``is_within_lineage``.
    """
    lineage = F.array_sort("lineage")
    held = epochs_with_records("leader_epochs")
    last_epoch = F.get(lineage, F.size(lineage) - 1)["epoch"]
    later = F.filter(held, lambda entry: entry["epoch"] > last_epoch)
    is_last = F.get(held, F.size(held) - 1)["epoch"] == last_epoch
    goes_on = is_last & (F.col("end_offset") >= F.col("log_end_offset"))
    begins_behind = F.get(later, F.lit(0))["start_offset"] >= F.col("log_end_offset")
    return F.coalesce(goes_on | begins_behind, F.lit(False))


def choose_lineage(leaders: DataFrame) -> Transform:
    """Keep of each partition the replica whose leader epochs judge remote segments.

    1. It is the leader's, as the metadata has it last: a leader judges by its own epochs.
    2. If the leader is not known, or its log is not there, it is the replica that would be elected:
       that of the last leader epoch, then that with the greatest end. A longer log of an earlier
       epoch is a deposed leader's.

    Needs: the key of a log, leader_epochs, log_end_offset; ``leaders``: cluster, topic, partition,
        leader.
    Gives: the same rows, one for each partition.
    """
    last_epoch = F.array_max(F.transform("leader_epochs", lambda entry: entry["epoch"]))
    order = Window.partitionBy(*_OF_PARTITION).orderBy(
        F.desc(F.coalesce(F.col("broker_id") == F.col("_leader"), F.lit(False))),
        F.desc_nulls_last(last_epoch),
        F.desc("log_end_offset"),
        *LOG_KEYS,
    )
    named = leaders.select(*_OF_PARTITION, F.col("leader").alias("_leader"))

    def transform(logs: DataFrame) -> DataFrame:
        return (
            logs.join(named, list(_OF_PARTITION), how="left")
            .withColumn("_turn", F.row_number().over(order))
            .where("_turn = 1")
            .select(*logs.columns)
        )

    return transform


def local_logs(logs: DataFrame, leaders: DataFrame) -> Transform:
    """Describe the replica of each partition on brokers' disks that ``choose_lineage`` keeps.

    Needs: rows of ``segments`` of files that are there; ``logs``: rows of ``logs``; ``leaders``: as
        of ``choose_lineage``.
    Gives: cluster, topic, partition, local_topic_id (null: not known), log_start_offset,
        log_end_offset, lineage (array of epoch, start_offset).
    """
    ids = logs.select(*LOG_KEYS, F.col("topic_id").alias("local_topic_id"))

    def transform(segments: DataFrame) -> DataFrame:
        return (
            segments.where(F.col("path").rlike(_PLAIN_LOG))
            .transform(describe_logs(logs))
            .transform(choose_lineage(leaders))
            .join(ids, list(LOG_KEYS), how="left")
            .select(
                *_OF_PARTITION,
                "local_topic_id",
                "log_start_offset",
                "log_end_offset",
                F.col("leader_epochs").alias("lineage"),
            )
        )

    return transform


def without_lineage_in_doubt(doubts: DataFrame) -> Transform:
    """Take away the lineage of partitions whose log at hand may not be the leader's.

    Needs: rows of ``local_logs``; ``doubts``: cluster, topic, partition.
    Gives: the same, lineage null where it is in doubt.
    """
    in_doubt = doubts.select(*_OF_PARTITION, F.lit(True).alias("_is_in_doubt"))

    def transform(local: DataFrame) -> DataFrame:
        joined = local.join(F.broadcast(in_doubt), list(_OF_PARTITION), how="left")
        kept = F.when(F.col("_is_in_doubt").isNull(), F.col("lineage"))
        return joined.withColumn("lineage", kept).drop("_is_in_doubt")

    return transform


def with_lineage(local: DataFrame | None) -> Transform:
    """Tell of each remote segment whether it is in its partition's lineage.

    It is not known without a local log, where that is of another topic id, and where the segment
    goes beyond it.

    Needs: cluster, topic, topic_id, partition, leader_epochs, end_offset; ``local``: rows of
        ``local_logs``, None: there are none.
    Gives: the same, is_in_lineage (null: not known), and columns of ``local``.
    """
    is_same = F.coalesce(F.col("local_topic_id") == F.col("topic_id"), F.lit(True))
    is_known = is_same & ~goes_beyond_log()

    def transform(held: DataFrame) -> DataFrame:
        if local is None:
            return held.withColumn("is_in_lineage", F.lit(None).cast("boolean"))
        joined = held.join(local.drop("log_start_offset"), list(_OF_PARTITION), how="left")
        return joined.withColumn("is_in_lineage", F.when(is_known, is_within_lineage()))

    return transform
