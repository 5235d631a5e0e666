"""Prepare active segments for a decision: what is there, and the append that it is made for."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kafka_segments.engine.tables.keys import Transform
from kafka_segments.engine.tables.long_arithmetic import plus

_INTERVAL_IN_FINGERPRINT = r"/([0-9]+)/[0-9]+/(?:full|headers|index)/"
"""Of ``segments.fingerprint``: ``fingerprint_around`` of a build's options writes it."""


def only_present(segments: DataFrame) -> DataFrame:
    """Keep the segments that are there, each with its valid bytes as its size."""
    valid = F.coalesce("valid_bytes", "size_bytes")
    return segments.where(F.col("vanished_at").isNull()).withColumn("size_bytes", valid)


def with_built_interval(segments: DataFrame) -> DataFrame:
    """Add built_interval_bytes: the index interval that a segment was built with; null: unknown."""
    found = F.regexp_extract("fingerprint", _INTERVAL_IN_FINGERPRINT, 1)
    return segments.withColumn("built_interval_bytes", F.nullif(found, F.lit("")).cast("long"))


def with_append(
    *,
    now_ms: int,
    size_bytes: int,
    records: int,
    timestamp_ms: int | None,
    opened_ms: int | None,
) -> Transform:
    """Add the next append, and since when a broker has the segment open.

    1. Where the broker stamps the records, the append's timestamp is now, and so it is where
       ``timestamp_ms`` is None.
    2. ``opened_ms`` None: a broker opened the segment at its mtime.

    Needs: next_offset, last_modified_ms (long), message_timestamp_type.
    Gives: the same, append_bytes, append_timestamp_ms, append_last_offset, created_ms.
    """
    asked = now_ms if timestamp_ms is None else timestamp_ms
    is_stamped = F.col("message_timestamp_type") == "LogAppendTime"
    opened = F.col("last_modified_ms") if opened_ms is None else F.lit(opened_ms)
    added = {
        "append_bytes": F.lit(size_bytes),
        "append_timestamp_ms": F.when(is_stamped, now_ms).otherwise(F.lit(asked)),
        "append_last_offset": plus("next_offset", records - 1),
        "created_ms": opened.cast("long"),
    }
    return lambda segments: segments.withColumns(added)
