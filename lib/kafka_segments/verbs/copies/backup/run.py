"""Verify a backup: compare it with its cluster, and judge by its moment what it lacks."""

from contextlib import ExitStack
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from kafka_segments.console.not_known import tell_not_known
from kafka_segments.engine.derived.replicas_at_hand import without_log
from kafka_segments.engine.frames.engines import computed_once
from kafka_segments.engine.frames.packing import TellLoad, tell_nobody
from kafka_segments.engine.tables.delta import Warehouse
from kafka_segments.errors import UsageError
from kafka_segments.kafka.text.names import METADATA_TOPIC
from kafka_segments.kafka.text.plain_text import first_of
from kafka_segments.verbs.copies.backup.decide.ends import (
    LOG,
    Moment,
    backup_moment,
    dated_logs,
    judged_ends,
    last_batches,
    log_ends,
    lost_ends,
    next_batches,
)
from kafka_segments.verbs.copies.backup.decide.verdicts import (
    BackupVerdict,
    absent_logs,
    first_batches,
    judged_logs,
    missed_ranges,
    missing_logs,
    named_logs,
    noted_logs,
    only_in_backup,
)
from kafka_segments.verbs.copies.backup.tasks import find_timestamps
from kafka_segments.verbs.copies.divergence.absent_replicas import by_broker
from kafka_segments.verbs.copies.divergence.decide.frames import chosen_segments
from kafka_segments.verbs.copies.divergence.options import CopyOptions
from kafka_segments.verbs.copies.divergence.policies.read import MetadataHistory
from kafka_segments.verbs.copies.divergence.run import Compared, run_divergence

BACKUP = "backup"
_NAMED = 20


@dataclass(frozen=True)
class Verified:
    """What a backup holds of its cluster.

    ``rows``: those of ``decide.judged_logs``. ``moment``: the one that they were judged by.
    ``verdicts``: number of logs by verdict. ``only_there``: number of logs that the cluster no
    longer has. ``unread``: number of logs of which the cluster's metadata tells, and no copy is at
    hand: they are no rows.
    """

    rows: DataFrame
    moment: Moment
    verdicts: dict[str, int]
    only_there: int
    unread: int
    compared: Compared

    @property
    def findings(self) -> int:
        """How many logs the backup lacks, or holds without something that it misses or may miss."""
        wrong = (BackupVerdict.INCOMPLETE, BackupVerdict.MISSING, BackupVerdict.UNKNOWN)
        return sum(self.verdicts.get(name, 0) for name in wrong)


def run_backup(
    spark: SparkSession,
    options: CopyOptions,
    caches: ExitStack,
    *,
    moment_ms: int | None,
    keep_in: Warehouse | None = None,
    tell: TellLoad = tell_nobody,
) -> Verified:
    """Decide for each log of the cluster whether the backup holds it: the copy named ``BACKUP``.

    1. The backup is compared with the cluster's copies of the logs that it holds.
    2. Timestamps are looked up: of the first batch of each log that the backup lacks, of the batch
       that follows each of its ends, and of the last batch in front of the end. Without
       ``moment_ms`` the youngest of the backup's own timestamps is its moment.
    3. By these timestamps it is judged what the backup misses.

    Args:
        spark: the session.
        options: the copies; ``anchor`` is ``BACKUP``.
        caches: unpersists at its end what is kept in memory.
        moment_ms: when the backup was taken, in ms since 1970; None: as its records tell.
        keep_in: keeps the comparison; None: nothing does.
        tell: is told how much is read.

    Raises:
        UsageError: the backup holds no segment.
        SourceError: a folder that cannot be listed.
    """
    compared = run_divergence(spark, options, caches, keep_in=keep_in, tell=tell)
    found, differences = compared.found, compared.rows
    listed, logs, copies = found.listed, found.logs, found.copies
    unread = _tell_unread(found.history, logs.where(F.col("copy") != BACKUP))
    ends = log_ends(differences, backup=BACKUP)
    is_given = moment_ms is not None
    asked = found.segments.transform(last_batches(ends, found.read, backup=BACKUP))
    needed = asked.where(F.col("copy") != BACKUP) if is_given else asked
    last = computed_once(_with_timestamps(needed, caches), caches)
    moment = Moment(_moment_ms(listed, last) if moment_ms is None else moment_ms, is_given)
    behind = _with_timestamps(found.segments.transform(next_batches(ends, found.read)), caches)
    marks = copies.where(F.col("copy") == BACKUP).select(*LOG, "high_watermark")
    dated = dated_logs(last, backup=BACKUP)
    judged = ends.transform(judged_ends(marks, behind, dated, moment=moment)).unionByName(
        lost_ends(differences, marks, backup=BACKUP)
    )
    absent = absent_logs(logs, backup=BACKUP)
    unheld = listed.transform(chosen_segments(absent)).transform(first_batches)
    first = _with_timestamps(unheld, caches)
    noted = noted_logs(listed, backup=BACKUP)
    named = named_logs(found.history.partitions(spark), moment=moment)
    missing = absent.transform(missing_logs(first, noted, named, moment=moment))
    judge = judged_logs(logs, copies, missing, judged, differences, backup=BACKUP)
    missed = missed_ranges(copies, judged, backup=BACKUP)
    rows = computed_once(differences.transform(missed).transform(judge), caches)
    verdicts = rows.groupBy("verdict").agg(F.count("*").alias("logs")).collect()
    counts = {row["verdict"]: row["logs"] for row in verdicts}
    only_there = only_in_backup(logs, backup=BACKUP).count()
    return Verified(rows, moment, counts, only_there, unread, compared)


def _tell_unread(history: MetadataHistory, logs: DataFrame) -> int:
    """Tell of which partitions no copy of the cluster's is at hand, by its own metadata log.

    Returns how many these are.
    """
    named = history.named
    if named is None or logs.where(F.col("topic") == METADATA_TOPIC).isEmpty():
        return 0  # the backup's may name partitions that are deleted by now
    found = without_log(named, by_broker(logs))
    names = [name for of_cluster in found.values() for name in of_cluster]
    if names:
        told = first_of(names, _NAMED)
        tell_not_known(
            [f"not known whether the backup holds {told}: no copy of the cluster's is at hand"]
        )
    return len(names)


def _with_timestamps(asked: DataFrame, caches: ExitStack) -> DataFrame:
    """Add what is found of each batch that is asked for."""
    asked = computed_once(asked, caches)
    found = asked.transform(find_timestamps())
    return asked.join(found, ["path", "offset"], how="inner")


def _moment_ms(listed: DataFrame, last: DataFrame) -> int:
    """Return the moment that a backup tells of itself, see ``backup_moment``.

    Raises:
        UsageError: the backup holds no segment.
    """
    moment_ms = listed.transform(backup_moment(last, backup=BACKUP)).collect()[0][0]
    if moment_ms is None:
        raise UsageError("the backup holds no segment: give the folder of its log directories")
    return int(moment_ms)
