"""Report: gather what one page shows of a warehouse, in sums and bounded samples."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from kafka_segments.report import decide
from kafka_segments.report.decide import DAY_MS
from kafka_segments.tables.catalog import RETENTION_DECISIONS, RUNS, SEGMENTS
from kafka_segments.tables.delta import Warehouse
from kafka_segments.tables.keys import LOG_KEYS
from kafka_segments.tables.views import published

_INFLOW_DAYS = 7
_MOST_KINDS = _MOST_PERIODS = 100


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
class Forecast:
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


@dataclass(frozen=True)
class ReportData:
    """What the page shows; times in ms since 1970, sizes in bytes."""

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
    forecast: Forecast | None


@dataclass(frozen=True)
class ReportOptions:
    """What is reported: a warehouse, an absolute URI. ``now_ms`` is the run's clock."""

    warehouse: str
    now_ms: int
    limits: ReportLimits = field(default_factory=ReportLimits)


def run_report(spark: SparkSession, options: ReportOptions) -> ReportData:
    """Gather what the page shows.

    Raises:
        UsageError: the warehouse has no segments.
    """
    return _Report(spark, options).gather()


class _Report:
    """One run; every query ends in an aggregate or a limit."""

    def __init__(self, spark: SparkSession, options: ReportOptions) -> None:
        self._spark = spark
        self._warehouse = Warehouse(spark, options.warehouse)
        self._now_ms = options.now_ms
        self._limits = options.limits
        history = published(self._warehouse, SEGMENTS.name)
        self._history = history.transform(decide.with_written_ms(now_ms=options.now_ms))
        self._segments = self._history.where(F.col("vanished_at").isNull())

    def gather(self) -> ReportData:
        now_ms = self._now_ms
        logs = self._segments.transform(decide.summarize_logs(now_ms=now_ms)).persist()
        totals = _first(logs.transform(decide.total_of_logs))
        lanes = logs.orderBy(F.desc("size_bytes"), *LOG_KEYS).take(self._limits.lanes)
        logs.unpersist()
        from_ms, width_ms, disk = self._disk_history()
        damaged = self._segments.where(F.col("damage").isNotNull())
        odd = self._segments.transform(decide.find_oddities(now_ms=now_ms))
        return ReportData(
            warehouse=self._warehouse.root,
            now_ms=now_ms,
            last_run_ms=self._last_run_ms(),
            totals=totals,
            lanes=lanes,
            spans=self._spans(lanes),
            history_from_ms=from_ms,
            history_width_ms=width_ms,
            history_bytes=disk,
            damage_kinds=self._kinds(damaged, F.col("damage.kind")),
            damaged=self._sample(damaged.select(*LOG_KEYS, "base_offset", "damage.*")),
            oddity_kinds=self._kinds(odd, F.explode("oddities")),
            odd=self._sample(odd),
            offset_index_density=self._density("index_entries"),
            time_index_density=self._density("time_index_entries"),
            forecast=self._forecast(),
        )

    def _sample(self, rows: DataFrame) -> list[Row]:
        return rows.orderBy(*LOG_KEYS, "base_offset").take(self._limits.rows)

    def _kinds(self, rows: DataFrame, kind: Column) -> list[Row]:
        return rows.transform(decide.count_by(kind)).take(_MOST_KINDS)

    def _density(self, entries: str) -> list[Row]:
        return self._segments.transform(decide.count_density(entries)).collect()

    def _last_run_ms(self) -> int | None:
        runs = self._warehouse.read(RUNS).agg(F.unix_millis(F.max("started_at")))
        last_ms: int | None = _first(runs)[0]
        return last_ms

    def _spans(self, lanes: Sequence[Row]) -> list[Row]:
        if not lanes:
            return []
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
        frame = self._spark.createDataFrame(
            numbered,
            "cluster string, broker_id int, log_dir string, topic string, partition int,"
            " lane int, spans int",
        )
        return self._segments.transform(decide.draw_spans(frame, now_ms=self._now_ms)).collect()

    def _disk_history(self) -> tuple[int, int, list[int]]:
        """Return the start of the first bin, the bins' width, and the bytes on disk at each end."""
        bins = self._limits.history_bins
        first = _first(self._history.agg(F.min("written_ms")))[0]
        from_ms = self._now_ms if first is None else first
        width_ms = max(1, -(-(self._now_ms + 1 - from_ms) // bins))
        vanished = self._history.withColumn("gone_ms", F.unix_millis("vanished_at"))
        changes = [0] * bins
        for sign, rows, column in ((1, self._history, "written_ms"), (-1, vanished, "gone_ms")):
            into_bins = decide.sum_by_bin(column, from_ms=from_ms, width_ms=width_ms, bins=bins)
            for row in rows.transform(into_bins).collect():
                changes[row["bin"]] += sign * row["size_bytes"]
        return from_ms, width_ms, _running_sum(changes)

    def _forecast(self) -> Forecast | None:
        """Read the last decisions of retention; None where there are none."""
        if not self._warehouse.version(RETENTION_DECISIONS):
            return None
        decisions = published(self._warehouse, RETENTION_DECISIONS.name)
        last = _first(decisions.agg(F.max(F.struct("decided_at", "run_id")).alias("last")))["last"]
        if last is None:
            return None
        made = decisions.where(F.col("run_id") == last["run_id"])
        decided_at_ms = _first(made.agg(F.unix_millis(F.max("decided_at"))))[0]
        of_run = made.transform(decide.still_there(self._segments))
        blocked = of_run.transform(decide.find_blocked(now_ms=self._now_ms))
        of_all = _first(blocked.agg(F.sum("segments"), F.sum("size_bytes")))
        return Forecast(
            decided_at_ms=decided_at_ms,
            freed_bytes=self._freed_by_day(of_run),
            inflow=self._inflow(of_run),
            blocked=blocked.orderBy(F.desc("size_bytes"), *LOG_KEYS).take(self._limits.rows),
            blocked_segments=of_all[0] or 0,
            blocked_bytes=of_all[1] or 0,
        )

    def _freed_by_day(self, decisions: DataFrame) -> list[int]:
        days = self._limits.forecast_days
        from_ms = self._now_ms - DAY_MS + 1
        by_day = decide.sum_by_bin(
            "frees_disk_at_ms", from_ms=from_ms, width_ms=DAY_MS, bins=days + 2
        )
        freed = {row["bin"]: row["size_bytes"] for row in decisions.transform(by_day).collect()}
        return [freed.get(day, 0) for day in range(days + 1)]

    def _inflow(self, decisions: DataFrame) -> list[tuple[int | None, float]]:
        written_since = self._now_ms - _INFLOW_DAYS * DAY_MS
        recent = self._segments.where(F.col("written_ms") > written_since)
        by_time = decisions.transform(decide.sum_by_kept_time(recent))
        return [
            (row["kept_ms"], row["written"] / _INFLOW_DAYS) for row in by_time.take(_MOST_PERIODS)
        ]


def _first(rows: DataFrame) -> Row:
    return rows.collect()[0]


def _running_sum(changes: Sequence[int]) -> list[int]:
    total, sums = 0, []
    for change in changes:
        total += change
        sums.append(total)
    return sums
