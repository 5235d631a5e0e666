"""Copies of drawn logs to which things happen, and what a right answer says of these.

Logs are drawn, written and rolled by ``log_copies``; nothing here comes from the package.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from support.logs.log_copies import (
    CLOCK_MS,
    Batch,
    LogCopy,
    base_of,
    compacted,
    drawn_fields,
    epochs_of,
    recompressed,
    rolled,
)

ROT, MISPLACED, LOST, CONFLICT = "bit rot", "misplaced", "lost middle", "conflict"
FIELDS, FORK, AHEAD, BEHIND, EPOCHS = "other fields", "fork", "ahead", "behind", "epoch history"
_HOUR_MS = 3_600_000
_APART = 4  # batches between two faults
_MARGIN = 4  # batches at the ends of a log in which nothing happens

BASES = ("plain", "idempotent", "append", "markers", "cleaned", "cleaned apart", "bare")
"""Kinds of logs; of the last one no checkpoints are at hand."""


class Happened(NamedTuple):
    """What a right answer says of a fault.

    Attributes:
        kinds: one of these. base: first offset. until: behind the last one.
        wrong: the copies that are wrong. right: those to go by.
        low, high: no row reaches out of these.
    """

    kinds: tuple[str, ...]
    base: int
    until: int
    wrong: tuple[str, ...]
    right: tuple[str, ...]
    low: int
    high: int


@dataclass
class Drawn:
    """Copies of one log while things happen to them.

    Attributes:
        style: one of ``BASES``. log: what was written, before any compaction.
        held: the batches of each copy. cleaned: the offset below which copies were compacted.
        spoils: what happens to bytes of batches, by copy and base offset.
        edits: what happens to a whole copy. used: numbers of batches to which something happened.
    """

    rng: random.Random
    style: str
    names: str
    log: list[Batch]
    held: dict[str, list[Batch]]
    cleaned: int = 0
    spoils: dict[tuple[str, int], Callable[[bytes], bytes]] = field(default_factory=dict)
    edits: list[tuple[str, Callable[[LogCopy], None]]] = field(default_factory=list)
    used: list[int] = field(default_factory=list)

    def others(self, name: str) -> tuple[str, ...]:
        return tuple(one for one in self.names if one != name)

    def batch(self, want: Callable[[Batch], bool] = lambda _: True, *, more: int = 0) -> int | None:
        """Draw the number of a batch that is far from all faults; None: there is none.

        ``more`` batches behind it are of the fault, too. Below the cleaner's offset is none.
        """
        span = range(_MARGIN, len(self.log) - _MARGIN - more)
        fits = [
            at
            for at in span
            if self.log[at - 1].base >= self.cleaned  # what stands in front is there, too
            and want(self.log[at])
            and all(abs(at - one) >= _APART and abs(at + more - one) >= _APART for one in self.used)
        ]
        if not fits:
            return None
        at = self.rng.choice(fits)
        self.used += range(at, at + more + 1)
        return at

    def put(self, name: str, at: int, batch: Batch | None) -> None:
        """Put another batch in the place of one, or none."""
        old = self.log[at]
        self.held[name] = [
            batch if one.base == old.base else one
            for one in self.held[name]
            if one.base != old.base or batch is not None
        ]

    def of_batch(self, kinds: tuple[str, ...], name: str, at: int, *, more: int = 0) -> Happened:
        """Say that batches of a copy are wrong, and the others right."""
        low, high = self.log[at].base, self.log[at + more].last + 1
        return Happened(kinds, low, high, (name,), self.others(name), low, high)

    def by_votes(self, kinds: tuple[str, ...], name: str, at: int, *, more: int = 0) -> Happened:
        """Say the same where with two copies it cannot be told which is wrong."""
        found = self.of_batch(kinds, name, at, more=more)
        if len(self.names) > 2:
            return found
        return found._replace(wrong=tuple(self.names), right=())

    def copies(self) -> dict[str, LogCopy]:
        """Write the copies."""
        epochs, found = epochs_of(self.log), {}
        for name in self.names:
            copy = rolled(self.rng, self.held[name], base=self.log[0].base)
            copy.epochs = epochs
            if self.style != "bare":
                copy.high_watermark = self.log[-1].last + 1
                copy.has_cleaner_checkpoint = True
            if self.style.startswith("cleaned"):
                copy.cleaner_offset = self.cleaned
            for _, parts in copy.segments:
                parts[:] = [self._spoilt(name, part) for part in parts]
            found[name] = copy
        for name, edit in self.edits:
            edit(found[name])
        return found

    def _spoilt(self, name: str, part: bytes) -> bytes:
        spoil = self.spoils.get((name, base_of(part)))
        return part if spoil is None else spoil(part)


Fault = Callable[[Drawn, str], Happened | None]
"""Lets something happen to a copy, and says what; None: there is no place for it."""


def drawn_case(rng: random.Random, *, count: int, style: str) -> Drawn:
    """Draw copies of a log to which nothing has happened but what brokers do by themselves."""
    fields = "idempotent" if style in ("plain", "cleaned", "cleaned apart", "bare") else style
    log = drawn_fields(rng, fields)
    if style in ("plain", "bare"):
        log = [replace(one, producer_id=None, sequence=-1) for one in log]
    names = "abc"[:count]
    held = {name: list(log) for name in names}
    drawn = Drawn(rng, style, names, log, held)
    if style.startswith("cleaned"):
        ends = [rng.randint(10, 30) for _ in names]
        ends = ends if style == "cleaned apart" else [ends[0]] * count
        for name, end in zip(names, ends, strict=True):
            drawn.held[name] = compacted(log, log[end].base)
        drawn.cleaned = log[max(ends)].base
    return drawn


def harmless(drawn: Drawn) -> None:
    """Let one copy write its batches anew, in front of all faults."""
    name = drawn.rng.choice(drawn.names)
    first = min(drawn.used, default=len(drawn.log)) - 1
    until = drawn.log[first].base
    if drawn.rng.random() < 0.5:
        front = [one for one in drawn.held[name] if one.base < until]
        back = [one for one in drawn.held[name] if one.base >= until]
        drawn.held[name] = [*_written_anew(drawn.rng, front), *back]


def _written_anew(rng: random.Random, batches: list[Batch]) -> Iterator[Batch]:
    if rng.random() < 0.5:
        yield from recompressed(batches)
    else:
        for one in batches:
            yield replace(one, horizon_ms=CLOCK_MS + _HOUR_MS)
