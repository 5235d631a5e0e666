"""Forensics: read the headers of all batches, and judge their timestamps."""

from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession

from kafka_segments.forensics.decide import Admission, judge_timestamps
from kafka_segments.rows.datasource import register

_COLUMNS = (
    "path,topic,partition,segment_base_offset,position,last_offset,timestamp_type,is_control,"
    "has_delete_horizon,base_timestamp_ms,max_timestamp_ms,producer_id,record_count,error"
)


def judge_sources(
    spark: SparkSession,
    sources: Sequence[str],
    *,
    now_ms: int,
    admission: Admission,
    follow_links: bool = False,
) -> DataFrame:
    """Give the batches of producers under the sources, judged; markers are brokers' own."""
    register(spark)
    batches = (
        spark.read.format("kafka_segments")
        .option("columns", _COLUMNS)
        .option("check", "headers")
        .option("follow_links", str(follow_links).lower())
        .load(list(sources))
    )
    of_producers = batches.where("error IS NULL AND NOT coalesce(is_control, false)")
    return of_producers.transform(judge_timestamps(now_ms=now_ms, admission=admission))
