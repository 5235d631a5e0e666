"""Tell markers that were lost below the cleaner's offset from those that the cleaner took.

The cleaner keeps the marker of a transaction until it has taken all batches of the transaction.

Source: Cleaner.CleanedTransactionMetadata.onControlBatchRead (4.3.1).
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from kafka_segments.verbs.copies.divergence.decide.copies import (
    Copy,
    CopyPiece,
    DifferenceKind,
    Divergence,
)
from kafka_segments.verbs.copies.divergence.decide.keyed import (
    Keys,
    OfTransaction,
    Question,
    Questions,
)

if TYPE_CHECKING:
    from kafka_segments.verbs.copies.divergence.decide.copy_reader import CopyReader

Markers = Mapping[int, tuple[CopyPiece, list[str]]]
"""Markers, and the copies that hold them, by their offsets, ascending."""


def lost_markers(
    copies: Sequence[Copy], questions: Questions, load: "CopyReader", keys: Keys
) -> Iterator[Divergence]:
    """Yield a row of kind ``LOST`` for each marker that a copy lacks and the cleaner has not taken.

    Args:
        copies: all copies of the log.
        questions: what the copies lack.
        load: reads batches.
        keys: reads batches of transactions.
    """
    for copy in copies:
        asked = [one for one in questions.get(copy.name, ()) if one.is_cleaned]
        missing = _markers(asked, load)
        if missing:
            yield from _rows(copy, missing, keys.of_transactions(copy.name))


def _markers(asked: Iterable[Question], load: "CopyReader") -> Markers:
    found: dict[int, tuple[CopyPiece, list[str]]] = {}
    for question in asked:
        for name, pieces in question.held.items():
            for piece in pieces:
                batches = load.batches(name, piece) if piece.stored is None else [piece]
                for batch in batches:
                    if batch.ends is not None:
                        found.setdefault(batch.base, (batch, []))[1].append(name)
    return dict(sorted(found.items()))


def _rows(copy: Copy, missing: Markers, own: Iterable[OfTransaction]) -> Iterator[Divergence]:
    held: dict[int, list[OfTransaction]] = {}
    for one in own:
        held.setdefault(one.producer_id, []).append(one)
    ended: dict[int, int] = {}
    for base, (piece, holders) in missing.items():
        producer = -1 if piece.ends is None else piece.ends
        begin = _open_from(held.get(producer, ()), base)
        least = max(copy.start, ended.get(producer, -1))
        if begin is None or begin < least or _is_damaged(copy, begin, base):
            continue
        ended[producer] = base
        detail = (
            f"a transaction of producer {producer} is there at {begin}, and its marker, here or in"
            " front, is missing: the cleaner takes it last"
        )
        yield Divergence(
            DifferenceKind.LOST,
            True,
            base,
            piece.last + 1,
            (copy.name,),
            tuple(holders),
            detail=detail,
        )


def _open_from(held: Sequence[OfTransaction], offset: int) -> int | None:
    """Return the last batch of a producer's open transaction in front of an offset."""
    at = bisect_left(held, offset, key=lambda one: one.base)
    return None if not at or held[at - 1].is_marker else held[at - 1].base


def _is_damaged(copy: Copy, low: int, high: int) -> bool:
    """Tell whether another marker may have been between two offsets, where a copy is damaged."""
    return any(one.offset < high and one.until > low for one in copy.damages)
