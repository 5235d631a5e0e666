"""Build: list the sources, read what is new or changed, write index files, merge the tables."""

import logging
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kafka_segments.engine.frames.engines import computed_once
from kafka_segments.engine.frames.packing import (
    TellLoad,
    TellRead,
    share_out,
    tell_nobody,
)
from kafka_segments.engine.sources.unread_notes import find_unread
from kafka_segments.engine.tables.catalog import BUILD_TABLES, RUNS
from kafka_segments.engine.tables.delta import Warehouse
from kafka_segments.files.delta.table_versions import note_versions
from kafka_segments.files.storage.files import place
from kafka_segments.files.storage.folder_lock import warehouse_lock
from kafka_segments.files.storage.publishing import remove_folder
from kafka_segments.files.storage.uris import join_uri
from kafka_segments.kafka.index.log.loading import RecoveryMode
from kafka_segments.verbs.scan.decide import folding as decide_folding
from kafka_segments.verbs.scan.decide.plan import SCAN
from kafka_segments.verbs.scan.entry_files import EntryParts, make_folders
from kafka_segments.verbs.scan.folded_log import FoldOptions
from kafka_segments.verbs.scan.folding import FoldedLogs, fold_changed_logs
from kafka_segments.verbs.scan.in_place import check_in_place, check_sizes_known
from kafka_segments.verbs.scan.missing_segments import MissingSegment, find_missing
from kafka_segments.verbs.scan.options import BuildOptions
from kafka_segments.verbs.scan.planning import BuildWork, plan_build
from kafka_segments.verbs.scan.scanner import ScanOptions
from kafka_segments.verbs.scan.summary import BuildSummary, Totals, run_values, summarize, totals_of
from kafka_segments.verbs.scan.tasks import scan_segments
from kafka_segments.verbs.scan.write_tables import BuildTables

_LOG = logging.getLogger(__name__)


def run_build(
    warehouse: Warehouse,
    options: BuildOptions,
    tell: TellLoad = tell_nobody,
    *,
    tell_read: TellRead | None = None,
    dry_run: bool = False,
) -> BuildSummary:
    """Build the indexes and tables of all segments under the sources.

    Args:
        warehouse: where the tables are.
        options: what is built, and where index files go.
        tell: is told how much will be read, in how many tasks.
        tell_read: is told of the bytes that threads of the driver have read.
        dry_run: no segment is read and nothing is written; the summary says what would be read.

    Raises:
        SourceError: a source cannot be listed.
        UsageError: ``in_place`` where index files cannot lie beside the segments, or the tables lie
            in a source.
    """
    build = Build(warehouse, options, tell, tell_read)
    return build.plan_only() if dry_run else build.run()


