"""Latency: batch headers of the topics that keep append times."""

from contextlib import ExitStack

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from kafka_segments.lag.run import one_replica
from kafka_segments.latency.decide import decide_latency
from kafka_segments.latency.tasks import read_wrapper_times
from kafka_segments.rows.table_reads import read_segments
from kafka_segments.search.run import LogChoice, LogTables
from kafka_segments.tables.keys import LOG_KEYS

_COLUMNS = (
    *("path", "topic", "magic", "timestamp_type", "is_control", "has_delete_horizon"),
    *("record_count", "base_timestamp_ms", "max_timestamp_ms"),
)


def measure_latency(
    spark: SparkSession, warehouse: str, choice: LogChoice, caches: ExitStack
) -> DataFrame:
    """Measure broker latency; gives the columns of ``decide_latency``.

    Of segments that hold append times headers are read, and the compressed batches v1; of one
    replica of each partition.
    """
    tables = LogTables(spark, warehouse, choice, caches)
    replicas = one_replica(tables.logs).select(*LOG_KEYS)
    segments = (
        tables.segments_as_built()
        .where(F.array_contains("timestamp_types", "LogAppendTime"))
        .join(replicas, list(LOG_KEYS), how="left_semi")
    )
    batches = segments.transform(read_segments(rows="batches", columns=_COLUMNS, check="headers"))
    is_wrapped = F.array_contains("magics", 1) & F.exists("codecs", lambda codec: codec != "none")
    wrapped = read_wrapper_times(segments.where(is_wrapped)).select(
        "path", F.lit(1).alias("magic"), "base_timestamp_ms", "max_timestamp_ms"
    )
    told = batches.where("magic >= 2").unionByName(wrapped, allowMissingColumns=True)
    clusters = segments.select("path", "cluster", "topic")
    return told.drop("topic").join(clusters, "path", how="inner").transform(decide_latency())
