"""What earlier runs have read of segments that have not changed since: ``offset_ranges``."""

from collections.abc import Sequence
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kafka_segments.engine.tables.keys import Transform

FULL, HEADERS = "full", "headers"
"""How batches are checked: by every byte, or by headers alone."""

_FILE = ("path", "size_bytes", "mtime_ns")
_LOG = ("topic", "partition")


def earlier_reads_of(tables: Sequence[DataFrame], *, check_crc: bool) -> Transform:
    """Return what earlier runs read of the segments that have not changed since.

    1. A file is the same if its path, size and mtime are. Of several reads the last one counts.
    2. With ``check_crc`` only reads count that verified checksums.
    3. The offsets must end below the next segment, which may be newer than the read.

    Needs: rows of ``frames.chosen_segments``; ``tables``: rows of ``offset_ranges``, at least one.
    Gives: the columns of ``tasks.read_segments`` without bytes_read and damages, which are none.
    """
    columns = (*_FILE, "checked", "ranges", "read_at")
    held = reduce(DataFrame.unionByName, (table.select(*columns) for table in tables))
    is_enough = (F.col("checked") == FULL) | F.lit(not check_crc)
    latest = F.max_by(F.struct("ranges"), "read_at").alias("_read")
    last = F.array_max(F.transform("ranges", lambda one: one["last_offset"]))
    fits = F.col("next_base").isNull() | last.isNull() | (last < F.col("next_base"))

    def transform(segments: DataFrame) -> DataFrame:
        known = held.where(is_enough).groupBy(*_FILE).agg(latest).select(*_FILE, "_read.ranges")
        return (
            segments.join(known.where("ranges IS NOT NULL"), list(_FILE), how="inner")
            .where(fits)
            .select(
                *("copy", *_LOG, "path", "segment_base", "next_base"),
                F.aggregate(
                    "ranges", F.lit(0).cast("long"), lambda total, one: total + one["thinned"]
                ).alias("gaps"),
                "ranges",
            )
        )

    return transform


def kept_reads(segments: DataFrame, *, check_crc: bool) -> Transform:
    """Return what was read as table ``offset_ranges`` has it: ranges of sound segments, else null.

    Needs: rows of ``tasks.read_segments``; ``segments``: rows of ``frames.chosen_segments``.
    Gives: the columns of the table but for the run's.
    """
    files = segments.select("base_offset", *_FILE)
    return lambda read: read.join(files, "path", how="inner").select(
        *(*_FILE, *_LOG, "base_offset"),
        F.lit(FULL if check_crc else HEADERS).alias("checked"),
        F.when(F.size("damages") == 0, F.col("ranges")).alias("ranges"),
    )
