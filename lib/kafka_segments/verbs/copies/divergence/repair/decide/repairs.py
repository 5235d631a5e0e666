"""Choose which ranges to take from which copy, to make one whole log of damaged ones."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from kafka_segments.verbs.copies.divergence.decide.copies import (
    CONTRADICTIONS,
    UNSOUND,
    Copy,
    CopyDamageKind,
    CopyPiece,
    DifferenceKind,
    Divergence,
)
from kafka_segments.verbs.copies.divergence.decide.forks import forked_at
from kafka_segments.verbs.copies.divergence.decide.spans import Spans

Epochs = tuple[tuple[int, int], ...]


class Taken(NamedTuple):
    """Batches that follow one another in a copy, and are taken from there."""

    copy: str
    batches: tuple[CopyPiece, ...]

    @property
    def from_offset(self) -> int:
        """Return the first offset."""
        return self.batches[0].base

    @property
    def until_offset(self) -> int:
        """Return the offset behind the last one."""
        return self.batches[-1].last + 1


class Repair(NamedTuple):
    """A log that is made of copies.

    Attributes:
        history: the copy whose leader epochs count.
        taken: what is taken, ascending.
        missing: ranges of offsets that no copy holds soundly, as from and until.
        refused: why no log can be made; empty: one can.
    """

    history: str
    taken: tuple[Taken, ...] = ()
    missing: tuple[tuple[int, int], ...] = ()
    refused: str = ""


def plan_repair(
    copies: Sequence[Copy],
    batches: Mapping[str, Sequence[CopyPiece]],
    rows: Sequence[Divergence],
    cleaned: int,
    history: str | None = None,
) -> Repair:
    """Choose for each offset the copy to take its batch from.

    1. The leader epochs of one copy are the log's history: of ``history``, or of the copy with the
       latest epoch and then the greatest end, unless most others contradict it to its end. Only
       batches are taken whose epoch is that of the
       history at their offset. So sides of a fork are not mixed, and damage on another side does
       not matter.
    2. A batch is not taken from a copy that is wrong there (``UNSOUND``).
    3. Batches come from one copy as long as it has them, at first from that of the history. If its
       next batch leaves a gap, a copy is taken whose next batch does not.
    4. What may have been compacted comes from one copy as a whole: one copy may have lost a
       tombstone that still hides a value in another.

    Args:
        copies: all copies of the log.
        batches: the sound batches of each, ascending.
        rows: what ``compare_log`` says of the copies.
        cleaned: the offset up to which a copy may have been compacted; -1: none was.
        history: the name of a copy; None: the latest.
    """
    start = min(copy.start for copy in copies)
    trusted = {
        copy.name: _trusted(copy.name, batches.get(copy.name, ()), start, rows) for copy in copies
    }
    lineages = {copy.name: _lineage(copy, trusted[copy.name]) for copy in copies}
    whole_ends = [copy for copy in copies if not _is_outvoted(copy, rows)] or copies
    latest = max(whole_ends, key=lambda copy: (*_latest(lineages[copy.name]), copy.end))
    named = history or latest.name
    forks = [row for row in rows if row.kind == DifferenceKind.FORK]
    own = [row for row in rows if not row.right and _is_of(named, row, forks)]
    unknown = [row for row in own if row.kind in CONTRADICTIONS]
    if unknown:
        low, high = unknown[0].from_offset, unknown[0].until_offset
        reason = f"which copy is right from {low} to {high} cannot be told: {unknown[0].detail}"
        return Repair(named, refused=reason)
    usable = {
        name: [piece for piece in pieces if _fits(piece, lineages[named])]
        for name, pieces in trusted.items()
    }
    order = sorted(usable, key=lambda name: (name != named, -len(usable[name]), name))
    whole = None
    if cleaned > start:
        whole = _whole_copy(copies, order, rows, cleaned)
        if whole is None:
            reason = (
                f"below {cleaned} the log may be compacted, and no copy is sound to there: parts of"
                " two would bring deleted keys back"
            )
            return Repair(named, refused=reason)
    taken, missing = _swept(usable, order, whole, cleaned)
    begin = max(taken[0].from_offset, start) if taken else start
    end = taken[-1].until_offset if taken else start
    gone = [
        one
        for row in own
        if row.kind in UNSOUND or row.is_behind_all
        for one in _outside(row, max(start, cleaned), begin, end)
    ]
    return Repair(named, tuple(taken), tuple(Spans([*missing, *gone])))


def _trusted(
    name: str, pieces: Iterable[CopyPiece], start: int, rows: Iterable[Divergence]
) -> list[CopyPiece]:
    """Return the batches of a copy, from an offset on, that no row calls wrong."""
    wrong = Spans(
        (row.from_offset, row.until_offset)
        for row in rows
        if row.kind in UNSOUND and name in row.copies
    )
    return [
        piece for piece in pieces if piece.last >= start and not wrong.meets(piece.base, piece.last)
    ]


def _is_outvoted(copy: Copy, rows: Iterable[Divergence]) -> bool:
    """Tell whether most copies contradict one up to its end, as where batches were inserted."""
    return any(
        row.kind == DifferenceKind.CONFLICT
        and row.right
        and copy.name in row.copies
        and row.until_offset >= copy.end
        for row in rows
    )


def _is_of(history: str, row: Divergence, forks: Sequence[Divergence]) -> bool:
    """Tell whether a row is of the history's side of all forks."""
    apart = (forked_at(forks, history, name) for name in row.copies)
    return any(fork is None or row.from_offset < fork for fork in apart)


