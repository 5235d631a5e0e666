"""All kinds of things that happen to drawn copies of logs, and cases of one or two of them."""

from __future__ import annotations

from support.logs.batch_faults import BATCH_FAULTS
from support.logs.faulty_copies import Drawn, Fault, Happened
from support.logs.segment_faults import END_FAULTS, SEGMENT_FAULTS

FAULTS: dict[str, Fault] = {**BATCH_FAULTS, **SEGMENT_FAULTS, **END_FAULTS}
ALONE = frozenset(END_FAULTS)
"""Faults beside which no other happens."""


def happen(drawn: Drawn, faults: list[str]) -> list[tuple[str, Happened]]:
    """Let faults happen to copies; give those for which there was a place."""
    found = []
    for what in faults:
        name = drawn.rng.choice(drawn.names)
        told = FAULTS[what](drawn, name)
        if told is not None:
            found.append((what, told))
    return found
