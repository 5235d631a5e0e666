"""A real cluster that loses what it has acknowledged: each loss is found, and each was foretold."""

import json
import os
import random
import re
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from kafka_segments.cli import cli
from kafka_segments.kafka.text.names import METADATA_TOPIC
from support.kafka.kafka_tools import KafkaTools
from support.kafka.kraft_cluster import DIRECTORIES, NODES, KraftCluster
from support.kafka.losing_cluster import (
    ALL,
    ONE,
    Clients,
    LosingCluster,
    Told,
    put_disks,
    records_on,
)

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
_STARTS = re.compile(r"^\d+\. Start brokers ([0-9]+(?:, [0-9]+)*)")
Rows = list[dict]


class Lost(NamedTuple):
    """A cluster that is down, and its life; ``disks`` has the disks as of two moments."""

    cluster: KraftCluster
    life: LosingCluster
    disks: Path

    @property
    def clients(self) -> Clients:
        return self.life.clients


@pytest.fixture(scope="module")
def lost(seed: int, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lost]:
    drawn = os.environ.get("LOSSES_SEED", f"{seed}")
    print(f"LOSSES_SEED={drawn}")
    folder = tmp_path_factory.mktemp("losing")
    with KraftCluster(folder / "run") as cluster:
        life = LosingCluster(cluster, random.Random(f"{drawn} losses"))
        life.live(folder / "disks")
        yield Lost(cluster, life, folder / "disks")


def copies_of(disks: Path, nodes: Iterable[int]) -> list[str]:
    return [
        part
        for node in nodes
        for name in DIRECTORIES
        for part in ("--copy", f"n{node}={disks}/node-{node}/{name}")
    ]


def told(*arguments: str) -> Rows:
    result = CliRunner().invoke(cli, [*arguments, "--output", "json"])
    assert result.exit_code in (0, 1), result.output
    return [json.loads(line) for line in result.stdout.splitlines()]


def name_of(row: dict) -> str:
    return f"{row['topic']}-{row['partition']}"


@pytest.mark.parametrize("moment", ["first", "last"])
def test_every_loss_that_clients_noted_is_found_and_nothing_else(
    spark: SparkSession, lost: Lost, moment: str
) -> None:
    """What is lost lies ahead, and beside what was written after the elections."""
    life, disks = lost.life, lost.disks / moment
    is_first = moment == "first"
    served = life.served_first if is_first else life.served_last
    told_of = life.told_first if is_first else life.told_last
    held = {node: records_on(disks, node) for node in NODES}
    rows = told("divergence", *copies_of(disks, NODES))
    noted = {ONE: 0, ALL: 0}
    for partition in lost.life.assignments:
        own = held[life.lost][partition]
        gone = set() if partition in life.offline else own - served[partition]
        for acks in noted:
            noted[acks] += len(lost.clients.acknowledged[acks][partition] & gone)
        acknowledged = {one.digest for one in lost.clients.all_acknowledged(partition)}
        assert {one.digest for one in gone} - acknowledged <= lost.clients.unanswered
        found = [row for row in rows if name_of(row) == partition]
        apart = [row for row in found if row["kind"] not in ("equal", "behind")]
        kind = "ahead" if is_first or partition.startswith("bold") else "fork"
        assert {(row["kind"], *row["copies"]) for row in apart} <= {(kind, f"n{life.lost}")}
        covered = {
            one
            for one in own
            for row in apart
            if row["from_offset"] <= one.offset < row["until_offset"]
        }
        assert covered == gone, (partition, found)
        if partition not in life.offline:
            assert told_of[partition] - served[partition] <= covered, (partition, found)
        for row in found:
            if row["kind"] == "behind":
                ends = [end_of(held[int(name[1:])][partition]) for name in row["copies"]]
                assert max(ends) <= row["from_offset"], row
    # Nothing went to internal topics; of the metadata log the lost node has an older end.
    others = [row for row in rows if row["is_finding"] and name_of(row) not in life.assignments]
    assert {(row["topic"], *row["copies"]) for row in others} <= {(METADATA_TOPIC, f"n{life.lost}")}
    assert {row["kind"] for row in others} <= {"behind", "ahead", "fork"}
    print(f"{moment}: lost of acks=1 {noted[ONE]}, of acks=all {noted[ALL]}")
    assert all(noted.values())


def end_of(records: Iterable[Told]) -> int:
    return max((one.offset + 1 for one in records), default=0)


@pytest.mark.parametrize("is_whole", [True, False], ids=["all disks", "one burnt"])
def test_elections_lose_what_was_foretold(
    spark: SparkSession,
    lost: Lost,
    tmp_path: Path,
    *,
    is_whole: bool,
) -> None:
    """With the disks of all, and without those of one broker, which does not come back."""
    burnt = None if is_whole else lost.life.late
    nodes = [node for node in NODES if node != burnt]
    disks = lost.disks / "last"
    copies = copies_of(disks, nodes)
    weighed = {
        (name_of(row), row["broker_id"]): row for row in told("divergence", "elect", *copies)
    }
    script = CliRunner().invoke(cli, ["divergence", "elect", *copies, "--output", "commands"])
    put_disks(lost.cluster, disks)
    held = [records_on(disks, node) for node in nodes]
    tools = KafkaTools(tmp_path, lost.cluster.bootstrap)

    try:
        said = follow(script.stdout, lost.cluster, tools)
        print(said)
        lost.cluster.wait_until(
            lambda found: (
                found["leader"] > 0
                and set(found["isr"]) == set(found["replicas"]).intersection(nodes)
            ),
            "all have leaders and followers",
        )
        if is_whole:
            lost.cluster.wait_until(
                lambda found: (
                    set(found["replicas"])
                    == set(found["isr"])
                    >= set(lost.life.assignments.get(name_of(found), ()))
                ),
                "all replicas are back",
            )
        partitions = {name_of(found): found for found in lost.cluster.client.partitions()}
        served = lost.clients.served(lost.life.assignments)
    finally:
        for node in nodes:
            lost.cluster.nodes[node].kill()

    for partition in lost.life.assignments:
        leader = partitions[partition]["leader"]
        if is_whole:
            assert set(partitions[partition]["replicas"]) == set(lost.life.assignments[partition])
        foretold = weighed[partition, leader]
        best = next(
            row for (name, _), row in weighed.items() if name == partition and row["rank"] == 1
        )
        gone = set().union(*(records[partition] for records in held)) - served[partition]
        assert foretold["lost_records"] == len(gone), (partition, leader, said)
        first = min((one.offset for one in gone), default=None)
        assert foretold["first_lost_offset"] == first
        told_all = len(lost.clients.acknowledged[ALL][partition] & gone)
        assert told_all <= foretold["lost_acks_all_records"], (partition, leader)
        costs = [
            [row[f"lost_{kind}records"] for kind in ("committed_", "acks_all_", "")]
            for row in (foretold, best)
        ]
        assert costs[0] == costs[1], (partition, leader, best, said)


def follow(script: str, cluster: KraftCluster, tools: KafkaTools) -> str:
    """Run a script of ``elect``, and start the brokers that it asks for."""

    def heed(line: str) -> None:
        starts = _STARTS.match(line)
        if starts:
            nodes = [int(node) for node in starts[1].split(",")]
            with ThreadPoolExecutor() as threads:
                list(threads.map(lambda node: cluster.nodes[node].start_node(), nodes))

    return tools.follow(script, heed)
