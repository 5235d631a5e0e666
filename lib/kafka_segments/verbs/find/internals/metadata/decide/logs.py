"""What each replica of the metadata log has: records without a gap, snapshots, damage."""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from kafka_segments.engine.tables.findings import is_unreadable
from kafka_segments.engine.tables.keys import LOG_KEYS
from kafka_segments.engine.tables.long_arithmetic import plus
from kafka_segments.kafka.messages.control import SNAPSHOT_FOOTER, SNAPSHOT_HEADER
from kafka_segments.kafka.messages.records import UNKNOWN
from kafka_segments.kafka.text.names import METADATA_TOPIC


def sum_metadata_logs(records: DataFrame) -> DataFrame:
    """Return for each log of ``__cluster_metadata`` what a history can be made from.

    Needs: rows of ``internal_records`` with what is known of their files (``with_file_facts``).
    Gives: the log's keys, first_offset (of the records up to the log's end without a gap; null:
        it has none), last_offset, leader_epoch (the last), log_epoch (the last of the log itself),
        unclear_from and unclear_to (offsets of the first and the last of these records that is of
        an unknown kind or cannot be decoded; null: none), unclear_value and unclear_problem (of
        the first), steps (what ``runs_of`` takes), last_file and last_size (of the log's last
        segment), damage (file, position and problem where that cannot be read behind its last
        record; null: it can), unclear_snapshots (how many have such records), snapshots (array of
        end_offset, file, ms: those that were read from header to footer).
    """
    metadata = records.where(F.col("topic") == METADATA_TOPIC)
    of_log = Window.partitionBy(*LOG_KEYS)
    in_order = of_log.orderBy("offset")
    before = F.lag("offset").over(in_order)
    is_gap = before.isNotNull() & (F.col("offset") != plus(before, 1))
    first = F.coalesce(
        F.max(F.when(F.col("_is_gap"), F.col("offset"))).over(of_log),
        F.min("offset").over(of_log),
    )
    is_unclear = (F.col("kind") == UNKNOWN) | F.col("problem").isNotNull()
    unclear = F.when(is_unclear & (F.col("offset") >= F.col("_first")), F.col("offset"))
    in_log = metadata.where(~F.col("is_snapshot"))
    told = F.struct("leader_epoch", is_unclear.alias("is_unclear"))
    goes_on = told.eqNullSafe(F.lag(told).over(in_order)) & ~F.col("_is_gap")
    step = F.struct(
        "offset", F.col("_before").alias("before"), "leader_epoch", is_unclear.alias("is_unclear")
    )
    log = (
        in_log.where(F.col("kind").isNotNull() & F.col("offset").isNotNull())
        .withColumns({"_is_gap": is_gap, "_before": before})
        .withColumns({"_first": first, "_step": F.when(~goes_on, step)})
        .groupBy(*LOG_KEYS)
        .agg(
            F.min("_first").alias("first_offset"),
            F.max("offset").alias("last_offset"),
            F.max_by(F.struct("base_offset", "batch_position"), "offset").alias("_last_record"),
            F.max("leader_epoch").alias("log_epoch"),
            F.min(unclear).alias("unclear_from"),
            F.max(unclear).alias("unclear_to"),
            F.min_by("value", unclear).alias("unclear_value"),
            F.min_by("problem", unclear).alias("unclear_problem"),
            F.sort_array(F.collect_list("_step")).alias("steps"),
        )
    )
    damage = F.struct("base_offset", "file", F.col("batch_position").alias("position"), "problem")
    is_damage = is_unreadable() & F.col("offset").isNull()
    ends = in_log.groupBy(*LOG_KEYS).agg(
        F.max(F.struct("base_offset", "file", "size_bytes")).alias("_last"),
        F.max(F.when(is_damage, damage)).alias("_damage"),
    )
    header_ms = F.get_json_object("value_json", "$.lastContainedLogTimestamp").cast("long")
    whole = (
        metadata.where("is_snapshot")
        .groupBy(*LOG_KEYS, "file", F.col("base_offset").alias("end_offset"))
        .agg(
            F.max(F.when(F.col("kind") == SNAPSHOT_HEADER.name, header_ms)).alias("ms"),
            F.max("leader_epoch").alias("leader_epoch"),
            F.count_if(F.col("kind") == SNAPSHOT_FOOTER.name).alias("_footers"),
            F.count_if(is_unclear).alias("_unclear"),
        )
        .withColumn("_is_whole", F.expr("_footers > 0 AND _unclear = 0 AND ms IS NOT NULL"))
    )
    found = F.when(F.col("_is_whole"), F.struct("end_offset", "file", "ms"))
    snapshots = whole.groupBy(*LOG_KEYS).agg(
        F.sort_array(F.collect_list(found)).alias("snapshots"),
        F.max(F.when(F.col("_is_whole"), F.col("leader_epoch"))).alias("_epoch"),
        F.count_if(F.col("_unclear") > 0).alias("unclear_snapshots"),
    )
    place = F.struct("_damage.base_offset", "_damage.position")
    is_at_end = F.coalesce(place >= F.col("_last_record"), F.lit(True))
    is_at_end &= F.col("_damage").isNotNull()
    both = metadata.select(*LOG_KEYS).distinct().join(log, list(LOG_KEYS), how="left")
    both = both.join(ends, list(LOG_KEYS), how="left")
    return both.join(snapshots, list(LOG_KEYS), how="left").select(
        *LOG_KEYS,
        "first_offset",
        "last_offset",
        F.coalesce(F.greatest("log_epoch", "_epoch"), F.lit(-1)).alias("leader_epoch"),
        "log_epoch",
        *("unclear_from", "unclear_to", "unclear_value", "unclear_problem", "steps"),
        F.col("_last.file").alias("last_file"),
        F.col("_last.size_bytes").alias("last_size"),
        F.when(is_at_end, F.struct("_damage.file", "_damage.position", "_damage.problem")).alias(
            "damage"
        ),
        F.coalesce("unclear_snapshots", F.lit(0)).alias("unclear_snapshots"),
        F.coalesce(
            "snapshots", F.array().cast("array<struct<end_offset:long,file:string,ms:long>>")
        ).alias("snapshots"),
    )
