"""The step of a build that looks at whole logs: fold what was read, write what crosses segments."""

from contextlib import ExitStack
from typing import NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kafka_segments.engine.frames.engines import computed_once
from kafka_segments.engine.sources.broker_identity import file_path
from kafka_segments.engine.tables.keys import LOG_KEYS
from kafka_segments.files.folders import kinds
from kafka_segments.kafka.index.log.loading import RecoveryMode
from kafka_segments.verbs.scan.decide import folding as decide
from kafka_segments.verbs.scan.folded_log import FoldOptions
from kafka_segments.verbs.scan.planning import BuildWork
from kafka_segments.verbs.scan.tasks_folding import SUMMARY, fold_logs


class FoldedLogs(NamedTuple):
    """The rows of ``fold_logs``, and the keys of the segments that lose their index files.

    ``withheld`` is None if no segment loses them.
    """

    verdicts: DataFrame
    withheld: DataFrame | None


def fold_changed_logs(
    scanned: DataFrame, work: BuildWork, options: FoldOptions, caches: ExitStack
) -> FoldedLogs | None:
    """Fold the logs in which something changed; None if there are none.

    If each segment is recovered on its own, only logs with transactions are folded: in the others
    nothing crosses segments.
    """
    segments = _segments(scanned, work)
    if options.mode == RecoveryMode.SEGMENT:
        segments = segments.transform(decide.only_logs_with_transactions)
        segments = segments.withColumn("log_start_offset", F.lit(0).cast("long"))
    else:
        segments = segments.transform(decide.with_log_start(_log_starts(work.listed)))
    verdicts = computed_once(segments.transform(fold_logs(options)), caches)
    counts = verdicts.agg(F.count("*"), F.count("log_damage")).first()
    segments_folded, withheld = counts or (0, 0)
    if not segments_folded:
        return None
    return FoldedLogs(verdicts, decide.withheld(verdicts) if withheld else None)


def _segments(scanned: DataFrame, work: BuildWork) -> DataFrame:
    changed = scanned.select(*LOG_KEYS)
    if work.vanished is not None:
        changed = changed.unionByName(work.vanished.select(*LOG_KEYS))
    found = work.listed.where(F.col("kind") == kinds.SEGMENT)
    to_fold = decide.segments_to_fold(changed, work.known, found, work.planned, SUMMARY)
    return scanned.withColumn("path", file_path()).transform(to_fold)


def _log_starts(listed: DataFrame) -> DataFrame:
    """Return the log start offsets of the log directories' checkpoints, one row a log."""
    log_dirs = listed.where(F.col("kind") == kinds.LOG_DIR)
    return log_dirs.select("log_dir", F.inline("offsets")).select(
        "log_dir", "topic", "partition", "log_start_offset"
    )
