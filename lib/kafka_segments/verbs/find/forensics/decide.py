"""Decide what the timestamps of batches tell: units, clocks, order, what a broker would refuse."""

from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from kafka_segments.engine.derived.timestamps import guess_unit
from kafka_segments.engine.tables.keys import Transform
from kafka_segments.kafka.text.moments import YEAR_2000_S, YEAR_2100_S

PRODUCER = ("topic", "partition", "producer_id")
BEFORE, AFTER, DIFFERENCE = "before", "after", "difference"
_UNITS = ("ms", "ns", "s", "unknown", "us")
_IN_ORDER = ("segment_base_offset", "position", "path")


@dataclass(frozen=True)
class Admission:
    """Limits of message.timestamp.{before,after,difference}.max.ms, in ms."""

    before_ms: int = 2**63 - 1
    after_ms: int = 3_600_000
    difference_ms: int = 2**63 - 1


def only_of_producers(batches: DataFrame) -> DataFrame:
    """Keep the batches that producers sent: a broker writes the markers of transactions itself.

    Needs: rows of ``kafka_segments`` batches.
    Gives: the same, without those with ``error``.
    """
    return batches.where("error IS NULL AND NOT coalesce(is_control, false)")


def find_unread(batches: DataFrame) -> DataFrame:
    """Find the segments that could not be read to their end, and the folders not listed.

    It is no finding that the last segment of a log ends early: a running broker may be writing to
    it. That the segment cannot be read at all is a finding.

    Needs: rows of ``kafka_segments`` batches.
    Gives: path, error, is_finding.
    """
    log = F.regexp_extract("path", "^(.*)/[^/]*$", 1)
    in_log = Window.partitionBy("_log").rowsBetween(
        Window.unboundedPreceding, Window.unboundedFollowing
    )
    is_last = F.col("segment_base_offset") == F.max("segment_base_offset").over(in_log)
    ends_early = F.coalesce(is_last & (F.col("position") > 0), F.lit(False))
    is_error = F.col("error").isNotNull()
    by_segment = batches.groupBy("path", "segment_base_offset").agg(
        F.max(F.when(is_error, F.col("position"))).alias("position"),
        F.max("error").alias("error"),
    )
    return (
        by_segment.withColumn("_log", log)
        .withColumn("is_finding", ~ends_early)
        .where(is_error)
        .select("path", "error", "is_finding")
    )


def judge_timestamps(*, now_ms: int, admission: Admission) -> Transform:
    """Add to each batch the unit of its timestamp, its steps, and the limits that refuse it.

    ``arrival_ms`` is when the broker took the batch, as well as the log tells:

    1. With LogAppendTime it is the batch's timestamp. Batches v2 keep the first record's own
       timestamp beside it.
    2. With CreateTime it is the greatest timestamp of the whole log up to here that is not after
       ``now_ms``. The batch came later if the clocks of all producers ran behind, and earlier if
       one ran ahead. So ``before`` is right where no clock ran ahead, and may miss batches.
    3. With CreateTime ``after`` counts from ``now_ms``, which is not before the arrival. So it may
       miss batches, and names none wrongly.

    Needs: rows of ``only_of_producers``.
    Gives: these, and create_ms (null: none), arrival_ms, unit, ahead_ms, step_ms (from the
        producer's greatest before; null at its first), skew_ms (both clocks known),
        refused_by (array of before, after, difference).
    """

    def transform(batches: DataFrame) -> DataFrame:
        by_place = Window.partitionBy("topic", "partition").orderBy(*_IN_ORDER)
        by_producer = Window.partitionBy(*PRODUCER).orderBy(*_IN_ORDER)
        so_far = by_place.rowsBetween(Window.unboundedPreceding, Window.currentRow)
        before = by_producer.rowsBetween(Window.unboundedPreceding, -1)
        is_stamped = F.col("timestamp_type") == "LogAppendTime"
        seen = F.when(F.col("max_timestamp_ms").between(0, now_ms), F.col("max_timestamp_ms"))
        arrival = F.when(is_stamped, F.col("max_timestamp_ms")).otherwise(F.max(seen).over(so_far))
        return (
            batches.withColumn("create_ms", _create_ms(is_stamped))
            .withColumn("arrival_ms", arrival)
            .withColumn("unit", _unit(F.col("create_ms")))
            .withColumn("ahead_ms", F.try_subtract("create_ms", F.lit(now_ms)))
            .withColumn("step_ms", F.try_subtract("create_ms", F.max("create_ms").over(before)))
            .withColumn(
                "skew_ms", F.when(is_stamped, F.try_subtract("arrival_ms", F.col("create_ms")))
            )
            .withColumn("refused_by", _refused_by(admission, is_stamped))
        )

    return transform


