"""Build: list the sources, read what is new or changed, write index files, merge the tables."""

import json
import logging
import time
import uuid
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from kafka_segments import __version__
from kafka_segments.build.decide import folding as log_folding
from kafka_segments.build.decide import plan as build_plan
from kafka_segments.build.entry_files import INDEX_TABLES, make_folders, read_entries
from kafka_segments.build.folding import FoldedLogs, fold_changed_logs
from kafka_segments.build.in_place import check_in_place
from kafka_segments.build.options import BuildOptions
from kafka_segments.build.tasks import ScanOptions, scan_segments
from kafka_segments.build.write_tables import BuildTables, BuildWork
from kafka_segments.errors import SourceError
from kafka_segments.index.formats import IndexFormat
from kafka_segments.index.log_recovery import RecoveryMode
from kafka_segments.sources import broker_identity, kinds
from kafka_segments.sources.list import list_sources
from kafka_segments.spark.packing import Load, count_tasks, pack_segments
from kafka_segments.storage.files import place
from kafka_segments.storage.folder_lock import warehouse_lock
from kafka_segments.storage.publishing import remove_folder
from kafka_segments.storage.uris import join_uri
from kafka_segments.tables import catalog as tables
from kafka_segments.tables.delta import Warehouse
from kafka_segments.tables.findings import is_finding
from kafka_segments.tables.schemas import schema

_LOG = logging.getLogger(__name__)
_NOTHING = (Load(), 0)


@dataclass(frozen=True)
class BuildSummary:
    """What a build did.

    ``segments_damaged`` counts column ``damage``: ``findings`` what someone must look at of it, and
    of ``files_unrecognized``, all but ``files_left_over``, which a broker resolves at its start.
    """

    run_id: str
    segments_found: int
    segments_scanned: int
    segments_unchanged: int
    segments_vanished: int
    segments_damaged: int
    segments_open: int
    files_unrecognized: int
    files_left_over: int
    bytes_scanned: int
    findings: int
    seconds: float
    seconds_by_step: dict[str, float]


class _Totals(NamedTuple):
    """Counts over what was scanned, and the parts that its index entries lie in."""

    damaged: int = 0
    findings: int = 0
    bytes: int = 0
    entry_parts: tuple[str, ...] = ()
    has_transactions: bool = False


