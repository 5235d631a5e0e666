"""Decide which rows of the index tables a build writes, and which it deletes."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kafka_segments.engine.tables.keys import SEGMENT_KEYS, Transform
from kafka_segments.verbs.scan.decide.plan import SCAN

IS_GONE = "is_gone"


def without_withheld(withheld: DataFrame | None) -> Transform:
    """Leave out the entries of segments that lose their index files.

    Needs: ``SEGMENT_KEYS``; ``withheld``: ``SEGMENT_KEYS``, None for no segment.
    """

    def transform(entries: DataFrame) -> DataFrame:
        if withheld is None:
            return entries
        return entries.join(F.broadcast(withheld), list(SEGMENT_KEYS), how="left_anti")

    return transform


def rescanned_segments(planned: DataFrame, withheld: DataFrame | None) -> DataFrame:
    """Return the keys of the known segments whose entries may no longer be true.

    Needs: ``planned``: rows of ``plan_scan``; ``withheld``: ``SEGMENT_KEYS``, None for no segment.
    Gives: ``SEGMENT_KEYS``.
    """
    is_rescanned = F.col("is_known") & (F.col("plan") == SCAN)
    rescanned = planned.where(is_rescanned).select(*SEGMENT_KEYS)
    return rescanned if withheld is None else rescanned.union(withheld).distinct()


def with_gone(before: DataFrame, rescanned: DataFrame, *, keys: tuple[str, ...]) -> Transform:
    """Add the entries of rescanned segments that are no longer there, marked ``is_gone``.

    Needs: the new entries; ``before``: rows of the table; ``rescanned``: ``SEGMENT_KEYS``.
        ``keys`` is the key of the table.
    Gives: the columns of the entries, and ``is_gone`` (boolean).
    """

    def transform(entries: DataFrame) -> DataFrame:
        gone = before.join(rescanned, list(SEGMENT_KEYS), how="left_semi").join(
            entries, list(keys), how="left_anti"
        )
        return entries.withColumn(IS_GONE, F.lit(False)).unionByName(
            gone.withColumn(IS_GONE, F.lit(True))
        )

    return transform
