"""Logs whose first offsets lie in tiered storage alone.

Brokers delete the first segments of a tiered log from their disks, and the log goes on to begin
where it did: consumers are answered from more than the disk has.
"""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from kafka_segments.engine.derived.lost_records import PLACE
from kafka_segments.engine.derived.replicas import PARTITION
from kafka_segments.engine.tables.keys import LOG_KEYS, Transform
from kafka_segments.engine.tables.long_arithmetic import minus, plus

COPY_FINISHED = "COPY_SEGMENT_FINISHED"
TIERED_BY = "remote.storage.enable"
_FRONT = "STRUCT<start: BIGINT, until: BIGINT, max_timestamp_ms: BIGINT, why: STRING>"
_IN_TIER = "lie in tiered storage, which is not read"
_UNTOLD = (
    "its checkpoint notes that it begins at %d, and its first segment does at %d: what lies between"
    " is in tiered storage, or missing"
)


def tiered_topics(configs: DataFrame) -> DataFrame:
    """Return the topics that are configured to be copied.

    Needs: rows of ``metadata_configs`` that hold still.
    Gives: cluster, topic.
    """
    is_tiered = (
        (F.col("resource_type") == "topic")
        & (F.col("name") == TIERED_BY)
        & (F.lower(F.trim("value")) == "true")
    )
    return configs.where(is_tiered).select("cluster", F.col("resource_name").alias("topic"))


def with_is_tiered(settings: DataFrame | None, named: DataFrame | None) -> Transform:
    """Add ``is_tiered``: whether the topic of a row is tiered; null: no metadata tells.

    Needs: cluster, topic; ``settings``: as of ``tiered_settings``; ``named``: see
        ``KnownReplicas``.
    Gives: the same, is_tiered.
    """
    if settings is None or named is None:
        return lambda rows: rows.withColumn("is_tiered", F.lit(None).cast("boolean"))
    is_it = settings.where("until_offset IS NULL").transform(tiered_topics).distinct()
    told = (
        named.select("cluster", "topic")
        .distinct()
        .join(is_it.withColumn("_is_it", F.lit(True)), ["cluster", "topic"], how="left")
        .select("cluster", "topic", F.coalesce("_is_it", F.lit(False)).alias("is_tiered"))
    )
    return lambda rows: rows.join(F.broadcast(told), ["cluster", "topic"], how="left")


def tier_fronts(copies: DataFrame | None) -> Transform:
    """Find the logs of tiered topics, and which of them have their first offsets there alone.

    1. A log of a tiered topic begins where its checkpoint notes it: brokers note it of each such
       log. Where they did not, it is not known where one begins whose first segment is not at 0.
    2. Where no metadata tells whether a topic is tiered, a log is taken for it that begins behind
       what is noted.
    3. The greatest timestamp in front is known where copies that are served have each offset there.
       It is what brokers choose such a copy by.

    Needs: the key of a log, local_start_offset (of what the disk has), noted_start (of its
        checkpoint; null: none), is_tiered (null: not known); ``copies``: rows of
        ``remote_segments``, None: there are none.
    Gives: the key of a log, front: null where the disk has all offsets, else start (where the log
        begins; null: not known), until (where its first segment does), max_timestamp_ms (the
        greatest in front; null: not known), why (in words).
    Source: LogManager.checkpointLogStartOffsetsInDir, RemoteLogManager.findOffsetByTimestamp.
    """
    until, noted = F.col("local_start_offset"), F.col("noted_start")
    last = minus(until, 1)
    why = (
        F.when(F.col("is_tiered").isNull(), F.format_string(_UNTOLD, noted, until))
        .when(noted.isNull(), F.format_string(f"offsets up to %d {_IN_TIER}", last))
        .otherwise(F.format_string(f"offsets %d to %d {_IN_TIER}", noted, last))
    )
    front = F.struct(
        noted.alias("start"),
        until.alias("until"),
        F.col("_max_timestamp_ms").alias("max_timestamp_ms"),
        why.alias("why"),
    ).cast(_FRONT)
    is_behind = noted < until
    is_tiered = F.coalesce("is_tiered", is_behind)
    has_front = (until > 0) & F.coalesce(is_behind, F.lit(True))

    def transform(logs: DataFrame) -> DataFrame:
        found = logs.where(is_tiered).transform(_with_greatest_in_front(copies))
        return found.select(*LOG_KEYS, F.when(has_front, front).alias("front"))

    return transform


