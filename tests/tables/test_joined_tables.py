"""Small tables whose many files become one, held against what another engine reads of them."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from kafka_segments.engine.tables import arrow_tables
from kafka_segments.engine.tables.arrow_tables import append_small, join_small, merge_small
from kafka_segments.files.delta.commit import commit_info, publish_commit
from kafka_segments.files.delta.create import create_table
from kafka_segments.files.delta.log import list_log
from kafka_segments.files.delta.taken_back import taken_back_since

FEED = {"delta.enableChangeDataFeed": "true"}


def _field(name: str, kind: str) -> dict[str, Any]:
    return {"name": name, "type": kind, "nullable": True, "metadata": {}}


def _rows(*numbers: int) -> pa.Table:
    return pa.table({"id": list(numbers), "text": [f"of {number}" for number in numbers]})


@pytest.fixture(params=[{}, FEED], ids=["without a feed", "with one"])
def grown(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A table with 21 versions, by appends and merges; others wrote each tenth."""
    uri = str(tmp_path / "table")
    schema = json.dumps(
        {"type": "struct", "fields": [_field("id", "long"), _field("text", "string")]}
    )
    create_table(uri, schema=schema, properties=request.param, clustered_by=["id"])
    for version in range(1, 22):
        if version % 10 == 0:
            publish_commit(uri, version, [commit_info("WRITE", {}, read_version=version - 1)])
        elif version % 2:
            assert append_small(uri, _rows(version))
        else:
            assert merge_small(uri, _rows(version, version - 1), keys=["id"])
    return uri


def _actions(uri: str, version: int) -> list[dict[str, Any]]:
    lines = Path(uri, "_delta_log", f"{version:020d}.json").read_text("utf-8").splitlines()
    return [json.loads(line) for line in lines]


def test_many_files_become_one_and_no_row_another_one(grown: str) -> None:
    before = pa.table(DeltaTable(grown).to_pyarrow_table()).sort_by("id")
    files = DeltaTable(grown).file_uris()

    join_small(grown)
    join_small(grown)

    after = DeltaTable(grown)
    assert (after.version(), len(after.file_uris())) == (22, 1)
    assert len(files) > 10
    assert pa.table(after.to_pyarrow_table()).sort_by("id") == before
    assert after.history(1)[0]["operation"] == "OPTIMIZE"
    changes = [kind for action in _actions(grown, 22) for kind in action.values()]
    assert {kind["dataChange"] for kind in changes if "dataChange" in kind} == {False}
    assert list(taken_back_since(list_log(grown), -1)) == []
    if FEED.items() <= after.metadata().configuration.items():
        assert pa.table(after.load_cdf(starting_version=22).read_all()).num_rows == 0


def test_a_run_that_commits_meanwhile_is_left_as_it_is(
    grown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit_join = arrow_tables.commit_join

    def late(uri: str, *found: Any) -> None:
        assert append_small(uri, _rows(99))
        commit_join(uri, *found)

    monkeypatch.setattr(arrow_tables, "commit_join", late)
    join_small(grown)

    after = DeltaTable(grown)
    named = {Path(file).name for file in after.file_uris()}
    assert after.version() == 22
    assert 99 in after.to_pyarrow_table()["id"].to_pylist()
    assert len(named) > 10
    assert named <= {file.name for file in Path(grown).glob("*.parquet")}
