"""Where each compacted log of a node stands with the cleaner, and why, in words.

Source: LogCleanerManager, LogCleaner.CleanerThread (4.3.1).
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

from kafka_segments.kafka.broker_rules.log_cleaner import (
    Bound,
    Checkpoint,
    Cleanable,
    CleanedLog,
    CleanerConfig,
    cleanable,
    next_cleaned,
)

LogKey = tuple[str, str]
"""A log directory and the name of a folder in it."""
_DAY_MS, _HOUR_MS = 86_400_000, 3_600_000


class Stand(StrEnum):
    """Where a log stands."""

    NEXT = "cleaned next"
    DUE = "waits for its turn"
    BELOW = "not dirty enough"
    CLEAN = "nothing is dirty"
    ACTIVE = "only the active segment is dirty"
    TRANSACTION = "held by an open transaction"
    HIGH_WATERMARK = "held by the high watermark"
    YOUNG = "too young"
    STOPPED = "the cleaner does not run"
    NOT_KNOWN = "not known"


_HELD = {
    Bound.ACTIVE: Stand.ACTIVE,
    Bound.TRANSACTION: Stand.TRANSACTION,
    Bound.HIGH_WATERMARK: Stand.HIGH_WATERMARK,
    Bound.YOUNG: Stand.YOUNG,
}
FOR_A_PERSON = (Stand.TRANSACTION, Stand.HIGH_WATERMARK, Stand.STOPPED, Stand.NOT_KNOWN)
"""Stands that do not pass by themselves, or of which that is not known."""


class LogFacts(NamedTuple):
    """A log, and the settings that it is cleaned by. ``log`` None: ``unknown`` says why."""

    log: CleanedLog | None
    config: CleanerConfig
    unknown: str = ""


class LogStand(NamedTuple):
    """Where a log stands, why, and what of it can be cleaned; None: not known.

    ``most_passes``: as many passes are needed at most for all that can be cleaned, as a pass holds
    so many keys.
    """

    stand: Stand
    why: str
    config: CleanerConfig
    log: CleanedLog | None = None
    found: Cleanable | None = None
    most_passes: int | None = None


def decide_stands(
    logs: Mapping[LogKey, LogFacts], *, now_ms: int, stopped: str | None, keys_of_a_pass: int
) -> dict[LogKey, LogStand]:
    """Say where each compacted log of a node stands.

    Args:
        logs: all compacted logs of the node.
        now_ms: the moment.
        stopped: why the cleaner does not run; None: it does.
        keys_of_a_pass: how many keys a thread holds.
    """
    found = {
        key: (cleanable(facts.log, facts.config, now_ms=now_ms), facts.config)
        for key, facts in logs.items()
        if facts.log is not None
    }
    chosen = () if stopped else next_cleaned(found)
    return {
        key: _stand(facts, found.get(key), chosen, key, stopped, keys_of_a_pass)
        for key, facts in logs.items()
    }


def _stand(
    facts: LogFacts,
    found: tuple[Cleanable, CleanerConfig] | None,
    chosen: Sequence[LogKey],
    key: LogKey,
    stopped: str | None,
    keys: int,
) -> LogStand:
    if found is None or facts.log is None:
        return LogStand(Stand.NOT_KNOWN, facts.unknown, facts.config)
    one, config = found
    if stopped is not None:
        stand, why = Stand.STOPPED, stopped
    elif key in chosen:
        stand = Stand.NEXT
        others = len(chosen) - 1
        why = f"{others} more as dirty: any of them may come first" if others else ""
    else:
        stand, why = _why(facts.log, one, config)
    passes = -(-(one.until - one.first_dirty) // max(keys, 1)) if one.cleanable_bytes else 0
    told = "; ".join(filter(None, (why, *_notes(facts.log, one))))
    return LogStand(stand, told, config, facts.log, one, passes)


def _why(log: CleanedLog, one: Cleanable, config: CleanerConfig) -> tuple[Stand, str]:
    if one.is_due(config):
        return Stand.DUE, "dirtier logs come first"
    if one.first_dirty >= log.end:
        return Stand.CLEAN, ""
    if one.cleanable_bytes:
        ratio = f"{one.ratio:.3f} is not above {config.min_cleanable_dirty_ratio:g}"
        return Stand.BELOW, f"{ratio}, min.cleanable.dirty.ratio"
    return _HELD[one.bound], _bound_told(log, one, config)


def _bound_told(log: CleanedLog, one: Cleanable, config: CleanerConfig) -> str:
    if one.bound == Bound.TRANSACTION:
        return f"it has been open since offset {log.first_unstable}"
    if one.bound == Bound.HIGH_WATERMARK:
        return f"it is {log.high_watermark}, {log.end - log.high_watermark} offsets before the end"
    if one.bound == Bound.YOUNG:
        return f"min.compaction.lag.ms is {config.min_compaction_lag_ms}"
    return f"it begins at offset {log.segments[-1].base_offset}; segment.ms or .bytes rolls it"


def _notes(log: CleanedLog, one: Cleanable) -> tuple[str, ...]:
    notes = []
    if one.checkpoint in (Checkpoint.BEFORE_START, Checkpoint.BEHIND_END):
        what = f"its entry in cleaner-offset-checkpoint, {log.checkpoint}, lies {one.checkpoint}"
        notes.append(f"{what}: it begins at the log's start again")
    if one.overdue_ms:
        notes.append(f"max.compaction.lag.ms has passed by {_span(one.overdue_ms)}")
    return tuple(notes)


def _span(ms: int) -> str:
    if ms >= _DAY_MS:
        return f"{ms // _DAY_MS} d {ms % _DAY_MS // _HOUR_MS} h"
    return f"{ms // _HOUR_MS} h {ms % _HOUR_MS // 60_000} min"
