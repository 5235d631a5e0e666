"""Compact: trim, thin and clean index files, optimize and vacuum tables."""

import os
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from kafka_segments.console.not_known import tell_not_known
from kafka_segments.engine.frames.local_rows import stream_rows
from kafka_segments.engine.sources.missing import no_segments
from kafka_segments.engine.spark.settings import settings_meanwhile
from kafka_segments.engine.tables import catalog as tables
from kafka_segments.engine.tables.catalog import Table
from kafka_segments.engine.tables.delta import Warehouse
from kafka_segments.errors import UsageError
from kafka_segments.files.changes.kept_files import Kept, KeptFiles, Undone, read_notes, undo
from kafka_segments.files.delta.notes import OF_SOURCES
from kafka_segments.files.delta.table_versions import mark_taken_back
from kafka_segments.files.storage.files import list_folder, place
from kafka_segments.files.storage.folder_lock import held_log_dirs, warehouse_lock
from kafka_segments.files.storage.stores import store_of
from kafka_segments.files.storage.uris import join_uri
from kafka_segments.kafka.text.checkpoints import LOCK
from kafka_segments.verbs.change.compact.decide.index_folders import (
    check_builds,
    is_compacted,
    only_builds_into,
    origins_of,
    segments_by_folder,
)
from kafka_segments.verbs.change.compact.folder_compactor import (
    CompactedFile,
    FolderChanges,
    FolderCompactor,
)
from kafka_segments.verbs.change.compact.stale_builds import remove_stale_builds, remove_unfinished

LEAST_VACUUM_HOURS = 168
_HOUR_MS = 3_600_000
_DAY_MS = 24 * _HOUR_MS  # a run that died that long ago does not finish its files
_TABLES_AT_ONCE = 4
_OPTIMIZE = "spark.databricks.delta.optimize."
_TASKS_A_TABLE = 8
_LEAST_FILE_BYTES, _MOST_FILE_BYTES = 4 << 20, 1 << 30
_TABLES = (
    *tables.BUILD_TABLES,
    tables.RETENTION_DECISIONS,
    tables.RETENTION_PLANS,
    tables.INDEX_AUDITS,
    tables.DIVERGENCES,
    tables.OFFSET_RANGES,
    tables.INTERNAL_RECORDS,
    tables.INTERNAL_FILES,
    tables.VALIDATION_RESULTS,
    tables.QUARANTINED_SEGMENTS,
)


@dataclass(frozen=True)
class CompactOptions:
    """Options of a compaction; URIs are absolute, ``now_ms`` is the run's clock.

    ``set_aside`` is the folder that has a folder for each run.

    Raises:
        UsageError: index files lie on no local disk, or the horizon for VACUUM is too short.
    """

    now_ms: int
    set_aside: str
    index_dir: str | None = None
    sources: tuple[str, ...] = ()
    index_interval_bytes: int | None = None
    compacts_tables: bool = True
    vacuum_hours: int = LEAST_VACUUM_HOURS
    dry_run: bool = False

    def __post_init__(self) -> None:
        has_files = self.index_dir is not None or self.sources
        for uri in (self.index_dir, *self.sources, self.set_aside):
            if has_files and uri is not None and not store_of(uri).is_local:
                raise UsageError(f"{uri}: index files are compacted on a local disk only")
        if self.vacuum_hours < LEAST_VACUUM_HOURS:
            raise UsageError(
                f"--vacuum-hours {self.vacuum_hours}: at least {LEAST_VACUUM_HOURS}, else a query"
                " or a build that is running could lose the files that it reads"
            )


@dataclass(frozen=True)
class UndoOptions:
    """Which run is undone; ``warehouse`` and ``set_aside`` are its own, absolute URIs."""

    warehouse: str
    set_aside: str
    run_id: str


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
    changes: list[CompactedFile] = field(default_factory=list)
    waiting: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    tables: list[TableChange] = field(default_factory=list)
    stale_builds: list[str] = field(default_factory=list)
    unfinished: list[str] = field(default_factory=list)
    taken_back: list[str] = field(default_factory=list)


def run_compact(warehouse: Warehouse, options: CompactOptions) -> CompactSummary:
    """Compact index files, then tables.

    1. The run is alone in the warehouse while it works on index files: no build writes one between
       its look and its change.
    2. A file is kept in the run's set-aside folder before it is changed or removed.
    3. Tables are optimized, then vacuumed. Delta orders these commits with those of builds that run
       meanwhile.

    Raises:
        UsageError: a running broker holds a log directory, or no build of the warehouse wrote to
            the index folder.
    """
    root = warehouse.root
    summary = CompactSummary(uuid.uuid4().hex)
    with ExitStack() as locks:
        locks.enter_context(warehouse_lock(root, alone=True))
        _hold_log_dirs(options, locks)
        for found in _folders(warehouse, options, summary.run_id):
            summary.changes.extend(found.changes)
            summary.waiting.extend(found.waiting)
            summary.problems.extend(found.problems)
            summary.unfinished.extend(found.unfinished)
        summary.stale_builds.extend(
            remove_stale_builds(root, now_ms=options.now_ms, dry_run=options.dry_run)
        )
        summary.unfinished.extend(
            remove_unfinished(root, now_ms=options.now_ms, dry_run=options.dry_run)
        )
    if options.compacts_tables and not options.dry_run:
        summary.taken_back.extend(mark_taken_back(root, OF_SOURCES).values())
        summary.tables.extend(_compact_tables(warehouse, options))
    return summary


