"""What a start does with the logs of a warehouse, as its last build found them."""

from collections.abc import Mapping
from functools import reduce

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from kafka_segments.engine.tables.keys import LOG_KEYS, Transform
from kafka_segments.kafka.broker_rules.start.cuts import CUTS, TORN
from kafka_segments.kafka.index.segment.recovered_segment import DamageKind
from kafka_segments.kafka.text.names import METADATA_TOPIC, FolderState

_OF_SEGMENTS = (
    *("base_offset", "size_bytes", "batch_count", "record_count"),
    *("valid_bytes", "truncated_bytes", "next_offset", "damage"),
)
_CHANGING = (DamageKind.CHANGED, DamageKind.VANISHED)
UNREAD = (
    *_CHANGING,
    *(DamageKind.TOO_LARGE, DamageKind.UNREADABLE, DamageKind.NOT_PERMITTED),
)
"""The kinds of damage of a segment that a build could not read: a start may find anything there."""
_OF_OTHERS = (DamageKind.REMOVED, DamageKind.UNDECODABLE, DamageKind.NOT_INDEXABLE)
"""The kinds that another segment's cut tells of already, or that a start does not look for."""


def decide_logs(logs: DataFrame, log_dirs: DataFrame) -> Transform:
    """Return a row for each log: what a start recovers of it.

    The rules are those of ``broker_rules.start.log_start`` and
    ``cuts``, and of ``decide.kits``. The tables
    do not tell of index files and snapshots: these are taken to be in their places.

    Needs: rows of ``segments`` that are there; ``logs`` and ``log_dirs``: rows of these tables.
    Gives: the keys of a log, path, folder_state, recovery_point, is_clean, problem (of its log
        directory), segments, first_recovered_offset, of what is recovered segments, bytes and
        batches (``recovered_…``), is_left_alone (by a kit), and ends_empty. damaged: the damaged
        segments that are read (base_offset, kind, position, message, cut_bytes, next_offset);
        first_cut: the base offset of the first that is cut, and of the segments that go with it
        ``lost_bytes``, ``lost_segments`` and ``lost_records`` (null: not all are known).
    """
    dirs = log_dirs.select(
        *LOG_KEYS[:3],
        F.col("was_clean_shutdown").alias("is_clean"),
        F.col("problem"),
    )
    noted = logs.select(*LOG_KEYS, "path", "folder_state", "recovery_point", "log_start_offset")

    def transform(segments: DataFrame) -> DataFrame:
        of_logs = (
            segments.select(*LOG_KEYS, *_OF_SEGMENTS)
            .join(noted, list(LOG_KEYS))
            .join(F.broadcast(dirs), list(LOG_KEYS[:3]), how="left")
        )
        return (
            of_logs.withColumn("is_clean", F.coalesce("is_clean", F.lit(False)))
            .transform(_with_recovered)
            .groupBy(*LOG_KEYS)
            .agg(
                *map(_first, ("path", "folder_state", "recovery_point", "is_clean", "problem")),
                F.count("*").alias("segments"),
                F.min(F.when(F.col("_read"), F.col("base_offset"))).alias("first_recovered_offset"),
                F.count_if("_read").alias("recovered_segments"),
                _total("size_bytes"),
                _total("batch_count"),
                (_is_unlike_live() | F.bool_or(_is_no_torn_tail())).alias("is_left_alone"),
                F.max_by(F.coalesce("valid_bytes", "size_bytes"), "base_offset")
                .eqNullSafe(0)
                .alias("ends_empty"),
                F.collect_list(F.when(_is_found(), _found())).alias("damaged"),
                *_lost(),
            )
        )

    return transform


def sum_by_dir(logs: DataFrame) -> DataFrame:
    """Return a row for each log directory: what all of its logs cost, and what the largest does.

    Needs: what ``decide_logs`` gives; the metadata log is left out, which loads before.
    Gives: cluster, broker_id, log_dir, is_clean, logs, work and kit_work (sums of the fields of
        ``times.LogWork``), and largest (that of the log with the most recovered bytes).
    """
    keeps = F.col("is_left_alone") | (F.col("recovered_segments") == 0)
    parts = {
        "segments": F.col("segments"),
        **{name: F.col(name) for name in _RECOVERED},
    }
    with_kit = {
        "segments": F.col("segments") + (~keeps & ~F.col("ends_empty")).cast("int"),
        "recovered_segments": F.when(keeps, F.col("recovered_segments")).otherwise(1),
        "recovered_bytes": F.when(keeps, F.col("recovered_bytes")).otherwise(0),
        "recovered_batches": F.when(keeps, F.col("recovered_batches")).otherwise(0),
    }
    of_log = F.struct(*(column.alias(name) for name, column in parts.items()))
    return (
        logs.where(F.col("topic") != METADATA_TOPIC)
        .groupBy("cluster", "broker_id", "log_dir")
        .agg(
            F.first("is_clean").alias("is_clean"),
            F.count("*").alias("logs"),
            _sums(parts).alias("work"),
            _sums(with_kit).alias("kit_work"),
            F.max_by(of_log, "recovered_bytes").alias("largest"),
        )
    )


