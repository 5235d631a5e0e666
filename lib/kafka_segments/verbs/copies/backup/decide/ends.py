"""Whether a backup's log ends too early, by what the cluster holds behind its end."""

from typing import NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kafka_segments.engine.tables.keys import Transform
from kafka_segments.files.folders import kinds
from kafka_segments.kafka.messages.records import INTERNAL_TOPICS
from kafka_segments.verbs.copies.divergence.decide.copies import DifferenceKind

LOG = ("topic", "partition")
MARGIN_MS = 5 * 60_000
"""How far apart clocks, and the copies of one backup, may be.

Twice what Kafka's defaults let pass: a producer sends a batch for 2 minutes
(``delivery.timeout.ms``), and a follower in the ISR is 30 seconds behind
(``replica.lag.time.max.ms``).
"""
_NS_A_MS = 1_000_000


class Moment(NamedTuple):
    """The backup's moment in ms since 1970, and whether the user gave it."""

    ms: int
    is_given: bool

    @property
    def past_ms(self) -> int:
        """What is as old by a broker's clock was there at the moment."""
        return self.ms if self.is_given else self.past_of_producers_ms

    @property
    def past_of_producers_ms(self) -> int:
        """What is as old by its producer's clock is not on its way to the broker any more."""
        return self.ms - MARGIN_MS


def log_ends(compared: DataFrame, *, backup: str) -> DataFrame:
    """Return the logs that end earlier in the backup than on the cluster.

    Needs: rows of ``divergences``.
    Gives: topic, partition, from_offset, until_offset, holders (copies that hold the first offset).
    """
    return (
        compared.where(_is_behind(backup) & (F.size("right_copies") > 0))
        .groupBy(*LOG)
        .agg(
            F.min("from_offset").alias("from_offset"),
            F.max("until_offset").alias("until_offset"),
            F.min_by("right_copies", "from_offset").alias("holders"),
        )
    )


def lost_ends(compared: DataFrame, high_watermarks: DataFrame, *, backup: str) -> DataFrame:
    """Judge what neither the backup nor the cluster holds, though a high watermark lies behind it.

    It is missed if the backup notes that high watermark. Else the cluster does, and whether that
    was there at the moment is not known.

    Needs: rows of ``divergences``; ``high_watermarks``: see ``judged_ends``.
    Gives: the columns of ``judged_ends``.
    """
    lacking = compared.where(_is_behind(backup) & (F.size("right_copies") == 0))
    is_noted = F.coalesce(F.col("from_offset") < F.col("high_watermark"), F.lit(False))
    until = F.least("until_offset", F.when(is_noted, F.col("high_watermark")))
    return lacking.join(high_watermarks, list(LOG), how="left").select(
        *LOG,
        "from_offset",
        until.alias("until_offset"),
        "kind",
        "detail",
        is_noted.alias("is_missed"),
    )


def _is_behind(backup: str) -> Column:
    return (F.col("kind") == DifferenceKind.BEHIND) & F.array_contains("copies", backup)


def next_batches(ends: DataFrame, read: DataFrame) -> Transform:
    """Return where to look up the cluster's first batch behind the end of the backup's log.

    Of several copies the one is taken whose segment was closed first.

    Needs: rows of ``divergence``'s ``chosen_segments``; ``ends``: rows of ``log_ends``; ``read``:
        rows of ``read_segments``.
    Gives: topic, partition, path, size_bytes, position, offset, written_ms (the file's mtime).
    """
    behind = ends.select(*LOG, F.col("from_offset").alias("offset"), "holders")
    is_held = F.array_contains("holders", F.col("copy")) & (F.col("base_offset") <= F.col("offset"))
    file = F.struct("path", "size_bytes", "offset", _written().alias("written_ms"))
    in_front = F.filter("ranges", lambda one: one["base_offset"] <= F.col("offset"))
    position = F.array_max(F.transform(in_front, lambda one: one["position"]))

    def transform(segments: DataFrame) -> DataFrame:
        held = segments.join(behind, list(LOG), how="inner").where(is_held)
        by_copy = held.groupBy("copy", *LOG).agg(F.max_by(file, "base_offset").alias("_file"))
        first = by_copy.groupBy(*LOG).agg(F.min_by("_file", "_file.written_ms").alias("_file"))
        return (
            first.select(*LOG, "_file.*")
            .join(read.select("path", "ranges"), "path", how="inner")
            .withColumn("position", F.coalesce(position, F.lit(0)))
            .drop("ranges")
        )

    return transform


