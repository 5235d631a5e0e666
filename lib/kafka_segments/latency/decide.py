"""Broker latency, LAT - CT: from the producer's create time to the broker's append time."""

from collections.abc import Callable

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kafka_segments.tables.bounded import minus

_HOUR_MS = 3_600_000
_ACCURACY = 10_000
_BOUNDS_MS = (1, 10, 100, 1_000, 10_000, 60_000)
_PERCENTILES = {"p50_ms": 0.5, "p90_ms": 0.9, "p99_ms": 0.99}


def decide_latency() -> Callable[[DataFrame], DataFrame]:
    """Distribute the latency of batches by topic and hour of their append time.

    1. Batches v2 with LogAppendTime tell it: their greatest timestamp is the append time, their
       base timestamp still the create time of the first record. So do compressed batches v1, if
       read as ``read_wrapper_times`` reads them. Others are not counted.
    2. Not so where the base timestamp is a delete horizon, nor in control and empty batches.
    3. A latency of 0 may also be of a batch that the broker wrote anew: that puts the append
       time in both. These are counted apart, and not in the percentiles.
    4. A negative one is clock skew: it too is counted apart.

    Needs: cluster, topic, and of batches magic, base_timestamp_ms, max_timestamp_ms; of v2 also
        timestamp_type, is_control, has_delete_horizon, record_count.
    Gives: cluster, topic, hour_ms (its start), batches, p50_ms, p90_ms, p99_ms, max_ms,
        histogram (array of below_ms, batches; the last below_ms is null), equal_batches,
        negative_batches, most_negative_ms.
    Source: LogValidator.assignOffsetsNonCompressed, validateMessagesAndAssignOffsetsCompressed.
    """
    latency = F.col("latency_ms")
    is_told = latency > 0
    is_first_record = ~F.col("is_control") & ~F.col("has_delete_horizon")
    is_stamped = (F.col("timestamp_type") == "LogAppendTime") & is_first_record
    tells = (F.col("magic") == 1) | (is_stamped & (F.col("record_count") > 0))
    holds = F.col("base_timestamp_ms") >= 0

    def transform(batches: DataFrame) -> DataFrame:
        told = batches.where(tells & holds).select(
            "cluster",
            "topic",
            minus("max_timestamp_ms", F.pmod("max_timestamp_ms", F.lit(_HOUR_MS))).alias("hour_ms"),
            F.expr("try_subtract(max_timestamp_ms, base_timestamp_ms)").alias("latency_ms"),
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
        )

    return transform


def _histogram(latency: Column) -> Column:
    """Count by the first bound that lies above; 0 and below are not in it."""
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
