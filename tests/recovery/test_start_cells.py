"""States of a node's directories that are seldom met: what a 4.3.1 broker makes of each.

The verdicts are those of Kafka's own classes, which were asked about the same states.
"""

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from kafka_segments.kafka.broker_rules.start.node import NodeStart
from kafka_segments.verbs.change.recovery.forecast.run import ForecastOptions, run_forecast

ENDS, WITHOUT_B, STARTS = "ends", "without b", "starts"
LOG = "b/{log}"
METADATA = "a/__cluster_metadata-0"
QUORUM = f"{METADATA}/quorum-state"
EPOCHS = f"{LOG}/leader-epoch-checkpoint"
OF_TOPIC = f"{LOG}/partition.metadata"
POINTS = "b/recovery-point-offset-checkpoint"
MARKED = "b/{log}.0123456789abcdef0123456789abcdef"
Change = Callable[[Path], object]


class Cell(NamedTuple):
    """A file or folder, what was done to it, and what the start does then."""

    path: str
    change: Change
    outcome: str
    exception: str = ""


def _put(text: str) -> Change:
    return lambda path: path.write_text(text)


def _swap(pattern: str, text: str) -> Change:
    def change(path: Path) -> None:
        found, count = re.subn(pattern, text, path.read_text())
        assert count
        path.write_text(found)

    return change


def _folder(path: Path) -> None:
    path.unlink(missing_ok=True)
    path.mkdir()


def _as_in_a(path: Path) -> None:
    (line,) = re.findall("directory.id=.*", (path.parents[1] / "a" / path.name).read_text())
    _swap("directory.id=.*", line)(path)


def _copy_with(name: str, text: str) -> Change:
    def change(path: Path) -> None:
        shutil.copytree(path.with_name(path.name.partition(".")[0]), path)
        (path / name).write_text(text)

    return change


def _quorum(more: str = "", *, epoch: str = "1", voters: str = '[{"voterId":1}]') -> Change:
    return _put(
        f'{{"clusterId":"","leaderId":1,"leaderEpoch":{epoch},"votedId":-1,"appliedOffset":0,{more}'
        f'"currentVoters":{voters},"data_version":0}}'
    )