class Build:
    """One run of ``build``: what its steps share.

    1. The sources are listed, one level of folders after another, in the executors.
    2. The listing is compared with table ``segments``: new and changed segments are to be read.
    3. They are packed into tasks by bytes. The tasks recover them and write their index files.
    4. Logs in which something changed are folded: what crosses segments is written, and segments
       that a broker would refuse or remove lose their index files.
    5. Entries go to the tables first, segments after them. If a run dies in between, the next one
       repeats its work.
    """

    def __init__(
        self,
        warehouse: Warehouse,
        options: BuildOptions,
        tell: TellLoad = tell_nobody,
        tell_read: TellRead | None = None,
    ) -> None:
        self._warehouse = warehouse
        self._tell = tell
        self._tell_read = tell_read
        self._options = options
        self._run_id = uuid.uuid4().hex
        options.check_target("--warehouse", warehouse.root)
        self._output = options.index_output(warehouse.root, self._run_id)
        self._now = F.timestamp_millis(F.lit(options.now_ms))
        self._started = time.monotonic()
        self._steps: dict[str, float] = {}

    def run(self) -> BuildSummary:
        """Carry out the steps; the errors are those of ``run_build``."""
        with ThreadPoolExecutor(max_workers=4) as pool, ExitStack() as caches:
            caches.enter_context(warehouse_lock(self._warehouse.root, alone=False))
            caches.callback(remove_folder, place(self._entries_folder()))
            work = self._plan(caches)
            self._note("list")
            if self._options.in_place:
                check_in_place(work.listed)
                if self._options.sizes is not None:
                    check_sizes_known(work.listed, self._options.sizes.configs)
            tables = BuildTables(
                self._warehouse,
                self._options,
                work,
                run_id=self._run_id,
                now=self._now,
                output=self._output,
            )
            tables.make(pool)
            scanned = self._scan(work, caches) if work.to_scan else None
            totals = totals_of(scanned)
            self._note("read")
            folded = self._fold(work, scanned, totals, caches)
            if scanned is not None:
                verdicts = None if folded is None else folded.verdicts
                scanned = scanned.transform(decide_folding.with_verdicts(verdicts))
                if self._options.is_first_look:
                    scanned = scanned.transform(decide_folding.without_fold)
                totals = totals if folded is None else totals_of(scanned)
            if folded is not None:
                self._note("fold")
            self._write(tables, scanned, folded, totals, pool)
            self._note("tables")
            missing = find_missing(self._warehouse, self._options.sources, work)
            summary = self._summary(work, totals, missing)
            self._append_run(summary)
            note_versions(self._warehouse.root, [table.name for table in BUILD_TABLES])
        _LOG.info(
            "built segments=%s scanned=%s damaged=%s bytes=%s seconds=%.1f",
            summary.segments_found,
            summary.segments_scanned,
            summary.segments_damaged,
            summary.bytes_scanned,
            summary.seconds,
        )
        return summary

    def plan_only(self) -> BuildSummary:
        """Return what ``run`` would read, and change nothing."""
        with ExitStack() as caches:
            work = self._plan(caches)
            return self._summary(work, Totals(bytes=work.load.bytes))

    def _plan(self, caches: ExitStack) -> BuildWork:
        return plan_build(self._warehouse, self._options, now=self._now, caches=caches)

    def _entries_folder(self) -> str:
        return join_uri(self._warehouse.root, "_entries", self._run_id)

    def _note(self, step: str) -> None:
        """Note the seconds since the step before."""
        spent = time.monotonic() - self._started
        self._steps[step] = spent - sum(self._steps.values())

    def _scan(self, work: BuildWork, caches: ExitStack) -> DataFrame:
        make_folders(self._entries_folder())
        to_scan = work.planned.where(F.col("plan") == SCAN)
        is_look = self._options.is_first_look
        load = work.load._replace(bytes=0) if is_look else work.load
        to_scan, threads = share_out(
            to_scan, load, self._tell, by=None if is_look else "size_bytes"
        )
        scan = scan_segments(self._scan_options(), threads_here=threads, tell_read=self._tell_read)
        return computed_once(to_scan.transform(scan), caches)

    def _scan_options(self) -> ScanOptions:
        return ScanOptions(
            recovery=self._options.scan_recovery(),
            sizes=self._options.sizes,
            output=self._output,
            index_format=self._options.index_format,
            entries=self._entries_folder(),
            is_first_look=self._options.is_first_look,
            has_record_sizes=self._options.has_record_sizes,
        )

    def _fold(
        self, work: BuildWork, scanned: DataFrame | None, totals: Totals, caches: ExitStack
    ) -> FoldedLogs | None:
        """Fold the logs in which something changed; None if nothing crosses segments.

        After first looks nothing is folded: they do not tell what segments do to each other.
        """
        if self._options.is_first_look or not decide_folding.needs_fold(
            has_changed=work.to_scan > 0 or work.vanished_count > 0,
            is_load=self._options.mode != RecoveryMode.SEGMENT,
            has_transactions=totals.has_transactions,
            has_known=work.known is not None,
        ):
            return None
        if scanned is None:
            nothing = work.planned.where(F.lit(False))
            scanned = nothing.transform(scan_segments(self._scan_options()))
        return fold_changed_logs(scanned, work, self._fold_options(), caches)

    def _fold_options(self) -> FoldOptions:
        return FoldOptions(
            mode=self._options.mode,
            recovery=self._options.scan_recovery(),
            sizes=self._options.sizes,
            now_ms=self._options.now_ms,
            expiration_ms=self._options.producer_id_expiration_ms,
            sources=self._options.sources,
            output=self._output,
        )

    def _write(
        self,
        tables: BuildTables,
        scanned: DataFrame | None,
        folded: FoldedLogs | None,
        totals: Totals,
        pool: ThreadPoolExecutor,
    ) -> None:
        entries = None
        if scanned is not None:
            entries = EntryParts(self._warehouse.spark, self._entries_folder(), totals.entry_parts)
        tables.write(scanned, folded, entries, pool)

    def _summary(
        self, work: BuildWork, totals: Totals, missing: tuple[MissingSegment, ...] = ()
    ) -> BuildSummary:
        return summarize(
            work,
            totals,
            run_id=self._run_id,
            seconds=time.monotonic() - self._started,
            steps=self._steps,
            missing=missing,
            unread=find_unread(work.listed),
        )

    def _append_run(self, summary: BuildSummary) -> None:
        started_ms = self._options.now_ms
        finished_ms = started_ms + int(summary.seconds * 1000)
        times_us = {"started_at": started_ms * 1000, "finished_at": finished_ms * 1000}
        described = {"warehouse": self._warehouse.root, **self._options.described()}
        versions = {
            table.name: version
            for table in BUILD_TABLES
            if table is not RUNS and (version := self._warehouse.version(table)) is not None
        }
        values = run_values(summary, self._options.sources, described, versions)
        self._warehouse.append_values(RUNS, [values | times_us])
