"""Tell in which copies the header of one and the same batch changed.

Neither base offset nor leader epoch is covered by the checksum.
"""

from collections.abc import Sequence

from kafka_segments.verbs.copies.divergence.decide.copies import (
    Copy,
    CopyPiece,
    DifferenceKind,
    Divergence,
)
from kafka_segments.verbs.copies.divergence.decide.overlaps import Overlap, PiecesByCopy


def is_one_batch(overlap: Overlap) -> bool:
    """Tell whether magic, size and checksum are the same: they cover neither offset nor epoch."""
    pieces = [piece for found in overlap.held.values() for piece in found]
    is_single = len(pieces) == len(overlap.held)
    return is_single and len({piece.stored for piece in pieces}) == 1


def is_moved(overlap: Overlap) -> bool:
    """Tell whether the batch has other offsets in some copies."""
    return len({(found[0].base, found[0].last) for found in overlap.held.values()}) > 1


def outvoted(overlap: Overlap) -> tuple[str, ...]:
    """Return the copies that differ from the majority; empty: there is no majority."""
    most = max(overlap.variants.values(), key=len)
    if 2 * len(most) <= len(overlap.held):
        return ()
    return tuple(name for name in overlap.held if name not in most)


def wrong_epochs(
    overlap: Overlap, copies: Sequence[Copy], batches: PiecesByCopy
) -> tuple[str, ...]:
    """Return the copies in which the batch has a wrong leader epoch; empty: not known which.

    Args:
        overlap: where it lies.
        copies: those of one side of a fork, or all.
        batches: those around the overlap, equal ones too.
    """
    by_name = {name: found[0] for name, found in overlap.held.items()}
    named = {copy.name: copy for copy in copies}
    wrong = (
        tuple(name for name, piece in by_name.items() if _contradicts(named[name], piece))
        or tuple(
            name
            for name, piece in by_name.items()
            if _is_out_of_order(piece, batches.get(name, []))
        )
        or tuple(name for name in outvoted(overlap) if _is_unheard_of(by_name[name], copies))
    )
    return wrong if len(wrong) < len(by_name) else ()


def header_rot(overlap: Overlap, wrong: tuple[str, ...], detail: str) -> Divergence:
    """Return the row that says so; ``wrong``: the copies, empty: not known which."""
    right = tuple(name for name in overlap.held if name not in wrong)
    copies = wrong or tuple(overlap.held)
    return Divergence(
        DifferenceKind.ROT,
        True,
        overlap.base,
        overlap.last + 1,
        copies,
        right if wrong else (),
        detail=detail,
    )


def _contradicts(copy: Copy, piece: CopyPiece) -> bool:
    epoch = copy.epoch_at(piece.base)
    return epoch is not None and epoch != piece.first_epoch


def _is_out_of_order(piece: CopyPiece, around: Sequence[CopyPiece]) -> bool:
    known = [one for one in around if one.first_epoch >= 0]  # messages v0 and v1 have none
    before = [one.first_epoch for one in known if one.last < piece.base][-1:]
    behind = [one.first_epoch for one in known if one.base > piece.last][:1]
    is_below = any(epoch > piece.first_epoch for epoch in before)
    return is_below or any(epoch < piece.first_epoch for epoch in behind)


def _is_unheard_of(piece: CopyPiece, copies: Sequence[Copy]) -> bool:
    """Tell whether no checkpoint knows the epoch of a batch."""
    known = {epoch for copy in copies for epoch, _ in copy.epochs}
    return piece.first_epoch not in known
