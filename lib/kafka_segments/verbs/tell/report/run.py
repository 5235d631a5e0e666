"""Report: gather what one page shows of a warehouse, in sums and bounded samples."""

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import accumulate
from operator import sub
from typing import NamedTuple

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from kafka_segments.console.as_built import altered_lines, cut_logs_line, unread_notes_lines
from kafka_segments.console.not_known import tell_metadata_problems, tell_not_known
from kafka_segments.engine.derived.as_built import (
    altered,
    built_ms,
    cut_logs,
    last_builds,
    unread_notes,
)
from kafka_segments.engine.derived.expired_but_kept import find_blocked, still_there
from kafka_segments.engine.derived.first_look_only import is_known_by_first_look, with_unverified
from kafka_segments.engine.derived.metadata_in_tables import MetadataProblem
from kafka_segments.engine.derived.views import published
from kafka_segments.engine.derived.written_times import with_written_ms
from kafka_segments.engine.frames.collected import collect_together
from kafka_segments.engine.frames.engines import computed_once, joined_by_shuffle
from kafka_segments.engine.frames.local_rows import local_rows
from kafka_segments.engine.frames.row_types import row_fields
from kafka_segments.engine.tables.catalog import LOG_DIRS, LOGS, RETENTION_DECISIONS, RUNS, SEGMENTS
from kafka_segments.engine.tables.delta import Warehouse
from kafka_segments.engine.tables.keys import LOG_KEYS, SEGMENT_KEYS, Transform
from kafka_segments.engine.tables.last_run import of_last_run
from kafka_segments.verbs.tell.report.cluster import ClusterFacts, gather_cluster
from kafka_segments.verbs.tell.report.copies import CopyFacts, gather_copies
from kafka_segments.verbs.tell.report.crash import MOST_DIRS, Crash, crash_dirs, crashes_of
from kafka_segments.verbs.tell.report.decide import overview as decide
from kafka_segments.verbs.tell.report.decide.overview import DAY_MS
from kafka_segments.verbs.tell.report.directory_files import DirectoryAnswer

MOST_TOPICS = 20
_INFLOW_DAYS = 7
_MOST_KINDS = _MOST_PERIODS = 100
_SHOWN = (
    *SEGMENT_KEYS,
    "size_bytes",
    "valid_bytes",
    "truncated_bytes",
    "batch_count",
    "record_count",
    "next_offset",
    "is_unverified",
    "first_batch_timestamp_ms",
    "min_timestamp_ms",
    "max_timestamp_ms",
    "largest_timestamp_ms",
    "largest_timestamp_source",
    "index_entries",
    "time_index_entries",
    "damage",
    "vanished_at",
    "written_ms",
)
_LANES = StructType(
    row_fields(
        "cluster string, broker_id int, log_dir string, topic string, partition int, lane int,"
        " spans int"
    )
)


class ReportLimits(NamedTuple):
    """How much a report holds at most, whatever the warehouse holds."""

    lanes: int = 10_000
    detailed_lanes: int = 100
    spans_of_detailed_lane: int = 80
    spans_of_other_lanes: int = 16_000
    rows: int = 100
    history_bins: int = 300
    forecast_days: int = 90


@dataclass(frozen=True)
class RetentionForecast:
    """What retention frees of the segments that are there: until now, and in each day after it.

    The settings are those of the last decisions, made at ``decided_at_ms``.
    ``inflow`` holds pairs: the time in ms that data is kept (None: for ever), and how many bytes
    a day of it were written in the last week.
    """

    decided_at_ms: int
    freed_bytes: list[int]
    inflow: list[tuple[int | None, float]]
    blocked: list[Row]
    blocked_segments: int
    blocked_bytes: int
    by_dir: list[Row] = field(default_factory=list)


