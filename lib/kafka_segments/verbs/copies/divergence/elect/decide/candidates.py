"""What is lost with each replica that could lead a partition.

An acknowledged record can lie on any disk. The others cut their logs back to where they part from
the new leader's log, and what that lacks is lost. Producers with ``acks=1`` got their
acknowledgement as soon as the leader had a record, those with ``acks=all`` once all of the ISR had
it.

Source: ReplicaManager.makeFollower (4.3.1).
"""

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from kafka_segments.verbs.copies.divergence.decide.copies import (
    CONTRADICTIONS,
    DAMAGED,
    UNSOUND,
    Copy,
    CopyPiece,
    DifferenceKind,
    Divergence,
)
from kafka_segments.verbs.copies.divergence.decide.forks import forked_at
from kafka_segments.verbs.copies.divergence.decide.overlaps import PiecesByCopy
from kafka_segments.verbs.copies.divergence.decide.spans import Spans
from kafka_segments.verbs.copies.divergence.decide.transactions import (
    ClientBatch,
    open_transactions,
    torn_transactions,
)


class Term(NamedTuple):
    """A leader epoch as the metadata log has it.

    Attributes:
        epoch: the leader epoch.
        leader: who led; negative: nobody.
        members: ISR and ELR at its end.
    """

    epoch: int
    leader: int
    members: tuple[int, ...]


class Registration(NamedTuple):
    """A partition as the metadata log has it.

    Attributes:
        replicas: in their order. isr: in sync. elr: eligible.
        terms: those that the metadata log tells of, ascending.
        elects_any: unclean.leader.election.enable, by which the controller elects any running
            replica if none of ISR and ELR runs.
        absent: the replicas of which no log is at hand.
    """

    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    elr: tuple[int, ...] = ()
    terms: tuple[Term, ...] = ()
    elects_any: bool = False
    absent: tuple[int, ...] = ()


class Candidate(NamedTuple):
    """A replica that could lead, and what is lost with it.

    Attributes:
        broker_id: the replica. copy: its name among the copies.
        end: where its log ends. epoch: the last leader epoch that its log knows.
        is_in_isr: as the metadata log says. is_in_elr: likewise.
        lost_records: records at hand that its log lacks; ``acks=1`` may have acknowledged them.
            An offset below a high watermark that no copy at hand holds counts as one, here and
            below.
        lost_acks_all_records: of these, those that ``acks=all`` may have acknowledged.
        lost_committed_records: of these, those below a high watermark: consumers may have read
            them.
        first_lost: offset of the first of them; None: nothing is lost.
        torn_transactions: those that have lost records, or the marker that ends them.
        damages: how many places in its log are damaged.
    """

    broker_id: int
    copy: str
    end: int
    epoch: int | None
    is_in_isr: bool
    is_in_elr: bool
    lost_records: int = 0
    lost_acks_all_records: int = 0
    lost_committed_records: int = 0
    first_lost: int | None = None
    torn_transactions: int = 0
    damages: int = 0

    @property
    def cost(self) -> tuple[int, int, int, int]:
        """Return what is lost, the worst loss first; the candidate with the least is the best.

        What ``acks=all`` was told comes before what lies below a high watermark: its checkpoint is
        up to 5 seconds old (replica.high.watermark.checkpoint.interval.ms), and what it covers
        was acknowledged, too.
        """
        return (
            self.lost_acks_all_records,
            self.lost_committed_records,
            self.lost_records,
            self.damages,
        )


class PartitionCopies(NamedTuple):
    """The replicas of a partition of which there are copies.

    Attributes:
        copies: by broker id.
        held: the batches, by copy name, of all ranges in which copies differ.
        rows: what ``compare_log`` says of the copies.
    """

    copies: Mapping[int, Copy]
    held: PiecesByCopy
    rows: Sequence[Divergence]


def candidate_of(
    broker: int,
    registered: Registration,
    found: PartitionCopies,
    facts: Callable[[CopyPiece], ClientBatch],
) -> Candidate:
    """Weigh the replica of a broker; see ``elections.advise``."""
    copy = found.copies[broker]
    lost = sorted(_lost_with(copy, found), key=lambda piece: (piece.base, piece.last_epoch))
    told = _told_to_all(registered, found)
    committed = _below_marks(found)
    known = {piece.content: facts(piece) for piece in lost}
    kept = _kept_of(copy, lost, found, facts)
    unheld = list(_unheld(found))
    unknown = sum(until - offset for offset, until in unheld)

    def records(counted: Collection[Hashable]) -> int:
        return sum(
            known[piece.content].records - kept.get(piece.content, 0)
            for piece in lost
            if piece.content in counted
        )

    with_records = [piece.base for piece in lost if known[piece.content].records]
    first_lost = min((*with_records, *(offset for offset, _ in unheld)), default=None)
    return Candidate(
        broker,
        copy.name,
        copy.end,
        copy.epoch_at(copy.end - 1) if copy.end > copy.start else None,
        broker in registered.isr,
        broker in registered.elr,
        records(known) + unknown,
        records(told | committed) + unknown,
        records(committed) + unknown,
        first_lost,
        torn_transactions(
            (known[piece.content] for piece in lost),
            open_transactions(found.held.get(copy.name, ()), lost, facts),
        ),
        sum(copy.name in row.copies and row.kind in UNSOUND for row in found.rows),
    )


