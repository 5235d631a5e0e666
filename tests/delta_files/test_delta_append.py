"""Rows appended to a Delta table without Spark, held against what another engine reads."""

import json
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from kafka_segments.files.delta import append as delta_append
from kafka_segments.files.delta.append import MEETS_CONSTRAINTS, append_files, append_rows
from kafka_segments.files.delta.commit import publish_commit
from kafka_segments.files.delta.metadata import TableMetadata, read_metadata
from kafka_segments.files.storage.durable_files import TEMPORARY

MEASURED = {"delta.dataSkippingStatsColumns": "id,name,none,long"}
ROWS = pa.table(
    {
        "id": pa.array([3, 1], pa.int64()),
        "name": ["b", "é"],
        "none": pa.array([None, None], pa.string()),
        "long": ["x" * 40, "y"],
        "list": [[1, None], None],
    }
)


@pytest.fixture
def table(tmp_path: Path) -> str:
    path = str(tmp_path / "table")
    write_deltalake(path, ROWS, configuration=MEASURED)
    return path


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    """Give files of no, one and two rows, the last one in two groups."""
    paths = []
    for rows in (0, 1, 2):
        paths.append(str(tmp_path / f"{rows}.parquet"))
        pq.write_table(ROWS.slice(2 - rows), paths[-1], row_group_size=1)
    return paths


def _added(table: str, version: int) -> list[dict[str, Any]]:
    lines = Path(table, "_delta_log", f"{version:020d}.json").read_text("utf-8").splitlines()
    return [action["add"] for line in lines if "add" in (action := json.loads(line))]


def _commits(table: str) -> list[str]:
    return sorted(file.name for file in Path(table, "_delta_log").iterdir())


def test_another_engine_reads_the_rows_that_were_there_and_those(table: str) -> None:
    assert append_rows(table, ROWS)

    found = DeltaTable(table)
    assert found.version() == 1
    assert pa.table(found.to_pyarrow_table()) == pa.concat_tables([ROWS, ROWS])
    assert found.history(1)[0]["operation"] == "WRITE"
    assert not list(Path(table).rglob(f"*{TEMPORARY}"))


def test_the_statistics_are_of_the_columns_that_the_table_names(table: str) -> None:
    append_rows(table, ROWS)

    (add,) = _added(table, 1)
    assert json.loads(add["stats"]) == {
        "numRecords": 2,
        "minValues": {"id": 1, "name": "b", "long": "x" * 32},
        "maxValues": {"id": 3, "name": "é", "long": "y"},
        "nullCount": {"id": 0, "name": 0, "none": 2, "long": 0},
    }


def test_no_rows_make_no_commit(table: str) -> None:
    assert append_rows(table, ROWS.schema.empty_table())

    assert len(_commits(table)) == 1


def test_each_fiftieth_commit_is_left_to_delta_which_writes_a_checkpoint_then(
    table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert delta_append._CHECKPOINT_EVERY == 50
    monkeypatch.setattr(delta_append, "_CHECKPOINT_EVERY", 10)

    assert [append_rows(table, ROWS) for _ in range(10)] == [True] * 9 + [False]
    assert len(_commits(table)) == 10
    assert len(list(Path(table).glob("*.parquet"))) == 10


@pytest.mark.parametrize("changes_schema", [False, True])
def test_another_run_that_commits_first(
    table: str, changes_schema: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    late = ROWS.append_column("late", pa.array([1, 2]))
    others = [late if changes_schema else ROWS]

    def publish(*given: object) -> None:
        if others:
            write_deltalake(table, others.pop(), mode="append", schema_mode="merge")
        publish_commit(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(delta_append, "publish_commit", publish)

    assert append_rows(table, ROWS) is not changes_schema

    found = DeltaTable(table)
    assert found.version() == (1 if changes_schema else 2)
    assert pa.table(found.to_pyarrow_table()).num_rows == (4 if changes_schema else 6)
    assert len(list(Path(table).glob("*.parquet"))) == (2 if changes_schema else 3)


@pytest.mark.parametrize(
    "other",
    [
        {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7}},
        {"protocol": {"minReaderVersion": 1, "minWriterVersion": 4}},
        {
            "protocol": {
                "minReaderVersion": 1,
                "minWriterVersion": 7,
                "writerFeatures": ["appendOnly", "rowTracking"],
            }
        },
        {"metadata": {"partitionColumns": ["id"]}},
        {"metadata": {"configuration": {"delta.constraints.id": "id > 0"}}},
        {"metadata": {"schemaString": '{"metadata": {"delta.invariants": "id > 0"}}'}},
    ],
)
def test_what_asks_more_of_a_writer_is_left_to_delta(
    table: str, other: dict[str, dict[str, object]], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = read_metadata(table)
    assert before is not None
    changed: TableMetadata = before._replace(
        metadata=before.metadata | other.get("metadata", {}),
        protocol=other.get("protocol", before.protocol),
    )
    monkeypatch.setattr(delta_append, "read_metadata", lambda _: changed)

    assert not append_rows(table, ROWS)
    assert len(_commits(table)) == 1


def test_where_there_is_no_table_nothing_is_written(tmp_path: Path) -> None:
    assert not append_rows(str(tmp_path / "nowhere"), ROWS)
    assert not list(tmp_path.iterdir())


def test_files_become_those_of_the_table_by_one_commit(table: str, files: list[str]) -> None:
    assert append_files(table, files)

    for file in files:
        Path(file).unlink()
    found = DeltaTable(table)
    assert found.version() == 1
    assert pa.table(found.to_pyarrow_table()).sort_by("id") == pa.concat_tables(
        [ROWS, ROWS, ROWS.slice(1)]
    ).sort_by("id")
    one, two = _added(table, 1)
    assert json.loads(one["stats"])["numRecords"] == 1
    assert json.loads(two["stats"]) == {
        "numRecords": 2,
        "minValues": {"id": 1, "name": "b", "long": "x" * 32},
        "maxValues": {"id": 3, "name": "é", "long": "y"},
        "nullCount": {"id": 0, "name": 0, "none": 2, "long": 0},
    }


def test_files_without_rows_make_no_commit(table: str, files: list[str]) -> None:
    assert append_files(table, files[:1])
    assert append_files(table, [])

    assert len(_commits(table)) == 1


@pytest.mark.parametrize("marked", [(0, 1, 2), (1, 2)])
def test_files_meet_constraints_if_each_says_so(
    table: str, files: list[str], marked: tuple[int, ...]
) -> None:
    for number in marked:
        rows = pq.read_table(files[number])
        with pq.ParquetWriter(files[number], rows.schema) as written:
            written.write_table(rows)
            written.add_key_value_metadata({MEETS_CONSTRAINTS: b"true"})
    constraint = {"id": "id > 0"}
    DeltaTable(table).alter.add_constraint(constraint)

    assert append_files(table, files, constraints=constraint) is (len(marked) == len(files))


@pytest.mark.parametrize("refused", ["link", "commit"])
def test_files_that_are_not_taken_leave_the_table_as_it_was(
    table: str, files: list[str], refused: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = sorted(Path(table).rglob("*"))
    link, links = os.link, []

    def linked(file: str, target: Path) -> None:
        if links and refused == "link":
            raise OSError("another disk")
        links.append(target)
        link(file, target)

    monkeypatch.setattr(os, "link", linked)
    monkeypatch.setattr(delta_append, "_commit", lambda *_: False)

    assert not append_files(table, files)
    assert sorted(Path(table).rglob("*")) == before
    assert all(map(os.path.exists, files))
