"""Copies of which one is left out: what is said of the others is what all of them together say.

1. No copy is named right that is wrong beside all others, and none wrong that is sound there.
2. What is wrong with a copy is told wherever one that is right is still at hand.

``LEFT_OUT=90 LEFT_OUT_FROM=0`` draws more of them.
"""

import os
import random
from collections.abc import Iterator, Sequence

import pytest

from kafka_segments.verbs.copies.divergence.decide.copies import Divergence
from support.logs.copy_faults import ALONE, FAULTS, happen
from support.logs.faulty_copies import BASES, drawn_case, harmless
from support.logs.log_copies import LogCopy, compared

FEW, MANY = 5, len(FAULTS)
FROM = int(os.environ.get("LEFT_OUT_FROM", "0"))
pytestmark = pytest.mark.drawn


def _copies(seed: int, number: int) -> dict[str, LogCopy]:
    """Draw three copies, to one of which something happened; each kind comes in turn."""
    rng = random.Random(f"{seed} left out {number}")
    drawn = drawn_case(rng, count=3, style=BASES[number % len(BASES)])
    what = sorted(FAULTS)[number * 7 % len(FAULTS)]
    happen(drawn, [what])
    if what not in ALONE:
        harmless(drawn)
    return drawn.copies()


def _findings(copies: dict[str, LogCopy]) -> list[Divergence]:
    return [row for row in compared(copies) if row.is_finding]


def _meet(one: Divergence, other: Divergence) -> bool:
    first, second = (
        (row.from_offset, max(row.until_offset, row.from_offset + 1)) for row in (one, other)
    )
    return first[0] < second[1] and second[0] < first[1]


def _contradictions(
    whole: Sequence[Divergence], part: Sequence[Divergence], left_out: str
) -> Iterator[str]:
    for row in part:
        near = [other for other in whole if _meet(row, other)]
        wrong = {name for other in near for name in set(other.copies) - set(other.right)}
        same = (other for other in near if other.kind == row.kind)
        if any(set(row.right) & (set(other.copies) - set(other.right)) for other in same):
            yield f"right here and wrong beside all: {row}"
        if row.right and not set(row.copies) <= wrong:
            yield f"wrong here and right beside all: {row}"
    for row in whole:
        told = {name for other in part if _meet(row, other) for name in other.copies}
        if set(row.right) - {left_out} and not set(row.copies) - {left_out} <= told:
            yield f"not told: {row}"


def _found(seed: int, numbers: range) -> list[tuple[int, str, list[str]]]:
    found = []
    for number in numbers:
        copies = _copies(seed, number)
        whole = _findings(copies)
        for left_out in copies:
            part = _findings({name: one for name, one in copies.items() if name != left_out})
            said = list(_contradictions(whole, part, left_out))
            if said:
                found.append((number, left_out, said))
    return found


def test_two_of_three_copies_say_nothing_that_all_contradict(seed: int) -> None:
    assert _found(seed, range(FROM, FROM + FEW)) == []


@pytest.mark.long
def test_two_of_many_three_copies_say_nothing_that_all_contradict(seed: int) -> None:
    assert _found(seed, range(FROM, FROM + int(os.environ.get("LEFT_OUT", MANY)))) == []
