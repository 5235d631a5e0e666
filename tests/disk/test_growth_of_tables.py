"""``disk --warehouse``: what grew by tables, when the disk is full, what older segments keep."""

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from pyspark.sql import SparkSession

import kafka_segments
from kafka_segments.cli import cli
from kafka_segments.engine.choose import few_rows
from kafka_segments.engine.tables.catalog import LOG_DIRS, RETENTION_DECISIONS, RUNS, SEGMENTS
from kafka_segments.engine.tables.delta import Warehouse
from kafka_segments.files.folders.used_disk import DiskSpace
from kafka_segments.files.storage.folder_lock import LockState
from kafka_segments.verbs.find.disk.decide.accounts import DAYS, DayGrowth, TableGrowth
from kafka_segments.verbs.find.disk.decide.growth_of_tables import (
    KnownDir,
    find_dir,
    first_day_ms,
    grown_by_day,
    of_dirs,
)
from kafka_segments.verbs.find.disk.judged_folders import DirFacts
from kafka_segments.verbs.find.disk.report_growth import full_disk_lines
from kafka_segments.verbs.find.disk.run import DirUse, DiskUse
from support.logs import metadata_logs
from support.spark.filled_tables import fill
from support.spark.rows_of import frame

DAY_MS = 86_400_000
FROM_MS = 20_000 * DAY_MS
END_MS = FROM_MS + DAYS * DAY_MS
HERE = KnownDir("named", 1, "/d", "c", 1, "id-d")
COLUMNS = (
    "base_offset long, size_bytes long, written_ms long, largest_timestamp_ms long,"
    " largest_timestamp_source string"
)


def _segment(size_bytes: int, written_ms: int, source: str = "record", **other: Any) -> Any:
    dated = {"written_ms": written_ms, "largest_timestamp_ms": written_ms}
    return {"size_bytes": size_bytes, **dated, "largest_timestamp_source": source, **other}


def test_bytes_are_summed_by_topic_and_day_within_the_days(spark: SparkSession) -> None:
    rows = [
        _segment(1, FROM_MS - 1),
        _segment(2, FROM_MS),
        _segment(4, FROM_MS + DAY_MS - 1, partition=1),
        _segment(8, FROM_MS + DAY_MS),
        _segment(16, FROM_MS + DAY_MS, "last_modified"),
        _segment(32, FROM_MS + DAY_MS, largest_timestamp_ms=2**62),
        _segment(64, END_MS - 1, topic="u"),
        _segment(128, END_MS),
        _segment(256, FROM_MS, log_dir="/other"),
    ]
    here = of_dirs([HERE._replace(cluster="c")])

    found = frame(spark, COLUMNS, *rows).transform(here).transform(grown_by_day(from_ms=FROM_MS))

    assert sorted(tuple(row)[2:] for row in found.collect()) == [
        ("/d", "t", FROM_MS, 6, 0),
        ("/d", "t", FROM_MS + DAY_MS, 56, 48),
        ("/d", "u", END_MS - DAY_MS, 64, 0),
    ]


def test_the_days_are_whole_ones_before_the_earliest_moment() -> None:
    assert first_day_ms([END_MS + DAY_MS, END_MS]) == FROM_MS
    assert first_day_ms([END_MS + DAY_MS - 1]) == FROM_MS


