"""In which order to start brokers so that the best replicas lead, and what no order can save.

A partition wants its best broker to lead before others run that would lose more. Where partitions
want opposite orders, that order is taken with which the fewest acknowledged records are lost.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from graphlib import TopologicalSorter
from itertools import combinations
from typing import NamedTuple

Loss = tuple[int, int]
"""Records of which acks=all may have been told, and all records."""
_NOTHING: Loss = (0, 0)
MOST_EXACT = 10
"""Brokers of one knot of contradictions whose orders are all weighed."""


class Wanted(NamedTuple):
    """What a partition wants.

    Attributes:
        name: the partition. best: the broker that ought to lead it.
        late: brokers that must not run before, and what each loses beyond the best.
    """

    name: str
    best: int
    late: Mapping[int, Loss]


class Broken(NamedTuple):
    """A partition that does not get what it wants.

    Attributes:
        wanted: what it wants. leader: the broker that may lead it and loses the most.
        lost: what that loses beyond the best.
    """

    wanted: Wanted
    leader: int
    lost: Loss


class StartPlan(NamedTuple):
    """In which steps to start brokers.

    Attributes:
        steps: the brokers of each step, ascending.
        broken: partitions of which a step starts another broker before the best one leads.
        is_least: no other order loses less; False: a knot is too large to weigh all of its orders.
    """

    steps: tuple[tuple[int, ...], ...]
    broken: tuple[Broken, ...]
    is_least: bool = True


def plan_starts(wanted: Sequence[Wanted], brokers: Collection[int]) -> StartPlan:
    """Return the steps with which the fewest acknowledged records are lost in all.

    1. A broker starts in the first step in which no partition wants another one to lead before.
    2. Brokers among which the wishes go in a circle are a knot. Of a knot's orders the one counts
       that loses the fewest records of which acks=all may have been told, then the fewest of all.
    """
    among = [one for one in wanted if one.late]
    after = {
        broker: {late for one in among if one.best == broker for late in one.late}
        for broker in brokers
    }
    knots = _knots(after)
    order = [broker for knot in knots for broker in _best_order(knot, among)]
    place = {broker: at for at, broker in enumerate(order)}
    knot_of = {broker: number for number, knot in enumerate(knots) for broker in knot}
    before: dict[int, set[int]] = {broker: set() for broker in brokers}
    for broker, others in after.items():
        for late in others & before.keys():
            if knot_of[broker] != knot_of[late] or place[broker] < place[late]:
                before[late].add(broker)
    step = _steps(before)
    return StartPlan(
        tuple(
            tuple(sorted(broker for broker in step if step[broker] == at))
            for at in sorted(set(step.values()))
        ),
        tuple(_broken(among, step)),
        all(len(knot) <= MOST_EXACT for knot in knots),
    )


def _knots(after: Mapping[int, set[int]]) -> list[tuple[int, ...]]:
    """Return the brokers in groups: two of a group are wished both before and behind each other."""
    reached = {broker: _reached(after, broker) for broker in after}
    knots = {
        tuple(sorted({broker, *(one for one in found if broker in reached.get(one, ()))}))
        for broker, found in reached.items()
    }
    return sorted(knots)


def _reached(after: Mapping[int, set[int]], broker: int) -> set[int]:
    found: set[int] = set()
    left = [broker]
    while left:
        new = after.get(left.pop(), set()) - found
        found |= new
        left += new
    return found


class _Costs:
    """What is lost if a broker starts behind others of its knot."""

    def __init__(self, knot: Sequence[int], among: Iterable[Wanted]) -> None:
        self._tables: dict[int, dict[frozenset[int], dict[frozenset[int], Loss]]] = {}
        for one in among:
            late = frozenset(one.late) & frozenset(knot)
            if one.best not in knot or not late:
                continue
            table = self._tables.setdefault(one.best, {}).setdefault(late, {})
            for running in _subsets(late):
                worst = max((one.late[broker] for broker in running), default=_NOTHING)
                table[running] = _plus(table.get(running, _NOTHING), worst)

    def of(self, broker: int, running: frozenset[int]) -> Loss:
        """Return what is lost by a broker's partitions if others run before it."""
        cost = _NOTHING
        for late, table in self._tables.get(broker, {}).items():
            cost = _plus(cost, table[late & running])
        return cost

    def of_all(self, order: Sequence[int]) -> Loss:
        """Return what is lost with an order."""
        cost = _NOTHING
        for at, broker in enumerate(order):
            cost = _plus(cost, self.of(broker, frozenset(order[:at])))
        return cost


def _best_order(knot: tuple[int, ...], among: Sequence[Wanted]) -> tuple[int, ...]:
    """Return the order of a knot's brokers that loses the least."""
    if len(knot) == 1:
        return knot
    costs = _Costs(knot, among)
    if len(knot) > MOST_EXACT:
        return _improved(_greedy(knot, costs), costs)
    best: dict[frozenset[int], tuple[Loss, tuple[int, ...]]] = {frozenset(): (_NOTHING, ())}
    for running in _subsets(knot):
        if running:
            best[running] = min(_last_started(running, best, costs))
    return best[frozenset(knot)][1]


def _last_started(
    running: frozenset[int],
    best: Mapping[frozenset[int], tuple[Loss, tuple[int, ...]]],
    costs: _Costs,
) -> Iterator[tuple[Loss, tuple[int, ...]]]:
    """Yield what is lost, and the order, by the broker of some that starts last."""
    for broker in running:
        lost, order = best[running - {broker}]
        yield _plus(lost, costs.of(broker, running - {broker})), (*order, broker)


def _greedy(knot: Collection[int], costs: _Costs) -> tuple[int, ...]:
    """Start the broker last that then loses the least, and so on."""
    running, order = frozenset(knot), list[int]()
    while running:
        last = min((costs.of(broker, running - {broker}), broker) for broker in running)[1]
        running -= {last}
        order.insert(0, last)
    return tuple(order)


def _improved(order: tuple[int, ...], costs: _Costs) -> tuple[int, ...]:
    """Move one broker after another to another place, as long as that loses less."""
    least = costs.of_all(order)
    while True:
        moved = min((costs.of_all(one), one) for one in _with_one_moved(order))
        if moved[0] >= least:
            return order
        least, order = moved


def _with_one_moved(order: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    for broker in order:
        others = [one for one in order if one != broker]
        for at in range(len(order)):
            yield (*others[:at], broker, *others[at:])


def _subsets(brokers: Collection[int]) -> Iterator[frozenset[int]]:
    """Yield the subsets, the small ones first."""
    for size in range(len(brokers) + 1):
        yield from map(frozenset, combinations(sorted(brokers), size))


def _plus(one: Loss, other: Loss) -> Loss:
    return one[0] + other[0], one[1] + other[1]


def _steps(before: Mapping[int, set[int]]) -> dict[int, int]:
    """Return the number of each broker's step, behind those of all that must lead before."""
    step: dict[int, int] = {}
    for broker in TopologicalSorter(before).static_order():
        step[broker] = max((step[one] + 1 for one in before[broker]), default=0)
    return step


def _broken(among: Iterable[Wanted], step: Mapping[int, int]) -> Iterator[Broken]:
    for one in among:
        early = [
            broker for broker in one.late if step.get(broker, step[one.best] + 1) <= step[one.best]
        ]
        if early:
            leader = max(early, key=lambda broker: (one.late[broker], -broker))
            yield Broken(one, leader, one.late[leader])
