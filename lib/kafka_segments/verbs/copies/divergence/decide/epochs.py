"""Hold leader-epoch checkpoints against batches, and against each other.

A follower goes by its checkpoint where it cuts its log back, so one that is wrong cuts too much or
too little. Entries are added in order, the last ones go with the end of the log, and the first one
moves with its start: of that it is only known that its epoch began no later.

Source: LeaderEpochFileCache, UnifiedLog.truncateTo, UnifiedLog.maybeIncrementLogStartOffset
(4.3.1).
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, pairwise
from typing import NamedTuple

from kafka_segments.verbs.copies.divergence.decide.compaction import Compaction
from kafka_segments.verbs.copies.divergence.decide.copies import (
    DAMAGED,
    UNBOUNDED,
    Copy,
    DifferenceKind,
    Divergence,
    HeldEpoch,
)
from kafka_segments.verbs.copies.divergence.decide.forks import forked_at

_OF_BATCHES = (*DAMAGED, DifferenceKind.CONFLICT)
"""Where these are told, the epoch of a batch is not to be gone by."""


class _Wrong(NamedTuple):
    """Offsets of which a checkpoint says another epoch than batches do."""

    from_offset: int
    until_offset: int
    noted: int
    held: int
    holder: str


def wrong_epochs(
    copies: Sequence[Copy], rows: Sequence[Divergence], compaction: Compaction
) -> list[Divergence]:
    """Return a row of kind ``EPOCHS`` for each entry that contradicts batches or other copies.

    1. Behind its first entry a checkpoint must say of each batch of its copy the epoch that the
       batch has.
    2. So of the batches of other copies, up to where both logs go the same way. Where compaction
       was, a copy that was made later may know an epoch from its first surviving batch on only, or
       not at all: there an entry is wrong if it begins too early.
    3. Where no batch tells, an epoch that was not compacted has one first offset in all copies.

    Entries of epochs without batches are sound, as those of a leader that wrote nothing.

    Args:
        copies: all copies of the log.
        rows: what was found so far: forks, and batches whose epochs are not to be gone by.
        compaction: tells what compaction may have taken.
    """
    told = [row for copy in copies for row in _against_batches(copy, copies, rows, compaction)]
    return [*told, *_against_others(copies, rows, told, compaction)]


def _against_batches(
    copy: Copy, copies: Sequence[Copy], rows: Sequence[Divergence], compaction: Compaction
) -> Iterator[Divergence]:
    found: list[_Wrong] = []
    for other in sorted(copies, key=lambda one: one.name != copy.name):
        end = _common_end(copy, other, rows)
        for wrong in _contradictions(copy, other, end):
            is_late = wrong.noted < wrong.held and other is not copy
            if is_late and compaction.may_have_taken(copy.name, wrong.from_offset):
                continue
            if not _is_doubtful(wrong, {copy.name, other.name}, rows):
                found.append(wrong)
    for wrong in _apart(found):
        right = tuple(
            other.name
            for other in copies
            if other is not copy and other.epoch_at(wrong.from_offset) == wrong.held
        )
        whose = "its own batches" if wrong.holder == copy.name else f"the batches of {wrong.holder}"
        detail = (
            f"leader-epoch-checkpoint of {copy.name} says epoch {wrong.noted}, {whose} have"
            f" {wrong.held}"
        )
        yield Divergence(
            DifferenceKind.EPOCHS,
            True,
            wrong.from_offset,
            wrong.until_offset,
            (copy.name,),
            right,
            detail=detail,
        )


def _contradictions(copy: Copy, other: Copy, end: int) -> Iterator[_Wrong]:
    """Yield where a checkpoint contradicts the batches of a copy below an offset."""
    if not copy.epochs or not _is_ascending(other.held_epochs):
        return
    ends = [start for _, start in copy.epochs[1:]] + [UNBOUNDED]
    least = max(copy.start, other.start)
    for held in other.held_epochs:
        wrong = [
            (max(start, held.first, least), min(behind, held.last + 1, end), epoch)
            for (epoch, start), behind in zip(copy.epochs, ends, strict=True)
            if epoch != held.epoch
        ]
        for low, high, epoch in wrong:
            if low < high:
                yield _Wrong(low, high, epoch, held.epoch, other.name)


def _is_ascending(held: Sequence[HeldEpoch]) -> bool:
    """Tell whether no epoch of batches comes again: else one has changed on the disk."""
    return all(one.last < following.first for one, following in pairwise(held))


def _is_doubtful(wrong: _Wrong, names: set[str], rows: Sequence[Divergence]) -> bool:
    return any(
        row.kind in _OF_BATCHES and names & {*row.copies} and _meet(row, wrong) for row in rows
    )


def _apart(found: Sequence[_Wrong]) -> Iterator[_Wrong]:
    """Leave out what one before tells of."""
    kept: list[_Wrong] = []
    for wrong in found:
        if not any(_meet(wrong, one) for one in kept):
            kept.append(wrong)
    yield from kept


def _common_end(copy: Copy, other: Copy, rows: Sequence[Divergence]) -> int:
    """Return the offset up to which two logs hold the same, whatever is lost or compacted."""
    fork = forked_at(rows, copy.name, other.name)
    return min(copy.end, other.end, copy.end if fork is None else fork)


def _against_others(
    copies: Sequence[Copy],
    rows: Sequence[Divergence],
    told: Sequence[Divergence],
    compaction: Compaction,
) -> Iterator[Divergence]:
    """Yield a row for each epoch of which copies note other first offsets, if no batch tells."""
    by_epoch: dict[int, dict[str, _Noted]] = {}
    for copy in copies:
        for at, (epoch, start) in enumerate(copy.epochs):
            by_epoch.setdefault(epoch, {})[copy.name] = _Noted(start, at == 0)
    for epoch, noted in sorted(by_epoch.items()):
        held = [copy for copy in copies if copy.name in noted]
        names = {
            copy.name
            for pair in combinations(held, 2)
            if _differ(*(noted[copy.name] for copy in pair))
            for copy in pair
            if _is_common(min(noted[one.name].start for one in pair), pair, rows, compaction)
        }
        if names:
            row = _other_starts(epoch, noted, names)
            if not any(_meet(row, one) and names & {*one.copies} for one in told):
                yield row


class _Noted(NamedTuple):
    """An entry: where an epoch begins; as the first one, the epoch may have begun earlier."""

    start: int
    is_first: bool


def _differ(one: _Noted, other: _Noted) -> bool:
    if one.is_first and other.is_first:
        return False
    if one.is_first:
        return one.start < other.start
    return other.start < one.start if other.is_first else one.start != other.start


def _is_common(
    offset: int, pair: Sequence[Copy], rows: Sequence[Divergence], compaction: Compaction
) -> bool:
    """Tell whether two logs went the same way at an offset, and were not compacted there."""
    is_cleaned = any(compaction.may_have_taken(copy.name, offset) for copy in pair)
    return offset < _common_end(pair[0], pair[1], rows) and not is_cleaned


def _other_starts(epoch: int, noted: Mapping[str, _Noted], names: set[str]) -> Divergence:
    starts = [noted[name].start for name in names]
    votes = Counter(one.start for one in noted.values() if not one.is_first)
    start, count = votes.most_common(1)[0]
    right: tuple[str, ...] = ()
    wrong = tuple(name for name in noted if name in names)
    if 2 * count > len(noted):
        right = tuple(name for name, one in noted.items() if one == _Noted(start, False))
        wrong = tuple(name for name in wrong if noted[name].start != start)
    said = ", ".join(f"{name} {noted[name].start}" for name in noted if name in names)
    detail = f"first offset of epoch {epoch} in leader-epoch-checkpoint: {said}"
    return Divergence(
        DifferenceKind.EPOCHS, True, min(starts), max(starts), wrong, right, detail=detail
    )


def _meet(one: Divergence | _Wrong, other: Divergence | _Wrong) -> bool:
    return one.from_offset < other.until_offset and other.from_offset < one.until_offset
