"""Repair: read the copies, and make whole logs of those that are damaged, in a new folder."""

from contextlib import ExitStack

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from kafka_segments.divergence.decide.frames import segments_of_copies
from kafka_segments.divergence.options import CopyOptions
from kafka_segments.divergence.read_copies import read_compared
from kafka_segments.divergence.tasks_repair import RepairSettings, repair_logs
from kafka_segments.errors import UsageError
from kafka_segments.spark.held import held
from kafka_segments.spark.packing import TellLoad, tell_nobody
from kafka_segments.wire.names import METADATA_TOPIC

_COPY = ("copy", "topic", "partition")


def run_repair(
    spark: SparkSession,
    options: CopyOptions,
    settings: RepairSettings,
    caches: ExitStack,
    tell: TellLoad = tell_nobody,
) -> DataFrame:
    """Make whole logs; return the columns of ``REPAIRED``, cached until ``caches`` closes.

    Raises:
        SourceError: a folder that cannot be listed.
        UsageError: a copy that holds a log twice, or a log that two copies have not.
    """
    found = read_compared(spark, options, caches, tell)
    logs = found.logs.where(F.col("topic") != METADATA_TOPIC)
    _refuse_unknown(logs, settings.logs)
    segments = segments_of_copies(found.segments)
    topic_ids = logs.select(*_COPY, "topic_id")
    copies = (
        found.copies.join(topic_ids, list(_COPY), how="inner")
        .join(segments, list(_COPY), how="left")
        .withColumn(
            "segments",
            F.coalesce("segments", F.array().cast(segments.schema["segments"].dataType)),
        )
    )
    of_logs = found.parts.where(F.col("topic") != METADATA_TOPIC)
    return held(copies.transform(repair_logs(of_logs, settings)), caches)


def _refuse_unknown(logs: DataFrame, asked: tuple[str, ...]) -> None:
    name = F.concat_ws("-", "topic", F.col("partition").cast("string"))
    there = logs.where("copy_count > 1").select(name.alias("log")).where(F.col("log").isin(*asked))
    known = {row["log"] for row in there.distinct().collect()} if asked else set()
    for log in asked:
        if log not in known:
            raise UsageError(f"--log {log}: no two copies hold it")