def last_batches(ends: DataFrame, read: DataFrame, *, backup: str) -> Transform:
    """Return where to look up the last batch of each log of the backup, and of longer cluster logs.

    Needs: rows of ``divergence``'s ``chosen_segments``; ``ends``: rows of ``log_ends``; ``read``:
        rows of ``read_segments``.
    Gives: copy, topic, partition, path, size_bytes, position, offset, written_ms (the file's
        mtime).
    """
    last_range = F.array_max(
        F.transform(
            "ranges", lambda one: F.struct(one["last_offset"].alias("offset"), one["position"])
        )
    )
    latest = F.max_by(F.struct("path", last_range.alias("_range")), "segment_base")
    behind = ends.select(*LOG, F.lit(True).alias("_goes_on"))

    def transform(segments: DataFrame) -> DataFrame:
        held = read.where(F.size("ranges") > 0).groupBy("copy", *LOG).agg(latest.alias("_last"))
        asked = held.join(behind, list(LOG), how="left").where(
            (F.col("copy") == backup) | F.col("_goes_on")
        )
        files = segments.select("path", "size_bytes", _written().alias("written_ms"))
        return (
            asked.select("copy", *LOG, "_last.path", "_last._range.*")
            .join(files, "path", how="inner")
            .select("copy", *LOG, "path", "size_bytes", "position", "offset", "written_ms")
        )

    return transform


def backup_moment(last: DataFrame, *, backup: str) -> Transform:
    """Tell when a backup was taken: at the youngest timestamp at the ends of its logs.

    1. One that is younger than the newest segment lies in the future, and does not count.
    2. Where no other is there, the moment is when that segment was written.

    Needs: rows of ``divergence``'s ``with_copy``; ``last``: rows of ``last_batches`` with
        timestamp_ms.
    Gives: moment_ms, in ms since 1970 (null: the backup holds no segment); one row.
    """
    is_segment = (F.col("kind") == kinds.SEGMENT) & (F.col("copy") == backup)
    dated = last.where((F.col("copy") == backup) & (F.col("timestamp_ms") >= 0))
    is_past = F.col("timestamp_ms") <= F.col("_written_ms")

    def transform(listed: DataFrame) -> DataFrame:
        newest = listed.where(is_segment).agg(F.max(_written()).alias("_written_ms"))
        both = newest.join(dated.select("timestamp_ms"), is_past, how="left")
        return both.agg(F.coalesce(F.max("timestamp_ms"), F.max("_written_ms")).alias("moment_ms"))

    return transform


def dated_logs(last: DataFrame, *, backup: str) -> DataFrame:
    """Keep the logs whose producers' timestamps tell when records were written.

    In such a log, the last batch that a producer stamped is as old as the file that it ends, in
    some copy of the cluster. It is not where timestamps are of events, or mtimes of a copy.

    Needs: rows of ``last_batches`` with producer_ms.
    Gives: topic, partition.
    """
    written = F.col("written_ms")
    is_close = F.col("producer_ms").between(written - MARGIN_MS, written + MARGIN_MS)
    return last.where((F.col("copy") != backup) & is_close).select(*LOG).distinct()


