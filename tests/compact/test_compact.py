"""Compaction of what builds left: files with a way back, tables with the same rows."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from kafka_segments.engine.choose import few_rows
from kafka_segments.engine.tables import catalog as tables
from kafka_segments.engine.tables.delta import Warehouse
from kafka_segments.engine.tables.keys import SEGMENT_KEYS
from kafka_segments.errors import UsageError
from kafka_segments.files.changes.kept_files import undo
from kafka_segments.files.storage.uris import join_uri
from kafka_segments.verbs.change.compact import run
from kafka_segments.verbs.change.compact.run import CompactOptions, CompactSummary, run_compact
from kafka_segments.verbs.scan.summary import BuildSummary
from support.logs.strategies import v2_batch
from support.spark.ready_builds import LentBuild, ReadyBuild
from support.spark.stored_builds import build_few, rows_few

NOW_MS = 1_800_000_000_000
OF_EACH_KIND = (tables.SEGMENTS, tables.OFFSET_INDEX)
"""A table with a row a key, and one that is laid out by its columns; all are tried at length."""


@pytest.fixture
def built(lent_build: LentBuild, tmp_path: Path) -> ReadyBuild:
    return lent_build.lend(tmp_path / "wh")


@pytest.fixture
def build(spark: SparkSession, built: ReadyBuild) -> Callable[[], BuildSummary]:
    def run() -> BuildSummary:
        indexes = str(built.indexes)
        return build_few(spark, str(built.logs), str(built.warehouse), index_dir=indexes)

    return run


@pytest.fixture
def compact(spark: SparkSession, built: ReadyBuild) -> Callable[..., CompactSummary]:
    def run(**options: object) -> CompactSummary:
        root = Warehouse(spark, str(built.warehouse))
        where = {"now_ms": NOW_MS, "set_aside": join_uri(root.root, "_set_aside")}
        merged = {**where, "index_dir": str(built.indexes), **options}
        with few_rows(spark):
            return run_compact(root, CompactOptions(**merged))  # type: ignore[arg-type]

    return run


def _files(folder: Path) -> dict[str, bytes]:
    paths = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


def _rows(rows: DataFrame) -> list[str]:
    return sorted(map(str, rows.collect()))


class Padded(NamedTuple):
    """Index files before something was added to each and beside one, and after."""

    sound: dict[str, bytes]
    found: dict[str, bytes]


@pytest.fixture
def padded(built: ReadyBuild) -> Padded:
    sound = _files(built.indexes)
    for name, data in sound.items():
        (built.indexes / name).write_bytes(data + bytes(1_200))
    (built.indexes / "ct-two-partitions-0" / f"{99:020d}.index").write_bytes(b"no segment")
    return Padded(sound, _files(built.indexes))


def test_what_compaction_changes_of_files_is_said_before_and_comes_back(
    compact: Callable[..., CompactSummary], built: ReadyBuild, padded: Padded
) -> None:
    said = compact(dry_run=True)
    untouched = _files(built.indexes)
    done = compact(compacts_tables=False)

    assert untouched == padded.found
    assert said.changes == done.changes
    assert {change.action for change in done.changes} == {"trim", "orphan"}
    assert _files(built.indexes) == padded.sound
    undo(str(built.warehouse / "_set_aside" / done.run_id))
    assert _files(built.indexes) == padded.found


@pytest.mark.usefixtures("padded")
def test_after_a_compaction_of_files_a_build_reads_nothing(
    compact: Callable[..., CompactSummary], build: Callable[[], BuildSummary]
) -> None:
    compact(compacts_tables=False)

    assert build().segments_scanned == 0


def test_index_files_that_an_older_copy_of_the_tables_does_not_know_stay_with_their_segments(
    spark: SparkSession,
    build: Callable[[], BuildSummary],
    built: ReadyBuild,
    tmp_path: Path,
) -> None:
    older, log = tmp_path / "older", built.logs / "ct-two-partitions-0"
    shutil.copytree(built.warehouse, older)
    end = 10**6
    (log / f"{end:020d}.log").write_bytes(v2_batch(end, [(NOW_MS, None, b"v")]))
    build()
    (built.indexes / log.name / f"{end + 1:020d}.index").write_bytes(b"no segment")
    files = _files(built.indexes)

    where = {"set_aside": str(older / "_set_aside"), "index_dir": str(built.indexes)}
    options = CompactOptions(now_ms=NOW_MS, compacts_tables=False, **where)
    with few_rows(spark):
        done = run_compact(Warehouse(spark, str(older)), options)

    (orphan,) = (change.path for change in done.changes)
    assert orphan == str(built.indexes / log.name / f"{end + 1:020d}.index")
    assert _files(built.indexes).keys() == files.keys() - {os.path.relpath(orphan, built.indexes)}


def test_all_tables_of_a_build_are_compacted(compact: Callable[..., CompactSummary]) -> None:
    done = compact(index_dir=None, now_ms=0)  # no file is old enough to be removed

    assert {t.table for t in done.tables} == {t.name for t in tables.BUILD_TABLES}
    assert all(t.files_after <= max(t.files_before, 1) for t in done.tables)


@pytest.mark.slow
@pytest.mark.usefixtures("few")
def test_changes_of_segments_can_be_read_from_the_tables_change_feed(
    spark: SparkSession, build: Callable[[], BuildSummary], built: ReadyBuild
) -> None:
    gone = min((built.logs / "ct-two-partitions-1").glob("*.log"))
    gone.unlink()
    build()

    uri = str(built.warehouse / "segments")
    feed = spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", 0)
    changes = feed.load(uri).where("vanished_at IS NOT NULL").select("path", "_change_type")

    assert [tuple(row) for row in changes.collect()] == [(str(gone), "update_postimage")]


@pytest.mark.slow
@pytest.mark.parametrize(
    "table",
    [
        table if table in OF_EACH_KIND else pytest.param(table, marks=pytest.mark.long)
        for table in tables.BUILD_TABLES
    ],
    ids=lambda table: table.name,
)
def test_a_table_that_is_compacted_keeps_its_rows(
    spark: SparkSession,
    compact: Callable[..., CompactSummary],
    built: ReadyBuild,
    table: tables.Table,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(run, "_TABLES", (table,))
    before = rows_few(spark, str(built.warehouse), table)

    (done,) = compact(index_dir=None).tables

    assert done.table == table.name
    assert rows_few(spark, str(built.warehouse), table) == before


@pytest.mark.long
def test_a_large_table_is_written_by_several_tasks_and_the_next_run_leaves_its_files(
    spark: SparkSession,
    compact: Callable[..., CompactSummary],
    built: ReadyBuild,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    root, table = Warehouse(spark, str(built.warehouse)), tables.OFFSET_INDEX
    rows = root.read(table).toArrow()
    copies = spark.createDataFrame(rows).crossJoin(spark.range(10**6, 10**6 + 12))
    at_copy = copies.withColumn("base_offset", F.col("id")).withColumn("offset", F.col("id"))
    root.append(table, at_copy.drop("id").repartition(12))
    before, size_bytes = root.file_totals(table)
    monkeypatch.setattr(run, "_TABLES", (table,))
    monkeypatch.setattr(run, "_LEAST_FILE_BYTES", 1 + size_bytes // before * 4)

    first = {change.table: change for change in compact(index_dir=None).tables}[table.name]
    files = root.read(table).inputFiles()
    second = {change.table: change for change in compact(index_dir=None).tables}[table.name]

    assert 1 < first.files_after < first.files_before == before
    assert second.files_after == first.files_after
    assert sorted(root.read(table).inputFiles()) == sorted(files)
    assert root.read(table).count() == 13 * len(rows)
    assert spark.conf.get("spark.databricks.delta.optimize.maxFileSize", None) is None


def test_an_index_folder_that_no_build_wrote_is_refused(
    compact: Callable[..., CompactSummary], tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match="what is an orphan cannot be told"):
        compact(index_dir=str(tmp_path))


def test_a_horizon_that_could_take_files_from_a_query_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="at least 168"):
        CompactOptions(set_aside=str(tmp_path), now_ms=NOW_MS, vacuum_hours=24)


@pytest.mark.long
def test_a_build_and_a_compaction_at_the_same_time_lose_nothing(
    built: ReadyBuild, spark: SparkSession, tmp_path: Path
) -> None:
    files, root = _files(built.indexes), Warehouse(spark, str(built.warehouse))
    rows = _rows(root.read(tables.OFFSET_INDEX))
    for name, data in files.items():
        (built.indexes / name).write_bytes(data + bytes(1_200))
    where = ["--warehouse", built.warehouse, "--index-dir", built.indexes]

    runs = [
        subprocess.Popen(
            [sys.executable, "-m", "kafka_segments", *map(str, arguments)],
            stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            text=True,
            cwd=tmp_path,
            env={**os.environ},
        )
        for arguments in (
            ["build", "--full", "--source", built.logs, *where],
            ["compact", *where],
        )
    ]
    messages = [run.communicate(timeout=240)[1] for run in runs]

    assert [run.returncode for run in runs] == [0, 0], messages
    assert _files(built.indexes) == files
    assert _rows(root.read(tables.OFFSET_INDEX)) == rows
    assert (
        root.read(tables.SEGMENTS).count()
        == root.read(tables.SEGMENTS).dropDuplicates(list(SEGMENT_KEYS)).count()
    )
