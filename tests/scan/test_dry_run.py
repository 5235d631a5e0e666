"""``build --dry-run`` says without Spark what a build with Spark would read."""

import os
import shutil
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from kafka_segments.cli import cli
from kafka_segments.engine.tables.delta import Warehouse
from kafka_segments.errors import SourceError, VanishedError
from kafka_segments.files.delta.log import last_version
from kafka_segments.kafka.index.formats.kip33_index import Kip33Format
from kafka_segments.kafka.index.segment.recovery_options import RecoveryOptions
from kafka_segments.verbs.scan.dry_run import plan_without_spark
from kafka_segments.verbs.scan.options import BuildOptions
from kafka_segments.verbs.scan.run import run_build
from kafka_segments.verbs.scan.summary import BuildSummary
from support.spark.ready_builds import LentBuild

NOW_MS = 1_800_000_000_000


@pytest.fixture
def warehouse(tmp_path: Path) -> str:
    return str(tmp_path / "wh")


@pytest.fixture
def options(log_dir: Path) -> BuildOptions:
    return BuildOptions((str(log_dir),), recovery=RecoveryOptions(), now_ms=NOW_MS)


def _plain(summary: BuildSummary | None) -> BuildSummary:
    assert summary is not None
    return replace(summary, run_id="", seconds=0.0, seconds_by_step={})


def test_before_the_first_build_all_is_read_and_nothing_is_changed(
    warehouse: str, log_dir: Path, tmp_path: Path
) -> None:
    logs = list(log_dir.rglob("*.log"))
    arguments = ["--source", str(log_dir), "--warehouse", warehouse, "--dry-run"]

    done = CliRunner().invoke(cli, ["build", *arguments, "--index-dir", str(tmp_path / "i")])

    size_bytes = sum(log.stat().st_size for log in logs)
    first, *rest = done.stderr.splitlines()
    assert (done.exit_code, done.stdout) == (0, ""), done.stderr
    assert first.startswith(
        f"would read {len(logs)} of {len(logs)} segments ({size_bytes} bytes), 0 unchanged"
    )
    assert rest == [
        f"would write index files below {tmp_path}/i, format kafka",
        f"would write the tables of {warehouse}",
    ]
    assert [path.name for path in tmp_path.iterdir()] == ["logs"]


def test_a_source_that_is_not_there_is_an_error(warehouse: str, options: BuildOptions) -> None:
    with pytest.raises(SourceError):
        plan_without_spark(warehouse, replace(options, sources=("/nowhere/at/all",)))


def _both(spark: SparkSession, warehouse: str, options: BuildOptions, **other: Any) -> BuildSummary:
    """Return what is said without Spark, which is what Spark says."""
    asked = replace(options, **other)
    told = _plain(plan_without_spark(warehouse, asked))
    assert told == _plain(run_build(Warehouse(spark, warehouse), asked, dry_run=True))
    return told


@pytest.mark.usefixtures("few")
def test_before_the_first_build_it_is_what_a_build_with_spark_would_read(
    spark: SparkSession, warehouse: str, options: BuildOptions
) -> None:
    assert _both(spark, warehouse, options).segments_unchanged == 0


@pytest.fixture
def built(lent_build: LentBuild, warehouse: str) -> BuildOptions:
    """What two partitions were built by."""
    lent = lent_build.lend(Path(warehouse))
    return BuildOptions(
        (str(lent.logs),),
        recovery=RecoveryOptions(),
        now_ms=NOW_MS,
        index_dir=str(lent.indexes),
    )


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize(
    ("other", "count"),
    [
        ({}, {"segments_scanned": 0}),
        ({"full": True}, {"segments_unchanged": 0}),
        ({"cluster": "another"}, {"segments_vanished": 4}),
        ({"index_format": Kip33Format(), "index_dir": "/i"}, {"segments_scanned": 4}),
    ],
    ids=["the same", "full", "cluster", "format"],
)
def test_after_a_build_it_is_what_one_by_the_same_options_or_others_would_read(
    spark: SparkSession,
    warehouse: str,
    built: BuildOptions,
    other: dict[str, Any],
    count: dict[str, int],
) -> None:
    told = _both(spark, warehouse, built, **other)

    assert {name: getattr(told, name) for name in count} == count


