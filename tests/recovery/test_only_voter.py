"""A metadata log that lacks its last records: what the start of its cluster's only voter does.

Nobody has the missing records, so such a node starts with what is there. Kafka 4.3.1 was seen to
rename the logs of topics that came later.
"""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from kafka_segments.kafka.broker_rules.start.effects import Effect
from kafka_segments.kafka.broker_rules.start.node import NodeStart
from kafka_segments.verbs.change.recovery.forecast.run import ForecastOptions, run_forecast
from support.logs.metadata_logs import (
    config,
    feature,
    log_bytes,
    log_dir,
    partition,
    snapshot_bytes,
    topic,
    uuid_text,
)
from support.logs.strategies import v2_batch

FIRST = [feature("metadata.version", 20), topic("early", 1), partition(1, 0, (1,))]
LATER = [topic("late", 2), partition(2, 0, (1,)), config("late", "retention.ms", "1")]
LOG, CHECKPOINT = f"{0:020d}.log", f"{3:020d}-{1:010d}.checkpoint"
METADATA = "__cluster_metadata-0"


def quorum(*voters: int) -> str:
    """Write ``quorum-state`` of a static quorum."""
    state = {
        "clusterId": "",
        "leaderId": 1,
        "leaderEpoch": 1,
        "votedId": -1,
        "appliedOffset": 0,
        "currentVoters": [{"voterId": voter} for voter in voters],
        "data_version": 0,
    }
    return json.dumps(state)


@pytest.fixture
def node(tmp_path: Path) -> Path:
    """A node with a topic that its checkpoint has, and one that came later."""
    files = {
        LOG: log_bytes([*FIRST, *LATER]),
        CHECKPOINT: snapshot_bytes(FIRST, end_offset=3),
        "quorum-state": quorum(1).encode(),
        "partition.metadata": b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ\n",
    }
    here = log_dir(tmp_path, files)
    for number, name in enumerate(("early", "late"), 1):
        log = here / f"{name}-0"
        log.mkdir()
        (log / LOG).write_bytes(v2_batch(0, [(0, None, b"x")], leader_epoch=0))
        (log / "partition.metadata").write_text(f"version: 0\ntopic_id: {uuid_text(number)}\n")
        (log / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")
    return here


def start_of(node: Path) -> NodeStart:
    """Say what the start does."""
    (found,) = run_forecast(ForecastOptions(threads=(1,), sources=(str(node),))).nodes
    return found.start


def cut(node: Path) -> None:
    """Damage the batch in which the later topic is made."""
    log = node / METADATA / LOG
    whole = bytearray(log.read_bytes())
    whole[len(log_bytes(FIRST)) + 70] ^= 1
    log.write_bytes(whole)


def gone(node: Path) -> None:
    """Take the segment away, the checkpoint stays."""
    (node / METADATA / LOG).unlink()


def test_a_whole_log_renames_nothing(node: Path) -> None:
    assert (start_of(node).starts, start_of(node).findings) == (True, ())


@pytest.mark.parametrize(
    ("spoil", "rule"), [(cut, "metadata-older"), (gone, "metadata-anew")], ids=["cut", "gone"]
)
def test_the_logs_of_topics_that_it_lost_are_renamed(
    node: Path, spoil: Callable[[Path], None], rule: str
) -> None:
    spoil(node)

    start = start_of(node)

    assert start.starts is True
    assert [one.rule for one in start.findings if one.folder == METADATA] == [rule]
    strays = [one.folder for one in start.findings if one.effect == Effect.STRAY]
    assert strays == ["late-0"]


@pytest.mark.parametrize("spoil", [cut, gone])
def test_of_several_voters_the_others_may_have_what_is_missing(
    node: Path, spoil: Callable[[Path], None]
) -> None:
    (node / METADATA / "quorum-state").write_text(quorum(1, 2, 3))
    spoil(node)

    start = start_of(node)

    assert not [one for one in start.findings if one.effect == Effect.STRAY]


@pytest.mark.parametrize(("voters", "starts"), [((1,), True), ((1, 2, 3), None), ((2,), None)])
def test_a_later_epoch_of_a_log_tells_that_records_are_missing(
    node: Path, voters: tuple[int, ...], starts: bool | None
) -> None:
    (node / METADATA / "quorum-state").write_text(quorum(*voters))
    (node / "early-0" / "leader-epoch-checkpoint").write_text("0\n2\n0 0\n9 1\n")

    start = start_of(node)

    assert start.starts is starts
    (found,) = start.findings
    assert found.effect == (Effect.FORGOTTEN if starts else Effect.NOT_KNOWN)
    assert "its last records are missing" in found.found


def test_the_epoch_that_is_named_begins_in_the_log(node: Path) -> None:
    (node / "early-0" / "leader-epoch-checkpoint").write_text("0\n3\n0 0\n4 1\n9 99\n")

    (found,) = start_of(node).findings

    assert found.found.startswith("early-0 has leader epoch 4, ")
