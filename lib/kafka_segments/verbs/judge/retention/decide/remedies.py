"""What frees a segment, in words: the least destructive first, and what else goes with it.

``local.retention.*`` leaves the remote copies of a tiered topic. ``retention.*`` reaches them, and
so does what deletes up to an offset. A setting holds for all partitions of its topic.

Source: UnifiedLog.localRetentionSize, RemoteLogManager.RLMExpirationTask.
"""

from pyspark.sql import Column
from pyspark.sql import functions as F

WITH_CLEANER = (
    "log.cleaner.enable=true in server.properties, and a restart of the broker: then all its"
    " compacted topics lose each key's older records, too"
)
WITH_DELETE = (
    "delete in cleanup.policy: then retention.ms and retention.bytes hold for the whole topic, and"
    " the only record of a key goes with the rest"
)


def _to_lower(name: str) -> Column:
    """Return the setting that frees the disk and destroys the least: the remote copies stay."""
    return F.when(F.col("uploads"), f"local.retention.{name}").otherwise(f"retention.{name}")


def _of_remote_copies() -> Column:
    """Return what ``_to_lower``'s setting does to the remote copies of a tiered topic."""
    return (
        F.when(F.col("uploads"), "; the remote copies stay")
        .when(F.col("is_tiered"), "; it holds for the remote copies, too")
        .otherwise("")
    )


def lowered(*names: str) -> Column:
    """Return the settings to lower or set, and what else goes with them."""
    first, *more = [_to_lower(name) for name in names]
    return F.concat(
        first,
        *(part for name in more for part in (F.lit(" or "), name)),
        F.lit(", which all partitions of the topic go by"),
        _of_remote_copies(),
    )


def by_size() -> Column:
    """Return how a segment goes by its log's size, whatever its timestamp says."""
    return F.concat(
        _to_lower("bytes"),
        F.format_string("=%d: it goes, and all older segments with it", F.col("younger_bytes")),
        F.when(~F.col("is_committed"), ", once below the high watermark").otherwise(""),
        F.when(~F.col("is_uploaded"), ", once uploaded").otherwise(""),
        F.lit("; all partitions of the topic go by it"),
        _of_remote_copies(),
    )
