"""Where two leaders wrote other batches: which copies went on together, and which are right."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from kafka_segments.verbs.copies.divergence.decide.copies import (
    Copy,
    CopyPiece,
    DifferenceKind,
    Divergence,
)
from kafka_segments.verbs.copies.divergence.decide.overlaps import Overlap, PiecesByCopy


class Fork(NamedTuple):
    """What a fork tells.

    Attributes:
        rows: a row of kind ``FORK`` for each side but the one with the newest epoch.
        sides: the copies that went on together; the log start of each is that of the fork.
    """

    rows: list[Divergence]
    sides: list[list[Copy]]


class Behind(NamedTuple):
    """What copies hold around an overlap and behind it.

    Attributes:
        ranges: the ranges of the log in which copies differ.
        batches: those around the overlap, equal ones too.
    """

    ranges: Sequence[Mapping[str, CopyPiece]]
    batches: PiecesByCopy

    def of(self, name: str, offset: int) -> list[CopyPiece]:
        """Return what a copy holds from an offset on, batches and ranges."""
        ranges = [found[name] for found in self.ranges if name in found]
        pieces = [*self.batches.get(name, ()), *ranges]
        return [piece for piece in pieces if piece.base >= offset]


def fork_at(copies: Sequence[Copy], overlap: Overlap, behind: Behind) -> Fork:
    """Return which copies are on which side of a fork.

    1. Copies whose batches at the fork have one leader epoch are one side. The side with the
       newest epoch is the one that Kafka keeps.
    2. A copy that lacks its batch there, and goes on behind it, is on the side whose batches it
       holds, else on the side that its leader epochs name.
    3. A copy that ends before the fork would follow the newest leader, and is on that side. If it
       is itself the newest leader, as its checkpoint says, it is on no side.
    """
    epochs = _first_epochs(overlap)
    newest = max(epochs.values())
    sides: dict[int, list[Copy]] = {epoch: [] for epoch in sorted(set(epochs.values()))}
    gone_on: list[str] = []
    rows: list[Divergence] = []
    shared = _epoch_before(copies, overlap.base, behind.batches)
    end = max(copy.end for copy in copies)
    for copy in copies:
        if copy.end > overlap.base:
            epoch = epochs.get(copy.name)
            sides[_likely(copy, overlap, epochs, behind) if epoch is None else epoch].append(copy)
            gone_on.append(copy.name)
        elif copy.leads_from(overlap.base, newest):
            rows.append(not_truncated(copy, newest, overlap.base, end, tuple(epochs)))
        else:
            sides[newest].append(copy)
    named = {
        epoch: tuple(copy.name for copy in side if copy.name in gone_on)
        for epoch, side in sides.items()
    }
    detail = ", ".join(f"{name} has epoch {epoch}" for name, epoch in epochs.items())
    for epoch, wrong in named.items():
        if epoch != newest:
            right = named[newest]
            rows.append(
                Divergence(
                    DifferenceKind.FORK, True, overlap.base, end, wrong, right, shared, detail
                )
            )
    return Fork(rows, [[_from(copy, overlap.base) for copy in side] for side in sides.values()])


def not_truncated(
    leader: Copy, epoch: int, base: int, until: int, holders: tuple[str, ...]
) -> Divergence:
    """Return the row of copies that go on in an epoch after ``leader`` has begun the next one."""
    latest, start = leader.epochs[-1]
    detail = f"of epoch {epoch}, {leader.name} has epoch {latest} from {start} on"
    shared = leader.epoch_at(leader.end - 1)
    return Divergence(
        DifferenceKind.AHEAD, True, base, until, holders, (leader.name,), shared, detail
    )


def forked_at(rows: Iterable[Divergence], one: str, other: str) -> int | None:
    """Return the offset from which on two copies are on different sides; None: they never are."""
    forks = (
        row.from_offset
        for row in rows
        if row.kind == DifferenceKind.FORK and (one in row.copies) != (other in row.copies)
    )
    return min(forks, default=None)


def _first_epochs(overlap: Overlap) -> dict[str, int]:
    """Return the epochs that a fork begins with, by the copies that hold its first batches.

    If these are all on one side, the other copies have lost theirs: their next batches count.
    """
    first = {name: found[0] for name, found in overlap.held.items()}
    at_base = {
        name: piece.first_epoch for name, piece in first.items() if piece.base == overlap.base
    }
    if len(set(at_base.values())) > 1:
        return at_base
    return {name: piece.first_epoch for name, piece in first.items()}


def _from(copy: Copy, offset: int) -> Copy:
    return copy._replace(start=max(copy.start, offset))


def _likely(copy: Copy, overlap: Overlap, epochs: Mapping[str, int], behind: Behind) -> int:
    """Return the epoch of the side of a copy that lacks its batch at the fork."""
    own = behind.of(copy.name, overlap.base)
    held = {piece.content for piece in own}
    common: dict[int, int] = {}
    for name, epoch in epochs.items():
        count = len(held & {piece.content for piece in behind.of(name, overlap.base)})
        common[epoch] = max(common.get(epoch, 0), count)
    if any(common.values()):
        return max(common, key=lambda epoch: (common[epoch], epoch))
    told = _told_epoch(copy, overlap.base, own)
    return max((epoch for epoch in common if epoch <= told), default=min(common))


def _told_epoch(copy: Copy, offset: int, behind: Sequence[CopyPiece]) -> int:
    """Return the epoch at an offset: the checkpoint's, or that of the next batches if newer."""
    following = min(behind, key=lambda piece: piece.base, default=None)
    least = -1 if following is None else following.first_epoch
    noted = copy.epoch_at(offset)
    if noted is None or copy.epochs[-1][0] < least:
        return least
    return noted


def _epoch_before(copies: Sequence[Copy], offset: int, batches: PiecesByCopy) -> int | None:
    """Return the leader epoch of the last batch in front of an offset."""
    epochs = [
        piece.last_epoch for found in batches.values() for piece in found if piece.last < offset
    ]
    if epochs:
        return max(epochs)
    held = [copy.epoch_at(offset - 1) for copy in copies]
    return min((epoch for epoch in held if epoch is not None), default=None)
