"""``divergence elect`` over folders: which copies it goes by, and what it says of the others."""

import json
import random
from pathlib import Path

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from kafka_segments.cli import cli
from support.logs.log_copies import Batch, LogCopy, drawn_log, hurt, rolled
from support.logs.log_folders import write_copies
from support.logs.metadata_logs import CLUSTER, log_bytes, log_dir, partition, topic, uuid_text

T, STALE, UNNAMED = 1, 9, 0


def _run(*arguments: object) -> tuple[int, dict[str, list[dict]], list[str]]:
    given = ["divergence", "elect", *map(str, arguments), "--output", "json"]
    result = CliRunner().invoke(cli, given)
    rows: dict[str, list[dict]] = {}
    for line in result.stdout.splitlines():
        row = json.loads(line)
        rows.setdefault(f"{row['topic']}-{row['partition']}", []).append(row)
    return result.exit_code, rows, result.stderr.splitlines()


def _written(folder: Path, node: int, copies: dict[str, LogCopy], **topic_ids: int) -> None:
    """Write a broker's log directory; topics have the id ``T`` where none is given, or none."""
    write_copies(folder, copies)
    (folder / "meta.properties").write_text(f"version=1\nnode.id={node}\n")
    for name in copies:
        number = topic_ids.get(name.replace("-", "_"), T)
        if number == UNNAMED:
            continue
        text = f"version: 0\ntopic_id: {uuid_text(number)}"
        (folder / name / "partition.metadata").write_text(text)


@pytest.fixture
def metadata(tmp_path: Path) -> Path:
    """The metadata log of a topic: partition 2 has replicas 3 and 4, the others 1 and 2."""
    records = [topic("t", T), *(partition(T, number) for number in (0, 1, 3))]
    records.append(partition(T, 2, (3, 4)))
    return log_dir(tmp_path / "meta", {f"{0:020d}.log": log_bytes(records)}, node=9)


@pytest.mark.slow
def test_each_partition_is_told_by_the_copies_that_are_of_use(
    spark: SparkSession, tmp_path: Path, metadata: Path
) -> None:
    rng = random.Random(6)
    log = drawn_log(rng)
    last = hurt(rng, log[:59], 20)
    last.high_watermark = log[-1].last + 1
    sound = {name: rolled(rng, log) for name in ("t-0", "t-2", "gone-0")}
    _written(tmp_path / "n1", 1, {**sound, "t-1": last})
    _written(tmp_path / "n1b", 1, {"t-1": rolled(rng, log)}, t_1=STALE)
    _written(tmp_path / "n2", 2, {"t-0": rolled(rng, log[:30])}, t_0=STALE)
    _written(tmp_path / "n4", 4, {"t-2": rolled(rng, log)}, t_2=UNNAMED)
    with (tmp_path / "n4" / "meta.properties").open("a") as meta:
        meta.write("cluster.id=other\n")
    places = {"n1": "n1", "n1b": "n1", "n2": "n2", "n4": "n4"}
    copies = [part for at, name in places.items() for part in ("--copy", f"{name}={tmp_path}/{at}")]

    status, rows, told = _run(*copies, "--metadata", metadata)

    assert status == 1
    assert {name: [row["copy"] for row in found] for name, found in rows.items()} == {
        "t-0": ["n1"],
        "t-1": ["n1"],
    }
    [equal], [alone] = rows["t-0"], rows["t-1"]
    assert (equal["lost_records"], equal["damages"], equal["absent"]) == (0, 0, [2])
    assert (alone["damages"], alone["end_offset"]) == (1, log[58].last + 1)
    gone = len(log[20].records) + len(log[59].records)
    assert (alone["lost_committed_records"], alone["lost_records"]) == (gone, gone)
    other = f"its topic id is {uuid_text(STALE)}, that of the topic {uuid_text(T)}: another topic"
    assert told[-8:-1] == [
        "gone-0 of copy n1 is left out: the metadata log has no such partition",
        f"t-0 of copy n2 is left out: {other} of that name",
        f"t-1 of copy n1 is left out: {other} of that name",
        "t-2 of copy n1 is left out: broker 1 is none of the replicas 3 4",
        f"t-2 of copy n4 is left out: it is of cluster other, the metadata log of {CLUSTER}",
        "no copy that can be used is at hand of t-2, t-3: what is lost there is not known",
        "broker 2: no copy that can be used is at hand of its replicas of t-0, t-1: records that it"
        " alone holds are not counted, and whether less is lost if it leads is not known",
    ]
    assert "partitions; as far as the copies at hand tell, with the best replicas" in told[-1]
    assert "partitions to look at: 4" in told[-1]


