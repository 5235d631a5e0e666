"""Compact: index files trimmed, thinned and cleaned; tables optimized and vacuumed."""

import json
import os
import uuid
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from delta.tables import DeltaTable
from pyarrow import fs
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from kafka_segments.compact.folder_compactor import Change, FolderCompactor
from kafka_segments.errors import UsageError
from kafka_segments.spark.row_stream import stream_rows
from kafka_segments.storage.files import Place, list_folder, place
from kafka_segments.storage.folder_lock import refuse_locked, warehouse_lock
from kafka_segments.storage.index_files import folders_below
from kafka_segments.storage.kept_files import SetAside, Undone, read_manifest, undo
from kafka_segments.storage.local_folder import FileEntry
from kafka_segments.storage.publishing import remove_folder
from kafka_segments.storage.set_aside import held_lock
from kafka_segments.storage.uris import join_uri
from kafka_segments.tables import catalog as tables
from kafka_segments.tables.catalog import Table
from kafka_segments.tables.delta import Warehouse
from kafka_segments.wire.checkpoints import LOCK
from kafka_segments.wire.names import FolderState, parse_partition_folder

LEAST_VACUUM_HOURS = 168
_DAY_NS = 86_400 * 10**9
_STALE_DAYS = 1
_STALE_DAYS_UNLOCKED = 7
_THINNABLE = ("kafka", "kip33")
_TABLES = (
    *tables.BUILD_TABLES,
    tables.RETENTION_DECISIONS,
    tables.RETENTION_PLANS,
    tables.INDEX_AUDITS,
    tables.VALIDATION_RESULTS,
    tables.QUARANTINED_SEGMENTS,
)


@dataclass(frozen=True)
class CompactOptions:
    """Options of a compaction. URIs are absolute; ``now_ms`` is the run's clock.

    Raises:
        UsageError: a place that is not local, or too short a horizon for VACUUM.
    """

    warehouse: str
    now_ms: int
    index_dir: str | None = None
    sources: tuple[str, ...] = ()
    index_interval_bytes: int | None = None
    set_aside: str | None = None
    compacts_tables: bool = True
    vacuum_hours: int = LEAST_VACUUM_HOURS
    dry_run: bool = False

    def __post_init__(self) -> None:
        has_files = self.index_dir is not None or self.sources
        for uri in (self.index_dir, *self.sources, self.set_aside_root()):
            if has_files and uri is not None and "://" in uri:
                raise UsageError(f"{uri}: index files are compacted on a local disk only")
        if self.vacuum_hours < LEAST_VACUUM_HOURS:
            raise UsageError(
                f"--vacuum-hours {self.vacuum_hours}: at least {LEAST_VACUUM_HOURS}, else a query"
                " or a build that is running could lose the files that it reads"
            )

    def set_aside_root(self) -> str:
        """Give the folder that holds a folder a run."""
        return self.set_aside or join_uri(self.warehouse, "_set_aside")


@dataclass
class TableChange:
    """What OPTIMIZE did with a table."""

    table: str
    files_before: int
    files_after: int
    bytes_before: int
    bytes_after: int


@dataclass
class CompactSummary:
    """What a compaction did, or would do."""

    run_id: str
    changes: list[Change] = field(default_factory=list)
    waiting: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    tables: list[TableChange] = field(default_factory=list)
    stale_builds: list[str] = field(default_factory=list)


def run_compaction(spark: SparkSession, options: CompactOptions) -> CompactSummary:
    """Compact index files, then tables.

    1. Alone in the warehouse, so that no build writes an index file between look and change.
    2. What is changed or removed is first kept in the set-aside folder of the run.
    3. Tables: OPTIMIZE, then VACUUM; Delta orders them with builds that run meanwhile.

    Raises:
        UsageError: a running broker's log directory, or an index folder that no build of this
            warehouse wrote.
    """
    root = Warehouse(spark, options.warehouse)
    summary = CompactSummary(uuid.uuid4().hex)
    with ExitStack() as locks:
        locks.enter_context(warehouse_lock(options.warehouse, alone=True))
        _hold_log_dirs(options, locks)
        for compactor, folder, base_offsets in _folders(root, options, summary.run_id):
            found = compactor.compact(folder, base_offsets=base_offsets)
            summary.changes.extend(found.changes)
            summary.waiting.extend(found.waiting)
            summary.problems.extend(found.problems)
        summary.stale_builds.extend(_remove_stale(options))
    if options.compacts_tables and not options.dry_run:
        there = [table for table in _TABLES if root.version(table) is not None]
        summary.tables.extend(_compact_table(root, table, options) for table in there)
    return summary


def undo_compaction(options: CompactOptions, run_id: str) -> Undone:
    """Put back what a run changed, where the place is as that run left it.

    Raises:
        UsageError: no such run, or a running broker holds a log directory that it changed.
    """
    folder = join_uri(options.set_aside_root(), run_id)
    with ExitStack() as locks:
        locks.enter_context(warehouse_lock(options.warehouse, alone=True))
        roots = {str(Path(note.path).parents[1]) for note in read_manifest(folder)}
        _hold([path for path in sorted(roots) if (Path(path) / LOCK).exists()], locks)
        return undo(folder)


