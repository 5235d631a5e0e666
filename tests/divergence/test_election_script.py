"""The script of ``elect``, run by a shell: it waits between steps, and stops where one fails."""

import os
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest

from kafka_segments.verbs.copies.divergence.elect.decide.elections import Way
from kafka_segments.verbs.copies.divergence.elect.election_commands import Chosen, election_script

HELD_BACK = (
    Chosen("t", 0, 2, Way.UNCLEAN, [1], [2, 1, 3]),
    Chosen("u", 0, 1, Way.UNCLEAN, [], []),
    Chosen("v", 0, 3, Way.BY_ITSELF, [], []),
)
BY_HAND = (
    Chosen("t", 0, 2, Way.UNCLEAN, [1], [], {1: (9, 9), 2: (0, 0)}),
    Chosen("t", 1, 1, Way.UNCLEAN, [2], [], {2: (7, 8), 1: (0, 0)}),
)
# Tools that go by the files "running" (brokers) and "led" (topic, partition, leader), and note how
# they were called. Each wait lets one more thing happen, and the last one ends the run.
TOOLS = {
    "kafka-broker-api-versions.sh": r"""
for broker in $(cat running); do
  echo "host:9092 (id: $broker rack: null isFenced: false) -> ("
  printf '\tProduce(0): 3 to 13 [usable: 13],\n)\n'
done""",
    "kafka-topics.sh": r"""
while read -r topic number leader; do
  printf 'Topic: %s\tTopicId: x\tPartitionCount: 1\n' "$topic"
  printf '\tTopic: %s\tPartition: %s\tLeader: %s\tReplicas: 1\n' "$topic" "$number" "$leader"
done <led""",
    "kafka-reassign-partitions.sh": 'echo "reassign $3 $4 $5" >>called',
    "kafka-leader-election.sh": r"""
echo "elect $(cat unclean-elections.json)" >>called
[ ! -e election-fails ]""",
    "sleep": r'''
event=$(head -n 1 events)
[ -n "$event" ] || { kill "$PPID"; exit; }
sed -i 1d events
echo "$event" >>called
eval "$event"''',
}
NOBODY = "t 0 none\nu 0 none\nv 0 none\n"


class Ran(NamedTuple):
    status: int
    called: list[str]
    told: str


def _run(
    folder: Path,
    chosen: tuple[Chosen, ...],
    *events: str,
    running: str = "",
    led: str = NOBODY,
    **environment: str,
) -> Ran:
    """Run the script for these partitions; ``events``: shell lines, one for each wait."""
    programs = folder / "bin"
    programs.mkdir(exist_ok=True)
    for name, lines in TOOLS.items():
        (programs / name).write_text(f"#!/bin/sh\n{lines}\n")
        (programs / name).chmod(0o755)
    texts = {"running": running, "led": led, "called": "", "events": "\n".join(events)}
    for name, text in texts.items():
        (folder / name).write_text(text)
    brokers = sorted({broker for one in chosen for broker in (one.broker_id, *one.hold_back)})
    done = subprocess.run(
        ["sh"],
        input="\n".join(election_script(chosen, brokers)),
        cwd=folder,
        env={"PATH": f"{programs}:{os.environ['PATH']}", "BOOTSTRAP": "b:9092", **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        check=False,
    )
    return Ran(done.returncode, (folder / "called").read_text().splitlines(), done.stdout)


def test_it_waits_for_brokers_and_leaders_and_then_goes_on(tmp_path: Path) -> None:
    events = [
        "echo 3 >running",
        "echo 2 3 >running",
        "sed -i 's/t 0 none/t 0 1/' led",  # as the metadata log still has it
        "sed -i 's/t 0 1/t 0 none/' led",
        "sed -i 's/t 0 none/t 0 2/' led",
        "echo 1 2 3 >running",
        "sed -i 's/u 0 none/u 0 1/' led",
    ]
    events[1:3] = [f"{events[1]}; {events[2]}"]

    ran = _run(tmp_path, HELD_BACK, *events)

    assert ran.status == 0, ran.told
    file = "--reassignment-json-file"
    assert ran.called == [
        *events[:3],
        f"reassign {file} replica-order.json --execute",
        f"reassign {file} replica-order.json --cancel",
        'elect {"partitions": [{"topic": "t", "partition": 0}]}',
        *events[3:5],
        'elect {"partitions": [{"topic": "u", "partition": 0}]}',
        *events[5:],
        f"reassign {file} all-replicas.json --additional",
    ]
    started = [line for line in ran.told.splitlines() if "Start brokers" in line]
    assert started == ["1. Start brokers 2, 3, and no other.", "4. Start brokers 1."]
    assert "waiting for brokers 2, by way of b:9092" in ran.told
    assert "waiting until the controller leaves out brokers 1 " in ran.told
    assert "waiting for a leader of:\nt-0\n" in ran.told
    assert ran.told.endswith("All steps are done.\n")


def test_what_is_done_already_is_not_done_again(tmp_path: Path) -> None:
    """But for the replicas: the tool is asked to give all of them once more."""
    led = "t 0 2\nu 0 1\nv 0 3\n"
    ran = _run(tmp_path, HELD_BACK[1:], running="1 3", led=led)

    assert (ran.status, ran.called) == (0, []), ran.told


def test_a_broker_whose_step_has_not_come_stops_it(tmp_path: Path) -> None:
    ran = _run(tmp_path, HELD_BACK, running="1 2 3")

    assert (ran.status, ran.called) == (1, [])
    assert "broker 1 runs, and its step has not come: stop it" in ran.told


def test_a_step_that_fails_is_the_last_one(tmp_path: Path) -> None:
    (tmp_path / "election-fails").touch()
    ran = _run(tmp_path, HELD_BACK, running="2 3")

    assert ran.status == 1
    assert ran.called[-1].startswith("elect ")
    assert "Start brokers 1" not in ran.told


def test_a_broker_that_does_not_come_is_waited_for(tmp_path: Path) -> None:
    ran = _run(tmp_path, HELD_BACK, "echo 2 >running", "true")

    assert (ran.status != 0, ran.called) == (True, ["echo 2 >running", "true"])
    assert "waiting for brokers 3" in ran.told


@pytest.mark.parametrize("decided", [{}, {"DECIDED": "no"}])
def test_what_is_left_to_decide_by_hand_stops_it_in_front_of_all_steps(
    tmp_path: Path, decided: dict[str, str]
) -> None:
    ran = _run(tmp_path, BY_HAND, running="2", **decided)

    assert (ran.status, ran.called) == (1, [])
    assert "run it with DECIDED=yes" in ran.told
    assert "Start brokers" not in ran.told


def test_what_was_decided_by_hand_lets_it_run(tmp_path: Path) -> None:
    led = "t 0 2\nt 1 none\n"
    ran = _run(tmp_path, BY_HAND, "echo 1 2 >running", running="2", led=led, DECIDED="yes")

    assert ran.status == 0, ran.told


def test_without_brokers_to_ask_nothing_is_done(tmp_path: Path) -> None:
    ran = _run(tmp_path, HELD_BACK, BOOTSTRAP="")

    assert ran.status != 0
    assert "BOOTSTRAP=broker1:9092,broker2:9092 sh SCRIPT" in ran.told
