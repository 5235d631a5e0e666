"""Replicas that the metadata log names and that are not at hand: told by each verb of copies."""

import random
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from kafka_segments.cli import cli
from support.logs.log_copies import drawn_log, rolled
from support.logs.log_folders import write_copies
from support.logs.metadata_logs import log_bytes, log_dir, partition, topic

pytestmark = pytest.mark.usefixtures("few")
NODES = (1, 2, 3)
METADATA = [topic("t", 1), partition(1, 0, NODES), partition(1, 1, (1, 2))]


def _run(*arguments: object) -> tuple[int, list[str]]:
    done = CliRunner().invoke(cli, ["divergence", *map(str, arguments)])
    return done.exit_code, [line for line in done.stderr.splitlines() if "not known" in line]


@pytest.fixture
def disks(tmp_path: Path) -> Path:
    """Three brokers with copies of t-0; brokers 1 and 2 have t-1 as well."""
    rng = random.Random(5)
    log = drawn_log(rng)
    for node in NODES:
        names = ("t-0", "t-1") if node < 3 else ("t-0",)
        write_copies(tmp_path / f"n{node}", {name: rolled(rng, log) for name in names})
        log_dir(tmp_path / f"n{node}", {f"{0:020d}.log": log_bytes(METADATA)}, node=node)
    return tmp_path


def _copies(disks: Path, nodes: Sequence[int]) -> list[str]:
    return [part for node in nodes for part in ("--copy", f"n{node}={disks}/n{node}")]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("nodes", "brokers"),
    [((1, 2, 3), None), ((2, 3), "broker 1 (t-0, t-1)")],
)
def test_replicas_that_were_not_compared_are_told(
    spark: SparkSession, disks: Path, nodes: Sequence[int], brokers: str | None
) -> None:
    status, told = _run("compare", *_copies(disks, nodes))

    said = (
        f"not known: of {brokers}, whose replicas the metadata log names, no copy is at hand: how"
        " they differ from the others is not told; add their disks as --copy"
    )
    assert (status, told) == ((0, []) if brokers is None else (1, [said]))


@pytest.mark.slow
def test_without_metadata_nothing_is_said(spark: SparkSession, disks: Path) -> None:
    for node in NODES:
        shutil.rmtree(disks / f"n{node}" / "__cluster_metadata-0")

    assert _run("compare", *_copies(disks, (1, 2))) == (0, [])


@pytest.mark.slow
def test_a_repair_says_from_which_replicas_it_takes_nothing(
    spark: SparkSession, disks: Path
) -> None:
    dry = ("repair", "--out", disks / "out", "--dry-run")

    part = _run(*dry, *_copies(disks, (1, 2)))
    asked = _run(*dry, "--log", "t-1", *_copies(disks, (1, 2)))

    assert (part[0], asked) == (1, (0, []))
    assert part[1][0].startswith("not known: of broker 3 (t-0), whose replicas")
