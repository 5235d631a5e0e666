"""The script that an operator runs to follow the advice on elections."""

import json

from kafka_segments.divergence.decide.elections import Way
from kafka_segments.divergence.election_commands import Chosen, election_script


def _script(*chosen: Chosen, brokers: tuple[int, ...] = (1, 2, 3)) -> list[str]:
    return list(election_script(chosen, brokers))


def _file(script: list[str], name: str) -> dict:
    return json.loads(script[script.index(f"cat > {name} <<'END'") + 1])


def test_nothing_but_starting_all_brokers_is_to_be_done() -> None:
    script = _script(Chosen("t", 0, 1, Way.BY_ITSELF, [], []))

    assert script[3:] == ["# 1. Start brokers 1, 2, 3 and wait."]


def test_replicas_are_ordered_before_they_are_elected() -> None:
    script = _script(
        Chosen("t", 0, 3, Way.UNCLEAN, [], [3, 1, 2]),
        Chosen("t", 1, 2, Way.UNCLEAN, [], []),
        Chosen("u", 0, 2, Way.BY_ITSELF, [], []),
    )

    assert _file(script, "replica-order.json") == {
        "version": 1,
        "partitions": [{"topic": "t", "partition": 0, "replicas": [3, 1, 2]}],
    }
    assert _file(script, "unclean-elections.json") == {
        "partitions": [{"topic": "t", "partition": 0}, {"topic": "t", "partition": 1}]
    }
    commands = [line.split()[0] for line in script if line.startswith("kafka-")]
    assert commands == [*["kafka-reassign-partitions.sh"] * 2, "kafka-leader-election.sh"]


def test_replicas_that_do_not_run_are_left_out_and_given_back() -> None:
    script = _script(Chosen("t", 0, 3, Way.UNCLEAN, [2], [3, 1, 2, 4]))

    orders = [_file(script, f"{name}.json") for name in ("replica-order", "all-replicas")]
    assert [order["partitions"][0]["replicas"] for order in orders] == [[3, 1], [3, 1, 2, 4]]
    assert script[-1].startswith("#    kafka-reassign-partitions.sh ")
    assert script[-1].endswith(" all-replicas.json --additional --execute")


def test_a_broker_that_must_not_lead_is_started_last() -> None:
    script = _script(
        Chosen("t", 0, 2, Way.UNCLEAN, [1], []), Chosen("t", 1, 2, Way.UNCLEAN, [1], [])
    )

    assert "# 1. Start brokers 2, 3, and no other, and wait." in script
    assert script[-3:] == [
        "# 4. Start brokers 1, once these partitions have their leaders:",
        "#    t-0: broker 2",
        "#    t-1: broker 2",
    ]


def test_a_partition_that_elects_whoever_runs_wants_its_best_in_step_1() -> None:
    late = Chosen("t", 0, 2, Way.UNCLEAN, [1], [])
    for elects_any in (True, False):
        script = _script(late, Chosen("u", 0, 1, Way.BY_ITSELF, [], [], elects_any))
        told = [line.split()[1] for line in script if "weigh what is lost" in line]
        assert told == ["u-0"] * elects_any


def test_partitions_that_want_opposite_orders_are_told() -> None:
    script = _script(
        Chosen("t", 0, 2, Way.UNCLEAN, [1], []),
        Chosen("t", 1, 1, Way.UNCLEAN, [2], []),
        brokers=(1, 2),
    )

    assert [line.split()[1] for line in script if "weigh what is lost" in line] == ["t-0", "t-1"]
