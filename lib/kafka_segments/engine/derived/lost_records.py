"""Records that logs have lost, though records before or behind them are there.

A coordinator keeps its state as the last record of each key. Of what lies in front of lost records
it is not known whether it still holds: a later record may be among them.
"""

from functools import reduce
from typing import NamedTuple

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from kafka_segments.engine.tables.findings import is_finding, is_unreadable
from kafka_segments.engine.tables.keys import LOG_KEYS, SEGMENT_KEYS, Transform
from kafka_segments.engine.tables.long_arithmetic import MOST, minus, plus
from kafka_segments.engine.tables.windows import in_order
from kafka_segments.kafka.broker_rules.gaps import (
    A_SEGMENT_IS_MISSING,
    IN_NO_SEGMENT,
    NEVER_COMPACTED,
)
from kafka_segments.kafka.messages.records import UNKNOWN

PLACE = "STRUCT<until: BIGINT, why: STRING>"
_OF_LOG = ("cleaner_offset", "log_start_offset")
READ_OF_LOGS = (*LOG_KEYS, *_OF_LOG, "leader_epochs")
READ_OF_SEGMENTS = (
    *SEGMENT_KEYS,
    *("path", "valid_bytes", "next_offset", "record_count", "is_active", "damage"),
)
"""Columns of table ``logs``, and of ``segments``, that ``lost_records`` takes."""


def with_next_base(segments: DataFrame) -> DataFrame:
    """Add next_base, the base offset of the next segment of a log; null: there is none.

    Needs: ``SEGMENT_KEYS``.
    """
    return segments.withColumn("next_base", F.lead("base_offset").over(in_order(LOG_KEYS)))


def lost_records(logs: DataFrame) -> Transform:
    """Return up to where each log has lost records, by its segments.

    1. What follows damage in a segment is lost, up to the next segment; in the last one whatever
       was there. An incomplete batch at the end of the log is none: a broker was writing it.
    2. Offsets that are in no segment are lost. Only of topics that may be compacted some may be
       missing: up to where the cleaner came, by its checkpoint, and behind it where the segment in
       front, which it has not touched, lacks some. Where the checkpoint does not name the log they
       are lost if the segment in front has a record for each of its offsets (``is_gap_told``).
    3. So are those in front of the first segment of a topic of Kafka's own that is never compacted,
       where the log's leader epochs begin earlier, and its checkpointed start does, too.

    Needs: rows of ``segments``; ``logs``: rows of ``logs``.
    Gives: the key of a log, lost (until: the first offset behind what is lost; why, in words); no
        row of a log that has lost nothing.
    Source: LogCleanerManager.doneCleaning, LeaderEpochFileCache.truncateFromStartAsyncFlush.
    """
    epochs_begin = F.try_element_at("leader_epochs", F.lit(1))["start_offset"].alias("_begin")
    known = F.broadcast(logs.select(*LOG_KEYS, *_OF_LOG, epochs_begin))
    is_never_compacted = F.col("topic").isin(*NEVER_COMPACTED)
    gap = _gap()
    damage = F.concat_ws(
        "",
        *("path", F.lit(" cannot be read from byte "), F.coalesce("valid_bytes", F.lit(0))),
        *(F.lit(" on: "), "damage.message"),
    )
    is_first = F.col("base_offset") == F.min("base_offset").over(Window.partitionBy(*LOG_KEYS))
    is_late = F.col("base_offset") > F.col("_begin")
    is_late &= F.col("base_offset") > F.coalesce("log_start_offset", F.lit(0))
    late = F.format_string(
        "it begins at offset %d, its first segments are missing: its leader epochs begin at %d",
        "base_offset",
        "_begin",
    )
    no_begin = F.when(is_first & is_late & is_never_compacted, _place(F.col("base_offset"), late))
    until = F.coalesce("next_base", F.lit(MOST))
    place = F.when(is_finding(), _place(until, damage)).when(
        gap.is_told, _place(F.col("next_base"), gap.why)
    )

    def transform(segments: DataFrame) -> DataFrame:
        return (
            segments.transform(with_next_base)
            .join(known, list(LOG_KEYS), how="left")
            .withColumn("_lost", F.greatest(place, no_begin))
            .groupBy(*LOG_KEYS)
            .agg(F.max("_lost").alias("lost"))
            .where(F.col("lost").isNotNull())
        )

    return transform


