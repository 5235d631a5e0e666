"""Copies that differ behind a fork as well: each side is compared, and each fault is found."""

import random
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import pytest

from kafka_segments.verbs.copies.divergence.decide.copies import (
    Copy,
    CopyPiece,
    DifferenceKind,
    Divergence,
)
from kafka_segments.verbs.copies.divergence.decide.logs import compare_log
from support.logs.log_copies import (
    Batch,
    LogCopy,
    compared,
    drawn_log,
    epochs_of,
    forked,
    hurt,
    recompressed,
    rolled,
    without,
)

ROUNDS = 8
MORE = 12
pytestmark = pytest.mark.drawn


class Forked(NamedTuple):
    """A log of which a leader of a newer epoch wrote other batches from number ``at`` on."""

    older: list[Batch]
    newer: list[Batch]
    at: int

    @property
    def end(self) -> int:
        return max(self.older[-1].last, self.newer[-1].last) + 1


def _forked(rng: random.Random) -> Forked:
    older = drawn_log(rng)
    at = rng.randint(1, 50)
    return Forked(older, forked(rng, older, at, more=MORE), at)


def told(rows: list[Divergence]) -> list[tuple]:
    """Give what the findings say, but for the words."""
    return [
        (row.kind, row.from_offset, row.until_offset, row.copies, row.right)
        for row in rows
        if row.is_finding
    ]


Second = tuple[LogCopy, list[tuple]]
"""A copy of a side, and the findings about it beside copy ``b`` of the same side."""


def _lost(rng: random.Random, log: list[Batch], at: int) -> Second:
    behind = rng.randint(at + 1, at + 2)
    return without(rng, log, at, behind), [
        (DifferenceKind.LOST, log[at].base, log[behind].base, "c", "b")
    ]


def _rotten(rng: random.Random, log: list[Batch], at: int) -> Second:
    return hurt(rng, log, at), [(DifferenceKind.ROT, log[at].base, log[at].last + 1, "c", "b")]


def _in_conflict(rng: random.Random, log: list[Batch], at: int) -> Second:
    records = tuple((offset, b"x", b"other") for offset, _, _ in log[at].records)
    other = [*log[:at], replace(log[at], records=records), *log[at + 1 :]]
    return rolled(rng, other), [(DifferenceKind.CONFLICT, log[at].base, log[at].last + 1, "bc", "")]


def _forked_again(rng: random.Random, log: list[Batch], at: int) -> Second:
    other = forked(rng, log, at, more=2)
    end = max(log[-1].last, other[-1].last) + 1
    return rolled(rng, other), [(DifferenceKind.FORK, log[at].base, end, "b", "c")]


def _ended_early(rng: random.Random, log: list[Batch], at: int) -> Second:
    return rolled(rng, log[:at]), [
        (DifferenceKind.BEHIND, log[at].base, log[-1].last + 1, "c", "b")
    ]


def _led_next(rng: random.Random, log: list[Batch], at: int) -> Second:
    leader = rolled(rng, log[:at])
    leader.epochs = (*epochs_of(log[:at]), (log[-1].epoch + 1, log[at].base))
    return leader, [(DifferenceKind.AHEAD, log[at].base, log[-1].last + 1, "b", "c")]


def _recompressed(rng: random.Random, log: list[Batch], at: int) -> Second:
    return rolled(rng, [*log[:at], *recompressed(log[at:])]), []


def _other_rolls(rng: random.Random, log: list[Batch], at: int) -> Second:
    del at
    return rolled(rng, log), []


def _begun_later(rng: random.Random, log: list[Batch], at: int) -> Second:
    return rolled(rng, log[at:]), []


SECONDS: list[Callable[[random.Random, list[Batch], int], Second]] = [
    *(_lost, _rotten, _in_conflict, _forked_again, _ended_early, _led_next),
    *(_recompressed, _other_rolls, _begun_later),
]


@pytest.mark.parametrize("second", SECONDS)
@pytest.mark.parametrize("is_newer", [True, False], ids=["newer side", "older side"])
def test_a_second_difference_is_found_on_each_side_of_a_fork(
    seed: int, second: Callable[..., Second], *, is_newer: bool
) -> None:
    rng = random.Random(f"{seed} {second.__name__} {is_newer}")
    for _ in range(ROUNDS):
        found = _forked(rng)
        side, other = (found.newer, found.older) if is_newer else (found.older, found.newer)
        changed, expected = second(rng, side, rng.randint(found.at + 1, len(side) - 3))
        whole = rolled(rng, side)
        whole.high_watermark = side[-1].last + 1
        rows = compared({"a": rolled(rng, other), "b": whole, "c": changed})

        end = max([found.end, *(row[2] for row in expected)])
        base = found.older[found.at].base
        sides = ("a", "bc") if is_newer else ("bc", "a")
        fork = (DifferenceKind.FORK, base, end, tuple(sides[0]), tuple(sides[1]))
        assert told(rows) == sorted(
            [fork, *((*row[:3], tuple(row[3]), tuple(row[4])) for row in expected)],
            key=lambda row: row[1:3],
        )


