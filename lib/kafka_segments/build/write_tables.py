"""What a build writes into the tables, and in which order."""

from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import reduce
from typing import NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kafka_segments.build import rows
from kafka_segments.build.decide import folding as log_folding
from kafka_segments.build.decide import plan as build_plan
from kafka_segments.build.folding import FoldedLogs
from kafka_segments.build.options import BuildOptions
from kafka_segments.build.tasks_removal import remove_index_files
from kafka_segments.index.formats import IndexFormat
from kafka_segments.index.minute_index import MINUTE_INDEX_SUFFIX
from kafka_segments.sources import kinds
from kafka_segments.spark.packing import Load
from kafka_segments.tables import catalog as tables
from kafka_segments.tables.catalog import Table
from kafka_segments.tables.delta import Warehouse, in_any, sql_text
from kafka_segments.tables.keys import SEGMENT_KEYS

_MOST_TOPICS = 200


class BuildWork(NamedTuple):
    """What a listing, held against the table of segments, says is to be done."""

    listed: DataFrame
    listed_loads: dict[str, Load]
    known: DataFrame | None
    planned: DataFrame
    load: Load
    rescanned: int
    retouched: int
    vanished: DataFrame | None
    vanished_count: int

    @property
    def to_scan(self) -> int:
        """Count the segments to be read."""
        return self.load.segments

    def listed_count(self, *kinds: str) -> int:
        """Count what the listing found of some kinds."""
        return sum(self.listed_loads.get(kind, Load()).segments for kind in kinds)


