"""What ``recovery apply`` and ``rollback`` print."""

from collections import Counter
from collections.abc import Iterable

from kafka_segments.console.lines import say
from kafka_segments.console.options import ExitStatus
from kafka_segments.console.output import print_records
from kafka_segments.engine.tables.outcomes import Outcome
from kafka_segments.verbs.change.recovery.apply.run import AppliedLog


def print_apply(steps: Iterable[AppliedLog], output: str) -> int:
    """Print what became of each log; return the exit status."""
    statuses: Counter[str] = Counter()
    for step in print_records(steps, AppliedLog, output, _step_line, state=_step_state):
        statuses[step.status] += 1
    counts = ", ".join(f"{statuses[status]} {status}" for status in sorted(statuses))
    say(f"logs: {counts or 'none'}")
    if statuses[Outcome.FAILED]:
        return ExitStatus.FAILED
    return ExitStatus.FINDINGS if statuses[Outcome.REFUSED] else ExitStatus.DONE


def _step_state(step: AppliedLog) -> str | None:
    return f"{step.status}; {step.message}" if step.message and not step.files else None


def _step_line(step: AppliedLog) -> str:
    said = f"; {step.message}" if step.message else ""
    if step.message and not step.files:
        return f"{step.log}: {step.status}{said}"
    points = f"recovery point {step.recovery_point_before} -> {step.recovery_point}"
    cut = f", {step.cut_bytes} bytes ({step.cut_records} records) cut" if step.cut_bytes else ""
    return f"{step.log}: {step.status}, {step.files} files{cut}, {points}{said}"
