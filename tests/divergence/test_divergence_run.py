"""``divergence`` over folders: a real cluster's disks, and copies to which something happened."""

import json
import random
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession
from pyspark.testing import assertSchemaEqual

from kafka_segments.cli import cli
from kafka_segments.engine.choose import few_rows
from kafka_segments.engine.tables.catalog import DIVERGENCES
from kafka_segments.engine.tables.delta import Warehouse
from kafka_segments.engine.tables.schemas import schema
from support.logs.log_copies import Batch, drawn_log, flipped, forked, rolled
from support.logs.log_folders import write_copies

DEAD_NODE_LAGS = {"behind", "ahead"}


def _run(*arguments: object) -> tuple[int, list[dict], str]:
    result = CliRunner().invoke(cli, ["divergence", *map(str, arguments), "--output", "json"])
    return (
        result.exit_code,
        [json.loads(line) for line in result.stdout.splitlines()],
        result.stderr,
    )


@pytest.mark.slow
@pytest.mark.parametrize("check", ["records", pytest.param("full", marks=pytest.mark.long)])
def test_the_disks_of_a_real_cluster_have_no_differences_but_those_of_the_dead_node(
    spark: SparkSession, cluster: Path, check: str
) -> None:
    life = json.loads((cluster / "answers" / "life.json").read_text())
    dead = f"n{[step for step in life if step.get('step') == 'kill'][-1]['node']}"
    copies = [
        part
        for node in (1, 2, 3)
        for name in "ab"
        for part in ("--copy", f"n{node}={cluster}/disks/node-{node}/{name}")
    ]

    status, rows, told = _run(*copies, "--check", check)

    findings = [row for row in rows if row["is_finding"]]
    assert [row for row in findings if row["copies"] != [dead]] == []
    assert {row["kind"] for row in findings} <= DEAD_NODE_LAGS
    assert status == bool(findings)
    assert "logs in two copies or more" in told


