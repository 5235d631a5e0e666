"""What a job said, and from that how it ended: plain Python, without Airflow."""

import contextlib
import json
import re
import signal
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

FINDINGS, USAGE = 1, 2
_MOST_NAMED = 20
_LONGEST = 500
_SHELL_SIGNAL = 128  # a shell and a JVM add it to the signal that ended their child
_KILLED_BY = {
    "SIGKILL": "by the kernel for want of memory (see its log), by a person or with the worker",
    "SIGTERM": "by a person, the task's timeout or the worker's shutdown",
}
# Each as its group; of several kinds the first counts, of several lines of one kind the last.
_REASONS = (
    re.compile(r"^kafka-segments: (.*)"),  # the verbs' own last line
    re.compile(r"^Error: (.*)"),  # click's, of an option
    re.compile(r"^(?:Exception in thread .*? )?([\w.]+(?:Exception|Error): .*)"),
)
# What verbs say where no build has made the tables that they are to read.
_NO_BUILD = re.compile(
    r"run `kafka-segments build`(?: again)?$"
    r"|--warehouse is the folder of the tables that `kafka-segments build` made$"
)
_FINDING = re.compile(
    r"^(?:findings: (.+)|(blocks: .+|\d+ (?:damaged segments|files or folders).*))"
)
# Of a page of `triage`: its verdict, and headings, of each of which the first line is kept, too.
_VERDICT = re.compile(
    r"^.+: (?:does not start|not known whether it starts|starts)(?:, without .+)?$"
)
_HEADING = re.compile(
    r"^what (?:stops the start|the start takes away|is not known|makes the start slow|is odd)$"
)
# What the JVM and Spark say of themselves, a stack's frames, and lines without a word.
_NOISE = re.compile(
    r"^(?:WARNING: |OpenJDK .* warning: |Picked up \w+_OPTIONS|NOTE: Picked up|at [\w.$/]+\("
    r"|Setting default log level|To adjust logging level|Using Spark's default log4j"
    r"|\S* ?\S* ?WARN(?:ING)? |\W*$)"
)
_STEP = frozenset({"log", "message"})
_STATUS = ("status", "state")  # of `migrate`'s steps and of `recovery`'s; of `recovery kit`
_NOT_DONE = frozenset({"refused", "failed"})
_LEFT_ALONE, _NOTHING_TO_DO = "left alone", "there is nothing to do"