_RECOVERED = ("recovered_segments", "recovered_bytes", "recovered_batches")


def _sums(parts: Mapping[str, Column]) -> Column:
    return F.struct(*(F.sum(column).alias(name) for name, column in parts.items()))


def _with_recovered(segments: DataFrame) -> DataFrame:
    """Add ``_read``: a start recovers the segment."""
    whole_log = Window.partitionBy(*LOG_KEYS).rowsBetween(
        Window.unboundedPreceding, Window.unboundedFollowing
    )
    base, is_metadata = F.col("base_offset"), F.col("topic") == METADATA_TOPIC
    point = F.when(is_metadata, 0).otherwise(F.coalesce("recovery_point", F.lit(0)))
    floor = F.coalesce(F.max(F.when(base <= point, base)).over(whole_log), point)
    is_unflushed = (is_metadata | ~F.col("is_clean")) & (base >= floor)
    cuts = F.col("damage.kind").isin(*CUTS) & (F.col("truncated_bytes") > 0)
    first_cut = F.min(F.when(F.col("_unflushed") & cuts, base)).over(whole_log)
    last = F.max(base).over(whole_log)
    noted = segments.withColumns({"_unflushed": is_unflushed, "_last": last})
    return noted.withColumn("_first_cut", first_cut).withColumn(
        "_read", F.col("_unflushed") & F.coalesce(base <= F.col("_first_cut"), F.lit(True))
    )


def _found() -> Column:
    parts = ("base_offset", "damage.kind", "damage.position", "damage.message")
    return F.struct(*parts, F.col("truncated_bytes").alias("cut_bytes"), "next_offset")


def _is_found() -> Column:
    """Tell whether a start finds a segment damaged."""
    is_own = F.col("damage").isNotNull() & ~F.col("damage.kind").isin(*_OF_OTHERS)
    is_zeros = F.col("damage.kind") == DamageKind.PREALLOCATED_TAIL.value
    is_no_loss = is_zeros & (F.col("base_offset") == F.col("_last"))
    return F.col("_read") & is_own & ~is_no_loss


def _lost() -> tuple[Column, ...]:
    """Return what goes with the first segment that is cut."""
    is_lost = F.col("_unflushed") & (F.col("base_offset") > F.col("_first_cut"))
    is_uncounted = F.col("record_count").isNull() | (F.col("truncated_bytes") > 0)
    is_known = F.count_if(is_lost & is_uncounted) == 0
    records = F.coalesce(F.sum(F.when(is_lost, F.col("record_count"))), F.lit(0))
    return (
        F.first("_first_cut").alias("first_cut"),
        F.coalesce(F.sum(F.when(is_lost, F.col("size_bytes"))), F.lit(0)).alias("lost_bytes"),
        F.count_if(is_lost).alias("lost_segments"),
        F.when(is_known, records).alias("lost_records"),
    )


def _first(column: str) -> Column:
    return F.first(column).alias(column)


def _total(column: str) -> Column:
    total = F.sum(F.when(F.col("_read"), F.col(column)))
    return F.coalesce(total, F.lit(0)).alias(f"recovered_{_SHORT[column]}")


_SHORT = {"size_bytes": "bytes", "batch_count": "batches"}


def _is_unlike_live() -> Column:
    """Tell whether a kit leaves a log alone for its name, its folder or its log start offset."""
    start = F.first(F.coalesce("log_start_offset", F.lit(0)))
    rules = (
        F.first("topic") == METADATA_TOPIC,
        F.first("folder_state") != FolderState.LIVE.value,
        (start > 0) & (start < F.min("base_offset")),
    )
    return reduce(Column.__or__, rules)


def _is_no_torn_tail() -> Column:
    """Tell whether a segment that a start reads is damaged by more than a torn tail."""
    is_torn = F.col("damage.kind").isin(*TORN) & (F.col("base_offset") == F.col("_last"))
    return F.col("_unflushed") & F.col("damage").isNotNull() & ~is_torn
