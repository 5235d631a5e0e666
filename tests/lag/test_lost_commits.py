"""What a damaged or partial ``__consumer_offsets`` tells: no commit that a lost one may follow."""

import json
import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from kafka_segments.cli import cli
from support.logs.group_logs import (
    COMMIT,
    START_MS,
    batch,
    commit_key,
    commit_value,
    marker,
    text,
    write_log,
)
from support.logs.metadata_logs import log_bytes, log_dir, partition, topic
from support.logs.strategies import TRANSACTIONAL

BASES = (0, 2, 4)
LOG = "__consumer_offsets-0"
METADATA = [
    *(topic("t", 2), partition(2, 0, (1,))),
    *(topic("__consumer_offsets", 1), partition(1, 0, (1, 2))),
]


class Told(NamedTuple):
    """What verbs say: exit status, lines on stderr, JSON rows."""

    status: int
    lines: str
    rows: list[dict[str, Any]]


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    """A broker's disk: three segments, in each a commit of group ``all``, and one of its own."""
    root = log_dir(tmp_path / "logs", {f"{0:020d}.log": log_bytes(METADATA)})
    segments = (
        (
            base,
            [
                batch(base, (commit_key("all"), commit_value(base))),
                batch(base + 1, (commit_key(f"only-{base}"), commit_value(base))),
            ],
        )
        for base in BASES
    )
    write_log(root, 0, *segments)
    data = batch(0, *[(b"k", b"v")] * 9)
    (root / "t-0").mkdir()
    (root / "t-0" / f"{0:020d}.log").write_bytes(data)
    return root


def segment(disk: Path, base: int) -> Path:
    """Give the path of a segment."""
    return disk / LOG / f"{base:020d}.log"


def gone(base: int) -> Callable[[Path], None]:
    """Remove a segment."""
    return lambda disk: segment(disk, base).unlink()


def spoilt(base: int) -> Callable[[Path], None]:
    """Flip a bit in the second batch of a segment."""

    def spoil(disk: Path) -> None:
        data = bytearray(segment(disk, base).read_bytes())
        data[-3] ^= 1
        segment(disk, base).write_bytes(data)

    return spoil


def run(disk: Path, *words: str) -> Told:
    """Run a verb on the tables beside a disk."""
    done = CliRunner().invoke(
        cli, [*words, "--warehouse", str(disk.parent / "tables"), "--output", "json"]
    )
    return Told(
        done.exit_code, done.stderr, [json.loads(line) for line in done.stdout.splitlines()]
    )


def built(disk: Path) -> Path:
    """Read a disk into tables."""
    assert run(disk, "build", "--internals", "--source", str(disk)).status in (0, 1)
    return disk


def lags(told: Told) -> dict[str, tuple[str, int | None]]:
    """Give status and lag of each group."""
    return {row["group_id"]: (row["status"], row["offset_lag"]) for row in told.rows}


@pytest.mark.slow
def test_what_clocks_ahead_have_written_counts_now_and_not_at_an_earlier_moment(
    spark: SparkSession, disk: Path
) -> None:
    file = segment(disk, 4)
    at = commit_value(8).index(struct.pack(">q", START_MS))
    value = commit_value(8)[:at] + struct.pack(">q", 2 * START_MS)
    file.write_bytes(file.read_bytes() + batch(6, (commit_key("all"), value)))
    built(disk)
    now = ("--now-ms", str(START_MS + 10_000))

    told = run(disk, "lag", *now)
    before = run(disk, "lag", "--at", str(START_MS + 5), *now)
    moved = run(
        *(disk, "search", "failover", "--group", "all", "--max-latency", "1m", *now),
        *("--to-warehouse", str(disk.parent / "tables")),
    )

    assert (told.status, lags(told)["all"]) == (0, ("behind", 1))
    assert lags(before)["all"] == ("behind", 5)
    assert [row["committed_offset"] for row in moved.rows] == [8]


NOT_KNOWN, WHOLE = ("not known", None), {"all": ("behind", 5), "only-0": ("behind", 9)}


@pytest.mark.slow
def test_a_batch_that_is_being_written_hides_no_commit(spark: SparkSession, disk: Path) -> None:
    file = segment(disk, 4)
    file.write_bytes(file.read_bytes() + batch(6, (commit_key("all"), commit_value(6)))[:40])
    built(disk)

    told = run(disk, "lag")
    explained = run(disk, "lag", "--explain", "all")
    groups = run(disk, "internals", "groups")

    assert told.status == explained.status == groups.status == 0, (told, explained, groups)
    assert lags(told).items() >= WHOLE.items()
    assert [row["where"] for row in explained.rows] == ["committed"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("happens", "why", "known"),
    [
        (gone(2), "offsets 2 to 3 are in no segment", {"all", "only-4"}),
        (spoilt(4), "checksum is", set()),
    ],
)
def test_a_commit_in_front_of_lost_records_is_not_known(
    spark: SparkSession,
    disk: Path,
    happens: Callable[[Path], None],
    why: str,
    known: set[str],
) -> None:
    happens(disk)
    built(disk)

    told = run(disk, "lag")
    groups = run(disk, "internals", "groups")
    explained = run(disk, "lag", "--explain", "all")
    absent = run(disk, "lag", "--group", "in-what-is-lost")
    moved = run(
        *(disk, "search", "failover", "--group", "only-0", "--max-latency", "1m"),
        *("--to-warehouse", str(disk.parent / "tables")),
    )

    assert told.status == groups.status == absent.status == 1, (told, groups, absent)
    assert why in told.lines + json.dumps(told.rows)
    assert why in groups.lines + json.dumps(groups.rows)
    assert {row["group_state"] for row in groups.rows if row["group_id"]} == {"not known"}
    found = lags(told)
    assert {name for name in found if name and found[name] != NOT_KNOWN} >= known
    if happens is not None and "first" not in why:
        assert found["only-0"] == NOT_KNOWN
        assert all("not known" in str(row) for row in moved.rows), moved
        assert moved.status == 1
    where = {row["where"] for row in explained.rows}
    assert where == ({"committed"} if "all" in known else {"not known"})
    assert "not known" in absent.lines


