"""A warehouse of which a file is broken: no fewer rows in silence, and a build makes it whole."""

import json
import shutil
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyspark.sql import SparkSession

from kafka_segments.engine.tables.catalog import INTERNAL_RECORDS
from kafka_segments.engine.tables.delta import Warehouse
from kafka_segments.errors import BrokenTableError
from kafka_segments.files.delta.health import OF_BUILD
from kafka_segments.files.delta.table_versions import note_versions
from kafka_segments.files.storage.read_again import mark_read_again
from kafka_segments.verbs.scan.mending import READS_ALL_AGAIN, mend_tables
from support.spark.connect_client import run_verb
from support.spark.ready_builds import LentBuild, ReadyBuild

HARMS = ("empty", "halve", "nul", "lose", "line")


def _newest(warehouse: Path, table: str) -> Path:
    return max((warehouse / table / "_delta_log").glob("*.json"))


def _halve(file: Path) -> None:
    data = file.read_bytes()
    file.write_bytes(data[: len(data) // 2])


def _end_behind_a_line(file: Path) -> None:
    file.write_bytes(file.read_bytes().splitlines(keepends=True)[0])


def _rows(warehouse: Path, table: str) -> list[dict[str, object]]:
    query = f"SELECT * FROM {'segments_history' if table == 'segments' else table}"
    done = run_verb(["sql", query, "--warehouse", str(warehouse), "--output", "json"])
    assert done.status == 0, done.err
    made = ("run_id", "scanned_at", "scanned", "started_at", "finished_at")
    rows = [json.loads(line) for line in done.out.splitlines()]
    return sorted(
        ({key: value for key, value in row.items() if key not in made} for row in rows), key=str
    )


def test_a_build_with_nothing_to_do_refuses_a_table_that_a_person_has_to_mend(
    tmp_path: Path,
) -> None:
    table = tmp_path / "time_index"
    for offset in range(3):
        write_deltalake(str(table), pa.table({"offset": [offset]}), mode="append")
    note_versions(str(tmp_path), ("time_index",))
    assert mend_tables(str(tmp_path)) == {}
    commit = table / "_delta_log" / f"{1:020d}.json"
    commit.write_bytes(commit.read_bytes().replace(b'"add"', b'"ade"'))

    with pytest.raises(
        BrokenTableError, match=r"time_index is broken: .*1\.json has not the bytes"
    ):
        mend_tables(str(tmp_path))


@pytest.mark.slow
def test_a_build_sets_broken_commits_aside_and_makes_its_tables_whole(
    lent_build: LentBuild, tmp_path: Path
) -> None:
    built = lent_build.lend(tmp_path / "warehouse")
    warehouse = built.warehouse
    tables = ("segments", "logs", "log_dirs", "offset_index", "time_index", "unrecognized_files")
    before = {table: _rows(warehouse, table) for table in tables}
    for table, harm in (
        ("segments", _halve),
        ("offset_index", _end_behind_a_line),
        ("logs", Path.touch),
    ):
        newest = _newest(warehouse, table)
        if harm is Path.touch:
            newest.unlink()
        harm(newest)
    _newest(warehouse, "time_index").unlink()
    cut = run_verb(["sql", "SELECT count(*) FROM time_index", "--warehouse", str(warehouse)])
    shutil.rmtree(warehouse / "log_dirs")

    words = ["build", "--source", str(built.logs), "--warehouse", str(warehouse)]
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "t-0").mkdir(parents=True)
    refused = run_verb([*words, "--dry-run"])
    mark_read_again(str(warehouse), "an older mark")
    done = run_verb([*words, "--index-dir", str(built.indexes)])
    again = run_verb([*words, "--index-dir", str(built.indexes), "--dry-run"])
    of_another = ["build", "--source", str(elsewhere), "--warehouse", str(warehouse), "--dry-run"]
    other = run_verb(of_another)

    assert refused.status == 2
    assert "segments is broken: _delta_log/" in refused.err
    assert cut.status == 2
    assert "time_index is broken: _delta_log ends with version " in cut.err
    assert "table time_index: its log ends with version " in done.err
    assert f"an older mark; {READS_ALL_AGAIN}" in done.err
    assert "table log_dirs: its log is not there, version " in done.err
    assert done.status == 1
    assert READS_ALL_AGAIN not in again.err
    assert "would read 0 of " in again.err
    assert READS_ALL_AGAIN in other.err
    for table in ("segments", "offset_index", "logs"):
        assert f"table {table}: its newest commit " in done.err
        assert len(list((warehouse / table / "_broken_commits").iterdir())) == 1
    assert {table: _rows(warehouse, table) for table in tables} == before


@pytest.mark.slow
@pytest.mark.parametrize("count", [1, pytest.param(len(HARMS), marks=pytest.mark.long)])
def test_no_verb_answers_fewer_rows_from_a_table_that_is_broken(
    broker_build: ReadyBuild, tmp_path: Path, count: int
) -> None:
    for number, table in enumerate(OF_BUILD):
        for harm in [HARMS[(number + turn) % len(HARMS)] for turn in range(count)]:
            warehouse = tmp_path / f"{table}-{harm}"
            shutil.copytree(broker_build.warehouse, warehouse)
            newest = _newest(warehouse, table)
            files = list((warehouse / table).glob("*.parquet"))
            if harm == "lose" and files:
                for file in files:
                    file.unlink()
            elif harm == "halve":
                _halve(newest)
            elif harm == "line":
                _end_behind_a_line(newest)
            else:
                newest.write_bytes(bytes(newest.stat().st_size) if harm == "nul" else b"")

            done = run_verb(["sql", f"SELECT * FROM {table}", "--warehouse", str(warehouse)])

            assert done.status == 2, (table, harm, done)
            assert f"table {warehouse}/{table} is broken: " in done.err, (table, harm)
            assert "kafka-segments build" in done.err


def test_a_build_mends_the_log_directories_before_it_asks_for_those_without_metadata(
    spark: SparkSession, lent_build: LentBuild, tmp_path: Path
) -> None:
    built = lent_build.lend(tmp_path / "warehouse")
    Warehouse(spark, str(built.warehouse)).create(INTERNAL_RECORDS)
    before = _rows(built.warehouse, "log_dirs")
    shutil.rmtree(built.warehouse / "log_dirs")

    words = ["build", "--source", str(built.logs), "--warehouse", str(built.warehouse)]
    done = run_verb(words)

    assert (done.status, READS_ALL_AGAIN in done.err) == (1, True), done.err
    assert _rows(built.warehouse, "log_dirs") == before