class BuildTables:
    """Writes what one run found and changed; segments last: they say what is done."""

    def __init__(
        self, warehouse: Warehouse, options: BuildOptions, run_id: str, work: BuildWork
    ) -> None:
        self._warehouse = warehouse
        self._options = options
        self._run_id = run_id
        self._work = work
        self._now = F.timestamp_millis(F.lit(options.now_ms))

    def write(
        self,
        scanned: DataFrame | None,
        folded: FoldedLogs | None,
        entries: Mapping[str, DataFrame],
        pool: ThreadPoolExecutor,
    ) -> None:
        """Write all tables but ``runs``; ``entries``: by table, those of what was scanned."""
        _wait_for([pool.submit(self._warehouse.create, table) for table in tables.BUILD_TABLES])
        futures = [pool.submit(self._write_log_dirs), pool.submit(self._write_logs)]
        if scanned is not None:
            where = self._pruning()
            for table in (tables.OFFSET_INDEX, tables.TIME_INDEX):
                rows_of_table = entries[table.name]
                if folded is not None and folded.withheld is not None:
                    keys = list(SEGMENT_KEYS)
                    withheld = F.broadcast(folded.withheld)
                    rows_of_table = rows_of_table.join(withheld, keys, how="left_anti")
                futures.append(
                    pool.submit(self._write_entries, folded, table, rows_of_table, where)
                )
        if self._work.listed_count(*kinds.NOT_TAKEN):
            futures.append(pool.submit(self._write_unrecognized))
        _wait_for(futures)
        self._write_segments(scanned, folded)

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
            self._remove_minute_indexes(self._work.vanished)
            changed.append(self._work.vanished)
        if not changed:
            return
        segments = reduce(DataFrame.unionByName, changed)
        if self._work.known is None:
            self._warehouse.fill(tables.SEGMENTS, segments, where=self._scope("path"))
        else:
            self._warehouse.merge(tables.SEGMENTS, segments)

    def _remove_minute_indexes(self, vanished: DataFrame) -> None:
        """Remove the minute indexes of segments that are gone: they go with their segments."""
        output = self._options.index_output(self._run_id)
        if output is None or self._options.in_place:
            return
        made = vanished.where(F.col("index_format") == IndexFormat.MINUTE)
        made.transform(remove_index_files(output, (MINUTE_INDEX_SUFFIX,))).count()

    def _touched(self, known: DataFrame, folded: FoldedLogs | None) -> list[DataFrame]:
        """Give the rows of segments that were not read, and are no longer what they were."""
        retouched = known.transform(build_plan.retouched(self._work.planned))
        if folded is None:
            return [retouched] if self._work.retouched else []
        rejudged = known.transform(log_folding.rejudged(folded.verdicts))
        if not self._work.retouched:
            return [rejudged]
        keys = list(SEGMENT_KEYS)
        return [
            retouched.transform(log_folding.with_new_verdicts(folded.verdicts)),
            rejudged.join(retouched.select(*keys), keys, how="left_anti"),
        ]

    def _write_entries(
        self,
        folded: FoldedLogs | None,
        table: Table,
        entries: DataFrame,
        where: str | None,
    ) -> None:
        if self._work.known is None:
            self._warehouse.fill(table, entries, where=self._scope("log_dir"))
            return
        entries = entries.withColumn("is_gone", F.lit(False))
        withheld = None if folded is None else folded.withheld
        if self._work.rescanned or withheld is not None:
            rescanned = self._work.planned.where(
                F.col("is_known") & (F.col("plan") == build_plan.SCAN)
            ).select(*SEGMENT_KEYS)
            if withheld is not None:
                rescanned = rescanned.union(withheld).distinct()
            before = self._warehouse.read(table)
            gone = (
                (before if where is None else before.alias("t").where(where))
                .join(rescanned, list(SEGMENT_KEYS), "left_semi")
                .join(entries, list(table.keys), "left_anti")
            )
            entries = entries.unionByName(gone.withColumn("is_gone", F.lit(True)))
        self._warehouse.merge(table, entries, only_in=where, deleted="is_gone")

    def _write_logs(self) -> None:
        logs = self._work.listed.where(F.col("kind") == kinds.LOG)
        to_logs = rows.to_logs(self._work.listed, run_id=self._run_id)
        self._write_changed(tables.LOGS, logs.transform(to_logs), scope_column="path")

    def _write_log_dirs(self) -> None:
        log_dirs = self._work.listed.where(F.col("kind") == kinds.LOG_DIR)
        to_log_dirs = rows.to_log_dirs(run_id=self._run_id)
        self._write_changed(
            tables.LOG_DIRS, log_dirs.transform(to_log_dirs), scope_column="log_dir"
        )

    def _write_changed(self, table: Table, found: DataFrame, *, scope_column: str) -> None:
        if self._work.known is None:
            self._warehouse.fill(table, found, where=self._scope(scope_column))
            return
        compared = [name for name in found.columns if name != "run_id"]
        before = self._warehouse.read(table).select(F.xxhash64(*compared).alias("_row"))
        changed = found.withColumn("_row", F.xxhash64(*compared)).join(before, "_row", "left_anti")
        if not changed.isEmpty():
            self._warehouse.merge(table, changed)

    def _write_unrecognized(self) -> None:
        found = self._work.listed.where(F.col("kind").isin(*kinds.NOT_TAKEN)).transform(
            rows.to_unrecognized(run_id=self._run_id)
        )
        if self._work.known is None:
            self._warehouse.fill(tables.UNRECOGNIZED_FILES, found, where=self._scope("path"))
        else:
            self._warehouse.merge(tables.UNRECOGNIZED_FILES, found)

    def _scope(self, column: str) -> str:
        """Give the SQL condition of what lies under the sources, by a path column."""
        conditions = []
        for source in (
            self._options.log_dir_sources() if column == "log_dir" else self._options.sources
        ):
            text = sql_text(source)
            below = sql_text(source.rstrip("/") + "/")
            conditions.append(f"{column} = {text} OR startswith({column}, {below})")
        return " OR ".join(f"({condition})" for condition in conditions)

    def _pruning(self) -> str | None:
        """Give a condition on ``t`` that all segments to scan meet, for merges to skip files."""
        if self._work.known is None:
            return None
        to_scan = self._work.planned.where(F.col("plan") == build_plan.SCAN)
        topics = [row["topic"] for row in to_scan.select("topic").distinct().take(_MOST_TOPICS + 1)]
        least = to_scan.agg(F.min("base_offset")).collect()[0][0]
        condition = f"t.base_offset >= {int(least)}"
        if len(topics) <= _MOST_TOPICS:
            condition += f" AND {in_any('t.topic', topics)}"
        return condition


def _wait_for(futures: list[Future[None]]) -> None:
    """Wait for all, then raise the first error of them: none reads on what is cleared away."""
    wait(futures)
    for future in futures:
        future.result()
