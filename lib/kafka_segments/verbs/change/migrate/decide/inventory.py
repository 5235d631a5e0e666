"""What a cluster's segments are made of, when they go, and what they mean for Kafka 4."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kafka_segments.engine.tables.decisions import Decision
from kafka_segments.engine.tables.keys import SEGMENT_KEYS, Transform
from kafka_segments.kafka.text.names import OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX

NOW, LATER, NEVER = "now", "later", "never"

LEGACY_FORMAT = "legacy_format"
INDEX_MISSING, TIME_INDEX_MISSING = "index_missing", "time_index_missing"
OFFSET_OVERFLOW, DAMAGED = "offset_overflow", "damaged"
NOT_LISTED, NOT_COUNTED = "files_unknown", "formats_unknown"

READS_LEGACY, LZ4_V0, NO_TIMESTAMPS = "reads_legacy", "lz4_v0", "no_timestamps"
V2_BESIDE_LEGACY = "v2_beside_legacy"
_TORN = ("partial_batch", "preallocated_tail")
_FIRST_V2 = 2


def is_counted_again(*, decompresses: bool) -> Column:
    """Tell which segments' formats must be counted from their files.

    A segment of one format has its counts in the table. Files are read of segments of several
    formats and, with ``decompresses``, of those whose records only decompression can count.

    Needs: a row of table ``segments``.
    """
    names = ("magics", "codecs", "timestamp_types")
    is_uniform = F.greatest(*(F.size(name) for name in names)) <= 1
    has_count = F.col("record_count").isNotNull() | F.lit(not decompresses)
    is_known = F.coalesce(is_uniform, F.lit(False)) & has_count
    return ~is_known & F.coalesce(F.col("valid_bytes") > 0, F.lit(False))


def with_formats(counted: DataFrame | None, *, decompresses: bool) -> Transform:
    """Add what segments are made of, or why that is not known.

    ``counted``: path, formats and uncounted of the segments for which ``is_counted_again`` holds;
    None: it holds for none.

    Needs: rows of table ``segments``.
    Gives: the same with formats (array of struct, null: not known) and uncounted (string).
    """
    is_read = F.col("valid_bytes").isNotNull()
    if counted is None:
        formats = F.when(is_read, _uniform_formats())
        why_not = F.when(~is_read, F.col("damage.message"))
        return lambda segments: segments.withColumns({"formats": formats, "uncounted": why_not})
    is_asked = is_counted_again(decompresses=decompresses)
    columns = {
        "formats": F.when(is_asked, F.col("formats")).when(is_read, _uniform_formats()),
        "uncounted": F.when(is_read, F.col("uncounted")).otherwise(F.col("damage.message")),
    }
    return lambda segments: segments.join(counted, "path", how="left").withColumns(columns)


def _uniform_formats() -> Column:
    """Return ``formats`` of a segment of one format; empty where it has no batch."""
    one = F.struct(
        F.get("magics", 0).alias("magic"),
        F.get("codecs", 0).alias("codec"),
        F.get("timestamp_types", 0).alias("timestamp_type"),
        "batch_count",
        "record_count",
        F.col("valid_bytes").alias("bytes"),
    )
    return F.filter(F.array(one), lambda found: found["batch_count"] > 0)


def take_inventory(segments: DataFrame) -> DataFrame:
    """Decide for every segment what it is made of, when it goes, and what it means for Kafka 4.

    1. ``goes`` is *now* if retention deletes it at this moment, *later* if retention will delete it
       as log and settings are, *never* if something else must change first.
    2. It relies on its mtime if it has batches and none of them has a timestamp.

    Needs: a row of table ``segments`` with formats, uncounted, files, unlisted, decision,
    deletes_at_ms, reason_code, reason.
    Gives: the columns of ``migration_inventory`` but run_id and decided_at.
    """
    legacy = F.filter("formats", lambda one: one["magic"] < _FIRST_V2)
    suffixes = F.transform("files", lambda file: _suffix(file["name"]))
    return segments.withColumns({"_legacy": legacy, "_suffixes": suffixes}).select(
        *SEGMENT_KEYS,
        "path",
        "size_bytes",
        "is_active",
        "formats",
        "uncounted",
        _total("_legacy", "bytes").alias("legacy_bytes"),
        _total("_legacy", "batch_count").alias("legacy_batch_count"),
        _total("_legacy", "record_count").alias("legacy_record_count"),
        _relies_on_mtime().alias("relies_on_mtime"),
        "last_modified_ms",
        _goes().alias("goes"),
        "deletes_at_ms",
        "reason_code",
        "reason",
        _codes(_obstacles()).alias("obstacles"),
        _codes(_clients()).alias("clients"),
        "damage",
    )


def _suffix(name: Column) -> Column:
    return F.regexp_extract(name, r"^[0-9]+(\..*)$", 1)


def _total(formats: str, field: str) -> Column:
    """Return the sum of a field of formats; null where one of the values is not known."""
    return F.aggregate(formats, F.lit(0).cast("long"), lambda sum_, one: sum_ + one[field])


def _relies_on_mtime() -> Column:
    by_mtime = F.col("largest_timestamp_source") == "last_modified"
    return F.coalesce(by_mtime & (F.col("batch_count") > 0), F.lit(False))


def _goes() -> Column:
    return (
        F.when(F.col("decision") == Decision.DELETE, NOW)
        .when(F.col("deletes_at_ms").isNotNull(), LATER)
        .otherwise(NEVER)
    )


def _codes(holds: dict[str, Column]) -> Column:
    found = F.array(*(F.when(condition, code) for code, condition in holds.items()))
    return F.array_compact(found)


def _obstacles() -> dict[str, Column]:
    has_index = F.array_contains("_suffixes", OFFSET_INDEX_SUFFIX)
    has_time_index = F.array_contains("_suffixes", TIME_INDEX_SUFFIX)
    kind = F.col("damage.kind")
    is_torn_end = F.col("is_active") & kind.isin(*_TORN)
    return {
        LEGACY_FORMAT: F.size("_legacy") > 0,
        INDEX_MISSING: ~has_index,
        TIME_INDEX_MISSING: has_index & ~has_time_index,
        OFFSET_OVERFLOW: kind == OFFSET_OVERFLOW,
        DAMAGED: kind.isNotNull() & (kind != OFFSET_OVERFLOW) & ~is_torn_end,
        NOT_LISTED: F.col("unlisted").isNotNull(),
        NOT_COUNTED: F.col("uncounted").isNotNull(),
    }


def _clients() -> dict[str, Column]:
    has_legacy = F.size("_legacy") > 0
    return {
        READS_LEGACY: has_legacy,
        LZ4_V0: F.exists("_legacy", lambda one: (one["magic"] == 0) & (one["codec"] == "lz4")),
        NO_TIMESTAMPS: _relies_on_mtime()
        | F.exists("formats", lambda one: one["timestamp_type"] == "NoTimestampType"),
        V2_BESIDE_LEGACY: has_legacy & (F.size("formats") > F.size("_legacy")),
    }