@pytest.mark.usefixtures("few")
def test_after_changes_it_is_what_a_build_with_spark_would_read(
    spark: SparkSession, warehouse: str, built: BuildOptions
) -> None:
    log_dir = Path(built.sources[0])
    one, *_, last = sorted(log_dir.rglob("*.log"))
    os.utime(one, ns=(5, 5))
    last.unlink()
    shutil.copytree(one.parent, log_dir / "new-7")
    (one.parent / "stray.log").touch()

    changed = _both(spark, warehouse, built)

    assert (changed.segments_vanished, changed.findings) == (1, 1)
    assert changed.segments_scanned > 1


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("gone", ["all", "logs", "source"])
def test_a_build_stops_where_a_disk_seems_not_to_be_mounted(
    spark: SparkSession, warehouse: str, built: BuildOptions, gone: str
) -> None:
    log_dir = Path(built.sources[0])
    for path in log_dir.iterdir():
        if gone != "logs" or path.is_dir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    tables = Warehouse(spark, warehouse)
    before = last_version(f"{warehouse}/segments")

    for build in (partial(plan_without_spark, warehouse), partial(run_build, tables)):
        with pytest.raises(VanishedError, match=r"4 of 4 segments .* vanished"):
            build(built)

    assert last_version(f"{warehouse}/segments") == before
    empty = _both(spark, warehouse, built, most_vanished=100)
    assert (empty.segments_vanished, empty.empty_sources) == (4, built.sources)
    assert empty.findings == 1


@pytest.mark.usefixtures("few")
def test_a_build_stops_where_one_disk_of_several_seems_not_to_be_mounted(
    spark: SparkSession, warehouse: str, options: BuildOptions, log_dir: Path, tmp_path: Path
) -> None:
    """One that a broker has left without a log still has its ``meta.properties``."""
    for name in ("one", "two", "three"):
        shutil.copytree(next(log_dir.iterdir()), tmp_path / "mnt" / name / "t-0")
    asked = replace(options, sources=(str(tmp_path / "mnt"),))
    tables = Warehouse(spark, warehouse)
    known = run_build(tables, asked).segments_found // 3
    gone = tmp_path / "mnt" / "three"
    shutil.rmtree(gone / "t-0")

    for build in (partial(plan_without_spark, warehouse), partial(run_build, tables)):
        with pytest.raises(VanishedError, match=rf"three: {known} of {known} segments .* vanished"):
            build(asked)

    assert _both(spark, warehouse, asked, most_vanished=100).segments_vanished == known
    (gone / "meta.properties").write_text("version=1\ncluster.id=east\nnode.id=3\n")
    assert _both(spark, warehouse, asked).segments_vanished == known


@pytest.mark.usefixtures("few")
def test_a_build_goes_on_where_a_broker_deleted_what_is_gone(
    spark: SparkSession, warehouse: str, built: BuildOptions
) -> None:
    for folder in Path(built.sources[0]).iterdir():
        for segment in sorted(folder.glob("*.log"))[:-1]:
            segment.unlink()

    found = _both(spark, warehouse, built, most_vanished=0)

    assert (found.segments_vanished, found.findings, found.empty_sources) == (2, 0, ())


def test_a_source_without_a_segment_is_a_finding(
    spark: SparkSession, warehouse: str, tmp_path: Path
) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "meta").mkdir()
    (tmp_path / "meta" / "meta.properties").write_text("version=1\nnode.id=1\n")
    sources = (str(tmp_path / "empty"), str(tmp_path / "meta"))
    options = BuildOptions(sources, RecoveryOptions(), NOW_MS)

    told = _both(spark, warehouse, options)

    assert (told.findings, told.empty_sources) == (2, sources)