class JobOutput:
    """What is kept of a job's lines while they pass by; it does not grow with them.

    ``steps`` sums up the rows that the steps of `migrate` and `recovery` print with ``--output
    json``, one a log.
    """

    def __init__(self) -> None:
        self._last = ""
        self._reasons: dict[int, str] = {}
        self._findings: list[str] = []
        self._heading = ""
        self._counts: Counter[str] = Counter()
        self._segments = self._bytes = self._refusals = 0
        self._refused: list[dict[str, str]] = []
        self._cuts = 0
        self._cut: list[dict[str, Any]] = []

    def watch(self, lines: Iterable[str]) -> Iterator[str]:
        """Give the lines on, and keep what they say."""
        for line in lines:
            self.add(line.strip())
            yield line

    def add(self, line: str) -> None:
        """Keep what one line says."""
        if step := _step(line):
            self._add_step(step)
            return
        if _NOISE.match(line):
            return
        self._last = line
        for kind, pattern in enumerate(_REASONS):
            if found := pattern.match(line):
                self._reasons[kind] = found[1]
                break
        if (finding := self._finding(line)) and len(self._findings) < _MOST_NAMED:
            self._findings.append(finding)

    def reason(self, status: int | None) -> str:
        """Say in one line what ended the job: a signal, its own reason, or what it said last."""
        if killer := _signal(status):
            by = f": {_KILLED_BY[killer]}" if killer in _KILLED_BY else ""
            last = f"; its last line: {self._last}" if self._last else "; it said nothing"
            return _cut(f"the driver was ended by {killer}{by}{last}")
        if self._reasons:
            return _cut(self._reasons[min(self._reasons)])
        if self._refusals:
            return self.findings()
        return _cut(self._last) if self._last else f"exit status {status}, without a word"

    def has_no_build(self) -> bool:
        """Tell whether it says that no build has made its tables yet."""
        return any(_NO_BUILD.search(reason) for reason in self._reasons.values())

    def findings(self) -> str:
        """Say in one line what was found."""
        if self._refusals:
            named = "; ".join(map(_named, self._refused))
            return _cut(f"{self._refusals} logs refused or failed: {named}")
        return _cut("; ".join(self._findings)) or self._last or "the job did not say which"

    def steps(self) -> dict[str, Any] | None:
        """Give the counts of logs by status, the first refused and cut; None: there are no logs."""
        if not self._counts:
            return None
        return {
            "logs": dict(sorted(self._counts.items())),
            "segments": self._segments,
            "bytes": self._bytes,
            "refusals": self._refusals,
            "refused": self._refused,
            "cuts": self._cuts,
            "cut": self._cut,
        }

    def _finding(self, line: str) -> str | None:
        heading, self._heading = self._heading, line if _HEADING.match(line) else ""
        if heading:
            return f"{heading}: {line}"
        if found := _FINDING.match(line):
            return found[1] or found[2]
        return line if _VERDICT.match(line) else None

    def _add_step(self, step: Mapping[str, Any]) -> None:
        status, message = str(_status(step)), str(step["message"])
        self._counts[status] += 1
        self._segments += int(step.get("segments", 0))
        self._bytes += int(step.get("bytes", 0))
        if step.get("cut_bytes"):
            self._cuts += 1
            if len(self._cut) < _MOST_NAMED:
                log = "/".join(step[key] for key in ("log_dir", "log") if key in step)
                told = {key: step[key] for key in ("cut_bytes", "cut_records")}
                self._cut.append({"log": log, **told})
        if status in _NOT_DONE or (status == _LEFT_ALONE and message != _NOTHING_TO_DO):
            self._refusals += 1
            if len(self._refused) < _MOST_NAMED:
                self._refused.append({"log": str(step["log"]), "message": _cut(message)})


def review_steps(found: Mapping[str, Mapping[str, Any] | None]) -> str:
    """Write for a person, as Markdown, what steps did, what they cut and what they refused."""
    lines, refused, cut = [], {}, []
    for step, summary in found.items():
        if summary is None:
            lines.append(f"- {step}: no logs")
            continue
        logs = ", ".join(f"{count} {status}" for status, count in summary["logs"].items())
        size = f"{summary['segments']} segments, {summary['bytes']} bytes"
        lines.append(f"- {step}: {logs} ({size}); {summary['refusals']} refused or failed")
        refused |= {one["log"]: one["message"] for one in summary["refused"]}
        cut = summary.get("cut") or cut  # each step tells of the same ones
    if cut:
        lines += ["", "Torn tails that are cut off:", ""]
        lines += [
            f"- {_code(one['log'])}: {one['cut_bytes']} bytes, whose headers name"
            f" {one['cut_records']} records"
            for one in cut
        ]
    if refused:
        lines += ["", "Left as they are:", ""]
        lines += [f"- {_code(log)}: {_code(why)}" for log, why in sorted(refused.items())]
    if any(one and _has_more(one) for one in found.values()):
        lines.append("- … and more: the tasks' logs have them all")
    return "\n".join(lines)


def _has_more(summary: Mapping[str, Any]) -> bool:
    is_long = summary["refusals"] > len(summary["refused"])
    return is_long or summary.get("cuts", 0) > len(summary.get("cut", ()))


def _step(line: str) -> Mapping[str, Any] | None:
    if line.startswith("{"):
        with contextlib.suppress(ValueError):
            row = json.loads(line)
            return row if row.keys() >= _STEP and _status(row) is not None else None
    return None


def _status(row: Mapping[str, Any]) -> Any:
    return next((row[key] for key in _STATUS if key in row), None)


def _signal(status: int | None) -> str | None:
    number = 0 if status is None else -status if status < 0 else status - _SHELL_SIGNAL
    with contextlib.suppress(ValueError):
        return signal.Signals(number).name
    return None


def _named(refused: Mapping[str, str]) -> str:
    return f"{refused['log']} ({refused['message']})"


def _code(text: str) -> str:
    """Write text that comes from disks as Markdown that shows it as it is."""
    return f"`{' '.join(text.split()).replace('`', chr(39))}`"


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
