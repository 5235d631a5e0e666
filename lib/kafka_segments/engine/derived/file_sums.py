"""What rows of ``internal_records`` say of their file, and what is known of it beside them."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kafka_segments.engine.tables.findings import is_torn
from kafka_segments.engine.tables.keys import LOG_KEYS, Transform
from kafka_segments.kafka.messages.records import UNKNOWN

FILE_KEYS = (*LOG_KEYS, "file")


def sums_of_file() -> dict[str, Column]:
    """Return what is counted of the rows of a file, by the names of ``internal_files``."""
    has_record = F.col("kind").isNotNull() & ~F.col("is_snapshot")
    offset = F.when(has_record, F.col("offset"))
    timestamp = F.when(has_record & (F.col("timestamp_ms") >= 0), F.col("timestamp_ms"))
    return {
        "rows": F.count("*"),
        "records": F.count_if(has_record),
        "tombstones": F.count_if(has_record & F.col("is_tombstone")),
        "unknown": F.count_if(F.col("kind") == UNKNOWN),
        "unreadable": F.count("problem"),
        "is_torn": F.coalesce(F.bool_or(is_torn()), F.lit(False)),
        "from_offset": F.min(offset),
        "to_offset": F.max(offset),
        "from_ms": F.min(timestamp),
        "to_ms": F.max(timestamp),
    }


def with_file_facts(files: DataFrame) -> Transform:
    """Add what is known of the file of each row: is_active, size_bytes.

    Needs: rows of ``internal_records``; ``files``: the columns of a file's key, is_active,
        size_bytes.
    """
    facts = files.select(*FILE_KEYS, "is_active", "size_bytes")
    return lambda records: records.join(facts, list(FILE_KEYS), how="left")
