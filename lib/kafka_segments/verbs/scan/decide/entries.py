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


def scanned_segments(planned: DataFrame, withheld: DataFrame | None) -> DataFrame:
    """Return the keys of the segments of which there may be entries that are not true.

    They may be of segments that the table of segments does not know: a killed build left them.

    Needs: ``planned``: rows of ``plan_scan``; ``withheld``: ``SEGMENT_KEYS``, None for no segment.
    Gives: ``SEGMENT_KEYS``.
    """
    scanned = planned.where(F.col("plan") == SCAN).select(*SEGMENT_KEYS)
    return scanned if withheld is None else scanned.union(withheld).distinct()


def with_gone(before: DataFrame, scanned: DataFrame, *, keys: tuple[str, ...]) -> Transform:
    """Add the entries of scanned segments that are no longer there, marked ``is_gone``.

    Needs: the new entries; ``before``: rows of the table; ``scanned``: ``SEGMENT_KEYS``.
        ``keys`` is the key of the table.
    Gives: the columns of the entries, and ``is_gone`` (boolean).
    """

    def transform(entries: DataFrame) -> DataFrame:
        of_scanned = before.join(scanned, list(SEGMENT_KEYS), how="left_semi")
        gone = of_scanned.join(entries, list(keys), how="left_anti")
        gone = gone.dropDuplicates([*keys])  # of which somebody may have left two meanwhile
        return entries.withColumn(IS_GONE, F.lit(False)).unionByName(
            gone.withColumn(IS_GONE, F.lit(True))
        )

    return transform
