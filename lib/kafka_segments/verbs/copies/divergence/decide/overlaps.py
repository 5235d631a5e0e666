"""Group the pieces of copies that overlap, and leave out what all copies hold alike."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from kafka_segments.verbs.copies.divergence.decide.copies import Copy, CopyPiece

PiecesByCopy = dict[str, list[CopyPiece]]
"""The pieces of each copy, in order."""


class Overlap(NamedTuple):
    """Offsets ``base`` to ``last``, and what each copy holds there; no piece reaches further."""

    base: int
    last: int
    held: PiecesByCopy

    @property
    def variants(self) -> dict[tuple[object, ...], list[str]]:
        """The names of the copies by what they hold."""
        found: dict[tuple[object, ...], list[str]] = {}
        for name, pieces in self.held.items():
            found.setdefault(tuple(piece.content for piece in pieces), []).append(name)
        return found


def overlaps_of(held: Mapping[str, Iterable[CopyPiece]]) -> Iterator[Overlap]:
    """Yield the groups of pieces whose offsets overlap, ascending."""
    pieces = sorted(
        ((piece.base, piece.last, name, piece) for name, found in held.items() for piece in found),
        key=lambda one: one[:3],
    )
    base = last = 0
    here: PiecesByCopy = {}
    for piece_base, piece_last, name, piece in pieces:
        if here and piece_base > last:
            yield Overlap(base, last, _in_order(here, held))
            here = {}
        if not here:
            base, last = piece_base, piece_last
        last = max(last, piece_last)
        here.setdefault(name, []).append(piece)
    if here:
        yield Overlap(base, last, _in_order(here, held))


def _in_order(here: PiecesByCopy, held: Mapping[str, object]) -> PiecesByCopy:
    return {name: here[name] for name in held if name in here}


def unequal(held: Mapping[str, Sequence[CopyPiece]], copies: Sequence[Copy]) -> PiecesByCopy:
    """Leave out the pieces that every copy holds, unless its log starts behind them."""
    holders: dict[object, int] = {}
    for found in held.values():
        for piece in found:
            holders[piece.content] = holders.get(piece.content, 0) + 1

    def is_everywhere(piece: CopyPiece) -> bool:
        return holders[piece.content] == sum(copy.start <= piece.last for copy in copies)

    return {
        name: [piece for piece in found if not is_everywhere(piece)] for name, found in held.items()
    }
