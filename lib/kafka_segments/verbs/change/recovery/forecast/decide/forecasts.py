"""What a start costs a log directory, by threads, with and without a kit: one row each."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from kafka_segments.kafka.broker_rules.start.cuts import Finding
from kafka_segments.kafka.broker_rules.start.effects import Effect
from kafka_segments.kafka.broker_rules.start.log_start import LogStart
from kafka_segments.kafka.broker_rules.start.node import NodeStart, sum_or_none
from kafka_segments.kafka.broker_rules.start.rules import StartFinding
from kafka_segments.kafka.text.names import FolderState
from kafka_segments.verbs.change.recovery.forecast.decide.times import (
    Costs,
    DirWork,
    LogWork,
    seconds_of_start,
)

_NO_DROPS = (Effect.ENDS, Effect.WITHOUT, Effect.NOT_KNOWN)


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
    """A log directory, and what a start does with its logs, in the broker's order.

    ``start``: what it does with the whole node; None: not known, as of tables. ``unread_bytes``: of
    segments that a start recovers, or reads for the producers' state, and that were looked at in
    part or not at all. ``disk``: as in ``DirWork``.
    """

    cluster: str
    broker_id: int
    log_dir: str
    is_clean: bool
    logs: Sequence[LogForecast]
    problems: tuple[str, ...] = ()
    start: NodeStart | None = None
    unread_bytes: int = 0
    disk: int | None = None


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
    starts: bool | None
    is_served: bool | None
    start_problem: str | None
    without: list[str]
    drops: list[str]
    not_known: list[str]
    unread_bytes: int


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
        DirWork(one.log_dir, [of(log) for log in one.logs if not log.is_metadata], one.disk)
        for one in dirs
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
        replayed_bytes=sum_or_none(replayed),
        logs_without_recovery_point=sum(
            log.recovery_point is None and not log.is_metadata for log in one.logs
        ),
        missing_indexes=sum_or_none(log.missing_indexes for log in one.logs),
        logs_without_snapshot=sum_or_none(
            None if size is None else bool(size) for size in replayed
        ),
        full_indexes=sum_or_none(log.full_indexes for log in one.logs),
        left_over_files=sum_or_none(log.left_over_files for log in one.logs),
        delete_logs=states.count(FolderState.DELETE) if knows_files else None,
        stray_logs=states.count(FolderState.STRAY) if knows_files else None,
        future_logs=states.count(FolderState.FUTURE),
        split_segments=sum(finding.consequence == "split" for finding in findings),
        refused_segments=sum(finding.consequence == "refused" for finding in findings),
        lost_bytes=sum(finding.lost_bytes for finding in findings),
        lost_records=sum_or_none(finding.lost_records for finding in findings),
        lost_segments=sum(finding.lost_segments for finding in findings),
        seconds=round(seconds, 3),
        least_seconds=round(seconds * (1 - costs.error), 3),
        most_seconds=round(seconds * (1 + costs.error), 3),
        metadata_seconds=round(metadata_seconds, 3),
        is_calibrated=costs.is_calibrated,
        problem="; ".join(one.problems) or None,
        **_of_start(one),
        unread_bytes=one.unread_bytes,
    )


def unread_text(unread_bytes: int) -> str:
    """Return in words what was not read of segments that a start reads."""
    return (
        f"not looked at: {unread_bytes:,} bytes of segments that the start recovers or, for the"
        " producers' state, reads, of which only the ends were read; a bad batch in them cuts more"
        " than is told here, or ends the start. --check full reads them"
    )


def _of_start(one: DirFacts) -> dict[str, Any]:
    """Return the columns that say whether the node starts, and what goes."""
    start = one.start
    unread_here = [unread_text(one.unread_bytes)] if one.unread_bytes else []
    if start is None:
        unknown = [f"{one.log_dir}: {problem}" for problem in one.problems] or [
            "tables do not have a log directory's small files: give --source"
        ]
        return {
            "starts": None,
            "is_served": None,
            "start_problem": None,
            "without": [],
            "drops": [],
            "not_known": [*unknown, *unread_here],
        }
    here = [finding for finding in start.findings if finding.log_dir == one.log_dir]
    drops = [finding for finding in here if finding.effect not in _NO_DROPS]
    unread = [finding for finding in start.findings if finding.effect == Effect.NOT_KNOWN]
    is_served = False if one.log_dir in start.without else start.starts
    lost = [finding for finding in here if finding.effect == Effect.WITHOUT]
    problem = start.problem or next(iter(lost), None)
    return {
        "starts": start.starts,
        "is_served": is_served,
        "start_problem": None if problem is None else told(problem),
        "without": list(start.without),
        "drops": [told(finding) for finding in drops],
        "not_known": [*map(told, unread), *start.notes, *unread_here],
    }


def told(finding: StartFinding) -> str:
    """Return a finding in one line: where, what was found, what follows."""
    line = "" if finding.line is None else f" (line {finding.line})"
    place = "/".join(filter(None, (finding.log_dir, finding.place)))
    found = finding.found.removesuffix(line)
    text = f"{place}{line}: {found}" if found else f"{place}{line}"
    follows = f"{finding.exception}, {finding.effect}" if finding.exception else finding.effect
    files = f" [{', '.join(finding.files)}]" if finding.files else ""
    return f"{text}: {follows}{files}"
