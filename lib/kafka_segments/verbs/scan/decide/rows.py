"""What listing and scanning found, shaped into rows of the published tables."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kafka_segments.engine.sources.broker_identity import file_path
from kafka_segments.engine.tables.catalog import (
    LOG_DIRS,
    LOGS,
    OFFSET_RANGES,
    SEGMENTS,
    UNRECOGNIZED_FILES,
    Table,
)
from kafka_segments.engine.tables.keys import SEGMENT_KEYS, Transform
from kafka_segments.engine.tables.table_columns import as_published
from kafka_segments.files.folders import kinds
from kafka_segments.verbs.scan.decide.entries import IS_GONE
from kafka_segments.verbs.scan.decide.plan import READ_AGAIN, last_modified_ms, not_below


def to_segments(*, index_format: str, run_id: str, now: Column) -> Transform:
    """Turn scanned segments into rows of ``segments``.

    1. The largest timestamp is that of the records; without any, the mtime of the .log.
    2. A segment that could not be read, or changed while it was read, has no fingerprint: the
       next run reads it again.

    Needs: the rows of ``scan_segments``, with cluster, broker_id and txn_index_entries.
    Gives: the columns of ``segments``.
    """
    has_timestamp = F.coalesce(F.col("max_timestamp_ms") >= 0, F.lit(False))
    greatest = F.when(has_timestamp, F.col("max_timestamp_ms"))
    last_modified = last_modified_ms()
    is_read_again = F.coalesce(F.col("damage.kind").isin(*READ_AGAIN), F.lit(False))
    columns = {
        "path": file_path(),
        "last_modified_ms": last_modified,
        "largest_timestamp_ms": greatest.otherwise(last_modified),
        "largest_timestamp_source": F.when(has_timestamp, "record").otherwise("last_modified"),
        "index_format": F.lit(index_format),
        "fingerprint": F.when(~is_read_again, F.col("fingerprint")),
        "scanned_at": now,
        "run_id": F.lit(run_id),
        "vanished_at": F.lit(None),
    }

    def transform(scanned: DataFrame) -> DataFrame:
        return scanned.withColumns(columns).transform(as_published(SEGMENTS))

    return transform


def to_offset_ranges(*, checked: str, run_id: str, now: Column) -> Transform:
    """Turn scanned segments into rows of ``offset_ranges``.

    Needs: the rows of ``scan_segments``.
    Gives: the columns of ``offset_ranges``.
    """
    columns = {
        "path": file_path(),
        "checked": F.lit(checked),
        "ranges": F.col("offset_ranges"),
        "read_at": now,
        "run_id": F.lit(run_id),
    }
    return lambda scanned: scanned.withColumns(columns).transform(as_published(OFFSET_RANGES))


def to_logs(listed: DataFrame, *, run_id: str) -> Transform:
    """Turn the rows of logs in a listing into rows of ``logs``.

    Needs: rows of kind ``log`` with cluster and broker_id. ``listed`` has the rows of kind
        ``log_dir``, whose checkpoints tell the offsets of each log.
    Gives: the columns of ``logs``.
    """
    checkpointed = (
        listed.where(F.col("kind") == kinds.LOG_DIR)
        .select("log_dir", F.inline("offsets"))
        .hint("broadcast")
    )
    columns = {"path": file_path(), "problem": F.col("reason"), "run_id": F.lit(run_id)}

    def transform(logs: DataFrame) -> DataFrame:
        found = logs.join(checkpointed, ["log_dir", "topic", "partition"], how="left")
        return found.withColumns(columns).transform(as_published(LOGS))

    return transform


def to_log_dirs(*, run_id: str) -> Transform:
    """Turn the rows of log directories in a listing into rows of ``log_dirs``.

    Needs: rows of kind ``log_dir`` with cluster and broker_id.
    Gives: the columns of ``log_dirs``.
    """
    columns = {
        "meta_version": F.col("version"),
        "problem": F.col("reason"),
        "run_id": F.lit(run_id),
    }

    def transform(log_dirs: DataFrame) -> DataFrame:
        found = log_dirs.select("cluster", "broker_id", "log_dir", "reason", "meta.*")
        return found.withColumns(columns).transform(as_published(LOG_DIRS))

    return transform


def to_unrecognized(*, run_id: str) -> Transform:
    """Turn rows of a listing that are in no other table into rows of ``unrecognized_files``.

    Needs: rows of the kinds ``NOT_TAKEN`` with cluster and broker_id.
    Gives: the columns of ``unrecognized_files``, one row a path.
    """

    def transform(found: DataFrame) -> DataFrame:
        named = found.withColumns({"path": file_path(), "run_id": F.lit(run_id)})
        keys = list(UNRECOGNIZED_FILES.keys)
        return named.transform(as_published(UNRECOGNIZED_FILES)).dropDuplicates(keys)

    return transform


def kept_beside(table: Table, made: DataFrame, *, known: DataFrame) -> Transform:
    """Keep one row for each key, of known segments or logs of which no row is made.

    Needs: rows of the table; ``made``, and ``known``, rows of ``segments``: the columns of
        ``SEGMENT_KEYS`` that the table's key has.
    """
    keys = [key for key in SEGMENT_KEYS if key in table.keys]
    others = known.select(*keys).join(made.select(*keys), keys, how="left_anti")

    def transform(before: DataFrame) -> DataFrame:
        return before.join(others, keys, how="left_semi").dropDuplicates([*table.keys])

    return transform


def changes_since(table: Table, before: DataFrame, unseen: DataFrame) -> Transform:
    """Keep the rows that differ from all ``before``, and add those whose files are gone.

    Those below a folder that could not be listed, or a link that was not followed, are not gone.

    Needs: rows of the table, as ``before``, with path; ``unseen``: the listing's rows of such
        folders and links.
    Gives: the same, and ``is_gone`` (boolean).
    """

    def transform(found: DataFrame) -> DataFrame:
        names = table.schema.fieldNames()
        keys = list(table.keys)
        gone = before.join(found.select(*keys), keys, how="left_anti").transform(not_below(unseen))
        changed = found.transform(newly_found(table, before)).select(*names)
        return changed.withColumn(IS_GONE, F.lit(False)).unionByName(
            gone.select(*names).withColumn(IS_GONE, F.lit(True))
        )

    return transform


def newly_found(table: Table, before: DataFrame) -> Transform:
    """Keep the rows of a table that differ from all ``before`` in any column but run_id."""

    def transform(found: DataFrame) -> DataFrame:
        names = table.schema.fieldNames()
        compared = F.xxhash64(*(name for name in names if name != "run_id"))
        known = before.select(compared.alias("_row"))
        return found.withColumn("_row", compared).join(known, "_row", how="left_anti")

    return transform
