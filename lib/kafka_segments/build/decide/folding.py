"""Decide which logs are folded anew, and give the segments what the fold says of them.

Rows of ``scanned`` are what a scan gives, rows of ``known`` are of table ``segments``.
"""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kafka_segments.build.decide.plan import SCAN
from kafka_segments.index.recovery import DamageKind
from kafka_segments.tables.keys import LOG_KEYS, SEGMENT_KEYS, Transform

_CHECK = 0  # the step of a producer without transactions


def has_transactions() -> Column:
    """Tell whether the segment can matter to others even if each is recovered on its own.

    A transaction begins or ends in it, it ends at a marker that cannot be parsed, or a leader epoch
    begins below offset 0 in it.
    """
    steps = F.coalesce(F.col("transaction_steps"), F.array())
    epochs = F.coalesce(F.col("leader_epochs"), F.array())
    return (
        F.exists(steps, lambda step: step["kind"] != _CHECK)
        | F.coalesce(F.col("damage.kind") == DamageKind.BAD_MARKER.value, F.lit(False))
        | F.exists(epochs, lambda entry: entry["start_offset"] < 0)
    )


def segments_to_fold(
    changed: DataFrame, known: DataFrame | None, planned: DataFrame, columns: Sequence[str]
) -> Transform:
    """Add the unchanged segments of the logs in which something changed.

    Needs: scanned segments; ``changed``: rows with ``LOG_KEYS`` of segments read or gone.
    Gives: ``SEGMENT_KEYS``, ``columns`` and ``is_scanned``.
    """

    def transform(scanned: DataFrame) -> DataFrame:
        read = scanned.select(*SEGMENT_KEYS, *columns, F.lit(True).alias("is_scanned"))
        if known is None:
            return read
        same = planned.where(F.col("plan") != SCAN).select(*SEGMENT_KEYS)
        kept = (
            known.join(same, list(SEGMENT_KEYS), how="left_semi")
            .join(changed.select(*LOG_KEYS).distinct(), list(LOG_KEYS), how="left_semi")
            .select(*SEGMENT_KEYS, *columns, F.lit(False).alias("is_scanned"))
        )
        return read.unionByName(kept)

    return transform


def only_logs_with_transactions(segments: DataFrame) -> DataFrame:
    """Keep the segments of logs in which a transaction may cross segments or abort."""
    logs = segments.where(has_transactions()).select(*LOG_KEYS).distinct()
    return segments.join(logs, list(LOG_KEYS), how="left_semi")


def with_log_start(log_starts: DataFrame) -> Transform:
    """Add ``log_start_offset``, 0 where the log directory's checkpoint has none.

    Needs ``log_starts``: log_dir, topic, partition, log_start_offset.
    """

    def transform(segments: DataFrame) -> DataFrame:
        return segments.join(
            F.broadcast(log_starts), ["log_dir", "topic", "partition"], how="left"
        ).withColumn("log_start_offset", F.coalesce("log_start_offset", F.lit(0)))

    return transform


def with_verdicts(verdicts: DataFrame | None) -> Transform:
    """Give segments what the fold says: damage, entries of the transaction index.

    A segment with damage that only the log shows has no index files; it is read again by the
    next run, as what comes before it may change.
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


def with_new_verdicts(verdicts: DataFrame) -> Transform:
    """As ``with_verdicts``, for known segments: those of logs not folded stay as they are."""
    said = verdicts.select(*SEGMENT_KEYS)

    def transform(known: DataFrame) -> DataFrame:
        keys = list(SEGMENT_KEYS)
        folded = known.join(said, keys, how="left_semi").transform(with_verdicts(verdicts))
        return known.join(said, keys, how="left_anti").unionByName(folded)

    return transform


def rejudged(verdicts: DataFrame) -> Transform:
    """Give the known rows of unchanged segments of which the fold says something new."""
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
    """Give the keys of the segments that lose their index files."""
    return verdicts.where(F.col("log_damage").isNotNull()).select(*SEGMENT_KEYS)