def _with_greatest_in_front(copies: DataFrame | None) -> Transform:
    """Add the greatest timestamp of copies that have all offsets in front; null: not known."""
    name = "_max_timestamp_ms"
    if copies is None:
        return lambda logs: logs.withColumn(name, F.lit(None).cast("bigint"))
    is_served = (F.col("state") == COPY_FINISHED) & F.col("partition_state").isNull()
    served = copies.where(is_served & (F.size("findings") == 0)).select(
        *PARTITION, "start_offset", "end_offset", "max_timestamp_ms"
    )
    of_log = Window.partitionBy(*LOG_KEYS)
    before = of_log.orderBy("start_offset", "end_offset").rowsBetween(Window.unboundedPreceding, -1)
    held_until = F.greatest("noted_start", F.max(plus("end_offset", 1)).over(before))
    goes_on = F.coalesce(F.col("start_offset") <= held_until, F.lit(False))
    reaches = F.max(plus("end_offset", 1)) >= F.max("local_start_offset")
    greatest = F.when(F.bool_and("_goes_on") & reaches, F.max("max_timestamp_ms"))

    def transform(logs: DataFrame) -> DataFrame:
        held = logs.join(served, list(PARTITION)).where("start_offset < local_start_offset")
        known = held.withColumn("_goes_on", goes_on).groupBy(*LOG_KEYS).agg(greatest.alias(name))
        return logs.join(known, list(LOG_KEYS), how="left")

    return transform


def with_start_in_tier(fronts: DataFrame) -> Transform:
    """Have logs begin where they do in tiered storage, as far as that is known.

    Needs: the key of a log, log_start_offset; ``fronts``: rows of ``tier_fronts``.
    Gives: the same.
    """
    start = F.coalesce("front.start", "log_start_offset")

    def transform(logs: DataFrame) -> DataFrame:
        joined = logs.join(F.broadcast(fronts), list(LOG_KEYS), how="left")
        return joined.withColumn("log_start_offset", start).drop("front")

    return transform


def in_front_as_lost(fronts: DataFrame) -> DataFrame:
    """Return what lies in tiered storage alone as rows of ``lost_records``.

    Needs: rows of ``tier_fronts``.
    """
    lost = F.struct("front.until", "front.why").cast(PLACE).alias("lost")
    return fronts.where("front IS NOT NULL").select(*LOG_KEYS, lost)


def in_front_as_gaps(*, from_ms: int) -> Transform:
    """Return as rows of ``first_gaps`` what in tiered storage alone may be of a time or later.

    Needs: rows of ``tier_fronts``. ``from_ms``: the time, in ms since 1970.
    """
    first = F.coalesce("front.start", F.lit(0))
    gap = F.struct(first.alias("offset"), F.concat(F.lit("not known: "), "front.why").alias("why"))

    def transform(fronts: DataFrame) -> DataFrame:
        told = fronts.where(F.col("front").isNotNull() & may_reach(F.lit(from_ms)))
        return told.select(*LOG_KEYS, gap.alias("gap"))

    return transform


def may_reach(target_ms: Column) -> Column:
    """Tell whether records in front of a log may have a timestamp from ``target_ms`` on.

    Needs: front (see ``tier_fronts``), not null.
    """
    return F.coalesce(F.col("front.max_timestamp_ms") >= target_ms, F.lit(True))