class Build:
    """One run of ``build``: what its steps share.

    1. The sources are listed, folder level by folder level, in the executors.
    2. Held against table ``segments``: segments that are new or changed are to be read.
    3. They are packed into tasks by bytes, recovered there, their index files written.
    4. Logs in which something changed are folded: what crosses segments is written, and segments
       that a broker would refuse or remove lose their index files.
    5. Entries go to the tables first, segments after them: a run that dies in between is
       repeated by the next one.
    """

    def __init__(self, spark: SparkSession, options: BuildOptions) -> None:
        self._spark = spark
        self._options = options
        self._run_id = uuid.uuid4().hex
        self._warehouse = Warehouse(spark, options.warehouse)
        self._now = F.timestamp_millis(F.lit(options.now_ms))
        self._started = time.monotonic()
        self._steps: dict[str, float] = {}

    def run(self) -> BuildSummary:
        """Build the indexes and tables of all segments under the sources.

        Raises:
            SourceError: a source that cannot be listed.
            UsageError: ``in_place`` where it cannot be.
        """
        with ThreadPoolExecutor(max_workers=4) as pool, ExitStack() as caches:
            caches.enter_context(warehouse_lock(self._options.warehouse, alone=False))
            caches.callback(remove_folder, place(self._entries_folder()))
            plan = self._plan(caches)
            self._note("list")
            if self._options.in_place:
                check_in_place(plan.listed)
            scanned = self._scan(plan, caches) if plan.to_scan else None
            totals = _Totals() if scanned is None else _totals(scanned)
            self._note("read")
            folded = self._fold(plan, scanned, totals, caches)
            if scanned is not None:
                verdicts = None if folded is None else folded.verdicts
                scanned = scanned.transform(log_folding.with_verdicts(verdicts))
                totals = totals if folded is None else _totals(scanned)
            if folded is not None:
                self._note("fold")
            self._write(plan, scanned, folded, totals.entry_parts, pool)
            self._note("tables")
            summary = self._summary(plan, totals)
            self._append_run(summary)
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
        """Say what ``run`` would read, and change nothing."""
        with ExitStack() as caches:
            plan = self._plan(caches)
            return self._summary(plan, _Totals(bytes=plan.load.bytes))

    def _entries_folder(self) -> str:
        return join_uri(self._options.warehouse, "_entries", self._run_id)

    def _note(self, step: str) -> None:
        """Note the seconds since the step before."""
        spent = time.monotonic() - self._started
        self._steps[step] = spent - sum(self._steps.values())

    # -- what is to be done ------------------------------------------------------------------

    def _plan(self, caches: ExitStack) -> BuildWork:
        options = self._options
        listed, listed_loads = list_sources(
            self._spark, options.sources, caches, follow_links=options.follow_links
        )
        if kinds.UNLISTED in listed_loads:
            self._refuse_missing_sources(listed)
        known = self._known()
        identify = broker_identity.with_broker(
            listed, cluster=options.cluster, broker_id=options.broker_id
        )
        found = listed.where(F.col("kind") == kinds.SEGMENT).transform(identify)
        decide = build_plan.plan_scan(
            known,
            options=options.fingerprint_of_options(),
            full=options.full,
            needs_next=options.index_format.name is IndexFormat.KIP33,
        )
        planned = found.transform(decide)
        todo = {build_plan.SCAN: (listed_loads.get(kinds.SEGMENT, Load()), 0)}
        if known is not None:
            planned = _cached(planned, caches)
            todo = _todo(planned)
        gone = self._vanished(known, found, listed, caches)
        return BuildWork(
            listed=listed.transform(identify),
            listed_loads=listed_loads,
            known=known,
            planned=planned,
            load=todo.get(build_plan.SCAN, _NOTHING)[0],
            rescanned=todo.get(build_plan.SCAN, _NOTHING)[1],
            retouched=todo.get(build_plan.RETOUCH, _NOTHING)[0].segments,
            vanished=gone,
            vanished_count=0 if gone is None else gone.count(),
        )

    def _refuse_missing_sources(self, listed: DataFrame) -> None:
        missing = listed.where(
            (F.col("kind") == kinds.UNLISTED) & (F.col("relative_path") == "")
        ).first()
        if missing is not None:
            raise SourceError(missing["source"], missing["reason"])

    def _known(self) -> DataFrame | None:
        if not self._warehouse.version(tables.SEGMENTS):
            return None
        known = self._warehouse.read(tables.SEGMENTS).where(
            broker_identity.lies_below(F.col("path"), self._options.sources)
        )
        return None if known.isEmpty() else known

    def _vanished(
        self, known: DataFrame | None, found: DataFrame, listed: DataFrame, caches: ExitStack
    ) -> DataFrame | None:
        if known is None:
            return None
        unseen = listed.where(F.col("kind").isin(*kinds.UNSEEN))
        return _cached(known.transform(build_plan.vanished(found, unseen, now=self._now)), caches)

    # -- scan --------------------------------------------------------------------------------

    def _scan(self, plan: BuildWork, caches: ExitStack) -> DataFrame:
        make_folders(self._entries_folder())
        tasks = count_tasks(plan.load, cores=self._spark.sparkContext.defaultParallelism)
        to_scan = plan.planned.where(F.col("plan") == build_plan.SCAN)
        scanned = to_scan.transform(pack_segments(plan.load, tasks=tasks)).transform(
            scan_segments(self._scan_options())
        )
        return _cached(scanned, caches)

    def _scan_options(self) -> ScanOptions:
        return ScanOptions(
            recovery=self._options.scan_recovery(),
            output=self._options.index_output(self._run_id),
            index_format=self._options.index_format,
            entries=self._entries_folder(),
        )

    def _fold(
        self, plan: BuildWork, scanned: DataFrame | None, totals: _Totals, caches: ExitStack
    ) -> FoldedLogs | None:
        """Fold the logs in which something changed; None where nothing crosses segments."""
        is_load = self._options.mode != RecoveryMode.SEGMENT
        has_changed = plan.to_scan > 0 or plan.vanished_count > 0
        if not has_changed or not (is_load or totals.has_transactions or plan.known is not None):
            return None
        if scanned is None:
            scanned = plan.planned.where(F.lit(False)).transform(
                scan_segments(self._scan_options())
            )
        return fold_changed_logs(
            scanned=scanned,
            known=plan.known,
            planned=plan.planned,
            vanished=plan.vanished,
            listed=plan.listed,
            options=self._options,
            run_id=self._run_id,
            caches=caches,
        )

    def _write(
        self,
        plan: BuildWork,
        scanned: DataFrame | None,
        folded: FoldedLogs | None,
        entry_parts: Sequence[str],
        pool: ThreadPoolExecutor,
    ) -> None:
        entries = {}
        if scanned is not None:
            entries = {
                table: read_entries(self._spark, self._entries_folder(), table, entry_parts)
                for table in INDEX_TABLES
            }
        BuildTables(self._warehouse, self._options, self._run_id, plan).write(
            scanned, folded, entries, pool
        )

    # -- what was done -----------------------------------------------------------------------

    def _summary(self, plan: BuildWork, totals: _Totals) -> BuildSummary:
        found = plan.listed_count(kinds.SEGMENT)
        not_taken = plan.listed_count(*kinds.NOT_TAKEN)
        left_over = plan.listed_count(kinds.LEFT_OVER)
        return BuildSummary(
            run_id=self._run_id,
            segments_found=found,
            segments_scanned=plan.to_scan,
            segments_unchanged=found - plan.to_scan,
            segments_vanished=plan.vanished_count,
            segments_damaged=totals.damaged,
            segments_open=totals.damaged - totals.findings,
            files_unrecognized=not_taken,
            files_left_over=left_over,
            bytes_scanned=totals.bytes,
            findings=totals.findings + not_taken - left_over,
            seconds=time.monotonic() - self._started,
            seconds_by_step=self._steps,
        )

    def _append_run(self, summary: BuildSummary) -> None:
        started = self._options.now_ms
        row = {
            "run_id": summary.run_id,
            "command": "build",
            "sources": list(self._options.sources),
            "options": json.dumps(self._options.described(), sort_keys=True),
            "version": __version__,
            "segments_found": summary.segments_found,
            "segments_scanned": summary.segments_scanned,
            "segments_unchanged": summary.segments_unchanged,
            "segments_vanished": summary.segments_vanished,
            "segments_damaged": summary.segments_damaged,
            "files_unrecognized": summary.files_unrecognized,
            "bytes_scanned": summary.bytes_scanned,
        }
        times = {
            "started_at": self._now,
            "finished_at": F.timestamp_millis(F.lit(started + int(summary.seconds * 1000))),
        }
        given = [field for field in schema("runs.v1") if field.name in row]
        values = tuple(row[field.name] for field in given)
        run = self._spark.createDataFrame([values], type(schema("runs.v1"))(given))
        self._warehouse.append(tables.RUNS, run.withColumns(times))


