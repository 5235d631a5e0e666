"""A real cluster that loses what it has acknowledged: each loss is found, and nothing else."""

import json
import os
import random
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from kafka_segments.cli import cli
from kraft_cluster import DIRECTORIES, NODES, KraftCluster
from losing_cluster import (
    ALL,
    ASSIGNMENTS,
    ONE,
    Clients,
    LosingCluster,
    Told,
    records_on,
)

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
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
    """Before anything was written after the elections, what is lost lies ahead, then beside."""
    life, disks = lost.life, lost.disks / moment
    kind, served = ("ahead", life.served_first) if moment == "first" else ("fork", life.served_last)
    held = {node: records_on(disks, node) for node in NODES}
    rows = told("divergence", *copies_of(disks, NODES))
    noted = {ONE: 0, ALL: 0}
    for partition in ASSIGNMENTS:
        own = held[life.lost][partition]
        gone = set() if partition in life.offline else own - served[partition]
        for acks in noted:
            noted[acks] += len(lost.clients.acknowledged[acks][partition] & gone)
        acknowledged = {one.digest for one in lost.clients.all_acknowledged(partition)}
        assert {one.digest for one in gone} - acknowledged <= lost.clients.unanswered
        found = [row for row in rows if name_of(row) == partition]
        apart = [row for row in found if row["kind"] not in ("equal", "behind")]
        assert {(row["kind"], *row["copies"]) for row in apart} <= {(kind, f"n{life.lost}")}
        covered = {
            one
            for one in own
            for row in apart
            if row["from_offset"] <= one.offset < row["until_offset"]
        }
        assert covered == gone, (partition, found)
        for row in found:
            if row["kind"] == "behind":
                ends = [end_of(held[int(name[1:])][partition]) for name in row["copies"]]
                assert max(ends) <= row["from_offset"], row
    print(f"{moment}: lost of acks=1 {noted[ONE]}, of acks=all {noted[ALL]}")
    assert all(noted.values())


def end_of(records: Iterable[Told]) -> int:
    return max((one.offset + 1 for one in records), default=0)
