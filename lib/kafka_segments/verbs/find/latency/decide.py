"""Decide broker latency, LAT - CT: append time less the producer's create time."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kafka_segments.engine.tables.findings import is_finding
from kafka_segments.engine.tables.keys import Transform
from kafka_segments.engine.tables.long_arithmetic import minus

_HOUR_MS = 3_600_000
_ACCURACY = 10_000
_BOUNDS_MS = (1, 10, 100, 1_000, 10_000, 60_000)
_PERCENTILES = {"p50_ms": 0.5, "p90_ms": 0.9, "p99_ms": 0.99}


def only_stamped(segments: DataFrame) -> DataFrame:
    """Keep the segments in which a batch has LogAppendTime."""
    return segments.where(F.array_contains("timestamp_types", "LogAppendTime"))


def only_wrapped(segments: DataFrame) -> DataFrame:
    """Keep the segments that may hold compressed batches v1."""
    is_compressed = F.exists("codecs", lambda codec: codec != "none")
    return segments.where(F.array_contains("magics", 1) & is_compressed)


def decide_latency() -> Transform:
    """Distribute the latency of batches by topic and hour of their append time.

    1. Batches v2 with LogAppendTime tell it: their greatest timestamp is the append time, their
       base timestamp still the create time of the first record. So do compressed batches v1 as
       ``read_wrapper_times`` reads them. Other batches are not counted.
    2. Control batches, empty batches, and batches whose base timestamp is a delete horizon do not
       tell it.
    3. Where a broker wrote a batch anew, both times are the append time. So batches with a
       latency of 0 are counted apart, and left out of the percentiles.
    4. A negative latency is clock skew. It is counted apart, too.
    5. Segments that could not be read to their end are counted in a row without an hour. An
       active segment that a running broker is writing to is none.

    Needs: cluster, topic, path, is_active, damage (of the segment), and of batches magic,
        base_timestamp_ms, max_timestamp_ms, error; of v2 also timestamp_type, is_control,
        has_delete_horizon, record_count.
    Gives: cluster, topic, hour_ms (its start; null: see 5), batches, p50_ms, p90_ms, p99_ms,
        max_ms, histogram (array of below_ms, batches; the last below_ms is null), equal_batches,
        negative_batches, most_negative_ms, unread_segments.
    Source: LogValidator.assignOffsetsNonCompressed, validateMessagesAndAssignOffsetsCompressed.
    """
    latency = F.col("latency_ms")
    is_told = latency > 0
    is_first_record = ~F.col("is_control") & ~F.col("has_delete_horizon")
    is_stamped = (F.col("timestamp_type") == "LogAppendTime") & is_first_record
    tells = (F.col("magic") == 1) | (is_stamped & (F.col("record_count") > 0))
    holds = F.col("base_timestamp_ms") >= 0
    is_left_open = F.col("damage").isNotNull() & ~is_finding()
    is_unread = F.col("error").isNotNull() & ~is_left_open
    hour_ms = minus("max_timestamp_ms", F.pmod("max_timestamp_ms", F.lit(_HOUR_MS)))

    def transform(batches: DataFrame) -> DataFrame:
        told = batches.where(is_unread | (tells & holds)).select(
            "cluster",
            "topic",
            hour_ms.alias("hour_ms"),
            F.try_subtract("max_timestamp_ms", "base_timestamp_ms").alias("latency_ms"),
            F.when(is_unread, F.col("path")).alias("unread"),
        )
        return told.groupBy("cluster", "topic", "hour_ms").agg(
            F.count_if(is_told).alias("batches"),
            *(
                F.percentile_approx(F.when(is_told, latency), share, _ACCURACY).alias(name)
                for name, share in _PERCENTILES.items()
            ),
            F.max(F.when(is_told, latency)).alias("max_ms"),
            _histogram(latency).alias("histogram"),
            F.count_if(latency == 0).alias("equal_batches"),
            F.count_if(latency < 0).alias("negative_batches"),
            F.min(F.when(latency < 0, latency)).alias("most_negative_ms"),
            F.count_distinct("unread").alias("unread_segments"),
        )

    return transform


def _histogram(latency: Column) -> Column:
    """Count latencies above 0 by the first bound above each."""
    pairs = zip(_BOUNDS_MS, (*_BOUNDS_MS[1:], None), strict=True)
    return F.array(
        *(
            F.struct(
                F.lit(high).cast("long").alias("below_ms"),
                F.count_if((latency >= low) & _is_below(latency, high)).alias("batches"),
            )
            for low, high in pairs
        )
    )


def _is_below(latency: Column, high: int | None) -> Column:
    return F.lit(True) if high is None else latency < high