@dataclass(frozen=True)
class ReportData:
    """What the page shows; times in ms since 1970, sizes in bytes.

    ``looked_at`` is how many segments are known by a first look alone, which does not tell how many
    batches a start would recover. ``not_forecast`` are the brokers (cluster, broker_id) with such
    segments: ``crashes`` leaves them out. ``cut_logs`` says what somebody took back of the tables,
    which logs lack their end, and of which it is not known where they begin or end.
    ``metadata_problems`` says of each cluster what the history of its metadata lacks.
    ``directories`` is what verbs on directories printed to files.
    ``dirs`` are the log directories with the most bytes, one more than are shown if there are more.
    ``ages`` has bytes by topic and band of age, of the topics that are shown. ``builds_ms``: see
    ``AsBuilt``.
    """

    warehouse: str
    now_ms: int
    last_run_ms: int | None
    totals: Row
    lanes: list[Row]
    spans: list[Row]
    history_from_ms: int
    history_width_ms: int
    history_bytes: list[int]
    damage_kinds: list[Row]
    damaged: list[Row]
    oddity_kinds: list[Row]
    odd: list[Row]
    offset_index_density: list[Row]
    time_index_density: list[Row]
    forecast: RetentionForecast | None
    cluster: ClusterFacts | None = None
    copies: CopyFacts | None = None
    crashes: list[Crash] = field(default_factory=list)
    not_forecast: list[Row] = field(default_factory=list)
    cut_logs: list[str] = field(default_factory=list)
    looked_at: int = 0
    metadata_problems: list[MetadataProblem] = field(default_factory=list)
    directories: list[DirectoryAnswer] = field(default_factory=list)
    dirs: list[Row] = field(default_factory=list)
    ages: dict[tuple[str, int | None], int] = field(default_factory=dict)
    builds_ms: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class ReportOptions:
    """How much of the tables is shown; ``now_ms`` is the run's clock."""

    now_ms: int
    limits: ReportLimits = field(default_factory=ReportLimits)


class _Bins(NamedTuple):
    """Spans of time of the same width, one after another."""

    from_ms: int
    width_ms: int
    number: int

    def sum_of(self, column: str) -> Transform:
        """Sum size_bytes by the bin that a column of ms lies in."""
        return decide.sum_by_bin(
            column, from_ms=self.from_ms, width_ms=self.width_ms, bins=self.number
        )

    def sums(self, rows: Sequence[Row]) -> list[int]:
        """Return the bytes of each bin, from the rows of ``sum_of``."""
        sums = [0] * self.number
        for row in rows:
            sums[row["bin"]] = row["size_bytes"]
        return sums


class _Decided(NamedTuple):
    """A run of retention, and when it decided."""

    run_id: str
    at_ms: int


def run_report(warehouse: Warehouse, options: ReportOptions) -> ReportData:
    """Gather what the page shows; stderr says what the history of the metadata lacks.

    Raises:
        UsageError: the warehouse has no segments.
    """
    return _Report(warehouse, options).gather()


