"""The commands with which an operator follows the advice on elections."""

import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

from kafka_segments.divergence.decide.elections import Way

_ORDER_FILE, _ELECTION_FILE = "replica-order.json", "unclean-elections.json"
_REPLICAS_FILE = "all-replicas.json"
_SERVER = '--bootstrap-server "$BOOTSTRAP"'
_REASSIGN = f"kafka-reassign-partitions.sh {_SERVER} --reassignment-json-file"


class Chosen(NamedTuple):
    """A partition and how its best replica comes to lead; see ``Advice``."""

    topic: str
    partition: int
    broker_id: int
    way: str
    hold_back: Sequence[int]
    replicas: Sequence[int]
    elects_any: bool = False


def election_script(chosen: Iterable[Chosen], brokers: Iterable[int]) -> Iterator[str]:
    """Yield the lines of a shell script.

    Brokers that some partition must not elect are started last. Before that, the script sets the
    order of replicas and has unclean elections made, each by a file for Kafka's own tool.

    Args:
        chosen: all partitions.
        brokers: those of which there are copies.
    """
    partitions = list(chosen)
    late = sorted({broker for one in partitions for broker in one.hold_back})
    first = sorted(set(brokers) - set(late))
    unclean = [one for one in partitions if one.way == Way.UNCLEAN]
    yield "#!/bin/sh"
    yield "# BOOTSTRAP is HOST:PORT of a broker that runs."
    yield "set -e"
    if first:
        yield f"# 1. Start brokers {_listed(first)}{', and no other,' if late else ''} and wait."
    yield from _circles(partitions, first)
    moved = [one for one in unclean if one.replicas]
    if moved:
        yield "# 2. An unclean election takes the first replica that runs. The tool knows no other:"
        yield "#    those come back with --cancel, or with step 5 where Kafka refuses that."
        yield from _file(_ORDER_FILE, _order_of(moved, first))
        yield f"{_REASSIGN} {_ORDER_FILE} --execute"
        yield f"{_REASSIGN} {_ORDER_FILE} --cancel || true"
    if unclean:
        yield "# 3. What the other replicas hold and the new leaders lack is lost from here on."
        yield from _file(_ELECTION_FILE, _elections_of(unclean))
        yield (
            f"kafka-leader-election.sh {_SERVER} --election-type UNCLEAN"
            f" --path-to-json-file {_ELECTION_FILE}"
        )
    if late:
        yield f"# 4. Start brokers {_listed(late)}, once these partitions have their leaders:"
        for one in partitions:
            if one.hold_back:
                yield f"#    {one.topic}-{one.partition}: broker {one.broker_id}"
    if moved:
        yield "# 5. Once all brokers run, give the partitions of step 2 all their replicas again:"
        yield from _file(_REPLICAS_FILE, _order_of(moved))
        yield f"#    {_REASSIGN} {_REPLICAS_FILE} --additional --execute"


def _circles(partitions: Sequence[Chosen], first: Sequence[int]) -> Iterator[str]:
    """Yield a warning for each partition whose best broker must not be elected by another one."""
    for one in partitions:
        if one.broker_id not in first and (one.way != Way.BY_ITSELF or one.elects_any):
            yield (
                f"# {one.topic}-{one.partition} wants broker {one.broker_id} to run in step 1, and"
                " others want it not to: weigh what is lost with each, and leave one of them out"
            )


def _order_of(partitions: Iterable[Chosen], running: Collection[int] | None = None) -> object:
    """Return the order of the replicas; with ``running``, of the replicas on these brokers alone.

    Kafka puts replicas that a reassignment removes behind the others, and a cancelled reassignment
    leaves them there. It does not cancel one of a partition with an empty ISR, but removes those
    replicas once the new leader's followers are in sync.

    Source: ReassignPartitionsCommand.verifyBrokerIds, PartitionReassignmentReplicas,
    PartitionReassignmentRevert (4.3.1).
    """
    moved = [
        {
            "topic": one.topic,
            "partition": one.partition,
            "replicas": [broker for broker in one.replicas if running is None or broker in running],
        }
        for one in partitions
    ]
    return {"version": 1, "partitions": moved}


def _elections_of(partitions: Iterable[Chosen]) -> object:
    return {"partitions": [{"topic": one.topic, "partition": one.partition} for one in partitions]}


def _file(name: str, content: object) -> Iterator[str]:
    """Yield the lines that write a JSON file; the shell does not expand it, as END is quoted."""
    yield f"cat > {name} <<'END'"
    yield json.dumps(content)
    yield "END"


def _listed(brokers: Sequence[int]) -> str:
    return ", ".join(map(str, brokers))
