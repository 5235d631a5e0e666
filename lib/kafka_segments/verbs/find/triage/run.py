"""Look at a broker's directories once, and say what is wrong with them and what to do."""

import shlex
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kafka_segments.files.storage.local_folder import as_text
from kafka_segments.kafka.broker_rules.start.node import NodeStart
from kafka_segments.verbs.change.recovery.forecast.decide.forecasts import DirForecast
from kafka_segments.verbs.change.recovery.forecast.decide.times import THREADS
from kafka_segments.verbs.change.recovery.forecast.run import (
    Forecast,
    ForecastOptions,
    run_forecast,
)
from kafka_segments.verbs.find.disk.decide.growth import SPANS_MS, full_in_ms
from kafka_segments.verbs.find.disk.decide.kinds import What
from kafka_segments.verbs.find.disk.decide.verdicts import MayGo
from kafka_segments.verbs.find.disk.judged_folders import read_for_starts
from kafka_segments.verbs.find.disk.run import DirUse, DiskOptions, DiskUse, run_disk
from kafka_segments.verbs.find.triage.decide import (
    DiskState,
    Line,
    OddFolder,
    StartCost,
    Step,
    lines_of_cost,
    lines_of_disk,
    lines_of_start,
    lines_of_unread,
    steps_of,
)

if TYPE_CHECKING:
    from kafka_segments.console.bar import ReadProgress


@dataclass(frozen=True)
class TriageOptions:
    """What is looked at.

    Attributes:
        sources: Log directories of this machine, or folders of several, as absolute paths.
        now_ms: The moment, in ms since 1970.
        is_full: Every segment that a start reads is read.
        follow_links: Links below the sources are followed, to what lies in one of them.
    """

    sources: tuple[str, ...]
    now_ms: int
    is_full: bool = False
    follow_links: bool = False


@dataclass(frozen=True)
class TriagedNode:
    """A node: its directories, whether it starts, how far it was looked at, and what to do.

    Attributes:
        cluster: Cluster id; empty: not known.
        node_id: Node id; -1: not known.
        log_dirs: Its log directories.
        starts: Its broker starts; None: not known.
        without: The directories that it goes on without.
        is_running: A broker of this machine holds one of the directories; None: not known.
        is_clean: It was stopped in order, as far as all directories say.
        logs: How many logs were looked at.
        segments: How many segments they have.
        segment_bytes: Their bytes.
        unread_bytes: Of these, what a start reads and was not read here but for its ends.
        lines: What was found.
        steps: What to do, in order.
    """

    cluster: str
    node_id: int
    log_dirs: tuple[str, ...]
    starts: bool | None
    without: tuple[str, ...]
    is_running: bool | None
    is_clean: bool
    logs: int
    segments: int
    segment_bytes: int
    unread_bytes: int
    lines: tuple[Line, ...]
    steps: tuple[Step, ...]


def run_triage(options: TriageOptions, *, work: "ReadProgress | None" = None) -> list[TriagedNode]:
    """Look at the directories of one node or several; nothing is written.

    ``work`` is told of the progress.

    Raises:
        SourceError: a source has no log directory below, or cannot be listed.
    """
    forecast = run_forecast(
        ForecastOptions(
            threads=THREADS,
            sources=options.sources,
            is_full=options.is_full,
            follow_links=options.follow_links,
        ),
        work=work,
    )
    read = read_for_starts(node.facts for node in forecast.nodes)
    use = run_disk(DiskOptions(options.sources, options.now_ms), read=read)
    known = {uri for node in forecast.nodes for uri in node.uris}
    unread = [one.log_dir for one in forecast.dirs if one.log_dir not in known]
    return [
        *(_node(node.uris, node.start, forecast, use) for node in forecast.nodes),
        *(_node((uri,), None, forecast, use) for uri in unread),
    ]


