"""What a step of a migration did with one log, and why the next step may not be taken."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Self

from pydantic import Field, model_validator

from kafka_segments.engine.tables.outcomes import Outcome
from kafka_segments.errors import SetAsideError
from kafka_segments.files.changes.manifests import Count, Part, checked_row
from kafka_segments.verbs.change.migrate.decide.actions import NOTED, Step
from kafka_segments.verbs.change.migrate.planned_log import staged_log
from kafka_segments.verbs.change.migrate.staged_log import LogState, Side, log_state

Log = Mapping[str, Any]
"""A log of a plan, as ``decide.steps.logs_of_segments`` gives it, with its newest events."""


_EVENTS = "migration_events"
_REMEDY = (
    "what was done is not known, and nothing is changed: run `migrate stage` and `verify` again"
)


class _Event(Part):
    """A row of ``migration_events``: anyone who may write to the table may change it."""

    step: Annotated[Step, Field(strict=False)]
    status: Annotated[Outcome, Field(strict=False)]
    message: str
    folder: str
    root: str
    segment_count: Count
    size_bytes: Count
    planned: dict[str, Any]

    @model_validator(mode="after")
    def _is_of_plan(self) -> Self:
        for name in NOTED:
            found, planned = getattr(self, name), self.planned[name]
            if found != planned:
                raise ValueError(f"{name}: found {found!a}, {planned!a} expected")
        if self.status is not Outcome.DONE and not self.message:
            raise ValueError(f"message: found '', but it was {self.status}")
        return self


@dataclass(frozen=True)
class LogStep:
    """What a step did, or would do, with one log.

    Attributes:
        log: Its folder in the log directory.
        status: What was done; an ``Outcome`` where it is noted.
        in_place: The folder that is in place after the step, see ``Side``.
    """

    cluster: str
    broker_id: int
    log_dir: str
    topic: str
    partition: int
    log: str
    segments: int
    bytes: int
    status: str
    in_place: str
    message: str


def tried(log: Log, act: Callable[[Log], LogStep], refusal: str | None) -> LogStep:
    """Do a step with a log; return its outcome, be it a refusal or an error of the machine."""
    if refusal is not None:
        return step_of(log, Outcome.REFUSED, refusal)
    try:
        return act(log)
    except SetAsideError as error:
        return step_of(log, Outcome.REFUSED, str(error))
    except OSError as error:
        return step_of(log, Outcome.FAILED, str(error))


def noted(log: Log, step: Step) -> _Event | None:
    """Return the newest event of staging or verifying a log; None: there is none.

    Raises:
        SetAsideError: it is none that this log of the plan can have.
    """
    found = log[step]
    if found is None:
        return None
    row = {name: found[name] for name in ("status", "message", *NOTED)}
    planned = {name: log[name] for name in NOTED}
    place = f"{_EVENTS}, plan {log['plan_id']}, {step} of {log['folder']}"
    return checked_row(
        {**row, "step": step, "planned": planned}, _Event, place=place, remedy=_REMEDY
    )


def why_not_done(log: Log) -> str | None:
    """Return why the last staging or verification of a log failed; None: neither did.

    Raises:
        SetAsideError: see ``noted``.
    """
    for step in (Step.STAGE, Step.VERIFY):
        found = noted(log, step)
        if found is not None and found.status is not Outcome.DONE:
            return f"`migrate {step}` {found.status}: {found.message}"
    return None


def why_unverified(log: Log) -> str | None:
    """Return why a log may not be applied; None: it may.

    Raises:
        SetAsideError: see ``noted``.
    """
    never = "it is not verified: run `migrate verify`" if log[Step.VERIFY] is None else None
    return why_not_done(log) or never


def reached(log: Log) -> LogStep:
    """Return how far a log is by the last step that still holds, and why the next one failed."""
    try:
        state = log_state(staged_log(log))
        refusal = why_not_done(log) if state.side is Side.BEFORE else None
        last = _last_step(log, state)
    except SetAsideError as error:
        return step_of(log, Outcome.REFUSED, str(error))
    return step_of(log, last, refusal)


def _last_step(log: Log, state: LogState) -> str:
    if state.side is Side.AFTER:
        return "applied"
    if not state.is_staged:
        return "planned"
    if log[Step.APPLY] is not None and log[Step.ROLLBACK] is not None:
        return "rolled back"
    proof = noted(log, Step.VERIFY)
    return "verified" if proof is not None and proof.status is Outcome.DONE else "staged"


def step_of(log: Log, status: str, message: str | None = None) -> LogStep:
    """Return what became of a log, and which folder is in place now."""
    try:
        state = log_state(staged_log(log))
    except (SetAsideError, OSError) as error:
        state = LogState(None, False, str(error))
    in_place = "unknown" if state.side is None else state.side.value
    said = state.message if message is None else message
    return LogStep(
        cluster=log["cluster"],
        broker_id=log["broker_id"],
        log_dir=log["log_dir"],
        topic=log["topic"],
        partition=log["partition"],
        log=log["folder"],
        segments=log["segment_count"],
        bytes=log["size_bytes"],
        status=status,
        in_place=in_place,
        message=said,
    )