@pytest.mark.parametrize(
    ("own", "known", "found"),
    [
        (DirFacts("c", 1, "id-d"), [HERE], HERE),
        (
            DirFacts("c", 1, "id-d"),
            [HERE._replace(log_dir="/then")],
            HERE._replace(log_dir="/then"),
        ),
        (DirFacts("c", 1, "id-d"), [HERE, HERE._replace(log_dir="/x")], HERE),
        (DirFacts("c", 1), [HERE._replace(directory_id=None)], HERE._replace(directory_id=None)),
        (DirFacts(), [HERE], "its meta.properties does not tell"),
        (DirFacts("c", None, "id-d"), [HERE], "its meta.properties does not tell"),
        (DirFacts("c", 2, "id-d"), [HERE], "the tables have nothing of node 2 of cluster c"),
        (DirFacts("x", 1, "id-d"), [HERE], "the tables have nothing of node 1 of cluster x"),
        (DirFacts("c", 1, "id-e"), [HERE], "and not this directory of it"),
        (
            DirFacts("c", 1),
            [HERE._replace(directory_id=None, log_dir="/x")],
            "and not this directory of it",
        ),
        (
            DirFacts("c", 1, "id-d"),
            [HERE._replace(log_dir="/y"), HERE._replace(log_dir="/x")],
            "the tables have it as /x and /y",
        ),
    ],
)
def test_a_directory_is_known_by_its_ids(
    own: DirFacts, known: list[KnownDir], found: KnownDir | str
) -> None:
    match = find_dir("/d", own, known)

    assert match == found if isinstance(found, KnownDir) else found in match


@pytest.mark.parametrize(
    ("written", "unknown", "told"),
    [
        ([10, 20, 20, 20, 20, 20, 30], {}, ["full in 10 d 0 h to 30 d 0 h, 15 d 0 h at the mean"]),
        ([0, 30, 30, 30, 30, 30, 60], {}, ["full in 5 d 0 h or never, 10 d 0 h at the mean"]),
        ([0] * 7, {}, ["so they do not tell when the disk is full"]),
        ([1] * 7, {"/e": "why"}, []),
    ],
)
def test_a_disk_is_full_between_the_paces_of_the_days(
    written: list[int], unknown: dict[str, str], told: list[str]
) -> None:
    space = DiskSpace(device=1, total_bytes=1000, used_bytes=700, free_bytes=300)
    dirs = [DirUse(name, space, LockState(False), None) for name in ("/d", "/e")]
    days = [
        DayGrowth(("/d", "/e")[k % 2], "t", FROM_MS + k * DAY_MS, size, 0)
        for k, size in enumerate(written)
        if size
    ]
    grown = TableGrowth("wh", {"/d": END_MS}, unknown, FROM_MS, days, [], None)

    lines = list(full_disk_lines(DiskUse(dirs=dirs), dirs[0], grown))

    assert len(lines) == len(told)
    assert all(text in line for text, line in zip(told, lines, strict=True))


MOST_JOBS = 3  # two queries, whatever the tables hold
IDS = {"cluster_id": "c", "node_id": 1, "directory_id": "id-d"}
KEY = {"cluster": "named", "broker_id": 1, "log_dir": "/then/d", "topic": "t", "partition": 0}
NOW = datetime.fromtimestamp((END_MS + DAY_MS) / 1000, UTC)
BUILT = datetime.fromtimestamp(END_MS / 1000, UTC)


def _jobs(spark: SparkSession) -> int:
    """Return how many jobs Spark has had."""
    context: Any = spark.sparkContext
    return int(context._jsc.sc().dagScheduler().numTotalJobs())


@pytest.fixture
def log_dir(tmp_path: Path) -> Path:
    """A log directory with ids, one segment, and a metadata log that has it."""
    metadata = [metadata_logs.topic("t", 7), metadata_logs.partition(7, 0)]
    files = {f"{0:020d}.log": metadata_logs.log_bytes(metadata)}
    folder = metadata_logs.log_dir(tmp_path / "d", files)
    ids = "version=1\ncluster.id=c\nnode.id=1\ndirectory.id=id-d\n"
    (folder / "meta.properties").write_text(ids)
    log = folder / "t-0"
    log.mkdir()
    (log / "partition.metadata").write_text(f"version: 0\ntopic_id: {metadata_logs.uuid_text(7)}\n")
    (log / f"{0:020d}.log").write_bytes(b"")
    for segment in folder.glob("*/*.log"):
        os.utime(segment, (END_MS / 1000, END_MS / 1000))
    return folder


