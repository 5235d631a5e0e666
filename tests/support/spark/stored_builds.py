"""Builds whose segments, index files and tables lie anywhere, and what is left of them."""

from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from kafka_segments.engine.choose import few_rows
from kafka_segments.engine.tables.catalog import OFFSET_INDEX, SEGMENTS, Table
from kafka_segments.engine.tables.delta import Warehouse
from kafka_segments.files.storage.files import Place, list_folder, read_whole
from kafka_segments.kafka.index.segment.recovery_options import RecoveryOptions
from kafka_segments.verbs.scan.options import BuildOptions
from kafka_segments.verbs.scan.run import run_build
from kafka_segments.verbs.scan.summary import BuildSummary
from support.logs.growing_logs import Key

NOW_MS = 1_800_000_000_000
OF_THE_COPY = {"path", "log_dir", "last_modified_ms", "fingerprint", "run_id", "scanned_at"}


def build(spark: SparkSession, source: str, warehouse: str, **options: Any) -> BuildSummary:
    """Build one source as a cluster does: whatever its size, its rows are taken for many."""
    asked = {"recovery": RecoveryOptions(), "now_ms": NOW_MS, **options}
    return run_build(Warehouse(spark, warehouse), BuildOptions((source,), **asked))


def build_few(spark: SparkSession, source: str, warehouse: str, **options: Any) -> BuildSummary:
    """Build one small source as the command does: for tests of what comes after a build.

    The tables are the same as those of ``build`` (``test_few_rows.py``), and there sooner.
    """
    with few_rows(spark):
        return build(spark, source, warehouse, **options)


def rows_few(spark: SparkSession, warehouse: str, table: Table) -> list[dict[str, Any]]:
    """Give the rows of a small table, read at once."""
    with few_rows(spark):
        return rows(spark, warehouse, table, without=set())


def counted_in_tables(
    spark: SparkSession, warehouse: Path
) -> tuple[dict[Key, tuple[int, int]], list[tuple[Key, int, int]]]:
    """Give what tables tell of the segments that have not vanished, as ``GrowingLogs.counted``."""
    there = [row for row in rows_few(spark, str(warehouse), SEGMENTS) if row["vanished_at"] is None]
    entries = rows_few(spark, str(warehouse), OFFSET_INDEX)
    sizes = {_key(row): (row["size_bytes"], row["record_count"]) for row in there}
    return sizes, sorted((_key(row), row["offset"], row["position"]) for row in entries)


def _key(row: dict[str, Any]) -> Key:
    return row["topic"], row["partition"], row["base_offset"]


def rows(
    spark: SparkSession, warehouse: str, table: Table, *, without: set[str]
) -> list[dict[str, Any]]:
    """Give a table's rows, sorted."""
    frame = Warehouse(spark, warehouse).read(table).drop(*without)
    return sorted((row.asDict(recursive=True) for row in frame.collect()), key=str)


def files(folder: Path) -> dict[str, bytes]:
    """Give the files below a folder by their path from there."""
    found = (file for file in folder.rglob("*") if file.is_file())
    return {str(file.relative_to(folder)): file.read_bytes() for file in found}


def files_at(folder: Place) -> dict[str, bytes]:
    """Give the files below a folder anywhere, as ``files`` does."""
    found: dict[str, bytes] = {}
    for entry in list_folder(folder):
        below = folder.child(entry.name)
        if entry.is_folder:
            found |= {f"{entry.name}/{name}": data for name, data in files_at(below).items()}
        else:
            found[entry.name] = read_whole(below, most_bytes=entry.size_bytes)
    return found