def sum_by_producer() -> Transform:
    """Sum up judged batches by topic, partition and producer.

    Needs: what ``judge_timestamps`` gives.
    Gives: topic, partition, producer_id, batches, records (of batches whose header tells),
        timestamp_types, unit (the most frequent, of equals the first by name) and unit_share (of
        the batches with a timestamp), future_batches, future_share, largest_ahead_ms, regressions,
        largest_regression_ms, largest_step_ms, largest_step_offset, skew_least_ms, skew_most_ms,
        skew_mean_ms, refused_<limit>_batches and _records, first_refused_offset.
    """

    def transform(judged: DataFrame) -> DataFrame:
        return judged.groupBy(*PRODUCER).agg(
            *_counts(), *_units(), *_future(), *_steps(), *_skew(), *_refusals()
        )

    return transform


def _counts() -> list[Column]:
    return [
        F.count("*").alias("batches"),
        F.coalesce(F.sum("record_count"), F.lit(0)).alias("records"),
        F.sort_array(F.collect_set("timestamp_type")).alias("timestamp_types"),
    ]


def _units() -> list[Column]:
    counts = ((unit, F.count_if(F.col("unit") == unit)) for unit in _UNITS)
    by_frequency = F.array(
        *(F.struct((-count).alias("less"), F.lit(unit).alias("unit")) for unit, count in counts)
    )
    most = F.array_min(by_frequency)
    timed = F.count("create_ms")
    return [
        F.when(timed > 0, most["unit"]).alias("unit"),
        F.try_divide(-most["less"], timed).alias("unit_share"),
    ]


def _future() -> list[Column]:
    is_ahead = F.col("ahead_ms") > 0
    return [
        F.count_if(is_ahead).alias("future_batches"),
        F.try_divide(F.count_if(is_ahead), F.count("create_ms")).alias("future_share"),
        F.max(F.when(is_ahead, F.col("ahead_ms"))).alias("largest_ahead_ms"),
    ]


def _steps() -> list[Column]:
    back = F.when(F.col("step_ms") < 0, F.try_subtract(F.lit(0), F.col("step_ms")))
    forth = F.when(F.col("step_ms") > 0, F.col("step_ms"))
    return [
        F.count_if(F.col("step_ms") < 0).alias("regressions"),
        F.max(back).alias("largest_regression_ms"),
        F.max(forth).alias("largest_step_ms"),
        F.max_by("last_offset", forth).alias("largest_step_offset"),
    ]


def _skew() -> list[Column]:
    return [
        F.min("skew_ms").alias("skew_least_ms"),
        F.max("skew_ms").alias("skew_most_ms"),
        F.avg("skew_ms").alias("skew_mean_ms"),
    ]


def _refusals() -> list[Column]:
    sums = []
    for limit in (BEFORE, AFTER, DIFFERENCE):
        is_refused = F.array_contains("refused_by", limit)
        records = F.sum(F.when(is_refused, F.col("record_count")))
        sums.append(F.count_if(is_refused).alias(f"refused_{limit}_batches"))
        sums.append(F.coalesce(records, F.lit(0)).alias(f"refused_{limit}_records"))
    refused = F.when(F.size("refused_by") > 0, F.col("last_offset"))
    return [*sums, F.min(refused).alias("first_refused_offset")]


def _create_ms(is_stamped: Column) -> Column:
    """Return the producer's own timestamp: the greatest, or the first record's where stamped."""
    own = F.when(~F.col("has_delete_horizon"), F.col("base_timestamp_ms"))
    found = F.when(is_stamped, own).otherwise(F.col("max_timestamp_ms"))
    return F.when(found >= 0, found)


def _unit(timestamp: Column) -> Column:
    """Guess the unit of a number: the one in which it lies in the years 2000 to 2100."""
    is_ms = timestamp.between(YEAR_2000_S * 1000, YEAR_2100_S * 1000)
    guess = F.when(is_ms, "ms").otherwise(F.coalesce(guess_unit(timestamp), F.lit("unknown")))
    return F.when(timestamp.isNotNull(), guess)


def _refused_by(admission: Admission, is_stamped: Column) -> Column:
    age = F.try_subtract("arrival_ms", F.col("create_ms"))
    ahead = F.when(is_stamped, F.try_subtract("create_ms", F.col("arrival_ms"))).otherwise(
        F.col("ahead_ms")
    )
    is_old, is_ahead = age > F.lit(admission.before_ms), ahead > F.lit(admission.after_ms)
    is_far = (age > F.lit(admission.difference_ms)) | (ahead > F.lit(admission.difference_ms))
    return F.array_compact(
        F.array(
            *(
                F.when(is_refused, limit)
                for limit, is_refused in ((BEFORE, is_old), (AFTER, is_ahead), (DIFFERENCE, is_far))
            )
        )
    )
