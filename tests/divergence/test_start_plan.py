"""Orders of brokers' starts against all orders that there are."""

import random
from itertools import permutations

from kafka_segments.verbs.copies.divergence.elect.decide.start_plan import (
    MOST_EXACT,
    StartPlan,
    Wanted,
    plan_starts,
)

ROUNDS = 60


def _drawn(rng: random.Random, brokers: list[int], partitions: int) -> list[Wanted]:
    found = []
    for number in range(partitions):
        best, *late = rng.sample(brokers, rng.randint(1, min(3, len(brokers))))
        losses = {broker: (rng.randrange(20), rng.randrange(20, 40)) for broker in late}
        found.append(Wanted(f"t-{number}", best, losses))
    return found


def _lost(wanted: list[Wanted], step: dict[int, int]) -> tuple[int, int]:
    """Give what is lost: of each partition the worst of the brokers that run before its best."""
    total = [0, 0]
    for one in wanted:
        early = [lost for broker, lost in one.late.items() if step[broker] <= step[one.best]]
        for at, count in enumerate(max(early, default=(0, 0))):
            total[at] += count
    return total[0], total[1]


def _steps_of(plan: StartPlan) -> dict[int, int]:
    return {broker: at for at, brokers in enumerate(plan.steps) for broker in brokers}


def test_no_order_loses_less_and_what_the_plan_loses_is_what_it_says(seed: int) -> None:
    rng = random.Random(f"{seed} starts")
    broken = 0
    for _ in range(ROUNDS):
        brokers = list(range(1, rng.randint(2, 5) + 1))
        wanted = _drawn(rng, brokers, rng.randint(1, 9))
        plan = plan_starts(wanted, brokers)

        step = _steps_of(plan)
        assert sorted(step) == brokers
        least = min(
            _lost(wanted, {broker: at for at, broker in enumerate(order)})
            for order in permutations(brokers)
        )
        assert _lost(wanted, step) == least
        assert least == tuple(sum(one.lost[at] for one in plan.broken) for at in (0, 1))
        assert plan.is_least
        broken += bool(plan.broken)
    assert 0 < broken < ROUNDS


def test_brokers_that_nothing_holds_back_start_at_once() -> None:
    wanted = [Wanted("a", 1, {2: (1, 1)}), Wanted("b", 2, {3: (1, 1)}), Wanted("c", 4, {})]

    assert plan_starts(wanted, range(1, 6)).steps == ((1, 4, 5), (2,), (3,))
    assert plan_starts([], [2, 1]) == StartPlan(((1, 2),), ())


def test_a_great_knot_is_told_and_no_worse_than_orders_that_are_drawn(seed: int) -> None:
    rng = random.Random(f"{seed} knot")
    brokers = list(range(MOST_EXACT + 3))
    wanted = _drawn(rng, brokers, 150)
    plan = plan_starts(wanted, brokers)

    lost = _lost(wanted, _steps_of(plan))
    assert not plan.is_least
    for _ in range(200):
        order = rng.sample(brokers, len(brokers))
        assert lost <= _lost(wanted, {broker: at for at, broker in enumerate(order)})