def _cached(frame: DataFrame, caches: ExitStack) -> DataFrame:
    cached = frame.persist()
    caches.callback(cached.unpersist)
    return cached


def _todo(planned: DataFrame) -> dict[str, tuple[Load, int]]:
    """Count, by plan, what there is and how many of it are known segments."""
    counted = planned.groupBy("plan").agg(
        F.count("*").alias("segments"),
        F.sum("size_bytes").alias("bytes"),
        F.count_if("is_known").alias("known"),
    )
    return {
        row["plan"]: (Load(row["segments"], row["bytes"]), row["known"])
        for row in counted.collect()
    }


def _totals(scanned: DataFrame) -> _Totals:
    row = scanned.agg(
        F.count("damage").alias("damaged"),
        F.count_if(is_finding()).alias("findings"),
        F.coalesce(F.sum("size_bytes"), F.lit(0)).alias("bytes"),
        F.collect_set("entry_part").alias("entry_parts"),  # at most one a task
        F.coalesce(F.bool_or(log_folding.has_transactions()), F.lit(False)).alias("transactions"),
    ).first()
    if row is None:
        return _Totals()
    damaged, findings, size_bytes, entry_parts, has_transactions = row
    return _Totals(damaged, findings, size_bytes, tuple(entry_parts), has_transactions)