def run_undo(options: UndoOptions) -> Undone:
    """Put back the files that a run changed, wherever the place is as the run left it.

    Raises:
        UsageError: there is no such run, or a running broker holds a log directory that it changed.
    """
    folder = join_uri(options.set_aside, options.run_id)
    with ExitStack() as locks:
        locks.enter_context(warehouse_lock(options.warehouse, alone=True))
        notes = [note for note in read_notes(folder) if isinstance(note, Kept)]
        roots = {str(Path(note.path).parents[1]) for note in notes}
        locks.enter_context(held_log_dirs(sorted(roots)))
        return undo(folder)


def _folders(root: Warehouse, options: CompactOptions, run_id: str) -> Iterator[FolderChanges]:
    """Compact each partition's folder; yield what was found there."""
    set_aside = join_uri(options.set_aside, run_id)
    by_root = len(options.sources) + (options.index_dir is not None) > 1

    def compactor(below: str) -> FolderCompactor:
        kept = None if options.dry_run else KeptFiles(set_aside, by_root=by_root)
        day_ago_ns = (options.now_ms - _DAY_MS) * 1_000_000
        return FolderCompactor(below, kept, options.index_interval_bytes, day_ago_ns)

    for source in options.sources:
        if _is_compacted(*next(os.walk(source), (source, [], []))):
            raise UsageError(f"--source {source} is a partition's folder: give its log directory")
        for folder in _told_if_none(source):
            yield compactor(source).compact(folder)
    if (index_dir := options.index_dir) is not None:
        builds = _builds_into(root, options, index_dir)
        segments = root.read(tables.SEGMENTS)
        rows = stream_rows(segments.transform(segments_by_folder(builds, index_dir=index_dir)))
        known = {row["folder"]: set(row["base_offsets"]) for row in rows}
        for folder in _partition_folders(index_dir):
            origins = tuple(origins_of(folder, builds, index_dir=index_dir))
            yield compactor(index_dir).compact(
                folder, base_offsets=known.get(folder, set()), origins=origins
            )


def _hold_log_dirs(options: CompactOptions, locks: ExitStack) -> None:
    """Hold the lock files of the log directories, so that no broker starts on them."""
    log_dirs = [
        path for source in options.sources for path, _, names in os.walk(source) if LOCK in names
    ]
    if not options.dry_run:
        locks.enter_context(held_log_dirs(log_dirs))


def _told_if_none(source: str) -> Iterator[str]:
    """Yield the partitions' folders of a source; say so if there is none."""
    number = 0
    for number, folder in enumerate(_partition_folders(source), 1):  # noqa: B007
        yield folder
    if not number:
        tell_not_known([no_segments(source)])


def _partition_folders(top: str) -> Iterator[str]:
    for path, folders, names in os.walk(top):
        if _is_compacted(path, folders, names):
            yield path


def _is_compacted(path: str, folders: list[str], names: list[str]) -> bool:
    return is_compacted(os.path.basename(path), has_folders=bool(folders), files=names)


def _builds_into(root: Warehouse, options: CompactOptions, index_dir: str) -> list[dict[str, Any]]:
    """Return the builds that wrote to the index folder: rows of ``only_builds_into``.

    Raises:
        UsageError: no build wrote there, or files of its format cannot be thinned.
    """
    found = root.read(tables.RUNS).transform(only_builds_into(index_dir)).collect()
    builds = [row.asDict() for row in found]
    check_builds(
        builds,
        index_dir=index_dir,
        warehouse=root.root,
        is_thinned=options.index_interval_bytes is not None,
    )
    return builds


def _compact_tables(root: Warehouse, options: CompactOptions) -> list[TableChange]:
    """Optimize and vacuum the tables, some at a time."""
    there = [table for table in _TABLES if root.version(table) is not None]
    before = {table: root.file_totals(table) for table in there}
    sizes = _file_sizes(max((size_bytes for _, size_bytes in before.values()), default=0))
    with settings_meanwhile(root.spark, sizes), ThreadPoolExecutor(_TABLES_AT_ONCE) as pool:
        compact = partial(_compact_table, root, options=options)
        return list(pool.map(compact, before, before.values()))


def _file_sizes(largest_table_bytes: int) -> dict[str, str]:
    """Return the settings for the sizes of files: one task writes a file, so some share a table.

    A file of half the most is large enough, or each run would write all files again.
    """
    most = largest_table_bytes // _TASKS_A_TABLE
    most = min(max(most, _LEAST_FILE_BYTES), _MOST_FILE_BYTES)
    return {_OPTIMIZE + "maxFileSize": str(most), _OPTIMIZE + "minFileSize": str(most // 2)}


def _compact_table(
    root: Warehouse, table: Table, before: tuple[int, int], *, options: CompactOptions
) -> TableChange:
    after = before
    if before[0] > 1:
        root.optimize(table)
        after = root.file_totals(table)
    if _has_older_files(join_uri(root.root, table.name), options):
        root.vacuum(table, hours=options.vacuum_hours)
    return TableChange(table.name, before[0], after[0], before[1], after[1])


def _has_older_files(table: str, options: CompactOptions) -> bool:
    """Tell whether VACUUM could remove a file: it keeps all that are younger than its horizon."""
    horizon_ns = (options.now_ms - options.vacuum_hours * _HOUR_MS) * 1_000_000
    entries = list_folder(place(table))
    folders = [entry.name for entry in entries if entry.is_folder and entry.name != "_delta_log"]
    return bool(folders) or any(entry.mtime_ns < horizon_ns for entry in entries)
