"""Time roll decisions over many segments: cost per segment, and growth from a hundredth of them.

Run: python benchmarks/rolls.py [segments, default 5000000]
"""

import sys
import time
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from kafka_segments.decide.roll_rules import RollRules
from kafka_segments.decide.rolls import decide_rolls
from kafka_segments.spark.session import spark_session

NOW_MS = 1_800_000_000_000


def active_segments(spark: SparkSession, count: int) -> DataFrame:
    """Make active segments of various sizes and ages, with their settings and an append."""
    number = F.col("id")
    return spark.range(count).select(
        F.lit("c").alias("cluster"),
        F.lit(1).alias("broker_id"),
        F.lit("/d").alias("log_dir"),
        F.concat(F.lit("topic-"), (number % 10_000).cast("string")).alias("topic"),
        (number / 10_000).cast("int").alias("partition"),
        (number * 1_000).alias("base_offset"),
        (number * 7_919 % (1 << 30)).alias("size_bytes"),
        (number * 1_000 + 999).alias("next_offset"),
        (F.lit(NOW_MS) - number * 104_729 % 700_000_000).alias("first_batch_timestamp_ms"),
        F.lit(NOW_MS).alias("max_timestamp_ms"),
        F.lit(NOW_MS).alias("created_ms"),
        (number % 1_310_720).alias("index_entries"),
        (number % 873_812).alias("time_index_entries"),
        F.lit(1 << 30).alias("segment_bytes"),
        F.lit(604_800_000).alias("segment_ms"),
        F.lit(3_600_000).alias("segment_jitter_ms"),
        F.lit(10_485_760).alias("segment_index_bytes"),
        F.lit(2**63 - 1).alias("max_compaction_lag_ms"),
        F.lit("delete").alias("cleanup_policy"),
        F.lit(16_384).alias("append_bytes"),
        F.lit(NOW_MS).alias("append_timestamp_ms"),
        (number * 1_000 + 999).alias("append_last_offset"),
    )


def seconds(spark: SparkSession, count: int) -> float:
    """Time one decision of ``count`` segments, every column of it made."""
    decided = active_segments(spark, count).transform(
        decide_rolls(now_ms=NOW_MS, rules=RollRules())
    )
    start = time.perf_counter()
    decided.write.format("noop").mode("overwrite").save()
    return time.perf_counter() - start


def main() -> None:
    """Print the seconds and the cost per segment, after a run that warms the JVM."""
    most = int(sys.argv[1]) if len(sys.argv) > 1 else 5_000_000
    with spark_session("roll benchmark", root=Path(__file__).resolve().parents[1]) as spark:
        seconds(spark, most // 100)
        for count in (most // 100, most):
            best = min(seconds(spark, count) for _ in range(3))
            print(f"{count} segments: {best:.2f} s, {best / count * 1e6:.2f} us each")


if __name__ == "__main__":
    main()