def forged(place: int, group: str) -> Callable[[Path], None]:
    """Write another commit in place of one, with the checksum of what stands there now."""

    def forge(disk: Path) -> None:
        file = segment(disk, 2)
        data = file.read_bytes()
        size = len(batch(2, (commit_key("all"), commit_value(2))))
        other = batch(2 + place, (commit_key(group), commit_value(7)))
        file.write_bytes(data[: size * place] + other + data[size:] * (not place))

    return forge


@pytest.mark.slow
@pytest.mark.parametrize(
    ("happens", "doubted"),
    [
        (gone(2), set()),
        (forged(0, "all"), set()),  # a later record of it counts
        (forged(1, "only-2"), {"only-2"}),
        (forged(1, "other"), {"only-2", "other"}),
    ],
)
def test_a_whole_copy_answers_and_keys_that_copies_contradict_each_other_in_are_not_known(
    spark: SparkSession, disk: Path, happens: Callable[[Path], None], doubted: set[str]
) -> None:
    other = disk.with_name("other")
    shutil.copytree(disk, other)
    shutil.rmtree(other / "__cluster_metadata-0")
    properties = other / "meta.properties"
    properties.write_text(properties.read_text().replace("node.id=1", "node.id=2"))
    happens(disk)
    assert (
        run(disk, "build", "--internals", "--source", str(disk), "--source", str(other)).status < 2
    )

    told = run(disk, "lag")
    explained = run(disk, "lag", "--explain", "only-2")
    groups = run(disk, "internals", "groups", "--broker-id", "2")
    problems = run(disk, "sql", "SELECT until_offset, problem FROM internal_problems")
    query = "SELECT key_json, problem FROM internal_current WHERE problem IS NOT NULL"
    current = run(disk, "sql", query)

    found = lags(told)
    assert found.keys() == {"all", *(f"only-{base}" for base in BASES)} | doubted
    assert {name for name in found if found[name] == NOT_KNOWN} == doubted
    assert {json.loads(row["key_json"])["group"] for row in current.rows} == doubted
    assert told.status == explained.status == bool(doubted)
    assert [row["where"] for row in explained.rows] == ["not known" if doubted else "committed"]
    states = {row["group_id"]: row["group_state"] for row in groups.rows}
    is_of_another_group = "other" in doubted
    assert states["only-2"] == ("not known" if is_of_another_group else "Empty")
    assert (states["all"], groups.status) == ("Empty", is_of_another_group)
    why = "have other records at offset 3 in leader epoch 0, and do not tell which are right"
    assert all(why in row["problem"] for row in told.rows if row["group_id"] in doubted)
    expected = [(4, True)] if doubted else []
    assert [(row["until_offset"], why in row["problem"]) for row in problems.rows] == expected


@pytest.mark.slow
def test_a_marker_that_is_another_record_in_another_copy_does_not_tell_what_hangs(
    spark: SparkSession, disk: Path
) -> None:
    names = ("__consumer_offsets", "__transaction_state")
    metadata = [topic(name, number) for number, name in enumerate(names, 1)]
    metadata += [partition(number, 0, (1, 2)) for number in (1, 2)]
    (disk / "__cluster_metadata-0" / f"{0:020d}.log").write_bytes(log_bytes(metadata))
    state = struct.pack(">hqhibiqq", 0, 40, 0, 60_000, 0, 0, START_MS, -1)
    (disk / "__transaction_state-0").mkdir()
    file = disk / "__transaction_state-0" / f"{0:020d}.log"
    file.write_bytes(batch(0, (struct.pack(">h", 0) + text("an-id"), state)))
    flags = {"producer_id": 50, "flags": TRANSACTIONAL}
    opened = batch(6, (commit_key("all"), commit_value(6)), **flags)
    sound = segment(disk, 4).read_bytes() + opened
    segment(disk, 4).write_bytes(sound + marker(7, 50, COMMIT))
    other = disk.with_name("other")
    shutil.copytree(disk, other)
    shutil.rmtree(other / "__cluster_metadata-0")
    properties = other / "meta.properties"
    properties.write_text(properties.read_text().replace("node.id=1", "node.id=2"))
    segment(disk, 4).write_bytes(sound + batch(7, (commit_key("forged"), commit_value(7))))
    run(disk, "build", "--internals", "--source", str(disk), "--source", str(other))

    told = run(disk, "internals", "transactions")

    assert [(row["producer_id"], row["status"]) for row in told.rows] == [(50, "not known")]
    assert "have other records at offset 7" in told.rows[0]["problem"]
