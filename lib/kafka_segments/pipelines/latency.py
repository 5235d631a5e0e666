"""Latency: batch headers of the topics that keep append times."""

from contextlib import ExitStack

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from kafka_segments.decide.latency import decide_latency
from kafka_segments.decide.retention_passes import LOG
from kafka_segments.pipelines.lag import one_replica
from kafka_segments.pipelines.search import LogChoice, LogTables
from kafka_segments.spark.table_reads import read_segments

_COLUMNS = (
    *("path", "topic", "magic", "timestamp_type", "is_control", "has_delete_horizon"),
    *("record_count", "base_timestamp_ms", "max_timestamp_ms"),
)


def measure_latency(
    spark: SparkSession, warehouse: str, choice: LogChoice, caches: ExitStack
) -> DataFrame:
    """Measure broker latency; gives the columns of ``decide_latency``.

    Only headers are read, of segments that hold append times, one replica of each partition.
    """
    tables = LogTables(spark, warehouse, choice, caches)
    replicas = one_replica(tables.logs).select(*LOG)
    segments = (
        tables.segments_as_built()
        .where(F.array_contains("timestamp_types", "LogAppendTime"))
        .join(replicas, list(LOG), how="left_semi")
    )
    batches = segments.transform(read_segments(rows="batches", columns=_COLUMNS, check="headers"))
    clusters = segments.select("path", "cluster")
    return batches.join(clusters, "path", how="inner").transform(decide_latency())