CELLS = {
    "a folder for the bootstrap file": Cell("a/bootstrap.checkpoint", _folder, ENDS, "IOException"),
    "no bootstrap file": Cell("a/bootstrap.checkpoint", Path.unlink, STARTS),
    "the other directory's id": Cell("b/meta.properties", _as_in_a, ENDS, "RuntimeException"),
    "an empty cluster id": Cell(
        "b/meta.properties", _swap("cluster.id=.*", "cluster.id="), ENDS, "RuntimeException"
    ),
    "a blank behind the node id": Cell(
        "b/meta.properties", _swap(r"(node.id=\d+)", r"\1 "), WITHOUT_B, "RuntimeException"
    ),
    "a node id of 33 bits": Cell(
        "b/meta.properties", _swap(r"node.id=\d+", "node.id=4294967297"), WITHOUT_B, "Runtime"
    ),
    "an epoch of 32 bits": Cell(EPOCHS, _put("0\n1\n2147483648 0\n"), ENDS, "NumberFormat"),
    "a tab in an epoch's line": Cell(EPOCHS, _put("0\n1\n0\t0\n"), STARTS),
    "a folder for the epochs": Cell(EPOCHS, _folder, WITHOUT_B, "IOException"),
    "unfinished epochs": Cell(EPOCHS + ".tmp", _put("0\n9\n"), STARTS),
    "unfinished recovery points": Cell(POINTS + ".tmp", _put("\0" * 30), STARTS),
    "a folder for the recovery points": Cell(POINTS, _folder, ENDS, "KafkaException"),
    "a count of 33 bits": Cell(POINTS, _put("0\n4294967296\n"), WITHOUT_B, "IOException"),
    "a count below 0": Cell(POINTS, _put("0\n-1\n"), STARTS),
    "an empty topic id of a deleted log": Cell(
        f"{MARKED}-delete", _copy_with("partition.metadata", ""), ENDS, "NullPointerException"
    ),
    "broken epochs of a stray log": Cell(
        f"{MARKED}-stray",
        _copy_with("leader-epoch-checkpoint", "0\n1\nx y\n"),
        ENDS,
        "NumberFormatException",
    ),
    "a partition of 33 bits": Cell("b/big-4294967296", _folder, ENDS, "KafkaException"),
    "dots for a topic": Cell("b/..-0x", _folder, ENDS, "KafkaException"),
    "a folder in a log": Cell(f"{LOG}/old", _folder, STARTS),
    "a folder for the topic id": Cell(OF_TOPIC, _folder, WITHOUT_B, "IOException"),
    "no number of a version": Cell(OF_TOPIC, _swap("version: 0", "version: x"), WITHOUT_B, "IO"),
    "no blank behind a colon": Cell(OF_TOPIC, _swap(": ", ":"), WITHOUT_B, "IOException"),
    "an unfinished topic id": Cell(OF_TOPIC + ".tmp", _put(""), STARTS),
    "no voters": Cell(QUORUM, _quorum(voters="null"), ENDS, "NullPointerException"),
    "a voter's id in letters": Cell(
        QUORUM, _quorum(voters='[{"voterId":"a"}]'), ENDS, "NumberFormatException"
    ),
    "a leader epoch of 33 bits": Cell(QUORUM, _quorum(epoch="4294967297"), ENDS, "NumberFormat"),
    "a field that nobody knows": Cell(QUORUM, _quorum('"more":1,'), STARTS),
    "a folder for the quorum state": Cell(QUORUM, _folder, ENDS, "IOException"),
    "a log of a program beside metadata": Cell(
        f"{METADATA}/raft.log", _put("x"), ENDS, "NumberFormatException"
    ),
    "a text beside metadata": Cell(f"{METADATA}/notes.txt", _put("x"), STARTS),
    "an unfinished checkpoint": Cell(
        f"{METADATA}/{90:020d}-0000000001-12.checkpoint.part", _put("x"), STARTS
    ),
    "a deleted checkpoint": Cell(
        f"{METADATA}/{20:020d}-0000000001.checkpoint.deleted", _put("x"), STARTS
    ),
    "a swap file without a number": Cell(f"{LOG}/x.swap", _put("x"), ENDS, "NumberFormat"),
    "an index of a swap alone": Cell(f"{LOG}/{0:020d}.index.swap", _put(""), STARTS),
}


def _spoil(node: Path, cell: Cell) -> None:
    log = next(path.name for path in sorted((node / "b").glob("*-?")) if path.is_dir())
    cell.change(node / cell.path.format(log=log))


def _start(node: Path) -> NodeStart:
    (found,) = run_forecast(ForecastOptions(threads=(1,), sources=(str(node),))).nodes
    return found.start


@pytest.mark.parametrize("name", [name for name, cell in CELLS.items() if cell.outcome != STARTS])
def test_a_start_does_with_it_what_kafkas_classes_do(node: Path, name: str) -> None:
    cell = CELLS[name]
    _spoil(node, cell)

    start = _start(node)

    assert start.starts is (cell.outcome != ENDS), start.problem
    assert start.without == ((str(node / "b"),) if cell.outcome == WITHOUT_B else ())
    exceptions = [finding.exception for finding in start.findings]
    assert any(cell.exception in exception for exception in exceptions), exceptions


def test_all_that_a_start_reads_over_together_is_no_finding(node: Path) -> None:
    for cell in CELLS.values():
        if cell.outcome == STARTS:
            _spoil(node, cell)

    start = _start(node)

    assert (start.starts, start.findings) == (True, ())


@pytest.mark.parametrize("epochs", ["0\n2\n5 30\n0 100\n", "0\n2\n0 0\n9 99999\n"])
def test_epochs_that_no_broker_left_tell_nothing_of_the_metadata_log(
    node: Path, epochs: str
) -> None:
    _spoil(node, Cell(EPOCHS, _put(epochs), STARTS))

    start = _start(node)

    assert start.starts is True
    assert not [found for found in start.findings if found.folder == "__cluster_metadata-0"]
