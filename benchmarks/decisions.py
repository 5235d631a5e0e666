"""Retention decisions over synthetic segments."""

import time

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from sections import ROOT, Section

from kafka_segments.engine.derived.configs import with_topic_configs
from kafka_segments.engine.derived.topic_configs import TopicConfigs
from kafka_segments.engine.spark.session import spark_session
from kafka_segments.settings import Settings
from kafka_segments.verbs.judge.retention.decide.decisions import decide_retention
from kafka_segments.verbs.judge.retention.decide.rules import RetentionRules
from kafka_segments.verbs.judge.retention.decide.what_if import TODAY, compare_retention

NOW_MS = 1_800_000_000_000
HOUR_MS = 3_600_000
SEGMENTS_A_LOG = 200
ONE_LOG = 100_000


def segments(spark: SparkSession, count: int, *, a_log: int) -> DataFrame:
    """Give synthetic segments: an hour each, one in a hundred with a timestamp ahead of now."""
    number = F.col("id") % a_log
    age = (a_log - number) * HOUR_MS
    is_ahead = F.pmod(F.xxhash64("id"), F.lit(100)) == 0
    timestamp = F.lit(NOW_MS) - F.when(is_ahead, -age).otherwise(age)
    return spark.range(count).select(
        F.lit("c").alias("cluster"),
        F.lit(1).alias("broker_id"),
        F.lit("/data").alias("log_dir"),
        F.concat(F.lit("topic-"), F.floor(F.col("id") / a_log / 20)).alias("topic"),
        F.pmod(F.floor(F.col("id") / a_log), F.lit(20)).cast("int").alias("partition"),
        (number * 1000).alias("base_offset"),
        (number * 1000 + 1000).alias("next_offset"),
        F.lit(1 << 30).cast("long").alias("size_bytes"),
        timestamp.alias("min_timestamp_ms"),
        timestamp.alias("max_timestamp_ms"),
        (number * 1000 + 999).alias("offset_of_max_timestamp"),
        timestamp.alias("largest_timestamp_ms"),
        F.lit("record").alias("largest_timestamp_source"),
        timestamp.alias("last_modified_ms"),
        (number == a_log - 1).alias("is_active"),
        F.lit(False).alias("is_left_over"),
        *(F.lit(None).cast("long").alias(name) for name in ("high_watermark", "log_start_offset")),
        F.lit(None).cast("long").alias("highest_remote_offset"),
    )


def seconds(frame: DataFrame) -> float:
    """Give the seconds that a frame takes, its rows thrown away."""
    started = time.perf_counter()
    frame.write.format("noop").mode("overwrite").save()
    return time.perf_counter() - started


def bench_decisions(*, quick: bool) -> Section:
    """Decide over growing numbers of segments."""
    most = 50_000 if quick else 5_000_000
    configs = TopicConfigs.load(Settings(retention_ms=100 * HOUR_MS, retention_bytes=150 << 30))
    rules = RetentionRules.of("4.3")
    decide = decide_retention(now_ms=NOW_MS, rules=rules)
    section = Section("Retention decisions")
    section.lines += [
        f"Synthetic segments, {SEGMENTS_A_LOG} a log, one in a hundred with a timestamp ahead of"
        " now; `local[*]`, default settings of the command, rows made and thrown away. *What-if*:"
        " ten settings in one pass.",
        "",
    ]
    columns = ("segments", "logs", "decide s", "us a segment", "what-if s")
    section.table(*columns, "us a segment and setting")
    with spark_session("bench decisions", root=ROOT, is_long=True) as spark:
        with_configs = with_topic_configs(spark, configs)
        seconds(segments(spark, 1000, a_log=100).transform(with_configs).transform(decide))
        rows: list[tuple[str, int | None]] = [(TODAY, None)]
        rows += [(f"retention_ms={n}", n * 10 * HOUR_MS) for n in range(1, 11)]
        changes = spark.createDataFrame(rows, "setting string, _new_retention_ms long")
        compare = compare_retention(
            now_ms=NOW_MS, rules=rules, changes=changes, keys=("retention_ms",)
        )
        cases = [(most // 100, SEGMENTS_A_LOG), (most // 10, SEGMENTS_A_LOG)]
        cases += [(most, SEGMENTS_A_LOG), (min(most, ONE_LOG), min(most, ONE_LOG))]
        for count, a_log in cases:
            rows_in = segments(spark, count, a_log=a_log).transform(with_configs)
            spent = seconds(rows_in.transform(decide))
            compared = seconds(rows_in.transform(compare))
            section.row(
                f"{count:,}",
                f"{count // a_log:,}",
                f"{spent:.1f}",
                f"{spent / count * 1e6:.1f}",
                f"{compared:.1f}",
                f"{compared / count / len(rows) * 1e6:.2f}",
            )
            if a_log == SEGMENTS_A_LOG:
                section.figures |= {
                    "us a segment": spent / count * 1e6,
                    "us a segment and setting": compared / count / len(rows) * 1e6,
                }
    return section
