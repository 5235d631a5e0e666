"""Forecast what a broker's start does, and how long it takes: from disks, or from tables."""

import os
import threading
import uuid
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from kafka_segments.recovery.calibration import calibrate, read_bytes_per_s
from kafka_segments.recovery.decide.forecasts import (
    DirFacts,
    DirForecast,
    LogForecast,
    forecast_dirs,
    log_forecast,
)
from kafka_segments.recovery.decide.starts import LogStart, decide_start
from kafka_segments.recovery.decide.times import Costs
from kafka_segments.recovery.folders import FoundLogDir, find_log_dirs
from kafka_segments.recovery.survey import Surveyed, Surveyor
from kafka_segments.storage.stores import store_of
from kafka_segments.wire.names import LOG_SUFFIX, file_name

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SURVEYORS = 8
_MOST_FILES_READ = 8


@dataclass(frozen=True)
class ForecastOptions:
    """What is forecast, and how.

    Attributes:
        threads: Numbers of threads per log directory that are set side by side.
        sources: URIs of log directories; none: the tables are asked.
        warehouse: URI of the tables; None: nothing is kept.
        is_full: Every segment that is recovered is read.
        is_killed: As if no log directory had ``.kafka_cleanshutdown``.
        is_cold: The page cache is empty, as after a start of the machine.
        calibrates_in: A folder on the disk that is measured; None: costs are assumed.
        cores: Of the broker's machine.
        now_ms: The run's clock.
    """

    threads: tuple[int, ...]
    now_ms: int
    sources: tuple[str, ...] = ()
    warehouse: str | None = None
    is_full: bool = False
    is_killed: bool = False
    is_cold: bool = False
    calibrates_in: Path | None = None
    cores: int = os.cpu_count() or 1
    cluster: str | None = None
    broker_id: int | None = None
    follow_links: bool = False


@dataclass(frozen=True)
class Forecast:
    """What was forecast: a row a log, a row an option, and the costs that it goes by."""

    dirs: Sequence[DirFacts]
    rows: Sequence[DirForecast]
    costs: Costs

    @property
    def logs(self) -> list[tuple[DirFacts, LogForecast]]:
        """Each log, with its log directory."""
        return [(one, log) for one in self.dirs for log in one.logs]


def forecast_sources(options: ForecastOptions) -> Forecast:
    """Forecast the start of the brokers whose log directories lie below the sources.

    Raises:
        SourceError: a source has no log directory below, or cannot be listed.
        UsageError: the folder to calibrate in cannot be written to.
    """
    found = find_log_dirs(
        options.sources,
        cluster=options.cluster,
        broker_id=options.broker_id,
        follow_links=options.follow_links,
    )
    if options.is_killed:
        found = [replace(one, is_clean=False) for one in found]
    surveyed = [_survey(one, is_full=options.is_full) for one in found]
    dirs = [_facts(one, logs) for one, logs in zip(found, surveyed, strict=True)]
    costs = _costs(options, [log.start for logs in surveyed for log in logs])
    return Forecast(dirs, forecast_dirs(dirs, costs, threads=options.threads), costs)


def _survey(one: FoundLogDir, *, is_full: bool) -> list[Surveyed]:
    """Survey the logs of a directory, some at a time."""
    own = threading.local()

    def survey(log: LogStart) -> Surveyed:
        if not hasattr(own, "surveyor"):
            own.surveyor = Surveyor(is_full=is_full)
        kit = decide_start(log.log, is_clean=one.is_clean, with_kit=True)
        surveyed: Surveyed = own.surveyor.survey(log, kit)
        return surveyed

    starts = [decide_start(log, is_clean=one.is_clean) for log in one.logs]
    with ThreadPoolExecutor(_SURVEYORS) as pool:
        return list(pool.map(survey, starts))


def _facts(one: FoundLogDir, logs: Sequence[Surveyed]) -> DirFacts:
    return DirFacts(
        one.cluster,
        one.broker_id,
        one.uri,
        one.is_clean,
        [log_forecast(log.start, log.work, log.kit_work, log.findings) for log in logs],
        (*one.problems, *(log.problem for log in logs if log.problem)),
    )


def _costs(options: ForecastOptions, starts: Sequence[LogStart]) -> Costs:
    costs = Costs(cores=options.cores)
    if options.calibrates_in is not None:
        costs = calibrate(options.calibrates_in, costs)
    if options.is_cold:
        largest = sorted(
            (
                (size, Path(start.log.log_dir, start.log.folder, file_name(base, LOG_SUFFIX)))
                for start in starts
                for base, size in start.sizes.items()
                if store_of(start.log.log_dir).is_local
            ),
            reverse=True,
        )
        rate = read_bytes_per_s(path for _, path in largest[:_MOST_FILES_READ])
        costs = replace(costs, read_bytes_per_s=rate)
    return costs


def keep_forecast(spark: "SparkSession", options: ForecastOptions, forecast: Forecast) -> str:
    """Append the rows to table ``recovery_forecasts``; return the id of the run."""
    from pyspark.sql import functions as F  # noqa: PLC0415

    from kafka_segments.tables.catalog import RECOVERY_FORECASTS  # noqa: PLC0415
    from kafka_segments.tables.delta import Warehouse  # noqa: PLC0415

    run_id = uuid.uuid4().hex
    warehouse = Warehouse(spark, options.warehouse or "")
    warehouse.create(RECOVERY_FORECASTS)
    moment = F.timestamp_millis(F.lit(options.now_ms))
    stamp = {"run_id": F.lit(run_id), "decided_at": moment}
    warehouse.append_values(RECOVERY_FORECASTS, list(map(asdict, forecast.rows)), stamp)
    return run_id
