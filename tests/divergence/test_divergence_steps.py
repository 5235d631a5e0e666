"""``divergence elect`` and ``repair`` over folders: a real cluster's disks, and drawn copies."""

import json
import random
from pathlib import Path
from typing import NamedTuple

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from kafka_segments.cli import cli
from support.logs.log_copies import drawn_log, flipped, rolled, write_copy
from support.stores.object_store import ObjectStore


def _run(*arguments: object, output: str = "json") -> tuple[int, list[str], str]:
    given = ["divergence", *map(str, arguments), "--output", output]
    result = CliRunner().invoke(cli, given)
    return result.exit_code, result.stdout.splitlines(), result.stderr


def _copies(cluster: Path, *nodes: int) -> list[str]:
    return [
        part
        for node in nodes
        for name in "ab"
        for part in ("--copy", f"n{node}={cluster}/disks/node-{node}/{name}")
    ]


@pytest.fixture(scope="module")
def dead(cluster: Path) -> int:
    """The node that was killed some seconds before the others."""
    life = json.loads((cluster / "answers" / "life.json").read_text())
    node: int = [step for step in life if step.get("step") == "kill"][-1]["node"]
    return node


@pytest.mark.slow
def test_advice_on_a_real_clusters_disks_knows_the_isr_and_loses_nothing(
    spark: SparkSession, cluster: Path, dead: int
) -> None:
    status, lines, told = _run("elect", *_copies(cluster, 1, 2, 3))

    rows = [json.loads(line) for line in lines]
    answered = json.loads((cluster / "answers" / "partitions.json").read_text())
    isr = {(one["topic"], one["partition"]): one["isr"] for one in answered}
    assert {(row["topic"], row["partition"]) for row in rows} == set(isr)
    for row in rows:
        assert row["is_in_isr"] == (row["broker_id"] in isr[row["topic"], row["partition"]])
    best = [row for row in rows if row["rank"] == 1]
    assert {(row["lost_acks_all_records"], row["damages"]) for row in best} == {(0, 0)}
    assert {row["way"] for row in best} == {"by itself"}
    lost = {row["broker_id"] for row in rows if row["lost_records"]}
    assert lost <= {dead}
    assert status == 0
    assert f"{len(isr)} partitions; with the best replicas 0 records are lost" in told


@pytest.mark.long
def test_the_dead_node_alone_has_to_be_elected_uncleanly(
    spark: SparkSession, cluster: Path, dead: int
) -> None:
    running = {dead, dead % 3 + 1}
    status, script, told = _run("elect", *_copies(cluster, *running), output="commands")

    answered = json.loads((cluster / "answers" / "partitions.json").read_text())
    unclean = {
        (one["topic"], one["partition"])
        for one in answered
        if running & set(one["replicas"]) and not {*one["isr"], *one["elr"]} <= running
    }
    start = script.index("cat > unclean-elections.json <<'END'")
    elected = json.loads(script[start + 1])["partitions"]
    assert {(one["topic"], one["partition"]) for one in elected} == unclean
    assert status == 1
    assert "partitions to look at" in told


@pytest.mark.slow
def test_the_documentation_shows_what_is_printed(spark: SparkSession, cluster: Path) -> None:
    page = Path(__file__).parents[2].joinpath("docs", "divergence.md").read_text("utf-8")
    copies = _copies(cluster, 1, 2, 3)

    for verb, expected in (("compare", 1), ("elect", 0)):
        status, lines, told = _run(verb, *copies, output="table")

        printed = "".join(f"{line.rstrip()}\n" for line in lines) + told
        assert (status, printed in page) == (expected, True), printed


def test_what_elect_cannot_know_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    rng = random.Random(4)
    for name in "ab":
        write_copy(tmp_path / name / "t-0", rolled(rng, drawn_log(rng)))
    status, _, told = _run("elect", "--copy", f"1={tmp_path}/a", "--copy", f"2={tmp_path}/b")

    assert status == 2
    assert "give the log directory of a controller or broker as --metadata" in told


