"""The script that an operator runs to follow the advice on elections."""

import json
import re

from kafka_segments.verbs.copies.divergence.elect.decide.elections import Way
from kafka_segments.verbs.copies.divergence.elect.election_commands import Chosen, election_script

_AWAITS = re.compile(r"await_\w+ ")
_NUMBERED = re.compile(r"(?:# |await_brokers ')(\d+)\. ")


def _script(*chosen: Chosen, brokers: tuple[int, ...] = (1, 2, 3)) -> list[str]:
    return list(election_script(chosen, brokers))


def _file(script: list[str], name: str) -> dict:
    return json.loads(script[script.index(f"cat > {name} <<'END'") + 1])


def test_nothing_but_starting_all_brokers_is_to_be_done() -> None:
    script = _script(Chosen("t", 0, 1, Way.BY_ITSELF, [], []))

    assert [line for line in script if _AWAITS.match(line)] == [
        "await_brokers '1. Start brokers 1, 2, 3.' '1 2 3' ''"
    ]
    assert script[-1] == "echo 'All steps are done.'"


def test_brokers_whose_replicas_were_not_at_hand_are_named_in_front() -> None:
    whole = _script(Chosen("t", 0, 1, Way.BY_ITSELF, [], []))
    part = _script(
        Chosen("t", 0, 1, Way.BY_ITSELF, [], [], absent=[5]),
        Chosen("t", 1, 1, Way.BY_ITSELF, [], [], absent=[4, 5]),
    )

    [first, *_] = [line for line in part if line not in whole]
    assert first.startswith("# Of brokers 4, 5 replicas were not at hand: ")


def test_partitions_without_a_copy_are_named_in_front() -> None:
    lines = list(election_script([], [1], ["t-0", "t-1"]))

    at = lines.index("#    t-0")
    assert lines[at + 1] == "#    t-1"
    assert "is not known" in " ".join(lines[at - 2 : at])
    assert at < next(place for place, line in enumerate(lines) if "Start brokers" in line)


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
    assert "missing=$(lacking '1 2 3 4')" in script
    [command] = [line for line in script if line.startswith("  kafka-reassign")]
    assert command.endswith(" all-replicas.json --additional --execute")
    assert f'if [ -z "$missing" ]; then {command.strip()}' in script


def test_a_broker_that_must_not_lead_is_started_last() -> None:
    script = _script(
        Chosen("t", 0, 2, Way.UNCLEAN, [1], []), Chosen("t", 1, 2, Way.UNCLEAN, [1], [])
    )

    assert [line for line in script if _AWAITS.match(line)] == [
        "await_brokers '1. Start brokers 2, 3, and no other.' '2 3' '1'",
        "await_fenced leaders.txt",
        "await_leaders leaders.txt",
        "await_brokers '3. Start brokers 1.' '1 2 3' ''",
    ]
    assert script[script.index("cat > leaders.txt <<'END'") + 1 :][:3] == ["t 0 1", "t 1 1", "END"]
    assert not any("by hand" in line for line in script)
    assert any("process.roles=controller" in line for line in script)


def _orders(script: list[str]) -> list[list[dict]]:
    """Give the partitions of each file for an election, in turn."""
    at = [n for n, line in enumerate(script) if line == "cat > unclean-elections.json <<'END'"]
    return [json.loads(script[n + 1])["partitions"] for n in at]


def test_brokers_start_one_step_after_the_other_where_partitions_want_that() -> None:
    script = _script(
        Chosen("a", 0, 3, Way.UNCLEAN, [2], []),
        Chosen("b", 0, 2, Way.UNCLEAN, [1], [2, 3, 1]),
        Chosen("c", 0, 1, Way.UNCLEAN, [], []),
    )

    starts = [line for line in script if "Start brokers" in line]
    assert [line.split("Start brokers ")[1][0] for line in starts] == ["3", "2", "1"]
    assert ["and no other" in line for line in starts] == [True, True, False]
    topics = [[one["topic"] for one in partitions] for partitions in _orders(script)]
    assert topics == [["a"], ["b"], ["c"]]
    order = _file(script, "replica-order.json")
    assert order["partitions"] == [{"topic": "b", "partition": 0, "replicas": [2, 3]}]
    numbers = [int(found[1]) for line in script if (found := _NUMBERED.match(line))]
    assert numbers == list(range(1, 1 + len(numbers)))


def test_what_no_order_saves_is_named_with_what_it_loses_and_left_to_decide_by_hand() -> None:
    script = _script(
        Chosen("t", 0, 2, Way.UNCLEAN, [1], [], {1: (30, 40), 2: (5, 5)}),
        Chosen("t", 1, 1, Way.UNCLEAN, [2], [], {2: (7, 8), 1: (0, 0)}),
        brokers=(1, 2),
    )

    assert [line for line in script if "Start brokers" in line] == [
        "await_brokers '1. Start brokers 2, and no other.' '2' '1'",
        "await_brokers '3. Start brokers 1.' '1 2' ''",
    ]
    assert _orders(script) == [[{"topic": "t", "partition": 0}]]
    [told] = [line for line in script if line.startswith("#    t-1: ")]
    assert "broker 2 runs before broker 1 can lead" in told
    assert "7 acknowledged records are lost, 8 in all" in told
    assert any("acks=all may have acknowledged: 7." in line for line in script)


def test_what_an_unclean_election_loses_is_said_before_it() -> None:
    script = _script(
        Chosen("t", 0, 3, Way.UNCLEAN, [], [], {1: (0, 0), 3: (2, 5)}),
        Chosen("u", 0, 3, Way.UNCLEAN, [], [], {3: (0, 0)}),
    )

    lost = [number for number, line in enumerate(script) if "copy its folders" in line]
    election = next(n for n, line in enumerate(script) if line.startswith("kafka-leader-election"))
    assert [script[number] for number in lost] == [
        "#    t-0: 5 records, 2 of which acks=all may have acknowledged: copy its folders of the"
        " other brokers before this step"
    ]
    assert lost[0] < election
