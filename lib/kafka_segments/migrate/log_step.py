"""What a step of a migration did with one log, and why the next step may not be taken."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from kafka_segments.errors import SetAsideError
from kafka_segments.migrate.decide.actions import Step
from kafka_segments.migrate.staged_log import LogState, Side, StagedLog, log_state
from kafka_segments.tables.outcomes import Outcome

if TYPE_CHECKING:
    from pyspark.sql import Row


@dataclass(frozen=True)
class LogStep:
    """What a step did, or would do, with one log.

    Attributes:
        log: Its folder in the log directory.
        status: What was done; an ``Outcome`` where it is noted.
        in_place: The folder that is in place after the step, as of ``Side``.
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


def tried(log: "Row", act: Callable[["Row"], LogStep], refusal: str | None) -> LogStep:
    """Do a step with a log; return its outcome, be it a refusal or an error of the machine."""
    if refusal is not None:
        return step_of(log, Outcome.REFUSED, refusal)
    try:
        return act(log)
    except SetAsideError as error:
        return step_of(log, Outcome.REFUSED, str(error))
    except OSError as error:
        return step_of(log, Outcome.FAILED, str(error))


def why_not_done(log: "Row") -> str | None:
    """Return why the last staging or verification of a log failed; None: neither did."""
    for step in (Step.STAGE, Step.VERIFY):
        found = log[step]
        if found is not None and found["status"] != Outcome.DONE:
            return f"`migrate {step}` {found['status']}: {found['message']}"
    return None


def why_unverified(log: "Row") -> str | None:
    """Return why a log may not be applied; None: it may."""
    never = "it is not verified: run `migrate verify`" if log[Step.VERIFY] is None else None
    return why_not_done(log) or never


def reached(log: "Row") -> LogStep:
    """Return how far a log is by the last step that still holds, and why the next one failed."""
    state = log_state(staged_log(log))
    refusal = why_not_done(log) if state.side is Side.BEFORE else None
    return step_of(log, _last_step(log, state), refusal)


def _last_step(log: "Row", state: LogState) -> str:
    if state.side is Side.AFTER:
        return "applied"
    if not state.is_staged:
        return "planned"
    if log[Step.APPLY] is not None and log[Step.ROLLBACK] is not None:
        return "rolled back"
    proof = log[Step.VERIFY]
    return "verified" if proof is not None and proof["status"] == Outcome.DONE else "staged"


def staged_log(log: "Row") -> StagedLog:
    """Return the folders of a log of a plan."""
    return StagedLog(Path(log["folder"]), Path(log["root"]))


def step_of(log: "Row", status: str, message: str | None = None) -> LogStep:
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
