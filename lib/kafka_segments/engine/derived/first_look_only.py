"""How much of a segment was read: its headers alone, or a few batches (``build --check``)."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kafka_segments.errors import UsageError
from kafka_segments.kafka.index.segment.recovery_options import FULL


class FirstLookOnlyError(UsageError):
    """A question that a first look alone does not answer."""


def is_known_by_first_look() -> Column:
    """Tell whether a segment is known by a first look alone.

    Tables of releases that took none have no column that says it.

    Needs: next_offset (null: not read), batch_count (null in a first look).
    """
    return F.col("next_offset").isNotNull() & F.col("batch_count").isNull()


def with_unverified(segments: DataFrame) -> DataFrame:
    """Tell of each segment whether some of its batches were taken without verifying checksums.

    Damage may be there that is not known. Of a segment that could not be read the damage says so.

    Needs: next_offset (null: not read), and checked, which tables of older releases lack: of
        their segments it is not known either.
    Gives: the same with ``is_unverified`` (boolean).
    """
    checked = F.col("checked") if "checked" in segments.columns else F.lit(None)
    is_unverified = F.col("next_offset").isNotNull() & ~checked.eqNullSafe(FULL)
    return segments.withColumn("is_unverified", is_unverified)


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