def _node(
    uris: tuple[str, ...], start: NodeStart | None, forecast: Forecast, use: DiskUse
) -> TriagedNode:
    """Say what was found of a node. ``start`` None: its directory could not be read as one."""
    facts = [one for one in forecast.dirs if one.log_dir in uris]
    told = {f"{finding.log_dir}: {finding.place}: " for finding in start.findings} if start else ()
    problems = (f"{one.log_dir}: {problem}" for one in facts for problem in one.problems)
    unread = [line for line in problems if not line.startswith(tuple(told))]
    unread += [problem for problem in use.problems if _is_of(problem, uris)]
    unread_bytes = sum(one.unread_bytes for one in facts)
    lines = [
        *(lines_of_start(start.findings, start.notes) if start else ()),
        *lines_of_unread(unread, unread_bytes, _command("triage", uris, "--check full")),
        *lines_of_cost(_cost(forecast.rows, uris), _kit(uris)),
    ]
    lines += _of_disk(use, uris, told={(line.log_dir, line.place.split("/")[0]) for line in lines})
    held = [one.lock.is_held for one in use.dirs if one.log_dir in uris]
    is_running = True if True in held else None if None in held else False
    starts = start.starts if start else None
    return TriagedNode(
        next((one.cluster for one in facts if one.cluster), ""),
        next((one.broker_id for one in facts if one.broker_id >= 0), -1),
        uris,
        starts,
        start.without if start else (),
        is_running,
        all(one.is_clean for one in facts),
        sum(len(one.logs) for one in facts),
        sum(log.work.segments for one in facts for log in one.logs),
        sum(
            account.size_bytes
            for account in use.accounts
            if account.log_dir in uris and account.what == What.SEGMENTS
        ),
        unread_bytes,
        tuple(lines),
        tuple(steps_of(lines, is_running=bool(is_running), starts=starts)),
    )


def _is_of(problem: str, uris: Sequence[str]) -> bool:
    return any(problem.startswith((f"{uri}:", f"{uri}/")) for uri in uris)


def _cost(rows: Sequence[DirForecast], uris: Sequence[str]) -> StartCost:
    """Return what the start of a node costs: its slowest directory's time."""
    own = [row for row in rows if row.log_dir in uris]

    def seconds(threads: int, *, with_kit: bool) -> float:
        found = [row.seconds for row in own if row.threads == threads and row.with_kit == with_kit]
        return max(found, default=0.0)

    best = min(THREADS, key=lambda threads: seconds(threads, with_kit=False))
    first = [row for row in own if row.threads == THREADS[0] and not row.with_kit]
    return StartCost(
        seconds(THREADS[0], with_kit=False),
        seconds(best, with_kit=False),
        best,
        min(seconds(threads, with_kit=True) for threads in THREADS),
        sum(row.recovered_segments for row in first),
        sum(row.recovered_bytes for row in first),
    )


def _of_disk(use: DiskUse, uris: Sequence[str], *, told: Collection[tuple[str, str]]) -> list[Line]:
    """Return what is odd on the disk; ``told``: log directories and folders that lines name."""
    return list(
        lines_of_disk(
            (_disk_state(use, one) for one in use.dirs if one.log_dir in uris),
            (account for account in use.accounts if account.log_dir in uris),
            (
                OddFolder(
                    as_text(one.folder.log_dir),
                    as_text(one.folder.name),
                    one.folder.used_bytes,
                    one.verdict.may_go.value,
                    one.verdict.why,
                )
                for one in use.folders
                if one.folder.log_dir in uris
                and one.verdict.may_go != MayGo.BY_ITSELF  # which the start's notes tell
                and not one.is_unasked  # the start tells that the metadata log is missing
                and (one.folder.log_dir, one.folder.name) not in told
            ),
        )
    )


def _disk_state(use: DiskUse, one: DirUse) -> DiskState:
    if one.space is None:
        return DiskState(one.log_dir, None, None)
    soonest, _ = full_in_ms(one.space.free_bytes, use.growth_of(one)[0], span_ms=SPANS_MS[0])
    return DiskState(one.log_dir, one.space.full_percent, soonest)


def _kit(uris: Sequence[str]) -> str:
    sources = " ".join(f"--source {shlex.quote(uri)}" for uri in uris)
    return f"kafka-segments recovery kit {sources} --out KIT; kafka-segments recovery apply KIT"


def _command(verb: str, uris: Sequence[str], options: str) -> str:
    return " ".join(("kafka-segments", verb, *map(shlex.quote, uris), options))