def judged_ends(
    high_watermarks: DataFrame, behind: DataFrame, dated: DataFrame, *, moment: Moment
) -> Transform:
    """Decide for each log that ends earlier in the backup whether it misses what follows.

    1. It does below the high watermark that the backup itself noted.
    2. It does if what follows is in a segment that was last written before the moment.
    3. It does if the batch that follows is not younger than the moment, and its timestamp tells
       when it was written: the broker's clock gave it, or the log is one of ``dated`` and it is
       ``MARGIN_MS`` older than the moment. What is younger can have been on its way to the broker.
    4. It is not known for other batches that are not younger, or have no timestamp.
    5. Else what follows was written later.

    From a moment that the user did not give, ``MARGIN_MS`` is subtracted in all that.

    Needs: rows of ``log_ends``; ``high_watermarks``: topic, partition, high_watermark of the
        backup; ``behind``: rows of ``next_batches`` with timestamp_ms and is_of_broker; ``dated``:
        topic, partition.
    Gives: topic, partition, from_offset, until_offset, kind, detail, is_missed (false: it is not
        known). What was written later is left out.
    """
    past = F.lit(moment.past_ms)
    is_there = F.col("timestamp_ms").isNotNull()
    was_written = is_there & (F.col("written_ms") <= past)
    is_stamped = F.coalesce(F.col("timestamp_ms") >= 0, F.lit(False))
    is_old = is_stamped & (F.col("timestamp_ms") <= past)
    is_of_broker = F.col("is_of_broker") | F.col("topic").isin(*sorted(INTERNAL_TOPICS))
    is_late = F.col("timestamp_ms") > F.lit(moment.past_of_producers_ms)
    tells = is_of_broker | (F.col("_is_dated").isNotNull() & ~is_late)
    follows = is_old & F.coalesce(tells, F.lit(False))
    is_noted = F.coalesce(F.col("from_offset") < F.col("high_watermark"), F.lit(False))
    is_missed = follows | was_written | is_noted
    begin = "the backup ends there, and "
    minutes = MARGIN_MS // 60_000
    detail = (
        F.when(follows, _words(f"{begin}a batch of ", at("timestamp_ms"), " follows"))
        .when(
            was_written,
            _words(f"{begin}the segment that follows was last written at ", at("written_ms")),
        )
        .when(is_noted, _words(f"{begin}notes the high watermark ", F.col("high_watermark")))
        .when(
            is_old,
            _words(
                f"{begin}a batch follows that its producer dated ",
                at("timestamp_ms"),
                F.when(
                    is_late, f", and it can have been on its way for {minutes} minutes"
                ).otherwise(", which may not be when it was written"),
                ": a replication-offset-checkpoint in the backup would tell",
            ),
        )
        .when(~is_there, f"{begin}the batch that follows cannot be read")
        .when(~is_stamped, f"{begin}the batch that follows has no timestamp")
    )
    until = F.when(follows | was_written, F.col("until_offset")).otherwise(
        F.when(is_noted, F.least("until_offset", "high_watermark")).otherwise(F.col("until_offset"))
    )

    def transform(ends: DataFrame) -> DataFrame:
        return (
            ends.join(high_watermarks, list(LOG), how="left")
            .join(behind, list(LOG), how="left")
            .join(dated.withColumn("_is_dated", F.lit(True)), list(LOG), how="left")
            .select(
                *LOG,
                "from_offset",
                until.alias("until_offset"),
                F.lit(DifferenceKind.BEHIND.value).alias("kind"),
                detail.alias("detail"),
                is_missed.alias("is_missed"),
            )
            .where("detail IS NOT NULL")
        )

    return transform


def at(column: str) -> Column:
    """Return the moment of a column of ms since 1970, in words."""
    return F.concat(
        F.date_format(F.timestamp_millis(F.col(column)), "yyyy-MM-dd HH:mm:ss"), F.lit(" UTC")
    )


def _written() -> Column:
    return F.expr(f"mtime_ns div {_NS_A_MS}")


def _words(*parts: str | Column) -> Column:
    return F.concat(*(F.lit(part) if isinstance(part, str) else part for part in parts))
