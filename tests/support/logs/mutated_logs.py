"""Logs that were sound until something happened to them: named kinds, each drawn from a seed.

``draw(seed, number)`` gives the same log wherever it runs. As a program it writes one into a
folder that is not there yet: ``PYTHONPATH=tests python -m support.logs.mutated_logs SEED NUMBER
FOLDER``.
"""

from __future__ import annotations

import random
import sys
from pathlib import Path
from typing import NamedTuple

from support.logs import (
    mutations_across,
    mutations_at_bounds,  # noqa: F401
    mutations_within,  # noqa: F401
)
from support.logs.mutation_case import KINDS, Case, LogSettings, kind
from support.logs.sound_logs import LogSegment
from support.logs.strategies import MAX_INT64

_ONCE = [mutation for mutation, _ in KINDS.values()]


def _spoil(case: Case, segment: LogSegment) -> None:
    """Spoil one segment by any kind; some make it several."""
    others = [other for other in case.segments if other is not segment]
    case.segments = [segment]
    case.rng.choice(_ONCE)(case)
    case.segments = sorted([*others, *case.segments], key=lambda other: other.base_offset)


@kind
def spoiled_segments(case: Case) -> None:
    """Several segments, each with something else wrong."""
    for segment in [*case.segments]:
        if case.rng.random() < 0.7:
            _spoil(case, segment)


@kind
def two_mutations(case: Case) -> None:
    for _ in range(2):
        case.rng.choice(_ONCE)(case)


@kind
def many_mutations(case: Case) -> None:
    for _ in range(case.rng.randint(3, 8)):
        case.rng.choice(_ONCE)(case)


@kind
def spoiled_with_log_start(case: Case) -> None:
    mutations_across.log_start_offset(case)
    _spoil(case, case.some())


class MutatedLog(NamedTuple):
    """A drawn log; its segments' bytes by base offset, those of other files by name."""

    seed: int
    number: int
    kind: str
    segments: dict[int, bytes]
    settings: LogSettings
    leftovers: tuple[tuple[str, bytes], ...] = ()

    def write(self, folder: Path) -> Path:
        folder.mkdir(parents=True)
        for base_offset, log in self.segments.items():
            (folder / f"{base_offset:020d}.log").write_bytes(log)
        for name, data in self.leftovers:
            (folder / name).write_bytes(data)
        return folder


def draw(seed: int, number: int) -> MutatedLog:
    """Draw a log; the kinds take turns."""
    name = [*KINDS][number % len(KINDS)]
    mutate, style = KINDS[name]
    case = Case(random.Random(f"{seed} {number}"), style)
    mutate(case)
    segments = {
        min(max(0, segment.base_offset), MAX_INT64): segment.log for segment in case.segments
    }
    leftovers = tuple(case.leftovers.items())
    return MutatedLog(seed, number, name, segments, case.settings, leftovers)


if __name__ == "__main__":
    drawn = draw(int(sys.argv[1]), int(sys.argv[2]))
    drawn.write(Path(sys.argv[3]))
    print(drawn.kind, drawn.settings, {base: len(log) for base, log in drawn.segments.items()})