@pytest.mark.slow
def test_transactions_whose_markers_are_lost_are_torn(
    spark: SparkSession, tmp_path: Path, metadata: Path
) -> None:
    log = [
        Batch(0, 1, 0, ((0, b"k", b"a"), (1, b"k", b"b")), producer_id=7),
        Batch(2, 2, 0, ((2, b"k", b"c"),), producer_id=8),
        Batch(3, 3, 0, ((3, b"k", b"d"),), producer_id=9),
        Batch(4, 4, 0, (), producer_id=7, is_commit=True),
        Batch(5, 5, 0, (), producer_id=8, is_commit=False),
        Batch(6, 6, 0, (), producer_id=9, is_commit=False),
    ]
    rng = random.Random(8)
    for node, ends in ((1, {"t-0": 7, "t-1": 7}), (2, {"t-0": 4, "t-1": 2})):
        copies = {name: rolled(rng, log[:end]) for name, end in ends.items()}
        _written(tmp_path / f"n{node}", node, copies)
    copies = [part for node in (1, 2) for part in ("--copy", f"n{node}={tmp_path}/n{node}")]

    _, rows, _ = _run(*copies, "--metadata", metadata)

    torn = {
        (name, row["broker_id"]): (row["torn_transactions"], row["lost_records"])
        for name, found in rows.items()
        for row in found
    }
    # Of t-1, broker 2 lacks both batches of producer 9, which was aborted.
    assert torn == {("t-0", 1): (0, 0), ("t-0", 2): (2, 0), ("t-1", 1): (0, 0), ("t-1", 2): (2, 1)}


@pytest.mark.slow
def test_the_last_disk_is_enough(spark: SparkSession, tmp_path: Path, metadata: Path) -> None:
    rng = random.Random(7)
    log = drawn_log(rng)
    _written(tmp_path / "n1", 1, {f"t-{number}": rolled(rng, log) for number in (0, 1, 3)})

    status, rows, told = _run("--copy", f"n1={tmp_path}/n1", "--metadata", metadata)

    assert status == 1
    assert {row["way"] for [row] in rows.values()} == {"unclean election"}
    assert {(row["lost_records"], row["damages"]) for [row] in rows.values()} == {(0, 0)}
    assert told[-3] == (
        "no copy that can be used is at hand of t-2: what is lost there is not known"
    )
    assert told[-2].startswith("broker 2: no copy that can be used is at hand of its replicas")


@pytest.mark.slow
def test_a_replica_outside_the_isr_that_is_not_at_hand_is_told(
    spark: SparkSession, tmp_path: Path
) -> None:
    rng = random.Random(9)
    log = rolled(rng, drawn_log(rng))
    records = [topic("t", T), partition(T, 0, (1, 2), isr=(1,))]
    metadata = log_dir(tmp_path / "meta", {f"{0:020d}.log": log_bytes(records)}, node=9)
    copies: list[object] = []
    found = []
    for node in (1, 2):
        _written(tmp_path / f"n{node}", node, {"t-0": log})
        copies += ["--copy", f"n{node}={tmp_path}/n{node}"]
        found.append(_run(*copies, "--metadata", metadata))

    (part, rows, told), (whole, _, nothing) = found
    assert (part, whole) == (1, 0)
    assert rows["t-0"][0]["way"] == "by itself"
    assert [line.split()[0] for line in told] == ["broker", "1"]
    assert len(nothing) == 1
