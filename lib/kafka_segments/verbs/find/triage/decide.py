"""What a page of triage says: what was found, most urgent first, and the steps in their order.

1. What stops the start, then what the start takes away: each with the step that prevents it.
2. What is not known, with the way to know it.
3. What makes the start slow, if it is: a kit makes it quick.
4. What is odd and waits for a person, without a start having to do with it.
5. Then the start itself, or why it has to wait.

Steps of findings in one state are one step. Source: as of the rows of ``start.rules``.
"""

from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from typing import NamedTuple

from kafka_segments.kafka.broker_rules.start.effects import Effect
from kafka_segments.kafka.broker_rules.start.rules import StartFinding
from kafka_segments.verbs.find.disk.decide.accounts import Account
from kafka_segments.verbs.find.disk.decide.kinds import GOES, What

SLOW_SECONDS = 30.0
FULL_PERCENT = 90
_DAY_MS = 86_400_000
_AGAIN = "run this again: what stops a start hides what would come behind it"
_STOPS = (Effect.ENDS, Effect.WITHOUT)
_ODD_KINDS = (What.CLEANED, What.SWAPS, What.OWN, What.FOREIGN)


class Section(StrEnum):
    """The parts of a page, in their order."""

    STOPS = "what stops the start"
    LOSES = "what the start takes away"
    UNKNOWN = "what is not known"
    SLOW = "what makes the start slow"
    ODD = "what is odd"


class Line(NamedTuple):
    """A line of a page.

    Attributes:
        section: Its part of the page.
        log_dir: The log directory; empty: of all of them.
        place: The folder or file below it; empty: the directory.
        what: What was found, and what follows.
        step: What to do; empty: nothing.
        used_bytes: How many bytes it is about; None: not known.
        records: How many records; None: not known.
        offsets: How many offsets; None: not known.
        rule: Which findings are in one state; empty: it is alone.
        is_before_start: The step has to be done before the broker starts.
    """

    section: Section
    log_dir: str
    place: str
    what: str
    step: str = ""
    used_bytes: int | None = 0
    records: int | None = 0
    offsets: int | None = 0
    rule: str = ""
    is_before_start: bool = True


class StartCost(NamedTuple):
    """What the start of a node costs: with one thread a directory, with more, with a kit.

    ``threads``: the best number of them. ``recovered_bytes``: of segments that are read again.
    """

    seconds: float
    best_seconds: float
    threads: int
    kit_seconds: float
    recovered_segments: int
    recovered_bytes: int


class DiskState(NamedTuple):
    """A log directory's disk. ``full_percent`` and ``full_in_ms`` None: not known, or never.

    ``full_in_ms``: at the soonest, at the pace of the last hour.
    """

    log_dir: str
    full_percent: int | None
    full_in_ms: int | None


class OddFolder(NamedTuple):
    """A folder of which the metadata or its mark says that nobody serves it; what is known."""

    log_dir: str
    name: str
    used_bytes: int
    may_go: str
    why: str


def lines_of_start(findings: Iterable[StartFinding], notes: Iterable[str]) -> Iterator[Line]:
    """Yield the lines of what a node's start finds, and of what goes as was asked for."""
    for note in notes:
        yield Line(Section.ODD, "", "", note)
    for finding in findings:
        if finding.effect in _STOPS:
            section = Section.STOPS
        elif finding.effect == Effect.NOT_KNOWN:
            section = Section.UNKNOWN
        else:
            section = Section.LOSES
        yield Line(
            section,
            finding.log_dir,
            finding.place,
            _told(finding),
            finding.step,
            finding.size_bytes,
            finding.records,
            finding.offsets,
            f"{finding.rule} {finding.effect} {finding.exception}",
        )


def _told(finding: StartFinding) -> str:
    line = "" if finding.line is None else f" (line {finding.line})"
    found = finding.found.removesuffix(line) + line
    thrown = f"{finding.exception}, " if finding.exception else ""
    return f"{found.lstrip()}: {thrown}{finding.effect}".lstrip(": ")


