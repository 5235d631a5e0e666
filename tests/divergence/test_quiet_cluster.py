"""Replicas of a real cluster that lived, each rolling and cleaning for itself: no false alarm."""

import json
import os
import random
from pathlib import Path

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from kafka_segments.cli import cli
from support.kafka.busy_cluster import CERTAIN, OF_NODES, PROPERTIES, TOPICS, BusyLife
from support.kafka.kraft_cluster import DIRECTORIES, NODES, KraftCluster

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
NO_FAULTS = {"equal", "later start", "compaction", "recompressed", "behind"}


def test_replicas_the_tier_and_a_backup_of_a_life_have_no_finding(
    spark: SparkSession, seed: int, tmp_path: Path
) -> None:
    drawn = os.environ.get("BUSY_SEED", f"{seed}")
    rounds = int(os.environ.get("BUSY_ROUNDS", "12"))
    print(f"BUSY_SEED={drawn} BUSY_ROUNDS={rounds}")
    with KraftCluster(tmp_path / "run", PROPERTIES, OF_NODES) as cluster:
        life = BusyLife(cluster, random.Random(f"{drawn} busy"), tmp_path / "kept")
        life.live(rounds)
    disks = [
        f"n{node}={cluster.node_folder(node)}/{name}" for node in NODES for name in DIRECTORIES
    ]

    copies = [*disks, f"tier={cluster.objects}"]
    rows = _told("divergence", "--check", "records", "--copy", copies)
    backed_up = _told(
        *("backup", "verify"),
        *(part for name in DIRECTORIES for part in ("--backup", f"{tmp_path}/kept/{name}")),
        "--against",
        disks,
    )

    assert [row for row in rows if row["is_finding"]] == [], life.steps
    assert {row["kind"] for row in rows} <= NO_FAULTS
    assert {row["topic"] for row in rows} >= TOPICS.keys()
    found = {(row["topic"], row["kind"]) for row in rows}
    print(sorted(found), len(rows), sum(row["kind"] != "equal" for row in rows))
    assert found >= CERTAIN, life.steps
    assert len({_segments(cluster, node, "compacted-0") for node in NODES}) > 1
    there = {folder.name for folder in (tmp_path / "kept").glob("*/*")}  # a node has not all logs
    backed_up = [row for row in backed_up if f"{row['topic']}-{row['partition']}" in there]
    assert [row for row in backed_up if row["misses"]] == [], life.steps
    assert {row["verdict"] for row in backed_up} == {"complete"}


def _segments(cluster: KraftCluster, node: int, log: str) -> tuple[str, ...]:
    return tuple(sorted(file.name for file in cluster.node_folder(node).glob(f"*/{log}/*.log")))


def _told(*arguments: object) -> list[dict]:
    """Run a verb; the last argument are the values of the option before it."""
    *words, option, values = arguments
    given = [part for value in values for part in (option, value)]
    result = CliRunner().invoke(cli, [*words, *given, "--output", "json"])
    assert result.exit_code in (0, 1), result.output
    print(result.stderr)
    return [json.loads(line) for line in result.stdout.splitlines()]
