"""What a build writes into the tables, and in which order."""

from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kafka_segments.engine.frames.driver_rows import distinct_values, least_value, with_values
from kafka_segments.engine.frames.engines import in_one_task, into_files
from kafka_segments.engine.tables.catalog import (
    BUILD_TABLES,
    LOG_DIRS,
    LOGS,
    OFFSET_INDEX,
    OFFSET_RANGES,
    SEGMENTS,
    TIME_INDEX,
    UNRECOGNIZED_FILES,
    Table,
)
from kafka_segments.engine.tables.delta import Warehouse
from kafka_segments.engine.tables.keys import SEGMENT_KEYS
from kafka_segments.engine.tables.statements import in_any
from kafka_segments.files.changes.index_files import IndexOutput
from kafka_segments.files.folders import kinds
from kafka_segments.kafka.index.formats.by_name import FOREIGN_SUFFIXES
from kafka_segments.verbs.scan.decide import entries as decide_entries
from kafka_segments.verbs.scan.decide import folding as decide_folding
from kafka_segments.verbs.scan.decide import rows
from kafka_segments.verbs.scan.decide.plan import SCAN, retouched
from kafka_segments.verbs.scan.entry_files import INDEX_TABLES, EntryParts
from kafka_segments.verbs.scan.folding import FoldedLogs
from kafka_segments.verbs.scan.options import BuildOptions
from kafka_segments.verbs.scan.planning import BuildWork
from kafka_segments.verbs.scan.scopes import lie_below
from kafka_segments.verbs.scan.tasks_removal import remove_index_files

_MOST_TOPICS = 200


