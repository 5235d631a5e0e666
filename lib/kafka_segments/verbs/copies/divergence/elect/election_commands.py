"""The commands with which an operator follows the advice on elections."""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import count
from types import MappingProxyType
from typing import NamedTuple

from kafka_segments.verbs.copies.divergence.elect import election_shell as shell
from kafka_segments.verbs.copies.divergence.elect.decide.elections import Way
from kafka_segments.verbs.copies.divergence.elect.decide.start_plan import (
    Loss,
    StartPlan,
    Wanted,
    plan_starts,
)

_ORDER_FILE, _ELECTION_FILE = "replica-order.json", "unclean-elections.json"
_REPLICAS_FILE = "all-replicas.json"
_REASSIGN = f"kafka-reassign-partitions.sh {shell.SERVER} --reassignment-json-file"


class Chosen(NamedTuple):
    """A partition and how its best replica comes to lead; see ``Advice``.

    ``losses``: of each broker the records of which acks=all may have been told, and all records,
    that are lost if it leads. ``absent``: brokers of replicas that are not at hand.
    """

    topic: str
    partition: int
    broker_id: int
    way: str
    hold_back: Sequence[int]
    replicas: Sequence[int]
    losses: Mapping[int, Loss] = MappingProxyType({})
    absent: Sequence[int] = ()

    @property
    def name(self) -> str:
        """Return the name of the partition's folder."""
        return f"{self.topic}-{self.partition}"

    @property
    def wanted(self) -> Wanted:
        """Return which brokers must not run before the best one leads, and what each loses more."""
        all_acks, records = self.losses.get(self.broker_id, (0, 0))
        late = {}
        for broker in self.hold_back:
            lost = self.losses.get(broker, (all_acks, records))
            late[broker] = lost[0] - all_acks, lost[1] - records
        return Wanted(self.name, self.broker_id, late)


def election_script(
    chosen: Iterable[Chosen], brokers: Iterable[int], without_copy: Sequence[str] = ()
) -> Iterator[str]:
    """Yield the lines of a shell script.

    Brokers start in the steps of ``plan_starts``: the script says which, and waits for them. Behind
    each step it sets the order of replicas and has unclean elections made for the partitions whose
    best broker runs now, by files for Kafka's own tools, and waits until these are led. What no
    order saves is named in front.

    Args:
        chosen: all partitions.
        brokers: those of which there are copies.
        without_copy: names of partitions of which there is none.
    """
    partitions = list(chosen)
    plan = plan_starts([one.wanted for one in partitions], set(brokers))
    by_hand = {one.wanted.name for one in plan.broken}
    planned = [one for one in partitions if one.name not in by_hand]
    yield from shell.head()
    yield from _not_at_hand({broker for one in partitions for broker in one.absent})
    yield from _no_plan(without_copy)
    if len(plan.steps) > 1:
        yield "# In each step a majority of the controllers must run. Where a broker is one, too,"
        yield "# and its step has not come, run it with process.roles=controller and without its"
        yield "# other listeners: it serves no partition then."
    yield from _by_hand(plan)
    numbers = count(1)
    running: list[int] = []
    for step in plan.steps:
        running = sorted({*running, *step})
        later = sorted(set(brokers).difference(running))
        yield from _start(step, running, later, next(numbers))
        now = [one for one in planned if one.broker_id in step and one.way == Way.UNCLEAN]
        yield from _elections(now, running, numbers)
    moved = [one for one in planned if one.replicas and one.way == Way.UNCLEAN]
    if moved:
        yield f"# {next(numbers)}. These partitions get all replicas again."
        yield from _file(_REPLICAS_FILE, _order_of(moved))
        replicas = {broker for one in moved for broker in one.replicas}
        command = f"{_REASSIGN} {_REPLICAS_FILE} --additional --execute"
        yield from shell.if_all_run(sorted(replicas), command)
    yield "echo 'All steps are done.'"


def _not_at_hand(absent: Collection[int]) -> Iterator[str]:
    """Yield what the steps go without."""
    if absent:
        named = _listed(sorted(absent))
        yield f"# Of brokers {named} replicas were not at hand: what they alone hold does not"
        yield "# count. Start none of them as a broker before all steps are done, or give their log"
        yield "# directories as copies and make this script anew."


def _no_plan(partitions: Sequence[str]) -> Iterator[str]:
    """Yield of which partitions the steps do not decide."""
    if partitions:
        yield "# No copy of these partitions is at hand: which replica is best is not known,"
        yield "# and the steps leave them as they are:"
        yield from (f"#    {name}" for name in partitions)


def _by_hand(plan: StartPlan) -> Iterator[str]:
    """Yield what the steps lose, and of which partitions, to decide by hand."""
    if not plan.broken:
        return
    lost = sum(one.lost[0] for one in plan.broken)
    least = "the fewest" if plan.is_least else "few (not all orders were weighed)"
    yield "# Partitions want brokers in opposite orders. The steps below lose, beyond what is lost"
    yield f"# anyway, {least} records that acks=all may have acknowledged: {lost}. Decide by hand"
    yield "# on these partitions, before step 1; what is lost there is on the disk that is named:"
    for one in plan.broken:
        yield (
            f"#    {one.wanted.name}: broker {one.leader} runs before broker {one.wanted.best} can"
            f" lead. If {one.leader} is elected, {one.lost[0]} acknowledged records are lost,"
            f" {one.lost[1]} in all, that broker {one.wanted.best} holds"
        )
    yield from shell.ask_first()


def _start(
    step: Sequence[int], running: Sequence[int], later: Sequence[int], number: int
) -> Iterator[str]:
    """Yield the lines that have brokers started; ``running``: all that are to run then."""
    alone = ", and no other" if later else ""
    text = f"{number}. Start brokers {_listed(step)}{alone}."
    yield from shell.await_brokers(text, running, later)


def _elections(
    unclean: Sequence[Chosen], running: Collection[int], numbers: Iterator[int]
) -> Iterator[str]:
    """Yield the commands by which partitions get their best brokers, which run now."""
    if not unclean:
        return
    yield from shell.write_leaders((one.topic, one.partition, one.hold_back) for one in unclean)
    yield from shell.unless_led(_commands(unclean, running, numbers))
    yield shell.await_leaders()


def _commands(
    unclean: Sequence[Chosen], running: Collection[int], numbers: Iterator[int]
) -> Iterator[str]:
    moved = [one for one in unclean if one.replicas]
    if moved:
        yield f"# {next(numbers)}. An unclean election takes the first replica that runs. The tool"
        yield "#    knows no other: those come back with --cancel, or with the last step."
        yield from _file(_ORDER_FILE, _order_of(moved, running))
        yield f"{_REASSIGN} {_ORDER_FILE} --execute"
        yield f"{_REASSIGN} {_ORDER_FILE} --cancel || true"
    yield f"# {next(numbers)}. What other replicas hold and these new leaders lack is lost now."
    yield from _lost(unclean)
    yield from _file(_ELECTION_FILE, _elections_of(unclean))
    yield (
        f"kafka-leader-election.sh {shell.SERVER} --election-type UNCLEAN"
        f" --path-to-json-file {_ELECTION_FILE}"
    )


def _lost(unclean: Iterable[Chosen]) -> Iterator[str]:
    """Yield what the elections lose, and how it is kept; partitions that lose nothing are left out.

    A follower cuts its log once the new leader leads.
    """
    for one in unclean:
        all_acks, records = one.losses.get(one.broker_id, (0, 0))
        if records:
            yield (
                f"#    {one.name}: {records} records, {all_acks} of which acks=all may have"
                " acknowledged: copy its folders of the other brokers before this step"
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
