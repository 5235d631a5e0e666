"""Builds on tables that somebody else maintains: what was taken back is made again, and said."""

import os
import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from kafka_segments.engine.tables.catalog import OFFSET_INDEX, SEGMENTS, TIME_INDEX, Table
from kafka_segments.engine.tables.delta import Warehouse
from kafka_segments.verbs.scan import run
from kafka_segments.verbs.scan.write_tables import BuildTables
from kafka_segments.verbs.tell.validate import run as validate
from support.logs.growing_logs import GrowingLogs
from support.spark.connect_client import Done, run_verb
from support.spark.stored_builds import NOW_MS, counted_in_tables, rows_few

pytestmark = pytest.mark.slow
OF_A_RUN = {"run_id", "fingerprint", "scanned_at"}


def _build(source: Path, warehouse: Path) -> Done:
    called = ["build", "--source", str(source), "--warehouse", str(warehouse)]
    return run_verb([*called, "--now-ms", str(NOW_MS), "--output", "json"])


def _rows(spark: SparkSession, warehouse: Path) -> list[list[dict[str, Any]]]:
    return [
        [
            {name: value for name, value in row.items() if name not in OF_A_RUN}
            for row in rows_few(spark, str(warehouse), table)
        ]
        for table in (SEGMENTS, OFFSET_INDEX, TIME_INDEX)
    ]


