"""Copies to which one of many kinds of things happened, or two: each is found, and nothing else.

``DRAWN_COPIES=1000`` draws so many of them; ``DRAWN_FROM=number DRAWN_COPIES=1`` repeats one.
"""

import os
import random
from collections.abc import Sequence

import pytest

from kafka_segments.verbs.copies.divergence.decide.copies import Divergence
from support.logs.copy_faults import ALONE, FAULTS, happen
from support.logs.faulty_copies import BASES, Drawn, Happened, drawn_case, harmless
from support.logs.log_copies import compared

FEW, SOME, MANY = 25, 200, 1000
FROM = int(os.environ.get("DRAWN_FROM", "0"))
pytestmark = pytest.mark.drawn


def _case(seed: int, number: int) -> tuple[Drawn, list[tuple[str, Happened]]]:
    """Draw a case: every fifth is sound, of the others each kind comes in turn."""
    rng = random.Random(f"{seed} copies {number}")
    style = BASES[number % len(BASES)]
    drawn = drawn_case(rng, count=rng.choice([2, 3]), style=style)
    told: list[tuple[str, Happened]] = []
    if number % 5:
        names = sorted(FAULTS)
        what = names[(number - number // 5) % len(names)]
        told = happen(drawn, [what])
        may_be_beside = style != "bare" and what not in ALONE and rng.random() < 0.5
        if told and may_be_beside:
            told += happen(drawn, [rng.choice(sorted(FAULTS.keys() - ALONE))])
    if not ALONE & {what for what, _ in told}:
        harmless(drawn)
    return drawn, told


def _problem(rows: Sequence[Divergence], told: Sequence[tuple[str, Happened]]) -> str:
    """Say what was missed, or told of what did not happen; empty: neither."""
    found = [row for row in rows if row.is_finding]
    used: set[int] = set()
    for what, want in told:
        fits = [at for at, row in enumerate(found) if _is_of(row, want)]
        used.update(fits)
        if not _covers([found[at] for at in fits], want):
            return f"missed: {what}, {want}; found {found}"
    others = [row for at, row in enumerate(found) if at not in used]
    return f"false alarm: {others}; happened {told}" if others else ""


def _is_of(row: Divergence, want: Happened) -> bool:
    is_there = want.low <= row.from_offset <= row.until_offset <= want.high
    is_empty = row.from_offset == row.until_offset  # no copy holds batches there
    is_right = set(row.right) == set(want.right) or (is_empty and not row.right)
    return row.kind in want.kinds and is_there and set(row.copies) == set(want.wrong) and is_right


def _covers(rows: Sequence[Divergence], want: Happened) -> bool:
    at = want.base
    for row in sorted(rows, key=lambda one: one.from_offset):
        if row.from_offset <= at:
            at = max(at, row.until_offset)
    return bool(rows) and at >= want.until


def _problems(seed: int, numbers: range) -> list[tuple[int, str, str]]:
    found = []
    for number in numbers:
        drawn, told = _case(seed, number)
        problem = _problem(compared(drawn.copies()), told)
        if problem:
            found.append((number, drawn.style, problem))
    return found


def test_there_are_many_kinds_of_faults() -> None:
    assert len(FAULTS) >= 70


@pytest.mark.slow
def test_what_happened_to_a_few_drawn_copies_is_told_and_nothing_else(seed: int) -> None:
    assert _problems(seed, range(FROM, FROM + FEW)) == []


@pytest.mark.slow
@pytest.mark.parametrize("count", [SOME, pytest.param(MANY, marks=pytest.mark.long)])
def test_what_happened_to_many_drawn_copies_is_told_and_nothing_else(seed: int, count: int) -> None:
    numbers = range(FROM, FROM + int(os.environ.get("DRAWN_COPIES", count)))
    assert _problems(seed, numbers) == []
    seen = {what for number in numbers for what, _ in _case(seed, number)[1]}
    assert len(seen) >= 70 or len(numbers) < SOME
