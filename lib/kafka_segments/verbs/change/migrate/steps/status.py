"""How far a migration is, told without Spark where its tables are small.

What is on disk decides; the plan and the events say the rest, as for ``run_status``.
"""

from collections.abc import Iterator
from operator import itemgetter
from typing import Any

from kafka_segments.engine.tables.keys import LOG_KEYS
from kafka_segments.engine.tables.missing import missing_plan
from kafka_segments.engine.tables.outcomes import Outcome
from kafka_segments.errors import UsageError
from kafka_segments.files.delta.health import version_if_there
from kafka_segments.files.delta.rows import read_small_table
from kafka_segments.files.storage.uris import join_uri
from kafka_segments.verbs.change.migrate.decide.actions import NOTED, SegmentAction, Step
from kafka_segments.verbs.change.migrate.steps.log_step import LogStep, reached, step_of

_MOST_BYTES = 64 * 1024 * 1024
_PLANNED = (*LOG_KEYS, "path", "root", "size_bytes", "action", "reason", "is_migrated")
_EVENT = ("sequence", "at", "run_id", "status", "message", *NOTED)
_STEPS = tuple(Step)
_Log = dict[str, Any]


def status_without_spark(warehouse: str, plan_id: str) -> Iterator[LogStep] | None:
    """Say how far each log of a plan is, and which folder is in place; None: only Spark can tell.

    Raises:
        UsageError: no such plan.
    """
    planned = _rows(warehouse, "migration_plans", _PLANNED, plan_id)
    events: list[_Log] | None = []
    if version_if_there(join_uri(warehouse, "migration_events")) is not None:
        events = _rows(warehouse, "migration_events", (*LOG_KEYS, "step", *_EVENT), plan_id)
    if planned is None or events is None:
        return None
    if not planned:
        raise UsageError(missing_plan(warehouse, "migration_plans", plan_id))
    return _steps(_logs(planned, plan_id), _newest(events))


def _rows(warehouse: str, table: str, columns: tuple[str, ...], plan_id: str) -> list[_Log] | None:
    return read_small_table(
        join_uri(warehouse, table),
        columns,
        most_bytes=_MOST_BYTES,
        where=("plan_id", plan_id),
    )


def _steps(logs: list[_Log], events: dict[tuple[Any, ...], _Log]) -> Iterator[LogStep]:
    """Yield the refused logs, then those with nothing to do, then those that are migrated."""
    left = [log for log in logs if not log["is_migrated"]]
    for log in left:
        if log["problem"] is not None:
            yield step_of(log, Outcome.REFUSED, f"by the plan: {log['problem']}")
    for log in left:
        if log["problem"] is None:
            yield step_of(log, "left alone", "there is nothing to do")
    for found in logs:
        if found["is_migrated"]:
            none: _Log = dict.fromkeys(map(str, _STEPS))
            yield reached({**found, **none, **events.get(_key(found), {})})


def _logs(planned: list[_Log], plan_id: str) -> list[_Log]:
    """Return one row a log, in the order of their keys, as ``decide.logs_of_segments`` does."""
    logs: dict[tuple[Any, ...], list[_Log]] = {}
    for segment in planned:
        logs.setdefault(_key(segment), []).append(segment)
    return [
        {
            **{key: segments[0][key] for key in LOG_KEYS},
            "plan_id": plan_id,
            "folder": min(segment["path"].rpartition("/")[0] for segment in segments),
            "root": min(segment["root"] for segment in segments),
            "segment_count": len(segments),
            "size_bytes": sum(segment["size_bytes"] for segment in segments),
            "is_migrated": segments[0]["is_migrated"],
            "problem": min(filter(None, map(_refusal, segments)), default=None),
        }
        for _, segments in sorted(logs.items(), key=itemgetter(0))
    ]


def _refusal(segment: _Log) -> str | None:
    if segment["action"] != SegmentAction.REFUSE:
        return None
    return ": ".join(text for text in (segment["path"], segment["reason"]) if text is not None)


def _newest(events: list[_Log]) -> dict[tuple[Any, ...], _Log]:
    """Return the newest event of each log and step."""
    newest: dict[tuple[Any, ...], _Log] = {}
    for event in sorted(events, key=_order):
        newest.setdefault(_key(event), {})[event["step"]] = event
    return newest


def _order(event: _Log) -> tuple[tuple[bool, Any], ...]:
    """Order events as Spark orders structs: what is null comes first."""
    values = (event[name] for name in _EVENT)
    return tuple((value is not None, "" if value is None else value) for value in values)


def _key(row: _Log) -> tuple[Any, ...]:
    return tuple(row[key] for key in LOG_KEYS)
