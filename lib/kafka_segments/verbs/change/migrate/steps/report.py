"""What the steps of ``migrate`` print: stage, verify, apply, rollback and status."""

from collections import Counter
from collections.abc import Iterable

from kafka_segments.console.lines import say
from kafka_segments.console.output import print_records
from kafka_segments.engine.tables.outcomes import Outcome
from kafka_segments.verbs.change.migrate.steps.log_step import LogStep


def print_steps(steps: Iterable[LogStep], output: str) -> Counter[str]:
    """Print what became of each log; return how many logs have which status."""
    logs: Counter[str] = Counter()
    size_bytes: Counter[str] = Counter()
    for step in print_records(steps, LogStep, output, _line, state=_state):
        logs[step.status] += 1
        size_bytes[step.status] += step.bytes
    counts = (f"{logs[status]} {status} ({size_bytes[status]} bytes)" for status in sorted(logs))
    say(f"logs: {', '.join(counts) or 'none'}")
    return logs


def _state(step: LogStep) -> str | None:
    """Return why a log was not changed, without its folder, which alike refusals differ in."""
    if step.status not in (Outcome.REFUSED, Outcome.FAILED):
        return None
    return f"{step.status}; {step.message.replace(step.log, '')}"


def _line(step: LogStep) -> str:
    what = f"{step.segments} segments, {step.bytes} bytes, in place: {step.in_place}"
    said = f"; {step.message}" if step.message else ""
    return f"broker {step.broker_id}, {step.log}: {step.status}, {what}{said}"
