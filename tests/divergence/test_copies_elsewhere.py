"""Copies in an object store, in tiered storage and in a mirror: the answers are those of disks."""

import json
import random
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from kafka_segments.cli import cli
from support.logs.log_copies import CLOCK_MS, Batch, drawn_log, flipped, recompressed, rolled
from support.logs.log_folders import write_copies
from support.stores.object_store import ObjectStore
from support.stores.tiered_objects import put_log, put_segment

OF_RUN = {"run_id", "decided_at"}


def _compare(*copies: str, match: str = "both") -> tuple[int, list[dict], str]:
    arguments = [part for copy in copies for part in ("--copy", copy)]
    arguments += ["--match", match]
    result = CliRunner().invoke(cli, ["divergence", *arguments, "--output", "json"])
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    told = [{name: row[name] for name in row.keys() - OF_RUN} for row in rows]
    return result.exit_code, told, result.stderr


@pytest.mark.slow
def test_a_copy_in_s3_gives_the_answers_of_one_on_a_disk(
    spark: SparkSession, object_store: ObjectStore, tmp_path: Path
) -> None:
    rng = random.Random(2)
    same, hurt, short, other = (drawn_log(rng) for _ in range(4))
    logs = {"same-0": same, "hurt-0": hurt, "short-0": short, "other-0": other}
    write_copies(tmp_path / "a", {name: rolled(rng, log) for name, log in logs.items()})
    copies = {name: rolled(rng, log) for name, log in logs.items()}
    copies["hurt-0"].spoil(0, flipped(copies["hurt-0"].file(0), 100))
    copies["short-0"] = rolled(rng, short[:50])
    copies["other-0"] = rolled(rng, recompressed(other))
    write_copies(tmp_path / "b", copies)
    object_store.put_folder(tmp_path / "b", "copies/night/b")
    there = "s3://copies/night/b"

    on_disk = _compare(f"a={tmp_path}/a", f"b={tmp_path}/b")
    in_s3 = _compare(f"a={tmp_path}/a", f"b={there}")

    assert in_s3[0] == on_disk[0] == 1
    assert {row["kind"] for row in in_s3[1]} == {"equal", "bit rot", "behind", "recompressed"}
    assert json.loads(json.dumps(in_s3[1]).replace(there, f"{tmp_path}/b")) == on_disk[1]
    assert in_s3[2].partition("read ")[2] == on_disk[2].partition("read ")[2]


@pytest.mark.long
def test_tiered_storage_holds_what_the_disk_does_as_far_as_it_goes(
    spark: SparkSession, broker: Path, tmp_path: Path
) -> None:
    put_log(tmp_path / "tier", broker, "txn-0", topic="txn", partition=0)
    disk = tmp_path / "disk" / "txn-0"
    disk.mkdir(parents=True)
    for file in sorted((broker / "logs" / "txn-0").glob("*.log"))[1:]:  # local retention
        shutil.copy(file, disk)
    _half_uploaded(tmp_path)

    status, rows, _ = _compare(
        f"n1={tmp_path}/disk", f"n1={tmp_path}/disk2", f"tier={tmp_path}/tier"
    )

    kinds = {(row["topic"], row["kind"], row["is_finding"]) for row in rows}
    assert status == 0, rows
    assert ("txn", "later start", False) in kinds
    assert ("txn", "equal", False) in kinds
    assert ("part", "behind", False) in kinds  # the last batches are not uploaded
    assert {topic for topic, kind, _ in kinds if kind == "equal"} == {"txn", "part"}


@pytest.mark.slow
def test_bit_rot_in_tiered_storage_is_found(spark: SparkSession, tmp_path: Path) -> None:
    first, _ = _half_uploaded(tmp_path)
    first.write_bytes(flipped(first.read_bytes(), 200))

    _, rows, _ = _compare(f"n1={tmp_path}/disk2", f"tier={tmp_path}/tier")

    assert [(row["kind"], row["copies"]) for row in rows if row["is_finding"]] == [
        ("bit rot", ["tier"])
    ]


def _half_uploaded(folder: Path) -> list[Path]:
    """Write a log to a disk, and upload all but its last batches in two segments."""
    rng = random.Random(1)
    log = drawn_log(rng)
    write_copies(folder / "disk2", {"part-0": rolled(rng, log)})
    return _uploads(log, folder / "tier")