@pytest.mark.slow
def test_keys_and_leader_epochs_tell_what_is_wrong(spark: SparkSession, tmp_path: Path) -> None:
    rng = random.Random(7)
    keys = [Batch(at, at, 0, ((at, b"k%d" % (at % 6), b"v"),)) for at in range(10)]
    led = [Batch(at, at, at // 5, ((at, b"k", b"v"),)) for at in range(10)]
    for name in "ab":
        copies = {
            "keys-0": rolled(rng, keys),
            "led-0": rolled(rng, led),
            "front-0": rolled(rng, led),
        }
        if name == "b":  # 3 has come again as 9, 5 has not
            copies["keys-0"] = rolled(rng, [*keys[:3], keys[4], *keys[6:]])
            copies["led-0"].epochs = ((0, 0), (1, 4))
            copies["front-0"].segments = [(2, [one.written() for one in led[2:]])]
            copies["front-0"].high_watermark = 10
        write_copies(tmp_path / name, copies)
    (tmp_path / "b" / "cleaner-offset-checkpoint").write_text("0\n1\nkeys 0 8\n")
    copies = [part for name in "ab" for part in ("--copy", f"{name}={tmp_path / name}")]

    found = {
        check: {
            (row["topic"], row["kind"], row["from_offset"], row["until_offset"], *row["copies"])
            for row in _run(*copies, "--check", check)[1]
            if row["is_finding"]
        }
        for check in ("full", "records")
    }

    epochs = {("led", "epoch history", 4, 5, "a", "b"), ("front", "lost middle", 0, 2, "b")}
    assert found == {
        "full": epochs,
        "records": epochs | {("keys", "lost middle", 5, 6, "b")},
    }


@pytest.mark.slow
def test_what_happened_to_copies_is_told_and_kept(spark: SparkSession, tmp_path: Path) -> None:
    rng = random.Random(7)
    sound, hurt, split, lost = (drawn_log(rng) for _ in range(4))
    logs = {"same-0": sound, "hurt-0": hurt, "split-0": split, "lost-0": lost}
    folders = {name: tmp_path / name for name in "abc"}
    for name in "abc":
        copies = {log: rolled(rng, batches) for log, batches in logs.items()}
        if name == "b":
            copies["hurt-0"].spoil(1, flipped(copies["hurt-0"].file(1), 70))
            copies["split-0"] = rolled(rng, forked(rng, split, 50))
            gone = copies["lost-0"].segments.pop(2)[0]
        write_copies(folders[name], copies)
    arguments = [part for name in "abc" for part in ("--copy", f"{name}={folders[name]}")]

    status, rows, told = _run(*arguments, "--warehouse", tmp_path / "wh", "--now-ms", 0)

    findings = {row["topic"]: row for row in rows if row["is_finding"]}
    assert status == 1
    assert sorted(findings) == ["hurt", "lost", "split"]
    assert len([row for row in rows if row["is_finding"]]) == 3
    assert (findings["hurt"]["kind"], findings["hurt"]["copies"]) == ("bit rot", ["b"])
    assert findings["hurt"]["right_copies"] == ["a", "c"]
    assert (findings["split"]["kind"], findings["split"]["from_offset"]) == ("fork", split[50].base)
    assert findings["split"]["right_copies"] == ["b"]
    assert (findings["lost"]["kind"], findings["lost"]["from_offset"]) == ("lost middle", gone)
    equal = [row for row in rows if row["topic"] == "same"]
    assert [(row["kind"], row["from_offset"], row["until_offset"]) for row in equal] == [
        ("equal", sound[0].base, sound[-1].last + 1)
    ]
    assert "4 logs in two copies or more, 1 of them equal from start to end" in told
    with few_rows(spark):
        kept = Warehouse(spark, str(tmp_path / "wh")).read(DIVERGENCES)
    assertSchemaEqual(kept.schema, schema("divergences.v3"), ignoreNullable=True)
    assert kept.count() == len(rows)


@pytest.fixture
def equal(tmp_path: Path) -> tuple[str, ...]:
    """Two copies of two logs, as options."""
    rng = random.Random(8)
    log = drawn_log(rng)
    for name in "ab":
        write_copies(tmp_path / name, {"t-0": rolled(rng, log), "u-0": rolled(rng, log)})
    return ("--copy", f"a={tmp_path}/a", "--copy", f"b={tmp_path}/b")


@pytest.mark.slow
def test_equal_copies_are_equal_by_their_headers(
    spark: SparkSession, equal: tuple[str, ...]
) -> None:
    status, rows, _ = _run(*equal, "--check", "headers")

    assert (status, {row["kind"] for row in rows}) == (0, {"equal"})


@pytest.mark.slow
def test_copies_of_other_topics_are_a_finding(
    spark: SparkSession, equal: tuple[str, ...], tmp_path: Path
) -> None:
    for name, topic_id in zip("ab", ("B" * 21 + "A", "C" * 21 + "A"), strict=True):
        (tmp_path / name / "u-0" / "partition.metadata").write_text(
            f"version: 0\ntopic_id: {topic_id}"
        )

    _, rows, _ = _run(*equal)

    found = [row for row in rows if row["is_finding"]]
    assert [(row["topic"], row["kind"], row["copies"]) for row in found] == [
        ("u", "topic id", ["a", "b"])
    ]


def test_a_copy_that_holds_a_log_twice_is_refused(
    spark: SparkSession, equal: tuple[str, ...], tmp_path: Path
) -> None:
    shutil.copytree(tmp_path / "a" / "t-0", tmp_path / "a2" / "t-0")

    status, _, told = _run(*equal, "--copy", f"a={tmp_path}/a2")

    assert status == 2
    assert "copy a holds t-0 2 times" in told


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (("a={0}",), "two copies or more are compared, found a"),
        (("a={0}", "b={0}"), "is given as two copies"),
        (("{0}",), "NAME=URI expected"),
        (("a={0}/none", "b={0}"), "cannot list"),
    ],
)
def test_what_cannot_be_meant_is_refused(
    tmp_path: Path, given: tuple[str, ...], reason: str
) -> None:
    status, _, told = _run(*(part for one in given for part in ("--copy", one.format(tmp_path))))

    assert status == 2
    assert reason in told


@pytest.mark.slow
def test_headers_alone_do_not_tell_that_records_are_equal(
    spark: SparkSession, tmp_path: Path
) -> None:
    rng = random.Random(8)
    batches = [Batch(at, at, 0, ((at, b"k", b"v"),)) for at in range(9)]
    for name in "ab":
        copy = rolled(rng, batches)
        if name == "b":
            first, written = copy.segments[0]
            copy.segments[0] = first, [written[0][:-1] + b"\xff", *written[1:]]
        write_copies(tmp_path / name, {"t-0": copy})
    copies = [part for name in "ab" for part in ("--copy", f"{name}={tmp_path / name}")]
    unknown = "by headers alone: whether the records behind them are sound is not known"

    status, rows, told = _run(*copies, "--check", "headers")
    status_of_all, all_rows, told_of_all = _run(*copies)

    assert (status, [(row["kind"], row["detail"]) for row in rows]) == (0, [("equal", unknown)])
    assert f"; {unknown}" in told
    assert (status_of_all, {row["kind"] for row in all_rows}) == (1, {"bit rot", "equal"})
    assert unknown not in told_of_all
