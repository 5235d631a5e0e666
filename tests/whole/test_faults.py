"""Full disks, killed drivers, two drivers at once: all ends as if nothing had been."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kafka_segments.engine.tables.catalog import SEGMENTS
from support.house.ci import OWN_MOUNTS, require_own_mounts
from support.spark.driver_process import (
    Driver,
    build,
    build_undisturbed,
    leftovers,
    same_tables,
    small_settings,
)
from support.spark.held_commits import HeldCommits

pytestmark = pytest.mark.timeout(1800)
SETTINGS = small_settings("local[2]")
TESTS = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def driver(spark: SparkSession) -> Iterator[Driver]:
    started = Driver(SETTINGS, sys.executable)
    yield started
    started.close()


def test_a_full_disk_fails_by_name_and_with_room_all_is_as_on_an_empty_one(
    spark: SparkSession, log_dir: Path, tmp_path: Path
) -> None:
    require_own_mounts()
    done = subprocess.run(
        [*OWN_MOUNTS, sys.executable, "-m", "support.stores.full_disk", log_dir, tmp_path],
        env={**os.environ, "PYTHONPATH": str(TESTS)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    build_undisturbed(spark, log_dir, tmp_path / "undisturbed")

    failures = done.stdout.splitlines()
    assert done.returncode == 0, done.stderr[-3000:]
    assert len(failures) >= 3
    assert [line for line in failures if "No space left on device" not in line] == []
    assert same_tables(spark, tmp_path / "built", tmp_path / "undisturbed")
    assert leftovers(tmp_path / "built") == []


@pytest.fixture(scope="module")
def history(
    spark: SparkSession, broker: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, Path, Path]:
    """Logs, what a build gave before one segment was cut and one removed, and one after that."""
    folder = tmp_path_factory.mktemp("history")
    logs, before, after = folder / "logs", folder / "before", folder / "after"
    for name in ("ct-two-partitions-0", "ct-two-partitions-1"):
        shutil.copytree(broker / "logs" / name, logs / name)
    build_undisturbed(spark, logs, after)
    shutil.copytree(after, before)
    os.truncate(logs / "ct-two-partitions-1" / f"{1566:020d}.log", 30_000)
    (logs / "ct-two-partitions-0" / f"{1581:020d}.log").unlink()
    build_undisturbed(spark, logs, after)
    return logs, before, after


@pytest.mark.parametrize(
    "is_first",
    [
        pytest.param(True, id="first runs"),
        pytest.param(False, id="later runs", marks=pytest.mark.long),
    ],
)
def test_two_builds_of_a_source_at_once_give_the_tables_of_one(
    is_first: bool,
    driver: Driver,
    spark: SparkSession,
    history: tuple[Path, Path, Path],
    log_dir: Path,
    tmp_path: Path,
) -> None:
    logs, before, after = history
    if is_first:
        logs, after = log_dir, tmp_path / "one"
        build_undisturbed(spark, logs, after)
    else:
        shutil.copytree(before, tmp_path / "both")
    meeting = tmp_path / "meeting"
    meeting.mkdir()

    other = driver.build(logs, tmp_path / "both", meet_in=meeting)
    build(spark, logs, tmp_path / "both", meet_in=meeting)
    other.result()

    assert same_tables(spark, tmp_path / "both", after)
    assert leftovers(tmp_path) == []


@pytest.mark.long
def test_a_build_that_is_held_at_the_rename_of_its_commit_loses_no_rows_of_another_one(
    spark: SparkSession, log_dir: Path, tmp_path: Path
) -> None:
    """Spark's rename replaces: without a lock it replaces what came after its look."""
    both, one = tmp_path / "both", tmp_path / "one"
    first, ours, others = (tmp_path / name for name in ("first", "ours", "others"))
    shutil.copytree(log_dir / "ct-two-partitions-0", first / "first-0")
    shutil.copytree(log_dir / "ct-two-partitions-0", ours / "ours-0")
    shutil.copytree(log_dir / "ct-two-partitions-1", others / "others-0")
    build_undisturbed(spark, first, both)
    shutil.copytree(both, one)
    for source in (ours, others):
        build_undisturbed(spark, source, one)
    commits = HeldCommits(tmp_path, both / "wh" / SEGMENTS.name)
    held = Driver(SETTINGS | commits.settings, sys.executable)

    with closing(held), ThreadPoolExecutor(1) as pool:
        with commits:
            our_build = held.build(ours, both)
            name = commits.wait_for_one()
            other_build = pool.submit(build, spark, others, both)
            commits.wait_for_another(other_build.done)
        scanned = [done.result().segments_scanned for done in (our_build, other_build)]

    assert (name, scanned) == (f"{2:020d}.json", [2, 2])
    assert same_tables(spark, both, one)
    assert leftovers(both) == []


@pytest.mark.parametrize(
    "moments",
    [("after",), pytest.param(("before", "after"), marks=pytest.mark.long)],
    ids=" and ".join,
)
def test_a_driver_killed_before_and_after_the_merge_is_made_good_by_the_next_runs(
    moments: tuple[str, ...],
    driver: Driver,
    spark: SparkSession,
    history: tuple[Path, Path, Path],
    tmp_path: Path,
) -> None:
    logs, before, after = history
    shutil.copytree(before, tmp_path / "killed")

    for when in moments:
        killed = driver if when == moments[-1] else Driver(SETTINGS, sys.executable)
        with pytest.raises(BrokenProcessPool):
            killed.build(logs, tmp_path / "killed", killed=when).result()
        killed.close()
    last = build(spark, logs, tmp_path / "killed")

    assert last.segments_scanned == 0
    assert same_tables(spark, tmp_path / "killed", after)