def lines_of_unread(unread: Sequence[str], unread_bytes: int, check_full: str) -> Iterator[Line]:
    """Yield what was not looked at. ``check_full``: the command that reads what a start reads."""
    for text in unread:
        yield Line(Section.UNKNOWN, "", "", text, used_bytes=None)
    if unread_bytes:
        what = "segments that the start reads, and of which only the ends were read here"
        yield Line(
            Section.UNKNOWN, "", "", what, check_full, unread_bytes, None, None, "unread-start"
        )


def lines_of_cost(cost: StartCost, kit: str) -> Iterator[Line]:
    """Yield why a start is slow; none where it is not. ``kit``: the commands that make it quick."""
    if cost.seconds < SLOW_SECONDS:
        return
    what = (
        f"{cost.recovered_segments} segments are read again: about {cost.seconds:.0f} s with"
        f" num.recovery.threads.per.data.dir=1, {cost.best_seconds:.0f} s with {cost.threads},"
        f" {cost.kit_seconds:.0f} s with a kit"
    )
    yield Line(Section.SLOW, "", "", what, kit, cost.recovered_bytes)


def lines_of_disk(
    disks: Iterable[DiskState], accounts: Iterable[Account], folders: Iterable[OddFolder]
) -> Iterator[Line]:
    """Yield what is odd on the disk, whether or not a start has to do with it."""
    for disk in disks:
        yield from _of_space(disk)
    for account in accounts:
        if account.what not in _ODD_KINDS:
            continue
        what = (
            f"{account.files} file{'s' * (account.files > 1)}: {account.what}, {GOES[account.what]}"
        )
        yield Line(Section.ODD, account.log_dir, "", what, used_bytes=account.used_bytes)
    for folder in folders:
        what = f"{folder.may_go}: {folder.why}"
        step = "decide whether it may go"
        rule = f"folder {folder.may_go}"
        yield Line(
            Section.ODD,
            folder.log_dir,
            folder.name,
            what,
            step,
            folder.used_bytes,
            rule=rule,
            is_before_start=False,
        )


def _of_space(disk: DiskState) -> Iterator[Line]:
    if disk.full_percent is None:
        what = "how full its disk is: the file system does not say"
        yield Line(Section.UNKNOWN, disk.log_dir, "", what, used_bytes=None)
        return
    soon = disk.full_in_ms is not None and disk.full_in_ms < _DAY_MS
    if disk.full_percent < FULL_PERCENT and not soon:
        return
    hours = "" if disk.full_in_ms is None else f"; full in {disk.full_in_ms // 60_000} min or more"
    what = f"its disk is {disk.full_percent} % full{hours if soon else ''}"
    step = (
        "make room first: `kafka-segments disk` shows what takes it; delete no segment by hand:"
        " lower retention.bytes or retention.ms of the greatest topics"
    )
    yield Line(Section.ODD, disk.log_dir, "", what, step, None, rule="disk-full")


class Step(NamedTuple):
    """What to do: a sentence or a command, and the places that it is to be done at."""

    text: str
    places: tuple[str, ...] = ()


def steps_of(lines: Iterable[Line], *, is_running: bool, starts: bool | None) -> list[Step]:
    """Return what to do, in order; each step once, with all of its places."""
    ordered = sorted(lines, key=lambda line: list(Section).index(line.section))
    before = _steps(line for line in ordered if line.is_before_start)
    after = _steps(line for line in ordered if not line.is_before_start)
    if is_running:
        note = "a broker runs here: what stands above is what its next start would do, if it were"
        return [Step(f"{note} killed now"), *before, *after]
    again = [Step(_AGAIN)] if any(line.section == Section.STOPS for line in ordered) else []
    if starts or before:
        return [*before, *again, Step("start the broker"), *after]
    return [Step("what a start does is not known: see above"), *after]


def _steps(lines: Iterable[Line]) -> list[Step]:
    places: dict[str, list[str]] = {}
    for line in lines:
        if line.step:
            place = "/".join(filter(None, (line.log_dir, line.place)))
            places.setdefault(line.step, []).extend([place] if place else [])
    return [Step(text, tuple(dict.fromkeys(found))) for text, found in places.items()]