def _uploads(log: list[Batch], tier: Path) -> list[Path]:
    """Upload segments of two leaders: the second one begins inside of the first."""
    paths = []
    for number, (first, last) in enumerate(((0, 30), (20, 50))):
        part = log[first:last]
        paths.append(
            put_segment(
                tier,
                b"".join(batch.written() for batch in part),
                {},
                base_offset=part[0].base,
                end_offset=part[-1].last,
                max_timestamp_ms=CLOCK_MS,
                topic="part",
                partition=0,
                segment_id=f"-{number:021d}",
            )
        )
    return paths


def _id(letter: str) -> str:
    """Give a topic id as Kafka writes it: the last character has four bits that are zero."""
    return letter * 21 + "A"


def _name(folder: Path, letter: str) -> None:
    metadata = f"version: 0\ntopic_id: {_id(letter)}"
    (folder / "partition.metadata").write_text(metadata)


@pytest.mark.slow
def test_a_mirror_holds_the_same_records_in_bytes_of_its_own(
    spark: SparkSession, tmp_path: Path
) -> None:
    """With an id and leader epochs of its own it is the same log by name alone."""
    rng = random.Random(6)
    same, recoded, other = (drawn_log(rng) for _ in range(3))
    copied = [replace(batch, epoch=batch.epoch % 2 + 40) for batch in same[:50]]
    own = [replace(batch, producer_id=7, append_ms=CLOCK_MS + 9) for batch in recompressed(recoded)]
    wrong = [replace(other[10], records=((other[10].base, b"k", b"no"),)), *other[11:]]
    logs = {"t-0": same, "u-0": recoded, "v-0": other, "__consumer_offsets-0": other}
    write_copies(tmp_path / "a", {name: rolled(rng, log) for name, log in logs.items()})
    copy = rolled(rng, same)
    copy.high_watermark = same[-1].last + 1
    write_copies(tmp_path / "b", {"t-0": copy})
    mirrored = {"t-0": rolled(rng, copied), "u-0": rolled(rng, own)}
    mirrored |= {
        "v-0": rolled(rng, [*other[:10], *wrong]),
        "__consumer_offsets-0": rolled(rng, same),
    }
    write_copies(tmp_path / "m", mirrored)
    names = "abm"
    for name in names:
        for log in (tmp_path / name).glob("*-0"):
            _name(log, "C" if name == "m" else "B")
    copies = [f"{name}={tmp_path}/{name}" for name in names]

    status, rows, _ = _compare(*copies)

    assert status == 1
    assert {(row["kind"], *row["held_by"]) for row in rows} == {
        ("topic id", "a", "b", "m"),
        ("topic id", "a", "m"),
    }

    status, rows, _ = _compare(*copies, match="name")

    assert status == 1
    end = same[50].base
    assert [
        (row["topic"], row["kind"], row["from_offset"]) for row in rows if row["kind"] != "equal"
    ] == [
        ("t", "behind", end),
        ("u", "recompressed", recoded[0].base),
        ("v", "conflict", other[10].base),
    ]
    assert [row["topic"] for row in rows if row["is_finding"]] == ["v"]
    assert rows[0]["kind"] == "equal"
    assert (rows[0]["from_offset"], rows[0]["until_offset"]) == (same[0].base, end)


@pytest.mark.slow
def test_topics_are_one_by_their_id_whatever_their_names(
    spark: SparkSession, tmp_path: Path
) -> None:
    """The checkpoints name a copy's own topics; what has no id goes by its name."""
    rng = random.Random(7)
    first, second, third = (drawn_log(rng) for _ in range(3))
    write_copies(
        tmp_path / "a", {name: rolled(rng, log) for name, log in (("t-0", first), ("u-0", third))}
    )
    short = rolled(rng, first[:40])
    short.high_watermark = first[-1].last + 1
    write_copies(
        tmp_path / "b",
        {"old-0": short, "t-0": rolled(rng, second), "u-0": rolled(rng, third)},
    )
    write_copies(tmp_path / "c", {"t-0": rolled(rng, second)})
    for folder, letter in (("a/t-0", "B"), ("b/old-0", "B"), ("b/t-0", "C"), ("c/t-0", "C")):
        _name(tmp_path / folder, letter)

    status, rows, told = _compare(*(f"{name}={tmp_path}/{name}" for name in "abc"), match="id")

    assert status == 1, told
    assert [
        (row["topic"], row["kind"], row["is_finding"], *row["held_by"])
        for row in sorted(rows, key=lambda row: (row["topic"], row["row"]))
    ] == [
        ("t", "equal", False, "a", "b"),
        ("t", "behind", True, "a", "b"),
        (f"t ({_id('C')})", "equal", False, "b", "c"),
        ("u", "equal", False, "a", "b"),
    ]