class _Gap(NamedTuple):
    """Offsets behind a segment that are in no other; ``first`` of them, and why they are lost."""

    is_told: Column
    first: Column
    why: Column


def _gap() -> _Gap:
    """Return the gap behind a segment, which needs next_base and ``_OF_LOG`` of its log."""
    offsets = minus("next_offset", "base_offset")
    is_whole = F.col("record_count") == offsets
    was_cleaned = F.col("base_offset") < F.col("cleaner_offset")
    is_behind_cleaner = (F.col("next_base") > F.col("cleaner_offset")) & (
        was_cleaned | F.coalesce(F.col("record_count") >= offsets, F.lit(True))
    )
    is_never_compacted = F.col("topic").isin(*NEVER_COMPACTED)
    is_told = is_never_compacted | F.coalesce(is_behind_cleaner, is_whole, F.lit(False))
    first = F.greatest("next_offset", F.coalesce("log_start_offset", F.lit(0)))
    why = F.format_string(
        IN_NO_SEGMENT,
        first,
        minus("next_base", F.lit(1)),
        F.lit(A_SEGMENT_IS_MISSING),
    )
    return _Gap(is_told & (F.col("next_base") > first), first, why)


def first_gaps(logs: DataFrame) -> Transform:
    """Return the first offsets of each log that are in no segment, by rule 2 of ``lost_records``.

    Needs: rows of ``segments``; ``logs``: rows of ``logs``.
    Gives: the key of a log, gap (offset: the first one; why, in words); no row of a log without.
    """
    known = F.broadcast(logs.select(*LOG_KEYS, *_OF_LOG))
    gap = _gap()

    def transform(segments: DataFrame) -> DataFrame:
        joined = segments.transform(with_next_base).join(known, list(LOG_KEYS), how="left")
        place = F.struct(gap.first.alias("offset"), gap.why.alias("why"))
        told = joined.where(gap.is_told & ~is_finding())
        return told.groupBy(*LOG_KEYS).agg(F.min(place).alias("gap"))

    return transform


def _place(until: Column, why: Column) -> Column:
    return F.struct(until.alias("until"), why.alias("why")).cast(PLACE)


def with_lost(lost: DataFrame | None) -> Transform:
    """Add ``lost`` to rows with the key of a log; null, or ``lost`` None: nothing is lost."""
    if lost is None:
        return lambda rows: rows.withColumn("lost", F.lit(None).cast(PLACE))
    return lambda rows: rows.join(F.broadcast(lost), list(LOG_KEYS), how="left")


def with_unread(records: DataFrame) -> DataFrame:
    """Add ``unread``, as ``lost`` of ``lost_records``, by what could not be read of a log.

    A record whose key is known is not among it: of that key alone it is not known what is current.

    Needs: rows of ``internal_records``, all of a log, with is_active (``with_file_facts``).
    Gives: the same, unread (null: all could be read).
    """
    of_log = Window.partitionBy(*LOG_KEYS)
    next_base = F.lead("base_offset").over(of_log.orderBy("base_offset", "row"))
    place = _place(F.col("_until"), F.concat_ws(": ", "file", "problem"))
    until = F.coalesce("offset", next_base, F.lit(MOST))
    is_of_any_key = is_unreadable() & F.col("key_json").isNull()
    unread = F.max(F.when(is_of_any_key, place)).over(of_log)
    return records.withColumn("_until", until).withColumn("unread", unread).drop("_until")


