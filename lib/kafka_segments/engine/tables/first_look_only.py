"""Segments that are known by a first look alone (``build --check index``)."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kafka_segments.errors import UsageError


class FirstLookOnlyError(UsageError):
    """A question that a first look alone does not answer."""


def is_known_by_first_look() -> Column:
    """Tell whether a segment is known by a first look alone.

    Tables of releases that took none have no column that says it.

    Needs: next_offset (null: not read), batch_count (null in a first look).
    """
    return F.col("next_offset").isNotNull() & F.col("batch_count").isNull()


def refuse_first_looks(segments: DataFrame, lacks: str) -> None:
    """Refuse segments that are known by a first look alone; ``lacks`` is what that does not tell.

    Needs: path, next_offset, batch_count.

    Raises:
        FirstLookOnlyError: there is such a segment.
    """
    found = segments.where(is_known_by_first_look()).select("path").first()
    if found is not None:
        raise FirstLookOnlyError(
            f"{found['path']} is known by a first look alone, which does not tell {lacks}: run"
            " `kafka-segments build` without --check index first"
        )
