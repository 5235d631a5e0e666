"""Where each compacted log of a node stands with the cleaner, and why, in words.

Source: LogCleanerManager, LogCleaner.CleanerThread (4.3.1).
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

from kafka_segments.kafka.broker_rules.cleaner.log_cleaner import (
    Bound,
    Checkpoint,
    Cleanable,
    CleanedLog,
    CleanerConfig,
    cleanable,
    next_cleaned,
)
from kafka_segments.kafka.broker_rules.cleaner.outcome import LogPass

LogKey = tuple[str, str]
"""A log directory and the name of a folder in it."""
_DAY_MS, _HOUR_MS = 86_400_000, 3_600_000


class Check(StrEnum):
    """What is read to say what a pass frees: nothing, some of the clean part, all."""

    HEADERS = "headers"
    SAMPLE = "sample"
    RECORDS = "records"


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
    THROWS = "the cleaner gives it up"
    NOT_KNOWN = "not known"


_HELD = {
    Bound.ACTIVE: Stand.ACTIVE,
    Bound.TRANSACTION: Stand.TRANSACTION,
    Bound.HIGH_WATERMARK: Stand.HIGH_WATERMARK,
    Bound.YOUNG: Stand.YOUNG,
}
FOR_A_PERSON = (
    Stand.STOPPED,
    Stand.THROWS,
    Stand.TRANSACTION,
    Stand.HIGH_WATERMARK,
    Stand.NOT_KNOWN,
)
"""Stands that do not pass by themselves, or of which that is not known."""


class Policy(NamedTuple):
    """A log's ``cleanup.policy``; ``set_at`` in ms: when its topic got it, None: not known."""

    value: str
    set_at: int | None = None

    @property
    def compacts(self) -> bool:
        """Tell whether logs are compacted by it. Source: ConfigDef.parseType, of a list."""
        return "compact" in map(str.strip, self.value.split(","))


class LogFacts(NamedTuple):
    """A log, and the settings that it is cleaned by. ``log`` None: ``unknown`` says why.

    ``policy`` None: it counts as compacted by its name, or by an entry in a checkpoint.
    ``foretold``: what a pass would make of it; None: that was not asked, or there is none.
    """

    log: CleanedLog | None
    config: CleanerConfig
    unknown: str = ""
    policy: Policy | None = None
    foretold: LogPass | None = None


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
    policy: Policy | None = None
    foretold: LogPass | None = None

    @property
    def is_finding(self) -> bool:
        """Tell whether it is for a person, or something of it is not known."""
        unknown = self.foretold is not None and self.foretold.unknown
        return self.stand in FOR_A_PERSON or bool(unknown)


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
        return LogStand(Stand.NOT_KNOWN, facts.unknown, facts.config, policy=facts.policy)
    one, config = found
    foretold = facts.foretold
    if stopped is not None:
        stand, why = Stand.STOPPED, stopped
    elif foretold is not None and foretold.throws:
        stand, why = Stand.THROWS, foretold.throws
    elif key in chosen:
        stand = Stand.NEXT
        others = len(chosen) - 1
        why = f"{others} more as dirty: any of them may come first" if others else ""
    else:
        stand, why = _why(facts.log, one, config)
    passes = -(-(one.until - one.first_dirty) // max(keys, 1)) if one.cleanable_bytes else 0
    notes = (*_notes(facts.log, one), *_foretold_notes(one, foretold))
    told = "; ".join(filter(None, (why, *notes)))
    return LogStand(stand, told, config, facts.log, one, passes, facts.policy, foretold)


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


def _foretold_notes(one: Cleanable, foretold: LogPass | None) -> tuple[str, ...]:
    if foretold is None:
        return ()
    if foretold.unknown:
        return (f"what a pass frees is not known: {foretold.unknown}",)
    notes, counts, until = [], foretold.counts, foretold.clean_until
    if until is not None and until < one.end:
        notes.append(f"a pass ends at offset {until}, where its keys fill the buffer")
    if counts is not None and counts.null_keys:
        notes.append(f"{counts.null_keys} records have no key: they go")
    return tuple(notes)


def _span(ms: int) -> str:
    if ms >= _DAY_MS:
        return f"{ms // _DAY_MS} d {ms % _DAY_MS // _HOUR_MS} h"
    return f"{ms // _HOUR_MS} h {ms % _HOUR_MS // 60_000} min"