def _folders(
    root: Warehouse, options: CompactOptions, run_id: str
) -> Iterator[tuple[FolderCompactor, str, set[int] | None]]:
    """Give every partition's folder to compact, and which segments it is for."""
    set_aside = join_uri(options.set_aside_root(), run_id)

    def compactor(below: str) -> FolderCompactor:
        kept = None if options.dry_run else SetAside(set_aside)
        return FolderCompactor(below, kept, options.index_interval_bytes)

    for source in options.sources:
        if parse_partition_folder(os.path.basename(source)):
            raise UsageError(f"--source {source} is a partition's folder: give its log directory")
        for folder in _partition_folders(source):
            yield compactor(source), folder, None
    if options.index_dir is not None:
        known = {
            row["folder"]: row["base_offsets"] for row in stream_rows(_known_folders(root, options))
        }
        for folder in _partition_folders(options.index_dir):
            yield compactor(options.index_dir), folder, set(known.get(folder, ()))


def _hold_log_dirs(options: CompactOptions, locks: ExitStack) -> None:
    """Hold the lock files of the log directories, so that no broker starts on them meanwhile."""
    log_dirs = [
        path for source in options.sources for path, names in _walk(source) if LOCK in names
    ]
    if not options.dry_run:
        _hold(log_dirs, locks)


def _hold(log_dirs: list[str], locks: ExitStack) -> None:
    refuse_locked(log_dirs)
    for log_dir in log_dirs:
        locks.enter_context(held_lock(Path(log_dir) / LOCK))


def _walk(top: str) -> Iterator[tuple[str, list[str]]]:
    for path, _, names in os.walk(top):
        yield path, names


def _partition_folders(top: str) -> Iterator[str]:
    for path, _ in _walk(top):
        parsed = parse_partition_folder(os.path.basename(path))
        if parsed is not None and parsed.state in (FolderState.LIVE, FolderState.FUTURE):
            yield path


def _known_folders(root: Warehouse, options: CompactOptions) -> DataFrame:
    """Give, by folder below the index folder, the base offsets of the segments that exist."""
    segments = root.read(tables.SEGMENTS).where(F.col("vanished_at").isNull())
    target = F.lit(None)
    for run in _builds_into(root, options):
        for source, folder in folders_below(run["sources"]).items():
            below = join_uri(str(options.index_dir), folder)
            rest = F.substring(F.col("path"), len(source.rstrip("/")) + 1, 2**31 - 1)
            lies_below = F.col("path").startswith(source.rstrip("/") + "/")
            target = F.when(lies_below, F.concat(F.lit(below), rest)).otherwise(target)
    return (
        segments.withColumn("folder", F.regexp_replace(target, "/[^/]*$", ""))
        .where(F.col("folder").isNotNull())
        .groupBy("folder")
        .agg(F.collect_set("base_offset").alias("base_offsets"))
    )


def _builds_into(root: Warehouse, options: CompactOptions) -> list[dict[str, Any]]:
    """Give sources and options of the builds that wrote to the index folder.

    Raises:
        UsageError: there are none, or their format must not be thinned.
    """
    path = F.get_json_object("options", "$.index_dir")
    found = root.read(tables.RUNS).where(path == F.lit(options.index_dir))
    runs = [row.asDict() for row in found.select("sources", "options").distinct().collect()]
    if not runs:
        raise UsageError(
            f"--index-dir {options.index_dir}: no build of {options.warehouse} wrote there,"
            " so what is an orphan cannot be told"
        )
    formats = {str(json.loads(run["options"]).get("index_format")) for run in runs}
    if options.index_interval_bytes is not None and not formats <= set(_THINNABLE):
        raise UsageError(
            f"--index-interval-bytes: {options.index_dir} holds files of format"
            f" {', '.join(sorted(formats))}; only {' and '.join(_THINNABLE)} can be thinned"
        )
    return runs


def _remove_stale(options: CompactOptions) -> list[str]:
    """Remove what builds that died left in the warehouse, once nothing in it is young.

    Elsewhere than on a disk no lock tells that no build is running, so a week must have passed.
    """
    entries = join_uri(options.warehouse, "_entries")
    folder = place(entries)
    if folder.filesystem.get_file_info(folder.path).type != fs.FileType.Directory:
        return []
    days = _STALE_DAYS_UNLOCKED if "://" in entries else _STALE_DAYS
    oldest = options.now_ms * 1_000_000 - days * _DAY_NS
    stale = [
        entry.name
        for entry in list_folder(folder)
        if entry.is_folder and _newest(folder, entry) < oldest
    ]
    for name in stale:
        if not options.dry_run:
            remove_folder(folder.child(name))
    return stale


def _newest(folder: Place, entry: FileEntry) -> int:
    """Give the newest time of an entry and all below it; folders of object stores have none."""
    below = folder.child(entry.name)
    entries = list_folder(below) if entry.is_folder else []
    return max(entry.mtime_ns, *(_newest(below, found) for found in entries), 0)


def _compact_table(root: Warehouse, table: Table, options: CompactOptions) -> TableChange:
    delta = DeltaTable.forPath(root.spark, root.uri(table))
    before = delta.detail().select("numFiles", "sizeInBytes").collect()[0]
    root.retried(table, delta.optimize().executeCompaction)
    after = delta.detail().select("numFiles", "sizeInBytes").collect()[0]
    delta.vacuum(options.vacuum_hours)
    return TableChange(table.name, before[0], after[0], before[1], after[1])
