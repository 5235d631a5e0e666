"""Forecast from a broker's disks what its start does, and how long it takes."""

import os
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from kafka_segments.files.node.log_dirs import FoundLogDir, find_log_dirs
from kafka_segments.files.storage.stores import store_of
from kafka_segments.files.storage.threads import map_in_threads
from kafka_segments.kafka.broker_rules.start.log_start import LogStart, decide_start
from kafka_segments.kafka.broker_rules.start.node import NodeStart
from kafka_segments.kafka.text.names import LOG_SUFFIX, file_name
from kafka_segments.verbs.change.recovery.forecast.calibration import calibrate, read_bytes_per_s
from kafka_segments.verbs.change.recovery.forecast.decide.forecasts import (
    DirFacts,
    DirForecast,
    LogForecast,
    forecast_dirs,
    log_forecast,
)
from kafka_segments.verbs.change.recovery.forecast.decide.times import Costs
from kafka_segments.verbs.change.recovery.forecast.run_start import NodeOfDirs, decide_starts
from kafka_segments.verbs.change.recovery.forecast.survey import Surveyed, Surveyor

if TYPE_CHECKING:
    from kafka_segments.console.bar import ReadProgress

_SURVEYORS = 8
_MOST_FILES_READ = 8


@dataclass(frozen=True)
class ForecastOptions:
    """What is forecast, and how.

    Attributes:
        threads: Numbers of threads per log directory that are set side by side.
        sources: URIs of log directories; none: tables are asked.
        is_full: Every segment that is recovered is read.
        is_killed: As if no log directory had ``.kafka_cleanshutdown``.
        is_cold: The page cache is empty, as after a start of the machine.
        calibrates_in: A folder on the disk that is measured; None: costs are assumed.
        cores: Of the broker's machine.
    """

    threads: tuple[int, ...]
    sources: tuple[str, ...] = ()
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
    """What was forecast: log directories with their logs, the rows, and the costs behind them."""

    dirs: Sequence[DirFacts]
    rows: Sequence[DirForecast]
    costs: Costs
    nodes: Sequence[NodeOfDirs] = ()

    @property
    def logs(self) -> list[tuple[DirFacts, LogForecast]]:
        """Each log, with its log directory."""
        return [(one, log) for one in self.dirs for log in one.logs]


def run_forecast(options: ForecastOptions, *, work: "ReadProgress | None" = None) -> Forecast:
    """Forecast the start of the brokers whose log directories lie below the sources.

    ``work`` is told of the progress: in bytes where segments are read, else in logs.

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
    starts = [[decide_start(log, is_clean=one.is_clean) for log in one.logs] for one in found]
    tell = _tells(work, starts, is_full=options.is_full)
    surveyed = [_survey(of_dir, tell, is_full=options.is_full) for of_dir in starts]
    nodes = decide_starts(found, surveyed, options.sources)
    dirs = [
        _facts(one, logs, _start_of(one.uri, nodes))
        for one, logs in zip(found, surveyed, strict=True)
    ]
    costs = costs_of(options, [log.start for logs in surveyed for log in logs])
    return Forecast(dirs, forecast_dirs(dirs, costs, threads=options.threads), costs, nodes)


def _start_of(uri: str, nodes: Sequence[NodeOfDirs]) -> NodeStart | None:
    return next((node.start for node in nodes if uri in node.uris), None)


def _tells(
    work: "ReadProgress | None", starts: Sequence[Sequence[LogStart]], *, is_full: bool
) -> Callable[[LogStart], None]:
    """Announce the work; return a function to be called with each log that is done."""
    if work is None:
        return lambda log: None
    if not is_full:
        work.looks_in_driver(sum(map(len, starts)), "logs")
        return lambda log: work.has_read(1)
    work.reads_in_driver(sum(log.bytes_of(log.read) for of_dir in starts for log in of_dir))
    return lambda log: work.has_read(log.bytes_of(log.read))


def _survey(
    starts: Sequence[LogStart], tell: Callable[[LogStart], None], *, is_full: bool
) -> list[Surveyed]:
    """Survey the logs of a directory, several at a time."""
    own = threading.local()

    def survey(log: LogStart) -> Surveyed:
        if not hasattr(own, "surveyor"):
            own.surveyor = Surveyor(is_full=is_full)
        surveyed: Surveyed = own.surveyor.survey(log)
        return surveyed

    surveyed = []
    done = map_in_threads(survey, starts, threads=_SURVEYORS)
    for start, each in zip(starts, done, strict=True):
        surveyed.append(each)
        tell(start)
    return surveyed


def _facts(one: FoundLogDir, logs: Sequence[Surveyed], start: NodeStart | None) -> DirFacts:
    return DirFacts(
        one.cluster,
        one.broker_id,
        one.uri,
        one.is_clean,
        [log_forecast(log.start, log.work, log.kit_work, log.findings) for log in logs],
        (*one.problems, *(log.problem for log in logs if log.problem)),
        start,
        sum(log.unread_bytes for log in logs),
        _disk(one.uri),
    )


def _disk(log_dir: str) -> int | None:
    """Return what tells a directory's disk from others; None: it lies in a store, or has gone."""
    try:
        return Path(log_dir).stat().st_dev if store_of(log_dir).is_local else None
    except OSError:
        return None


def costs_of(options: ForecastOptions, starts: Sequence[LogStart]) -> Costs:
    """Return the costs, assumed or measured; ``starts``: logs whose files may be read for that."""
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