class Damaged(NamedTuple):
    """Copies as options of the verb, and the one log of which two are damaged as it was."""

    options: list[str]
    whole: bytes


@pytest.fixture
def damaged(tmp_path: Path) -> Damaged:
    rng = random.Random(9)
    logs = {"hurt-0": drawn_log(rng), "same-0": drawn_log(rng)}
    for name, at in (("a", 0), ("b", 1), ("c", None)):
        for log, batches in logs.items():
            copy = rolled(rng, batches if name != "c" else batches[:30])
            if at is not None and log == "hurt-0":
                copy.spoil(at, flipped(copy.file(at), 70))
            write_copy(tmp_path / name / log, copy)
    options = [part for name in "abc" for part in ("--copy", f"{name}={tmp_path}/{name}")]
    return Damaged(options, b"".join(batch.written() for batch in logs["hurt-0"]))


@pytest.mark.slow
def test_a_dry_run_of_a_repair_says_what_is_planned_and_writes_nothing(
    spark: SparkSession, damaged: Damaged, tmp_path: Path
) -> None:
    out = tmp_path / "out"

    status, lines, _ = _run("repair", *damaged.options, "--out", out, "--dry-run")

    assert (status, out.exists()) == (0, False)
    assert {json.loads(line)["state"] for line in lines} == {"planned"}


@pytest.mark.slow
def test_whole_logs_are_made_of_damaged_copies(
    spark: SparkSession, damaged: Damaged, tmp_path: Path
) -> None:
    status, lines, told = _run("repair", *damaged.options, "--out", tmp_path / "out")

    rows = [json.loads(line) for line in lines]
    assert (status, {row["state"] for row in rows}) == (0, {"built"})
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["hurt-0", "hurt-0.json"]
    made = b"".join(path.read_bytes() for path in sorted((tmp_path / "out/hurt-0").glob("*.log")))
    assert made == damaged.whole
    assert told.startswith("1 logs to repair")


def test_a_repair_that_cannot_be_meant_is_refused(
    spark: SparkSession, damaged: Damaged, tmp_path: Path
) -> None:
    copies = damaged.options
    (tmp_path / "out" / "hurt-0").mkdir(parents=True)
    status, _, told = _run("repair", *copies, "--out", tmp_path / "out")
    assert (status, "a new or empty folder expected" in told) == (2, True)
    status, _, told = _run("repair", *copies, "--out", tmp_path / "a" / "new")
    assert (status, "a folder apart from copy" in told) == (2, True)
    status, _, told = _run("repair", *copies, "--out", tmp_path / "o", "--log", "none-0")
    assert (status, "no two copies hold it; they hold " in told) == (2, True)


@pytest.mark.long
def test_copies_in_s3_are_weighed_and_taken_from_as_those_on_disks(
    spark: SparkSession,
    object_store: ObjectStore,
    cluster: Path,
    damaged: Damaged,
    tmp_path: Path,
) -> None:
    object_store.put_folder(cluster / "disks" / "node-2", "brokers/node-2")
    object_store.put_folder(tmp_path / "b", "copies/b")
    on_disks = _copies(cluster, 1, 2, 3)
    there = [one.replace(f"{cluster}/disks/node-2", "s3://brokers/node-2") for one in on_disks]
    options = [one.replace(f"b={tmp_path}/b", "b=s3://copies/b") for one in damaged.options]

    assert _run("elect", *there)[:2] == _run("elect", *on_disks)[:2]
    status, _, told = _run("repair", *options, "--out", tmp_path / "out")

    assert (status, there != on_disks, options != damaged.options) == (0, True, True), told
    made = b"".join(path.read_bytes() for path in sorted((tmp_path / "out/hurt-0").glob("*.log")))
    assert made == damaged.whole
    taken = json.loads((tmp_path / "out" / "hurt-0.json").read_text())["ranges"]
    assert "b" in {one["copy"] for one in taken}