@pytest.mark.parametrize("has_epochs", [True, False], ids=["checkpoint", "no checkpoint"])
@pytest.mark.parametrize("is_newer", [True, False], ids=["newer side", "older side"])
@pytest.mark.parametrize("second", [_lost, _rotten])
def test_a_copy_that_lost_the_batch_at_the_fork_is_on_the_side_that_it_goes_on_with(
    seed: int, second: Callable[..., Second], *, is_newer: bool, has_epochs: bool
) -> None:
    rng = random.Random(f"{seed} {second.__name__} {is_newer} {has_epochs}")
    for _ in range(ROUNDS):
        found = _forked(rng)
        side, other = (found.newer, found.older) if is_newer else (found.older, found.newer)
        changed, [expected] = second(rng, side, found.at)
        if not has_epochs:
            changed.epochs = ()
        rows = compared({"a": rolled(rng, other), "b": rolled(rng, side), "c": changed})

        base = found.older[found.at].base
        wrong, right = ("a", "bc") if is_newer else ("bc", "a")
        assert set(told(rows)) == {
            (expected[0], base, expected[2], ("c",), ("b",)),
            (DifferenceKind.FORK, base, found.end, tuple(wrong), tuple(right)),
        }


def test_each_side_that_an_older_leader_wrote_is_named_beside_the_newest(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(ROUNDS):
        found = _forked(rng)
        newest = [
            replace(batch, epoch=found.newer[-1].epoch + 1)
            for batch in forked(rng, found.older, found.at)[found.at :]
        ]
        third = [*found.older[: found.at], *newest]
        rows = compared(
            {
                "a": rolled(rng, found.older),
                "b": rolled(rng, found.newer),
                "c": without(rng, found.newer, found.at + 2, found.at + 3),
                "d": rolled(rng, third),
            }
        )

        base, end = found.older[found.at].base, max(found.end, third[-1].last + 1)
        gap = found.newer[found.at + 2].base, found.newer[found.at + 3].base
        assert sorted(told(rows)) == [
            (DifferenceKind.FORK, base, end, ("a",), ("d",)),
            (DifferenceKind.FORK, base, end, ("b", "c"), ("d",)),
            (DifferenceKind.LOST, *gap, ("c",), ("b",)),
        ]


def test_a_copy_that_ends_in_front_of_a_fork_follows_the_newest_leader(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(ROUNDS):
        found = _forked(rng)
        newest = rolled(rng, found.newer)
        newest.high_watermark = found.newer[found.at + 3].base
        behind = rolled(rng, found.older[: rng.randint(1, found.at)])
        rows = compared({"a": rolled(rng, found.older), "b": newest, "c": behind})

        base = found.older[found.at].base
        lags = [
            row for row in rows if row.kind == DifferenceKind.BEHIND and row.from_offset >= base
        ]
        assert [(row.from_offset, row.until_offset, row.right, row.is_finding) for row in lags] == [
            (base, newest.high_watermark, ("b",), True),
            (newest.high_watermark, found.newer[-1].last + 1, ("b",), False),
        ]


def test_a_newer_leader_without_batches_is_to_go_by_where_others_fork(seed: int) -> None:
    rng = random.Random(seed)
    found = _forked(rng)
    base = found.older[found.at].base
    leader = rolled(rng, found.older[: found.at])
    leader.epochs = (*epochs_of(found.older[: found.at]), (found.newer[-1].epoch + 1, base))
    rows = compared({"a": rolled(rng, found.older), "b": rolled(rng, found.newer), "c": leader})

    assert sorted(told(rows)) == [
        (DifferenceKind.AHEAD, base, found.end, ("a", "b"), ("c",)),
        (DifferenceKind.FORK, base, found.end, ("a",), ("b",)),
    ]


class _Ranges:
    """Ranges of one batch each; notes which are read."""

    def __init__(self) -> None:
        self.read: set[tuple[str, int]] = set()

    def batches(self, copy: str, piece: CopyPiece) -> list[CopyPiece]:
        self.read.add((copy, piece.base))
        return [piece]

    def records(self, copy: str, piece: CopyPiece) -> None:
        del copy, piece


def test_what_a_side_holds_alike_behind_a_fork_is_not_read() -> None:
    def ranges(epoch: int, lasts: str) -> list[CopyPiece]:
        return [
            CopyPiece(at * 100, at * 100 + 99, epoch, epoch, (at, last), (2, 9, ord(last)))
            for at, last in enumerate(lasts, start=1)
        ]

    held = {"a": ranges(0, "xxx"), "b": ranges(1, "yyy"), "c": ranges(1, "yyz")}
    files = _Ranges()
    copies = [Copy(name, 0, 400) for name in held]
    found = [{name: held[name][at] for name in held} for at in range(3)]
    rows = compare_log(copies, found, files, None)  # type: ignore[arg-type]

    assert {row[:2] for row in told(rows)} == {
        (DifferenceKind.FORK, 100),
        (DifferenceKind.CONFLICT, 300),
    }
    assert files.read == {("a", 100), ("b", 100), ("c", 100), ("b", 300), ("c", 300)}