class BuildTables:
    """Writes what one run found and changed; segments last, because they say what is done."""

    def __init__(
        self,
        warehouse: Warehouse,
        options: BuildOptions,
        work: BuildWork,
        *,
        run_id: str,
        now: Column,
        output: IndexOutput | None,
    ) -> None:
        self._warehouse = warehouse
        self._options = options
        self._work = work
        self._run_id = run_id
        self._now = now
        self._output = output
        self._made: list[Future[None]] = []

    def make(self, pool: ThreadPoolExecutor) -> None:
        """Begin to make the tables that there are not yet, while segments are read."""
        for table in BUILD_TABLES:
            if self._warehouse.version(table) is None:
                self._made.append(pool.submit(self._warehouse.create, table))

    def write(
        self,
        scanned: DataFrame | None,
        folded: FoldedLogs | None,
        entries: EntryParts | None,
        pool: ThreadPoolExecutor,
    ) -> None:
        """Write all tables but ``runs``.

        Args:
            scanned: the segments that were read, with their verdicts; None: no segment was.
            folded: the verdicts on whole logs; None: no log was folded.
            entries: the entries of ``scanned``; None as well if no segment was.
            pool: runs what does not depend on each other.
        """
        self._create(pool, is_scanned=scanned is not None, is_folded=folded is not None)
        futures = [pool.submit(self._write_log_dirs), pool.submit(self._write_logs)]
        if scanned is not None and entries is not None:
            withheld = None if folded is None else folded.withheld
            where = self._pruning()
            for table in INDEX_TABLES:
                futures.append(pool.submit(self._write_entries, table, entries, withheld, where))
            if self._options.recovery.digest_bits:
                futures.append(pool.submit(self._write_ranges, scanned))
        is_any = self._work.listed_count(*kinds.NOT_TAKEN) or self._warehouse.version(
            UNRECOGNIZED_FILES
        )
        if self._options.makes_anew or is_any:
            futures.append(pool.submit(self._write_unrecognized))
        _wait_for(futures)
        self._write_segments(scanned, folded)

    def _create(self, pool: ThreadPoolExecutor, *, is_scanned: bool, is_folded: bool) -> None:
        """Make what tables there are not yet, and bring the others up to date."""
        is_touched = is_folded or self._work.retouched or self._work.vanished_count
        is_written = {
            SEGMENTS: bool(is_scanned or is_touched),
            OFFSET_INDEX: is_scanned,
            TIME_INDEX: is_scanned,
        }
        _wait_for(self._made)
        _wait_for(
            [
                pool.submit(self._warehouse.create, table, is_written=is_written.get(table, True))
                for table in BUILD_TABLES
            ]
        )

    def _write_segments(self, scanned: DataFrame | None, folded: FoldedLogs | None) -> None:
        changed = []
        if scanned is not None:
            to_segments = rows.to_segments(
                index_format=self._options.index_format.name, run_id=self._run_id, now=self._now
            )
            changed.append(scanned.transform(to_segments))
        if self._work.known is not None:
            changed += self._touched(self._work.known, folded)
        if self._work.vanished is not None and self._work.vanished_count:
            self._remove_foreign_indexes(self._work.vanished)
            changed.append(self._work.vanished)
        if not changed:
            return
        segments = reduce(DataFrame.unionByName, changed)
        if self._is_made_anew:
            self._make_anew(SEGMENTS, segments)
        else:
            self._warehouse.merge(SEGMENTS, in_one_task(segments))

    def _remove_foreign_indexes(self, vanished: DataFrame) -> None:
        """Remove the files in formats other than Kafka's of segments that are gone."""
        output = self._output
        if output is None or output.index_dir is None:
            return
        made = vanished.where(F.col("index_format").isin(*FOREIGN_SUFFIXES))
        made.transform(remove_index_files(output, tuple(FOREIGN_SUFFIXES.values()))).count()

    def _touched(self, known: DataFrame, folded: FoldedLogs | None) -> list[DataFrame]:
        """Return the rows of segments that were not read, and are no longer as they were."""
        touched = known.transform(retouched(self._work.planned))
        if folded is None:
            return [touched] if self._work.retouched else []
        rejudged = known.transform(decide_folding.rejudged(folded.verdicts))
        if not self._work.retouched:
            return [rejudged]
        keys = list(SEGMENT_KEYS)
        return [
            touched.transform(decide_folding.with_new_verdicts(folded.verdicts)),
            rejudged.join(touched.select(*keys), keys, how="left_anti"),
        ]

    def _write_entries(
        self, table: Table, parts: EntryParts, withheld: DataFrame | None, where: str | None
    ) -> None:
        is_first = self._work.known is None and withheld is None
        if is_first and self._warehouse.fill_with_files(table, parts.files(table)):
            return
        entries = parts.rows(table).transform(decide_entries.without_withheld(withheld))
        scanned = decide_entries.scanned_segments(self._work.planned, withheld)
        if self._is_made_anew:
            self._make_anew(table, entries, made=scanned)
            return
        before = self._warehouse.read(table)
        if where is not None:
            before = before.alias("t").where(where)
        entries = entries.transform(decide_entries.with_gone(before, scanned, keys=table.keys))
        self._warehouse.merge(table, entries, only_in=where, deleted=decide_entries.IS_GONE)

    def _write_ranges(self, scanned: DataFrame) -> None:
        """Write a row for every segment that was read: without ranges, what was known is void."""
        to_ranges = rows.to_offset_ranges(
            checked=self._options.check, run_id=self._run_id, now=self._now
        )
        self._warehouse.create(OFFSET_RANGES)
        self._warehouse.merge(OFFSET_RANGES, scanned.transform(to_ranges))

    def _write_logs(self) -> None:
        logs = self._work.listed.where(F.col("kind") == kinds.LOG)
        to_logs = rows.to_logs(self._work.listed, run_id=self._run_id)
        self._write_changed(LOGS, logs.transform(to_logs))

    def _write_log_dirs(self) -> None:
        log_dirs = self._work.listed.where(F.col("kind") == kinds.LOG_DIR)
        found = log_dirs.transform(rows.to_log_dirs(run_id=self._run_id))
        self._write_changed(LOG_DIRS, found)

    def _write_changed(self, table: Table, found: DataFrame) -> None:
        if self._is_made_anew:
            self._make_anew(table, found)
            return
        changed = found.transform(rows.newly_found(table, self._warehouse.read(table)))
        self._warehouse.merge_if_any(table, changed)

    def _write_unrecognized(self) -> None:
        found = self._work.listed.where(F.col("kind").isin(*kinds.NOT_TAKEN)).transform(
            rows.to_unrecognized(run_id=self._run_id)
        )
        where = self._scope(UNRECOGNIZED_FILES)
        if self._is_made_anew:
            self._warehouse.fill(UNRECOGNIZED_FILES, found, where=where)
            return
        before = self._warehouse.read(UNRECOGNIZED_FILES).where(where)
        unseen = self._work.listed.where(F.col("kind").isin(*kinds.UNSEEN))
        changed = found.transform(rows.changes_since(UNRECOGNIZED_FILES, before, unseen))
        self._warehouse.merge_if_any(UNRECOGNIZED_FILES, changed, deleted=decide_entries.IS_GONE)

    @property
    def _is_made_anew(self) -> bool:
        """Whether all rows below the sources are made, not merged into those that are there."""
        return self._work.known is None or self._options.makes_anew

    def _make_anew(self, table: Table, rows_made: DataFrame, made: DataFrame | None = None) -> None:
        """Replace the rows below the sources, but those of known segments that are not made.

        ``made``: the keys of what is made, those of ``rows_made`` if it is not given.
        """
        where = self._scope(table)
        if self._work.known is not None:
            made = rows_made if made is None else made
            stays = rows.kept_beside(table, made, known=self._work.known)
            kept = self._warehouse.read(table).where(where).transform(stays)
            rows_made = rows_made.unionByName(kept)
        if table is SEGMENTS:
            rows_made = into_files(rows_made, self._work.to_scan)
        self._warehouse.fill(table, rows_made, where=where)

    def _scope(self, table: Table) -> str:
        return lie_below(table, self._options.sources)

    def _pruning(self) -> str | None:
        """Return a condition on ``t`` that all segments to scan meet, for merges to skip files."""
        if self._work.known is None:
            return None
        to_scan = with_values(self._work.planned, {"plan": (SCAN,)})
        topics = distinct_values(to_scan, "topic", most=_MOST_TOPICS + 1)
        condition = f"t.base_offset >= {int(least_value(to_scan, 'base_offset'))}"
        if len(topics) <= _MOST_TOPICS:
            condition += f" AND {in_any('t.topic', topics)}"
        return condition


def _wait_for(futures: list[Future[None]]) -> None:
    """Wait for all, then raise the first error: no future may read what is cleared away."""
    wait(futures)
    for future in futures:
        future.result()
