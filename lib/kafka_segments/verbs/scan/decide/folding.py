"""Decide which logs are folded again, and put the verdicts of the fold into the segments' rows.

Rows of ``scanned`` come from ``scan_segments``, rows of ``known`` from table ``segments``.
"""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kafka_segments.engine.tables.keys import LOG_KEYS, SEGMENT_KEYS, Transform
from kafka_segments.kafka.index.segment.recovered_segment import DamageKind
from kafka_segments.verbs.scan.decide.plan import SCAN

_CHECK = 0  # the step of a producer without transactions


def has_transactions() -> Column:
    """Tell whether a segment can matter to others even if each is recovered on its own.

    So it is if a transaction begins or ends in the segment, if the segment ends at a marker that
    cannot be parsed, or if a leader epoch begins below offset 0 in it.
    """
    steps = F.coalesce(F.col("transaction_steps"), F.array())
    epochs = F.coalesce(F.col("leader_epochs"), F.array())
    return (
        F.exists(steps, lambda step: step["kind"] != _CHECK)
        | F.coalesce(F.col("damage.kind") == DamageKind.BAD_MARKER.value, F.lit(False))
        | F.exists(epochs, lambda entry: entry["start_offset"] < 0)
    )


def needs_fold(
    *, has_changed: bool, is_load: bool, has_transactions: bool, has_known: bool
) -> bool:
    """Tell whether logs are folded at all.

    A fold matters if something changed, and if segments can matter to each other: in every load
    of a log, and where there are transactions. Known segments may have some.
    """
    return has_changed and (is_load or has_transactions or has_known)


def segments_to_fold(
    changed: DataFrame,
    known: DataFrame | None,
    found: DataFrame,
    planned: DataFrame,
    columns: Sequence[str],
) -> Transform:
    """Add the unchanged segments of the logs in which something changed.

    Needs: scanned segments; ``changed``: rows with ``LOG_KEYS`` of segments read or gone;
        ``found``: the segments of the listing; ``planned``: rows of ``plan_scan``, also
        without those of ``SAME``.
    Gives: ``SEGMENT_KEYS``, ``columns`` and ``is_scanned``.
    """

    def transform(scanned: DataFrame) -> DataFrame:
        read = scanned.select(*SEGMENT_KEYS, *columns, F.lit(True).alias("is_scanned"))
        if known is None:
            return read
        to_read = planned.where(F.col("plan") == SCAN).select(*SEGMENT_KEYS)
        kept = (
            known.join(found.select(*SEGMENT_KEYS), list(SEGMENT_KEYS), how="left_semi")
            .join(to_read, list(SEGMENT_KEYS), how="left_anti")
            .join(changed.select(*LOG_KEYS).distinct(), list(LOG_KEYS), how="left_semi")
            .select(*SEGMENT_KEYS, *columns, F.lit(False).alias("is_scanned"))
        )
        return read.unionByName(kept)

    return transform


def fold_order(*, is_load: bool) -> tuple[Column, ...]:
    """Return the order in which segments are folded: log by log, by their base offsets.

    In a load those of a log come first that do not fit their base offset: a load splits them, and
    the pieces can belong anywhere in the log.

    Needs: the key of a segment, damage.
    """
    overflows = F.col("damage.kind").eqNullSafe(F.lit(DamageKind.OFFSET_OVERFLOW.value))
    first = (~overflows,) if is_load else ()
    return (*map(F.col, LOG_KEYS), *first, F.col("base_offset"))


def only_logs_with_transactions(segments: DataFrame) -> DataFrame:
    """Keep the segments of logs in which a transaction may cross segments or abort."""
    logs = segments.where(has_transactions()).select(*LOG_KEYS).distinct()
    return segments.join(logs, list(LOG_KEYS), how="left_semi")


def with_log_start(log_starts: DataFrame) -> Transform:
    """Add ``log_start_offset``; it is 0 if the log directory's checkpoint has none.

    Needs: log_dir, topic, partition; ``log_starts``: the same, and log_start_offset.
    """

    def transform(segments: DataFrame) -> DataFrame:
        return segments.join(
            F.broadcast(log_starts), ["log_dir", "topic", "partition"], how="left"
        ).withColumn("log_start_offset", F.coalesce("log_start_offset", F.lit(0)))

    return transform


def with_verdicts(verdicts: DataFrame | None) -> Transform:
    """Put the verdicts of the fold into segments: damage, entries of the transaction index.

    A segment with damage that only its log shows has no index files. The next run reads it again,
    because the segments before it may change.

    Needs: ``SEGMENT_KEYS``, damage, index_entries, time_index_entries, fingerprint; ``verdicts``:
        rows of ``fold_logs``, None if nothing was folded.
    Gives: the same columns and txn_index_entries.
    """

    def transform(segments: DataFrame) -> DataFrame:
        if verdicts is None:
            indexed = F.col("index_entries").isNotNull()
            return segments.withColumn("txn_index_entries", F.when(indexed, F.lit(0)))
        said = verdicts.select(
            *SEGMENT_KEYS, F.col("txn_index_entries").alias("_aborted"), "log_damage"
        )
        joined = segments.drop("txn_index_entries").join(said, list(SEGMENT_KEYS), how="left")
        is_sound = F.col("log_damage").isNull()
        counted = is_sound & F.col("index_entries").isNotNull()
        return joined.withColumns(
            {
                "txn_index_entries": F.when(counted, F.coalesce("_aborted", F.lit(0))),
                "damage": F.coalesce("log_damage", "damage"),
                "index_entries": F.when(is_sound, F.col("index_entries")),
                "time_index_entries": F.when(is_sound, F.col("time_index_entries")),
                "fingerprint": F.when(is_sound, F.col("fingerprint")),
            }
        ).drop("_aborted", "log_damage")

    return transform


def without_fold(segments: DataFrame) -> DataFrame:
    """Take back what only a fold tells of segments that can matter to others."""
    known = F.when(~has_transactions(), F.col("txn_index_entries"))
    return segments.withColumn("txn_index_entries", known)


def with_new_verdicts(verdicts: DataFrame) -> Transform:
    """Do as ``with_verdicts`` for known segments; those of logs not folded stay as they are."""
    said = verdicts.select(*SEGMENT_KEYS)

    def transform(known: DataFrame) -> DataFrame:
        keys = list(SEGMENT_KEYS)
        folded = known.join(said, keys, how="left_semi").transform(with_verdicts(verdicts))
        return known.join(said, keys, how="left_anti").unionByName(folded)

    return transform


def rejudged(verdicts: DataFrame) -> Transform:
    """Return the known rows of segments that were not read, but have another verdict now."""
    said = verdicts.where(~F.col("is_scanned")).select(
        *SEGMENT_KEYS, F.col("txn_index_entries").alias("_aborted"), "log_damage"
    )
    differs = F.col("log_damage").isNotNull() | (F.col("_aborted") != F.col("txn_index_entries"))

    def transform(known: DataFrame) -> DataFrame:
        keys = list(SEGMENT_KEYS)
        other = known.join(said, keys, how="inner").where(differs).select(*keys)
        return known.join(other, keys, how="left_semi").transform(with_verdicts(verdicts))

    return transform


def withheld(verdicts: DataFrame) -> DataFrame:
    """Return the keys of the segments that lose their index files."""
    return verdicts.where(F.col("log_damage").isNotNull()).select(*SEGMENT_KEYS)
