"""What a start costs a log directory, by threads, with and without a kit: one row each."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from kafka_segments.recovery.decide.cuts import Finding, total
from kafka_segments.recovery.decide.starts import LogStart
from kafka_segments.recovery.decide.times import Costs, DirWork, LogWork, seconds_of_start
from kafka_segments.wire.names import FolderState


class LogForecast(NamedTuple):
    """What a start does with a log.

    ``first_recovered_offset``: base offset of the first segment that is recovered; None: none is.
    ``recovery_point`` None: the log has none, and is recovered from its start on.
    ``knows_files``: the files beside the segments were looked at; without it nothing is known of
    index files, snapshots and leftovers.
    """

    log_dir: str
    folder: str
    topic: str
    partition: int
    folder_state: str
    is_metadata: bool
    recovery_point: int | None
    first_recovered_offset: int | None
    work: LogWork
    kit_work: LogWork
    missing_indexes: int | None
    full_indexes: int | None
    left_over_files: int | None
    findings: tuple[Finding, ...]
    knows_files: bool = True

    def replayed_bytes(self, work: LogWork) -> int | None:
        """Return the bytes that are read before recovery begins; None: not known."""
        return work.replayed_bytes if self.knows_files else None


class DirFacts(NamedTuple):
    """A log directory, and what a start does with its logs, in the broker's order."""

    cluster: str
    broker_id: int
    log_dir: str
    is_clean: bool
    logs: Sequence[LogForecast]
    problems: tuple[str, ...] = ()


@dataclass(frozen=True)
class DirForecast:
    """A row of the forecast; docs/recovery.md says what each column is. None: not known."""

    cluster: str
    broker_id: int
    log_dir: str
    threads: int
    with_kit: bool
    is_clean: bool
    logs: int
    segments: int
    recovered_logs: int
    recovered_segments: int
    recovered_bytes: int
    recovered_batches: int
    replayed_bytes: int | None
    logs_without_recovery_point: int
    missing_indexes: int | None
    logs_without_snapshot: int | None
    full_indexes: int | None
    left_over_files: int | None
    delete_logs: int | None
    stray_logs: int | None
    future_logs: int
    split_segments: int
    refused_segments: int
    lost_bytes: int
    lost_records: int | None
    lost_segments: int
    seconds: float
    least_seconds: float
    most_seconds: float
    metadata_seconds: float
    is_calibrated: bool
    problem: str | None


def log_forecast(
    start: LogStart, work: LogWork, kit_work: LogWork, findings: tuple[Finding, ...]
) -> LogForecast:
    """Return the forecast of a log whose folder was read."""
    log = start.log
    return LogForecast(
        log.log_dir,
        log.folder,
        log.topic,
        log.partition,
        log.state.value,
        log.is_metadata,
        log.recovery_point,
        start.recovered[0] if start.recovered else None,
        work,
        kit_work,
        missing_indexes=len(start.lacking),
        full_indexes=len(start.full_indexes),
        left_over_files=len(start.left_behind),
        findings=findings,
    )


def forecast_dirs(
    dirs: Iterable[DirFacts], costs: Costs, *, threads: Sequence[int]
) -> list[DirForecast]:
    """Return two rows for each log directory and number of threads: without a kit and with one.

    A broker loads all of its log directories at the same time.
    """
    brokers: dict[tuple[str, int], list[DirFacts]] = defaultdict(list)
    for one in dirs:
        brokers[one.cluster, one.broker_id].append(one)
    return [
        row
        for facts in brokers.values()
        for with_kit in (False, True)
        for count in threads
        for row in _rows_of_broker(facts, costs, threads=count, with_kit=with_kit)
    ]


def _rows_of_broker(
    dirs: Sequence[DirFacts], costs: Costs, *, threads: int, with_kit: bool
) -> list[DirForecast]:
    def of(log: LogForecast) -> LogWork:
        return log.kit_work if with_kit else log.work

    loaded = [
        DirWork(one.log_dir, [of(log) for log in one.logs if not log.is_metadata]) for one in dirs
    ]
    metadata = [
        DirWork(one.log_dir, [of(log) for log in one.logs if log.is_metadata]) for one in dirs
    ]
    seconds = seconds_of_start(loaded, costs, threads=threads)
    before = seconds_of_start(metadata, costs, threads=1)
    return [
        _row(
            one,
            [(log, of(log)) for log in one.logs],
            costs,
            threads=threads,
            with_kit=with_kit,
            seconds=seconds[one.log_dir],
            metadata_seconds=before[one.log_dir],
        )
        for one in dirs
    ]


def _row(
    one: DirFacts,
    logs: Sequence[tuple[LogForecast, LogWork]],
    costs: Costs,
    *,
    threads: int,
    with_kit: bool,
    seconds: float,
    metadata_seconds: float,
) -> DirForecast:
    findings = [finding for log in one.logs for finding in log.findings]
    works = [work for _, work in logs]
    states = [log.folder_state for log in one.logs]
    knows_files = all(log.knows_files for log in one.logs)
    recovers = [bool(work.recovered_segments) for work in works]
    replayed = [log.replayed_bytes(work) for log, work in logs]
    return DirForecast(
        cluster=one.cluster,
        broker_id=one.broker_id,
        log_dir=one.log_dir,
        threads=threads,
        with_kit=with_kit,
        is_clean=one.is_clean,
        logs=len(works),
        segments=sum(work.segments for work in works),
        recovered_logs=sum(recovers),
        recovered_segments=sum(work.recovered_segments for work in works),
        recovered_bytes=sum(work.recovered_bytes for work in works),
        recovered_batches=round(sum(work.recovered_batches for work in works)),
        replayed_bytes=total(replayed),
        logs_without_recovery_point=sum(
            log.recovery_point is None and not log.is_metadata for log in one.logs
        ),
        missing_indexes=total(log.missing_indexes for log in one.logs),
        logs_without_snapshot=total(None if size is None else bool(size) for size in replayed),
        full_indexes=total(log.full_indexes for log in one.logs),
        left_over_files=total(log.left_over_files for log in one.logs),
        delete_logs=states.count(FolderState.DELETE) if knows_files else None,
        stray_logs=states.count(FolderState.STRAY) if knows_files else None,
        future_logs=states.count(FolderState.FUTURE),
        split_segments=sum(finding.consequence == "split" for finding in findings),
        refused_segments=sum(finding.consequence == "refused" for finding in findings),
        lost_bytes=sum(finding.lost_bytes for finding in findings),
        lost_records=total(finding.lost_records for finding in findings),
        lost_segments=sum(finding.lost_segments for finding in findings),
        seconds=round(seconds, 3),
        least_seconds=round(seconds * (1 - costs.error), 3),
        most_seconds=round(seconds * (1 + costs.error), 3),
        metadata_seconds=round(metadata_seconds, 3),
        is_calibrated=costs.is_calibrated,
        problem="; ".join(one.problems) or None,
    )