@pytest.mark.slow
def test_what_the_tables_say_of_a_directory(
    spark: SparkSession, log_dir: Path, tmp_path: Path
) -> None:
    tables = Warehouse(spark, str(tmp_path / "tables"))
    segments = [
        {**KEY, **_segment(1_000, FROM_MS), "base_offset": 0},
        {**KEY, **_segment(3_000, END_MS - 1), "base_offset": 9},
        {**KEY, **_segment(5_000, FROM_MS), "base_offset": 5, "vanished_at": BUILT},
    ]
    fill(tables, SEGMENTS, segments)
    fill(tables, LOG_DIRS, [{**KEY, **IDS}])
    fill(tables, RUNS, [{"command": "build", "sources": ["/then"], "started_at": BUILT}])

    def ask(*words: object, folder: Path = log_dir) -> Result:
        asked = (folder, "--warehouse", tables.root, "--now-ms", END_MS + DAY_MS, *words)
        return CliRunner().invoke(cli, ["disk", *map(str, asked)])

    def rows(*words: object) -> list[dict[str, Any]]:
        done = ask(*words, "--output", "json")
        return [json.loads(line) for line in done.stdout.splitlines()]

    assert [(row["day_ms"], row["written_bytes"]) for row in rows("--rows", "growth")] == [
        (FROM_MS, 1_000),
        (END_MS - DAY_MS, 3_000),
    ]
    undecided = ask("--rows", "blocked", "--output", "json")
    assert (undecided.exit_code, undecided.stdout) == (1, "")
    assert "run `kafka-segments retention --warehouse" in undecided.stderr

    decided = {"decision": "keep", "expires_at_ms": 0, "blocked_by_base_offset": 0, "run_id": "r"}
    made = [{**row, **decided, "decided_at": NOW} for row in segments[1:]]
    fill(tables, RETENTION_DECISIONS, made)

    (blocked,) = rows("--rows", "blocked")
    assert (blocked["log_dir"], blocked["segments"]) == (str(log_dir), 1)
    assert blocked["size_bytes"] == 3_000
    jobs = _jobs(spark)
    page = ask()
    assert _jobs(spark) - jobs <= MOST_JOBS
    assert (page.exit_code, page.stderr) == (0, "")
    assert "at the mean pace, with nothing deleted" in page.stdout
    assert "expired, and kept" in page.stdout

    with kafka_segments.open(tables.root, spark) as opened, few_rows(spark):
        found = opened.disk(log_dir, now=NOW)
    assert (found.growth, found.blocked) == (rows("--rows", "growth"), [blocked])
    assert (found.notes, found.not_known, found.has_findings) == ((), [], False)

    os.utime(next(log_dir.glob("*/*.log")), ((END_MS + 2 * DAY_MS) / 1000,) * 2)
    assert "2 d 0 h after its last build" in ask().stderr
    (log_dir / "meta.properties").unlink()
    unknown = ask()
    assert unknown.exit_code == 1
    assert f"not known: what {log_dir} grew by" in unknown.stderr
    assert "at the mean pace" not in unknown.stdout


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--rows", "growth"), "--rows growth needs --warehouse"),
        (("--warehouse", "/nowhere"), "/nowhere is not there"),
    ],
)
def test_without_tables_nothing_is_told_of_them(
    log_dir: Path, words: tuple[str, ...], told: str
) -> None:
    done = CliRunner().invoke(cli, ["disk", str(log_dir), *words])

    assert (done.exit_code, len(done.output.splitlines())) == (2, 1)
    assert told in done.output


def test_of_a_full_disk_no_moment_is_told_when_it_will_be() -> None:
    space = DiskSpace(device=1, total_bytes=1000, used_bytes=1000, free_bytes=0)
    one = DirUse("/d", space, LockState(False), None)
    days = [DayGrowth("/d", "t", FROM_MS + k * DAY_MS, 10, 0) for k in range(7)]
    grown = TableGrowth("wh", {"/d": END_MS}, {}, FROM_MS, days, [], None)

    assert list(full_disk_lines(DiskUse(dirs=[one]), one, grown)) == [
        "10 bytes to 10 bytes a day that are still here"
    ]