def _lost_with(leader: Copy, found: PartitionCopies) -> Iterator[CopyPiece]:
    """Yield each batch of the other copies that is lost if this one leads.

    In front of its log start only those count that it lost there. Where most copies contradict one,
    what that holds was never written by a leader.
    """
    own = {piece.content for piece in found.held.get(leader.name, ())}
    unread = Spans(
        (low, row.until_offset)
        for row in found.rows
        if row.kind in UNSOUND and leader.name in row.copies
        for low in [
            row.from_offset
            if row.kind == DifferenceKind.LOST
            else max(row.from_offset, leader.start)
        ]
        if low < row.until_offset
    )
    seen: set[tuple[int, int, int]] = set()
    for copy in found.copies.values():
        if copy.name == leader.name:
            continue
        apart = _goes_apart(leader, copy, found.rows)
        outvoted = Spans(
            (row.from_offset, row.until_offset)
            for row in found.rows
            if row.kind in CONTRADICTIONS and copy.name in row.copies and row.right
        )
        for piece in found.held.get(copy.name, ()):
            place = piece.base, piece.last, piece.last_epoch
            if piece.content in own or place in seen or outvoted.meets(piece.base, piece.last):
                continue
            is_behind = piece.base >= apart and piece.last >= leader.start
            if is_behind or unread.meets(piece.base, piece.last):
                seen.add(place)
                yield piece


def _kept_of(
    leader: Copy,
    lost: Iterable[CopyPiece],
    found: PartitionCopies,
    facts: Callable[[CopyPiece], ClientBatch],
) -> dict[Hashable, int]:
    """Return how many records of a lost batch the leader's own batch in its place still has."""
    thin = Spans(
        (row.from_offset, row.until_offset)
        for row in found.rows
        if row.kind == DifferenceKind.LOST and leader.name in row.copies
    )
    own = {
        (piece.base, piece.last): piece
        for piece in found.held.get(leader.name, ())
        if thin.meets(piece.base, piece.last)
    }
    return {
        piece.content: facts(own[place]).records
        for piece in lost
        if (place := (piece.base, piece.last)) in own
    }


def _unheld(found: PartitionCopies) -> Spans:
    """Return the offsets below a high watermark that no copy holds soundly.

    They lie behind the ends of all copies, or are damaged and sound in no other copy.
    """
    copies = found.copies.values()
    committed = max((copy.high_watermark or 0 for copy in copies), default=0)
    damaged = [
        (row.from_offset, row.until_offset)
        for row in found.rows
        if row.kind in DAMAGED and not row.right
    ]
    behind = max(copy.end for copy in copies), committed
    spans = ((offset, min(until, committed)) for offset, until in (*damaged, behind))
    return Spans((offset, until) for offset, until in spans if offset < until)


def _goes_apart(leader: Copy, other: Copy, rows: Iterable[Divergence]) -> int:
    """Return the offset to which a follower cuts its log back.

    It is the first offset at which the leader has another epoch, or nothing.
    """
    low = max(leader.start, other.start)
    apart = min(leader.end, other.end)
    steps = {start for copy in (leader, other) for _, start in copy.epochs}
    if leader.epochs and other.epochs:
        for offset in sorted({low, *steps}):
            if low <= offset < apart and leader.epoch_at(offset) != other.epoch_at(offset):
                apart = offset
                break
    fork = forked_at(rows, leader.name, other.name)
    return apart if fork is None else min(apart, fork)


def _told_to_all(registered: Registration, found: PartitionCopies) -> set[Hashable]:
    """Return the batches that ``acks=all`` may have acknowledged.

    These are in the logs of all members of ISR and ELR at the end of the batch's epoch. If there
    was an unclean election since, one such log is enough: the others may have been cut back.
    """
    held = {
        broker: {piece.content for piece in found.held.get(copy.name, ())}
        for broker, copy in found.copies.items()
    }
    told: set[Hashable] = set()
    for pieces in found.held.values():
        for piece in pieces:
            members, is_unclean = _members(registered, piece.last_epoch)
            holds = [piece.content in held[broker] for broker in members if broker in held]
            if not holds or all(holds) or (is_unclean and any(holds)):
                told.add(piece.content)
    return told


def _members(registered: Registration, epoch: int) -> tuple[tuple[int, ...], bool]:
    """Return ISR and ELR at the end of an epoch, and whether an election since was unclean."""
    led = [term for term in registered.terms if term.epoch >= epoch and term.leader >= 0]
    if not led or led[0].epoch != epoch:
        return (*registered.isr, *registered.elr), False
    is_unclean = any(after.leader not in before.members for before, after in pairwise(led))
    return led[0].members, is_unclean


def _below_marks(found: PartitionCopies) -> set[Hashable]:
    """Return the batches below the high watermark of their own copy's checkpoint."""
    return {
        piece.content
        for copy in found.copies.values()
        if copy.high_watermark is not None
        for piece in found.held.get(copy.name, ())
        if piece.base < copy.high_watermark
    }
