"""Verify a backup: compare it with its cluster, and judge what it lacks by its moment."""

from contextlib import ExitStack
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from kafka_segments.backup.decide import (
    LOG,
    Verdict,
    absent_logs,
    first_batches,
    judged_logs,
    missed_ranges,
    missing_logs,
    next_batches,
    noted_logs,
)
from kafka_segments.backup.tasks import find_timestamps
from kafka_segments.divergence.decide.frames import chosen_segments
from kafka_segments.divergence.run import Compared, CopyOptions, run_divergence
from kafka_segments.errors import UsageError
from kafka_segments.sources import kinds
from kafka_segments.spark.held import held
from kafka_segments.spark.packing import TellLoad, tell_nobody

BACKUP = "backup"
_NS_A_MS = 1_000_000


@dataclass(frozen=True)
class Verified:
    """What a backup holds of its cluster.

    ``rows``: those of ``decide.judged_logs``. ``moment_ms``: the moment that was gone by.
    ``verdicts``: logs by verdict. ``only_there``: logs of the backup that the cluster has no more.
    """

    rows: DataFrame
    moment_ms: int
    verdicts: dict[str, int]
    only_there: int
    compared: Compared

    @property
    def findings(self) -> int:
        """How many logs the backup misses, or misses something of."""
        return sum(self.verdicts.get(name, 0) for name in (Verdict.INCOMPLETE, Verdict.MISSING))


def verify_backup(
    spark: SparkSession,
    options: CopyOptions,
    caches: ExitStack,
    *,
    moment_ms: int | None,
    dry_run: bool = False,
    tell: TellLoad = tell_nobody,
) -> Verified:
    """Say of each log of the cluster whether the backup, the copy ``BACKUP``, holds it.

    1. The backup is compared with the cluster's copies of the logs that it holds.
    2. Of logs that it lacks, and with a moment of what follows its end, one batch is looked up.
    3. What is missed is judged by these.

    Args:
        spark: the session.
        options: the copies; ``anchor`` is ``BACKUP``.
        caches: unpersists at its end what is kept in memory.
        moment_ms: when the backup was taken; None: when its newest segment was written.
        dry_run: nothing is kept in the warehouse.
        tell: is told how much is read.

    Raises:
        UsageError: the backup holds no segment.
        SourceError: a folder that cannot be listed.
    """
    compared = run_divergence(spark, options, caches, dry_run=dry_run, tell=tell)
    found, differences = compared.found, compared.rows
    listed, logs, copies = found.listed, found.logs, found.copies
    moment = _written_ms(listed) if moment_ms is None else moment_ms
    absent = absent_logs(logs, backup=BACKUP)
    first = _timestamps(listed.transform(chosen_segments(absent)).transform(first_batches))
    noted = noted_logs(listed, backup=BACKUP)
    missing = absent.transform(missing_logs(first, noted, moment_ms=moment))
    asked = found.segments.transform(next_batches(differences, backup=BACKUP))
    behind = _timestamps(asked.where(F.lit(moment_ms is not None)))
    judge = judged_logs(logs, copies, missing, differences, backup=BACKUP)
    missed = missed_ranges(copies, behind, backup=BACKUP, moment_ms=moment_ms)
    rows = held(differences.transform(missed).transform(judge), caches)
    verdicts = rows.groupBy("verdict").agg(F.count("*").alias("logs")).collect()
    counts = {row["verdict"]: row["logs"] for row in verdicts}
    return Verified(rows, moment, counts, _only_there(logs), compared)


def _only_there(logs: DataFrame) -> int:
    """Count the logs of the backup that the cluster has no more."""
    is_backup = F.col("copy") == BACKUP
    others = logs.where(~is_backup)
    return logs.where(is_backup).join(others, list(LOG), how="left_anti").count()


def _timestamps(asked: DataFrame) -> DataFrame:
    """Add the timestamp of each batch that is asked for: topic, partition, timestamp_ms."""
    found = asked.transform(find_timestamps())
    return asked.join(found, ["path", "offset"], how="inner").select(*LOG, "timestamp_ms")


def _written_ms(listed: DataFrame) -> int:
    """Return when the newest segment of the backup was written, in ms since 1970."""
    is_segment = (F.col("kind") == kinds.SEGMENT) & (F.col("copy") == BACKUP)
    newest = listed.where(is_segment).agg(F.max("mtime_ns")).collect()[0][0]
    if newest is None:
        raise UsageError("the backup holds no segment: give the folder of its log directories")
    return int(newest) // _NS_A_MS
