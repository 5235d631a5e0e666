"""A table's metadata by its log, and the commit that changes it: held against another engine."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from kafka_segments.errors import BrokenTableError, UsageError
from kafka_segments.files.delta.metadata import change_metadata, read_metadata

ROWS = pa.table({"id": pa.array([1, 2], pa.int64())})
NAMED = {"delta.appendOnly": "false", "delta.checkpointInterval": "10"}
CHANGED = {"delta.checkpointInterval": "20"}


@pytest.fixture
def table(tmp_path: Path) -> str:
    path = str(tmp_path / "table")
    write_deltalake(path, ROWS, configuration=NAMED)
    for _ in range(3):
        write_deltalake(path, ROWS, mode="append")
    return path


def _with_new_column(schema: str) -> str:
    columns = json.loads(schema)
    columns["fields"].append({"name": "new", "type": "long", "nullable": True, "metadata": {}})
    return json.dumps(columns)


@pytest.mark.parametrize("has_checkpoint", [False, True])
def test_it_is_read_from_commits_and_from_a_checkpoint(table: str, has_checkpoint: bool) -> None:
    if has_checkpoint:
        DeltaTable(table).create_checkpoint()
        for version in range(3):
            Path(table, "_delta_log", f"{version:020d}.json").unlink()

    found = read_metadata(table)

    assert found is not None
    assert found.version == 3
    assert found.properties == NAMED
    assert [field["name"] for field in json.loads(found.schema)["fields"]] == ["id"]
    assert found.metadata["format"] == {"provider": "parquet", "options": {}}
    assert found.protocol["minReaderVersion"] == 1


@pytest.mark.parametrize("has_checkpoint", [False, True])
def test_another_engine_reads_the_table_after_the_change(table: str, has_checkpoint: bool) -> None:
    if has_checkpoint:
        DeltaTable(table).create_checkpoint()
    before = read_metadata(table)
    assert before is not None

    change_metadata(table, before, schema=_with_new_column(before.schema), properties=CHANGED)

    after = DeltaTable(table)
    assert after.version() == 4
    assert after.metadata().configuration == NAMED | CHANGED
    assert pa.table(after.to_pyarrow_table()).column_names == ["id", "new"]
    assert pa.table(after.to_pyarrow_table()).num_rows == 8
    assert after.history(1)[0]["operation"] == "UPDATE SCHEMA"
    assert not [file for file in Path(table, "_delta_log").iterdir() if file.name.startswith(".")]


def test_a_commit_of_another_writer_is_not_overwritten(table: str) -> None:
    before = read_metadata(table)
    assert before is not None
    write_deltalake(table, ROWS, mode="append")

    with pytest.raises(UsageError, match=r"another run committed version 4 .* run it again"):
        change_metadata(table, before, schema=before.schema, properties={})

    assert DeltaTable(table).version() == 4
    assert pa.table(DeltaTable(table).to_pyarrow_table()).num_rows == 10


@pytest.mark.parametrize(
    ("protocol", "named"),
    [
        (
            {"minWriterVersion": 7, "writerFeatures": ["appendOnly", "icebergCompatV2"]},
            "icebergCompatV2",
        ),
        ({"minWriterVersion": 5}, "writer version 5"),
    ],
)
def test_what_is_asked_of_deltas_writers_and_is_not_known_is_named(
    table: str, protocol: dict[str, Any], named: str
) -> None:
    before = read_metadata(table)
    assert before is not None
    newer = before._replace(protocol=protocol)

    with pytest.raises(UsageError, match=rf"cannot keep: Delta's {named}\. Move it away"):
        change_metadata(table, newer, schema=before.schema, properties={})

    assert DeltaTable(table).version() == 3


@pytest.mark.parametrize("lost", ["00000000000000000000.json", "00000000000000000002.json"])
def test_a_log_with_a_gap_or_without_its_begin_is_refused(table: str, lost: str) -> None:
    Path(table, "_delta_log", lost).unlink()

    with pytest.raises(BrokenTableError, match=f"{lost} is not there, later commits are"):
        read_metadata(table)


def test_where_there_is_no_table_there_is_nothing_to_tell(tmp_path: Path) -> None:
    assert read_metadata(str(tmp_path)) is None