def _outside(row: Divergence, start: int, begin: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the offsets of a row between ``start`` and ``begin``, and all if it is behind ``end``.

    A gap between two taken batches shows by itself. In front of the first and behind the last,
    what no copy holds would look like retention or like the end of the log: only rows show it.
    """
    if row.from_offset >= end:
        yield row.from_offset, row.until_offset
        return
    low, high = max(row.from_offset, start), min(row.until_offset, begin)
    if low < high:
        yield low, high


def _lineage(copy: Copy, pieces: Iterable[CopyPiece]) -> Epochs:
    """Return the leader epochs of a copy: its checkpoint's, then those of its batches behind."""
    epochs = list(copy.epochs)
    for piece in pieces:
        if piece.first_epoch >= 0 and (not epochs or piece.first_epoch > epochs[-1][0]):
            epochs.append((piece.first_epoch, piece.base))
    return tuple(epochs)


def _latest(lineage: Epochs) -> tuple[int]:
    return (lineage[-1][0] if lineage else -1,)


def _fits(piece: CopyPiece, lineage: Epochs) -> bool:
    """Tell whether a batch is of a history; messages v0 and v1 have no epoch."""
    if piece.first_epoch < 0 or not lineage:
        return True
    held = [epoch for epoch, start in lineage if start <= piece.base]
    return piece.first_epoch == held[-1] if held else piece.first_epoch <= lineage[0][0]


def _whole_copy(
    copies: Sequence[Copy], order: Sequence[str], rows: Sequence[Divergence], cleaned: int
) -> str | None:
    """Return the copy to take all below an offset from; None: no copy is sound up to there."""
    for name in order:
        copy = next(one for one in copies if one.name == name)
        is_hurt = any(
            one.offset < cleaned and one.kind != CopyDamageKind.TORN for one in copy.damages
        ) or any(
            row.kind in (*UNSOUND, DifferenceKind.FORK)
            and name in row.copies
            and row.from_offset < cleaned
            and not _may_be_tombstones(row)
            for row in rows
        )
        if not is_hurt and copy.end >= cleaned:
            return name
    return None


def _may_be_tombstones(row: Divergence) -> bool:
    """Tell whether what was lost may be what tombstones took, which other copies have missed."""
    return row.kind == DifferenceKind.LOST and not row.right


def _swept(
    usable: Mapping[str, Sequence[CopyPiece]], order: Sequence[str], whole: str | None, cleaned: int
) -> tuple[list[Taken], list[tuple[int, int]]]:
    """Choose batches in one pass over the log; below ``cleaned`` take those of ``whole`` alone."""
    bases = {name: [piece.base for piece in pieces] for name, pieces in usable.items()}
    runs: list[tuple[str, list[CopyPiece]]] = []
    missing: list[tuple[int, int]] = []
    at, current, begun = 0, order[0], False
    while True:
        names = order if whole is None or at >= cleaned else [whole]
        found = {
            name: usable[name][place]
            for name in names
            if (place := bisect_left(bases[name], at)) < len(bases[name])
        }
        if not found and names == order:
            break
        if not found:
            at = cleaned
            continue
        least = min(piece.base for piece in found.values())
        if begun and least > at and at >= cleaned:
            missing.append((at, least))
        if current not in found or found[current].base != least:
            current = next(name for name in names if name in found and found[name].base == least)
        piece = found[current]
        if not runs or runs[-1][0] != current or least > at:
            runs.append((current, []))
        runs[-1][1].append(piece)
        at, begun = piece.last + 1, True
    return [Taken(name, tuple(pieces)) for name, pieces in runs], missing