def _kill_before_segments(source: Path, warehouse: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a build end where it has written all tables but that of segments."""
    merge = Warehouse.merge

    def killed(self: Warehouse, table: Table, rows: Any, **options: Any) -> None:
        if table is SEGMENTS:
            raise RuntimeError("killed")
        merge(self, table, rows, **options)

    with monkeypatch.context() as patch:
        patch.setattr(Warehouse, "merge", killed)
        assert _build(source, warehouse).status == 3


def _restore(spark: SparkSession, table: Path) -> None:
    version = spark.sql(f"DESCRIBE HISTORY delta.`{table}`").agg({"version": "max"}).first()
    assert version is not None
    spark.sql(f"RESTORE TABLE delta.`{table}` TO VERSION AS OF {version[0] - 1}")


def _append_with(spark: SparkSession, table: Path, **values: object) -> None:
    """Append the rows of a table once more, with other values in some columns."""
    rows = spark.read.format("delta").load(str(table))
    others = {name: F.lit(value).cast(rows.schema[name].dataType) for name, value in values.items()}
    rows.withColumns(others).write.format("delta").mode("append").save(str(table))


def _grown_and_built(folder: Path) -> tuple[GrowingLogs, Path]:
    """Return logs that grew for a while, and the tables that a build made of them."""
    logs, tables = GrowingLogs(folder / "logs", random.Random(5)), folder / "wh"
    for _ in range(12):
        logs.grow()
    _build(folder / "logs", tables)
    return logs, tables


@pytest.mark.long
def test_entries_that_somebody_restored_to_an_older_version_are_made_again(
    spark: SparkSession, tmp_path: Path
) -> None:
    logs, tables = _grown_and_built(tmp_path)
    for _ in range(6):
        logs.grow()
    _build(tmp_path / "logs", tables)
    before = _rows(spark, tables)
    _restore(spark, tables / "offset_index")
    restored = _rows(spark, tables)

    compacted = run_verb(["compact", "--warehouse", str(tables), "--now-ms", str(NOW_MS)])
    mended = _build(tmp_path / "logs", tables)
    after = _rows(spark, tables)
    last = _build(tmp_path / "logs", tables)

    assert len(restored[1]) < len(before[1])
    assert after == before
    assert [len(done.out.splitlines()) for done in (mended, last)] == [len(logs.segments), 0]
    assert [done.status for done in (compacted, mended, last)] == [1, 1, 0]
    for done in (compacted, mended):
        assert "table offset_index: rows were taken back by RESTORE in version " in done.err


def test_what_somebody_takes_back_while_a_build_runs_is_said_by_it_and_made_again_by_the_next(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    logs, tables = GrowingLogs(tmp_path / "logs", random.Random(5)), tmp_path / "wh"
    for _ in range(12):
        logs.grow()
    find_missing = run.find_missing

    def restored_meanwhile(*asked: Any) -> Any:
        _restore(spark, tables / "offset_index")
        return find_missing(*asked)

    with monkeypatch.context() as patch:
        patch.setattr(run, "find_missing", restored_meanwhile)
        built = [_build(tmp_path / "logs", tables)]  # the first one: nothing is noted yet
    built += [_build(tmp_path / "logs", tables) for _ in range(2)]
    _build(tmp_path / "logs", tmp_path / "new")

    assert [done.status for done in built] == [1, 1, 0]
    for done in built[:2]:
        assert "table offset_index: rows were taken back by RESTORE in version 2" in done.err
    assert [len(done.out.splitlines()) for done in built[1:]] == [len(logs.segments), 0]
    assert _rows(spark, tables) == _rows(spark, tmp_path / "new")


def test_what_somebody_takes_back_between_two_builds_at_once_is_said_by_both(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    logs, tables = _grown_and_built(tmp_path)
    for _ in range(6):
        logs.grow()
    write, find_missing = BuildTables.write, run.find_missing
    beside: list[Done] = []

    def deleted(*asked: Any) -> Any:
        spark.sql(f"DELETE FROM delta.`{tables / 'offset_index'}` WHERE partition % 2 = 0")
        return find_missing(*asked)

    def written_by_two(self: BuildTables, *given: Any) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(BuildTables, "write", write)
            patch.setattr(run, "find_missing", deleted)
            beside.append(_build(tmp_path / "logs", tables))  # it ends first, and notes what came
        write(self, *given)

    with monkeypatch.context() as patch:
        patch.setattr(BuildTables, "write", written_by_two)
        builds = [_build(tmp_path / "logs", tables)]
    builds = beside + builds + [_build(tmp_path / "logs", tables) for _ in range(2)]
    _build(tmp_path / "logs", tmp_path / "new")

    assert [done.status for done in builds] == [1, 1, 1, 0]
    for done in builds[:3]:
        assert "table offset_index: rows were taken back by DELETE in version " in done.err
    assert [len(done.out.splitlines()) for done in builds[2:]] == [len(logs.segments), 0]
    assert _rows(spark, tables) == _rows(spark, tmp_path / "new")


def test_rows_that_somebody_adds_or_changes_by_our_keys_are_said_and_go(
    spark: SparkSession, tmp_path: Path
) -> None:
    logs, tables = _grown_and_built(tmp_path)
    segments, known = (f"delta.`{tables / name}`" for name in ("segments", "logs"))
    keys = ("cluster", "broker_id", "log_dir", "topic", "partition")
    on = " AND ".join(f"t.{key} = s.{key}" for key in keys)
    statements = {
        "segments: rows were taken back by MERGE": f"MERGE INTO {segments} t USING (SELECT * FROM"
        f" {segments} LIMIT 1) s ON {on} AND t.base_offset = s.base_offset"
        " WHEN MATCHED THEN UPDATE SET batch_count = 77, next_offset = 777",
        "logs: rows were added by MERGE": f"MERGE INTO {known} t USING (SELECT * FROM {known} LIMIT"
        f" 1) s ON {on} AND t.path = 'another' WHEN NOT MATCHED THEN INSERT *",
    }
    for statement in statements.values():
        spark.sql(statement)
    again = DeltaTable(tables / "segments").to_pyarrow_table()
    write_deltalake(tables / "segments", again.slice(0, 3), mode="append")
    _append_with(spark, tables / "segments", log_dir="/nowhere", path="/nowhere/t-0/1.log")
    _append_with(spark, tables / "offset_index", topic="no-topic")

    built = [_build(tmp_path / "logs", tables) for _ in range(2)]
    _build(tmp_path / "logs", tmp_path / "new")

    assert [done.status for done in built] == [1, 0]
    assert [len(done.out.splitlines()) for done in built] == [len(logs.segments), 0]
    added = (f"{name}: rows were added by an append" for name in ("segments", "offset_index"))
    for said in (*statements, *added):
        assert f"table {said} in version " in built[0].err
    elsewhere = f"DELETE FROM {segments} WHERE log_dir = '/nowhere'"  # whose disk nobody knows
    assert spark.sql(elsewhere).collect()[0]["num_affected_rows"]
    assert _rows(spark, tables) == _rows(spark, tmp_path / "new")
    assert spark.sql(f"SELECT * FROM {known}").count() == len(list((tmp_path / "logs").glob("*-*")))


def test_entries_that_a_killed_build_left_of_a_new_segment_go_where_it_becomes_another_one(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    logs, tables = GrowingLogs(tmp_path / "logs", random.Random(5)), tmp_path / "wh"
    _build(tmp_path / "logs", tables)
    known = set(logs.segments)
    while not any(logs.segments[key].entries for key in logs.segments.keys() - known):
        logs.grow()
    _kill_before_segments(tmp_path / "logs", tables, monkeypatch)
    for topic, partition, base_offset in logs.segments.keys() - known:
        file = tmp_path / "logs" / f"{topic}-{partition}" / f"{base_offset:020d}.log"
        os.truncate(file, 100)
    _build(tmp_path / "logs", tables)
    _build(tmp_path / "logs", tmp_path / "new")

    assert _rows(spark, tables) == _rows(spark, tmp_path / "new")


def test_a_validation_waits_for_a_build_that_has_written_entries_and_not_yet_their_segments(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    logs, tables = _grown_and_built(tmp_path)
    for _ in range(12):
        logs.grow()
    _kill_before_segments(tmp_path / "logs", tables, monkeypatch)
    asked = ["validate", "--warehouse", str(tables), "--now-ms", str(NOW_MS), "--fail-on", "fatal"]

    @contextmanager
    def build_ends(warehouse: str, *, alone: bool) -> Iterator[None]:
        assert alone
        _build(tmp_path / "logs", Path(warehouse))
        yield

    with monkeypatch.context() as patch:
        patch.setattr(validate, "warehouse_lock", build_ends)
        beside = run_verb(asked)
    for _ in range(12):
        logs.grow()
    _kill_before_segments(tmp_path / "logs", tables, monkeypatch)
    alone = run_verb(asked)

    assert (beside.status, alone.status) == (0, 1)
    assert "offset_index entries_match_segment" in alone.err


def test_what_is_counted_while_logs_grow_is_what_each_build_says(
    spark: SparkSession, tmp_path: Path
) -> None:
    logs, tables = GrowingLogs(tmp_path / "logs", random.Random(1)), tmp_path / "wh"
    for _ in range(3):
        logs.grow()
        _build(tmp_path / "logs", tables)

        assert counted_in_tables(spark, tables) == logs.counted()
