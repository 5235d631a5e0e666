"""The step of a build that looks at whole logs: fold what was read, write what crosses segments."""

from contextlib import ExitStack
from typing import NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kafka_segments.build.decide import folding as log_folding
from kafka_segments.build.folded_log import FoldOptions
from kafka_segments.build.options import BuildOptions
from kafka_segments.build.tasks_folding import SUMMARY, fold_logs
from kafka_segments.index.log_recovery import RecoveryMode
from kafka_segments.sources import kinds
from kafka_segments.sources.broker_identity import file_path
from kafka_segments.tables.keys import LOG_KEYS


class FoldedLogs(NamedTuple):
    """What ``fold_logs`` gives, and the keys of segments that lose their index files, if any do."""

    verdicts: DataFrame
    withheld: DataFrame | None


def fold_changed_logs(
    *,
    scanned: DataFrame,
    known: DataFrame | None,
    planned: DataFrame,
    vanished: DataFrame | None,
    listed: DataFrame,
    options: BuildOptions,
    run_id: str,
    caches: ExitStack,
) -> FoldedLogs | None:
    """Fold the logs in which something changed; None where there is none.

    With each segment on its own only logs with transactions are folded: in the others nothing
    crosses segments.
    """
    changed = scanned.select(*LOG_KEYS)
    if vanished is not None:
        changed = changed.unionByName(vanished.select(*LOG_KEYS))
    segments = scanned.withColumn("path", file_path()).transform(
        log_folding.segments_to_fold(changed, known, planned, SUMMARY)
    )
    if options.mode == RecoveryMode.SEGMENT:
        segments = segments.transform(log_folding.only_logs_with_transactions).withColumn(
            "log_start_offset", F.lit(0).cast("long")
        )
    else:
        log_starts = listed.where(F.col("kind") == kinds.LOG_DIR).select(
            "log_dir", F.inline("offsets")
        )
        segments = segments.transform(
            log_folding.with_log_start(
                log_starts.select("log_dir", "topic", "partition", "log_start_offset")
            )
        )
    fold = FoldOptions(
        mode=options.mode,
        recovery=options.scan_recovery(),
        now_ms=options.now_ms,
        expiration_ms=options.producer_id_expiration_ms,
        sources=options.sources,
        output=options.index_output(run_id),
    )
    verdicts = segments.transform(fold_logs(fold)).persist()
    caches.callback(verdicts.unpersist)
    counts = verdicts.agg(F.count("*"), F.count("log_damage")).first()
    segments_folded, withheld = counts or (0, 0)
    if not segments_folded:
        return None
    return FoldedLogs(verdicts, log_folding.withheld(verdicts) if withheld else None)
