"""What batches mean to clients, and which transactions are torn if some are lost."""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from kafka_segments.verbs.copies.divergence.decide.copies import CopyPiece


class ClientBatch(NamedTuple):
    """What a batch means to clients.

    Attributes:
        records: those that clients wrote; 0 of a control batch.
        producer_id: of the transaction that it belongs to; None: of none.
        is_commit: whether it is a marker that commits a transaction; False: one that aborts it;
            None: it is no marker.
    """

    records: int
    producer_id: int | None = None
    is_commit: bool | None = None


def torn_transactions(lost: Iterable[ClientBatch], is_open: Callable[[int], bool]) -> int:
    """Count the transactions that are torn if batches are lost; ``lost`` has them by offset.

    An aborted transaction that is lost as a whole is not torn. ``is_open`` tells whether a
    producer's transaction begins in kept batches, in front of its first lost one.
    """
    torn = 0
    ended: set[int] = set()
    has_records: dict[int, bool] = {}
    for batch in lost:
        producer = batch.producer_id
        if producer is None:
            continue
        if batch.is_commit is None:
            has_records[producer] = True
            continue
        is_whole = has_records.get(producer, False) and (producer in ended or not is_open(producer))
        torn += batch.is_commit or not is_whole
        has_records[producer] = False
        ended.add(producer)
    return torn + sum(has_records.values())


def open_transactions(
    own: Sequence[CopyPiece], lost: Sequence[CopyPiece], facts: Callable[[CopyPiece], ClientBatch]
) -> Callable[[int], bool]:
    """Return what tells whether a producer has an open transaction where it loses batches.

    ``own``: the batches of the leader's log in all ranges in which copies differ. Batches in front
    of these ranges are not read.
    """
    kept = sorted(own, key=lambda piece: piece.base, reverse=True)

    def is_open(producer: int) -> bool:
        first = next(piece for piece in lost if facts(piece).producer_id == producer)
        before = (facts(piece) for piece in kept if piece.base < first.base)
        found = next((batch for batch in before if batch.producer_id == producer), None)
        return found is not None and found.is_commit is None

    return is_open
