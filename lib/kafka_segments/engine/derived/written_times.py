"""When a segment got its last record, as far as that can be believed."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kafka_segments.engine.tables.keys import Transform
from kafka_segments.kafka.text.moments import YEAR_2000_S


def is_by_mtime() -> Column:
    """Tell whether no record of a segment has a timestamp."""
    return F.col("largest_timestamp_source") == "last_modified"


def with_written_ms(*, now_ms: int) -> Transform:
    """Add written_ms: when a segment got its last record, by what is plausible.

    It is the largest timestamp if that lies between the year 2000 and now, else the mtime if that
    does, else the time when the segment was read.
    """

    def transform(segments: DataFrame) -> DataFrame:
        candidates = [
            F.when(F.col(name).between(YEAR_2000_S * 1000, now_ms), F.col(name))
            for name in ("largest_timestamp_ms", "last_modified_ms")
        ]
        scanned = F.least(F.unix_millis("scanned_at"), F.lit(now_ms))
        return segments.withColumn("written_ms", F.coalesce(*candidates, scanned))

    return transform
