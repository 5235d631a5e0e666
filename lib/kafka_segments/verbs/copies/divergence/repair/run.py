"""Repair: read the copies, and make whole logs of damaged ones, in a new folder."""

from contextlib import ExitStack

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from kafka_segments.engine.frames.engines import computed_once
from kafka_segments.engine.frames.packing import TellLoad, tell_nobody
from kafka_segments.engine.tables.missing import nearest
from kafka_segments.errors import UsageError
from kafka_segments.kafka.text.names import METADATA_TOPIC
from kafka_segments.verbs.copies.divergence.absent_replicas import tell_absent_replicas
from kafka_segments.verbs.copies.divergence.decide.frames import with_segments
from kafka_segments.verbs.copies.divergence.options import CopyOptions
from kafka_segments.verbs.copies.divergence.read_copies import read_compared
from kafka_segments.verbs.copies.divergence.repair.tasks import RepairSettings, repair_logs

_UNKNOWN = (
    "whether they hold more, or another history, is not known, and nothing is taken from them"
)


def run_repair(
    spark: SparkSession,
    options: CopyOptions,
    caches: ExitStack,
    tell: TellLoad = tell_nobody,
    *,
    settings: RepairSettings,
) -> DataFrame:
    """Make whole logs; return the columns of ``REPAIRED``, cached until ``caches`` closes.

    Raises:
        SourceError: a folder cannot be listed.
        UsageError: a copy holds a log twice, or no two copies hold a log that ``settings`` name.
    """
    found = read_compared(spark, options, caches, tell)
    logs = found.logs.where(F.col("topic") != METADATA_TOPIC)
    _refuse_unknown(logs, settings.logs)
    tell_absent_replicas(found.history, found.at_hand, _UNKNOWN, asked=settings.logs)
    copies = found.copies.transform(with_segments(found.segments, logs))
    of_logs = found.parts.where(F.col("topic") != METADATA_TOPIC)
    return computed_once(copies.transform(repair_logs(of_logs, settings)), caches)


def _refuse_unknown(logs: DataFrame, asked: tuple[str, ...]) -> None:
    name = F.concat_ws("-", "topic", F.col("partition").cast("string"))
    there = logs.where("copy_count > 1").select(name.alias("log"))
    known = {row["log"] for row in there.distinct().collect()} if asked else set()
    for log in asked:
        if log not in known:
            near = nearest(log, known)
            also = f"; they hold {near}" if near else ""
            raise UsageError(f"--log {log}: no two copies hold it{also}")
