"""Which replica of a partition is safest, and how it comes to lead.

Source: PartitionChangeBuilder.electLeader, ReplicationControlManager.handleUncleanBrokerShutdown
(4.3.1).
"""

from collections.abc import Callable
from enum import StrEnum
from typing import NamedTuple

from kafka_segments.verbs.copies.divergence.decide.copies import CopyPiece
from kafka_segments.verbs.copies.divergence.decide.transactions import ClientBatch
from kafka_segments.verbs.copies.divergence.elect.decide.candidates import (
    Candidate,
    PartitionCopies,
    Registration,
    candidate_of,
)


class Way(StrEnum):
    """How the best replica comes to lead."""

    BY_ITSELF = "by itself"
    """The controller elects it, or one that loses no more."""
    UNCLEAN = "unclean election"
    """The controller elects it if it is told to.

    It is in neither ISR nor ELR. Or others of them are not at hand, or must not run as they lose
    more: a broker that was not shut down cleanly leaves both when it registers, and the partition
    waits for the others.
    """


class Advice(NamedTuple):
    """How the best replica comes to lead a partition.

    Attributes:
        candidates: the best first.
        hold_back: brokers that must not run before it leads, because the controller prefers them.
        replicas: the order to give the replicas beforehand, because an unclean election takes the
            first one that runs; empty: the order is right.
    """

    way: Way
    candidates: tuple[Candidate, ...]
    hold_back: tuple[int, ...] = ()
    replicas: tuple[int, ...] = ()


def advise(
    registered: Registration, found: PartitionCopies, facts: Callable[[CopyPiece], ClientBatch]
) -> Advice:
    """Weigh each replica of which there is a copy, and say how the best one comes to lead.

    ``facts`` reads a batch. It is called only for batches that some replica lacks, and for some in
    front of them if the end of an aborted transaction is lost.
    """
    order = {broker: at for at, broker in enumerate(registered.replicas)}
    candidates = sorted(
        (candidate_of(broker, registered, found, facts) for broker in found.copies),
        key=lambda one: (one.cost, not one.is_in_isr, not one.is_in_elr, order[one.broker_id]),
    )
    members = {*registered.isr, *registered.elr}
    best = candidates[0]
    eligible = [
        one for one in candidates if registered.elects_any or one.is_in_isr or one.is_in_elr
    ]
    worse = [one for one in eligible if best not in eligible or one.cost > best.cost]
    if not worse and best in eligible and members.isdisjoint(registered.absent):
        return Advice(Way.BY_ITSELF, tuple(candidates))
    late = {one.broker_id for one in worse}
    ahead = {one for one in found.copies if order[one] < order[best.broker_id]} - late
    others = (broker for broker in registered.replicas if broker != best.broker_id)
    replicas = (best.broker_id, *others) if ahead and not registered.elects_any else ()
    return Advice(Way.UNCLEAN, tuple(candidates), tuple(sorted(late)), replicas)