class _Report:
    """One run: a query for what the others depend on, and one for all the others.

    Every figure ends in an aggregate or a limit. The columns of segments that are shown are read
    once, and kept until the end.
    """

    def __init__(self, warehouse: Warehouse, options: ReportOptions) -> None:
        self._warehouse = warehouse
        self._now_ms = options.now_ms
        self._limits = options.limits
        history = published(self._warehouse, SEGMENTS.name)
        written = history.transform(with_written_ms(now_ms=options.now_ms))
        written = written.transform(with_unverified)
        self._history = written.select(*_SHOWN)

    def gather(self) -> ReportData:
        with ExitStack() as caches:
            self._history = computed_once(self._history, caches)
            self._segments = self._history.where(F.col("vanished_at").isNull())
            return self._gather()

    def _gather(self) -> ReportData:
        logs = self._segments.transform(decide.summarize_logs(now_ms=self._now_ms))
        found = collect_together(
            {
                "totals": logs.transform(decide.total_of_logs),
                "lanes": logs.orderBy(F.desc("size_bytes"), *LOG_KEYS).limit(self._limits.lanes),
                "dirs": logs.transform(decide.sum_by_dir)
                .orderBy(F.desc("size_bytes"), *LOG_KEYS[:3])
                .limit(self._limits.rows + 1),
                "written": self._history.agg(F.min("written_ms")),
                "looked_at": self._segments.where(is_known_by_first_look())
                .groupBy("cluster", "broker_id")
                .count()
                .orderBy("cluster", "broker_id")
                .limit(MOST_DIRS),
                "run": self._last_build().agg(F.unix_millis(F.max("started_at"))),
                "builds": last_builds(self._warehouse),
                **self._last_decided(),
                **self._lacking(),
            }
        )
        cut = list(altered_lines(altered(self._warehouse, found["builds"])))
        cut.extend([cut_logs_line(found["cut"])] if found.get("cut") else [])
        cut.extend(unread_notes_lines(found.get("unread", ())))
        tell_not_known(cut)
        bins = self._history_bins(found["written"][0][0])
        decided = next((_Decided(*row) for row in found.get("decided", []) if row[0]), None)
        of_decided = {} if decided is None else self._figures_of_decisions(decided)
        found |= collect_together(
            {
                **self._figures(bins),
                **self._spans(found["lanes"]),
                "ages": self._ages(found["lanes"]),
                **of_decided,
                **self._crash_dirs(found["looked_at"]),
            }
        )
        return ReportData(
            warehouse=self._warehouse.root,
            now_ms=self._now_ms,
            last_run_ms=found["run"][0][0],
            builds_ms=built_ms(found["builds"]),
            totals=found["totals"][0],
            lanes=found["lanes"],
            spans=found.get("spans", []),
            history_from_ms=bins.from_ms,
            history_width_ms=bins.width_ms,
            history_bytes=list(
                accumulate(map(sub, bins.sums(found["came"]), bins.sums(found["gone"])))
            ),
            damage_kinds=found["damage_kinds"],
            damaged=found["damaged"],
            oddity_kinds=found["oddity_kinds"],
            odd=found["odd"],
            offset_index_density=found["offset_index_density"],
            time_index_density=found["time_index_density"],
            forecast=None
            if decided is None
            else _forecast(decided, self._now_ms, self._limits, found),
            cluster=gather_cluster(self._warehouse, now_ms=self._now_ms, rows=self._limits.rows),
            copies=gather_copies(self._warehouse, logs=self._limits.lanes, rows=self._limits.rows),
            crashes=crashes_of(found.get("crash_dirs", [])),
            not_forecast=found["looked_at"],
            cut_logs=cut,
            looked_at=sum(row["count"] for row in found["looked_at"]),
            metadata_problems=tell_metadata_problems(self._warehouse.root),
            dirs=found["dirs"],
            ages={(row["topic"], row["band"]): row["size_bytes"] for row in found["ages"]},
        )

    def _figures(self, bins: "_Bins") -> dict[str, DataFrame]:
        """Return the figures of all segments, by name."""
        damaged = self._segments.where(F.col("damage").isNotNull())
        odd = self._segments.transform(decide.find_oddities(now_ms=self._now_ms))
        vanished = self._history.withColumn("gone_ms", F.unix_millis("vanished_at"))
        return {
            "came": self._history.transform(bins.sum_of("written_ms")),
            "gone": vanished.transform(bins.sum_of("gone_ms")),
            "damage_kinds": self._kinds(damaged, F.col("damage.kind")),
            "damaged": self._sample(damaged.select(*LOG_KEYS, "base_offset", "damage.*")),
            "oddity_kinds": self._kinds(odd, F.explode("oddities")),
            "odd": self._sample(odd),
            "offset_index_density": self._segments.transform(decide.count_density("index_entries")),
            "time_index_density": self._segments.transform(
                decide.count_density("time_index_entries")
            ),
        }

    def _crash_dirs(self, left_out: Sequence[Row]) -> dict[str, DataFrame]:
        """Return the log directories with what a crash would cost; empty if the tables have none.

        ``left_out``: the brokers whose costs are not known.
        """
        if not (self._warehouse.version(LOG_DIRS) and self._warehouse.version(LOGS)):
            return {}
        segments = self._segments
        for row in left_out:
            is_cluster = F.col("cluster").eqNullSafe(row["cluster"])
            is_broker = F.col("broker_id").eqNullSafe(row["broker_id"])
            segments = segments.where(~(is_cluster & is_broker))
        return {"crash_dirs": crash_dirs(self._warehouse, segments)}

    def _sample(self, rows: DataFrame) -> DataFrame:
        return rows.orderBy(*LOG_KEYS, "base_offset").limit(self._limits.rows)

    def _kinds(self, rows: DataFrame, kind: Column) -> DataFrame:
        return rows.transform(decide.count_by(kind)).limit(_MOST_KINDS)

    def _spans(self, lanes: Sequence[Row]) -> dict[str, DataFrame]:
        if not lanes:
            return {}
        limits = self._limits
        other = max(1, min(limits.spans_of_other_lanes // len(lanes), 40))
        numbered = [
            (
                *(lane[key] for key in LOG_KEYS),
                number,
                limits.spans_of_detailed_lane if number < limits.detailed_lanes else other,
            )
            for number, lane in enumerate(lanes)
        ]
        frame = local_rows(self._warehouse.spark, numbered, _LANES)
        return {"spans": self._segments.transform(decide.draw_spans(frame, now_ms=self._now_ms))}

    def _ages(self, lanes: Sequence[Row]) -> DataFrame:
        """Return the ages of the topics that are shown."""
        shown = list(bytes_by_topic(lanes))[:MOST_TOPICS]
        of_topics = self._segments.where(F.col("topic").isin(*shown))
        return of_topics.transform(decide.sum_by_age(now_ms=self._now_ms))

    def _history_bins(self, first_ms: int | None) -> "_Bins":
        """Return the bins from the first segment until now."""
        count = self._limits.history_bins
        from_ms = self._now_ms if first_ms is None else first_ms
        return _Bins(from_ms, max(1, -(-(self._now_ms + 1 - from_ms) // count)), count)

    def _last_build(self) -> DataFrame:
        """Return the row of the build that ended last."""
        runs = self._warehouse.read(RUNS)
        return of_last_run(self._warehouse, RUNS, runs, moment="started_at")

    def _lacking(self) -> dict[str, DataFrame]:
        """Return which logs lack their end, and which directories do not tell where logs begin."""
        there = [self._warehouse.version(table) is not None for table in (LOGS, LOG_DIRS)]
        lacking = {"cut": cut_logs(self._warehouse)} if there[0] else {}
        return lacking | ({"unread": unread_notes(self._warehouse)} if all(there) else {})

    def _last_decided(self) -> dict[str, DataFrame]:
        """Return the last run of retention; empty: there is none."""
        if not self._warehouse.version(RETENTION_DECISIONS):
            return {}
        decisions = published(self._warehouse, RETENTION_DECISIONS.name)
        made = of_last_run(self._warehouse, RETENTION_DECISIONS, decisions)
        last = made.agg(F.max(F.struct("decided_at", "run_id")).alias("last"))
        return {"decided": last.select("last.run_id", F.unix_millis("last.decided_at"))}

    def _figures_of_decisions(self, decided: "_Decided") -> dict[str, DataFrame]:
        """Return the figures of a run of retention, by name."""
        decisions = published(self._warehouse, RETENTION_DECISIONS.name)
        made = decisions.where(F.col("run_id") == decided.run_id)
        segments = joined_by_shuffle(self._segments)
        of_run = made.transform(still_there(segments))
        blocked = of_run.transform(find_blocked(now_ms=self._now_ms))
        written_since = self._now_ms - _INFLOW_DAYS * DAY_MS
        recent = segments.where(F.col("written_ms") > written_since)
        return {
            "freed": of_run.transform(_days(self._now_ms, self._limits).sum_of("frees_disk_at_ms")),
            "inflow": of_run.transform(decide.sum_by_kept_time(recent)).limit(_MOST_PERIODS),
            "blocked": blocked.orderBy(F.desc("size_bytes"), *LOG_KEYS).limit(self._limits.rows),
            "freed_dirs": of_run.transform(decide.sum_freed_by_dir(now_ms=self._now_ms)),
            "all_blocked": blocked.agg(F.sum("segments"), F.sum("size_bytes")),
        }


def bytes_by_topic(lanes: Sequence[Row]) -> dict[str, int]:
    """Return the bytes of each topic in these lanes, the topic with the most first."""
    size: Counter[str] = Counter()
    for lane in lanes:
        size[lane["topic"]] += lane["size_bytes"]
    return dict(sorted(size.items(), key=lambda item: (-item[1], item[0])))


def _forecast(
    decided: _Decided, now_ms: int, limits: ReportLimits, found: Mapping[str, list[Row]]
) -> RetentionForecast:
    freed = _days(now_ms, limits).sums(found["freed"])
    (of_all,) = found["all_blocked"]
    return RetentionForecast(
        decided_at_ms=decided.at_ms,
        freed_bytes=freed[: limits.forecast_days + 1],
        inflow=[(row["kept_ms"], row["written"] / _INFLOW_DAYS) for row in found["inflow"]],
        blocked=found["blocked"],
        blocked_segments=of_all[0] or 0,
        blocked_bytes=of_all[1] or 0,
        by_dir=found["freed_dirs"],
    )


def _days(now_ms: int, limits: ReportLimits) -> _Bins:
    """Return the bins: what is due now, one for each day after it, and all that is later."""
    return _Bins(now_ms - DAY_MS + 1, DAY_MS, limits.forecast_days + 2)
