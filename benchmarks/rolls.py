"""Roll decisions over many active segments, and their growth from a hundredth of them."""

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from sections import ROOT, Section, best

from kafka_segments.engine.spark.session import spark_session
from kafka_segments.verbs.judge.roll.decide.rolls import decide_rolls
from kafka_segments.verbs.judge.roll.decide.rules import RollRules

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
        F.lit("beside").alias("index_source"),
        F.lit(None).cast("string").alias("cut_short"),
    )


def bench_rolls(*, quick: bool) -> Section:
    """Decide every segment once, each column of it made."""
    most = 50_000 if quick else 5_000_000
    section = Section("Roll decisions")
    section.lines += [
        "Synthetic active segments, each with its topic's settings and an append to come;"
        " `local[*]`, rows made and thrown away, the quickest of three rounds.",
        "",
    ]
    section.table("segments", "s", "us a segment")
    with spark_session("bench rolls", root=ROOT, is_long=True) as spark:
        _decide(spark, most // 100)
        for count in (most // 100, most):
            spent = best(lambda count=count: _decide(spark, count), 3)
            section.row(f"{count:,}", f"{spent:.2f}", f"{spent / count * 1e6:.1f}")
    return section


def _decide(spark: SparkSession, count: int) -> None:
    decided = active_segments(spark, count).transform(
        decide_rolls(now_ms=NOW_MS, rules=RollRules())
    )
    decided.write.format("noop").mode("overwrite").save()