def lost_by_records(records: DataFrame) -> DataFrame:
    """Return ``unread`` of each log as rows of ``lost_records``; null: all could be read.

    Needs: rows of ``internal_records`` with is_active.
    """
    of_logs = records.transform(with_unread).groupBy(*LOG_KEYS)
    return of_logs.agg(F.max("unread").alias("lost"))


def lost_by_unknown(records: DataFrame) -> DataFrame:
    """Return up to where logs have records of unknown types, as rows of ``lost_records``.

    Needs: rows of ``internal_records``.
    """
    why = F.format_string("%s: its record at offset %d is of no known type", "file", "offset")
    of_logs = records.where(F.col("kind") == UNKNOWN).groupBy(*LOG_KEYS)
    return of_logs.agg(F.max(_place(plus("offset", 1), why)).alias("lost"))


def lost_by_files(files: DataFrame) -> Transform:
    """Return up to where ``internals`` has not read the segments that a build has found.

    It has where the file had as many bytes, or more: a broker was writing it. Tables that do not
    say how many there were are taken for read.

    Needs: rows of ``segments``; ``files``: rows of ``internal_files``.
    Gives: the key of a log, lost; no row of a log that was read.
    """
    read_bytes = F.coalesce("size_bytes", F.lit(MOST)).alias("_read_bytes")
    read = files.where(~F.col("is_snapshot")).select(*SEGMENT_KEYS, read_bytes)
    is_read = F.coalesce("_read_bytes", F.lit(0)) >= F.col("size_bytes")
    why = F.concat(
        "path",
        F.lit(
            " was not read by `internals` as it was built: run `kafka-segments build --internals`"
            " again on the same sources"
        ),
    )
    place = _place(F.coalesce("next_base", F.lit(MOST)), why)

    def transform(segments: DataFrame) -> DataFrame:
        found = segments.transform(with_next_base).join(read, list(SEGMENT_KEYS), how="left")
        return found.where(~is_read).groupBy(*LOG_KEYS).agg(F.max(place).alias("lost"))

    return transform


def with_lost_of(*unread: DataFrame) -> Transform:
    """Add to ``lost`` of logs what else was lost; ``unread``: the key of a log, lost.

    Needs: the key of a log, lost.
    """
    rows = reduce(DataFrame.unionByName, unread)
    of_logs = rows.groupBy(*LOG_KEYS).agg(F.max("lost").alias("_unread"))

    def transform(logs: DataFrame) -> DataFrame:
        joined = logs.join(F.broadcast(of_logs), list(LOG_KEYS), how="left")
        return joined.withColumn("lost", F.greatest("lost", "_unread")).drop("_unread")

    return transform


def all_lost(logs: DataFrame) -> DataFrame:
    """Return what logs have lost, one in doubt all that it has.

    Needs: the key of a log, doubt, lost.
    Gives: the key of a log, lost.
    """
    whole = _place(F.lit(MOST), F.regexp_replace("doubt", "^not known: ", ""))
    lost = F.coalesce(F.when(F.col("doubt").isNotNull(), whole), "lost")
    return logs.select(*LOG_KEYS, lost.alias("lost"))


def as_read(logs: DataFrame) -> DataFrame:
    """Return logs as ``unread_partitions`` needs them.

    Needs: cluster, partition, log_start_offset, doubt, lost (``lost_records``).
    """
    return logs.select(
        "cluster", "partition", "log_start_offset", "doubt", F.col("lost.why").alias("lost")
    )


def with_unread_until(segments: DataFrame) -> DataFrame:
    """Add up to which offset records are lost where the rest of a segment cannot be read.

    Needs: rows of ``segments``.
    Gives: the same, next_base, unread_until (null: nothing is lost, a broker was writing its end).
    """
    is_left_open = F.col("damage").isNotNull() & ~is_finding()
    until = F.when(~is_left_open, F.coalesce("next_base", F.lit(MOST)))
    return segments.transform(with_next_base).withColumn("unread_until", until)
