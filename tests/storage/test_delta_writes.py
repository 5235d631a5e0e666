"""Rows written to Delta tables by the library deltalake: what it is trusted with, and what not."""

import fcntl
import json
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import DeltaError

from kafka_segments.files.storage import delta_writes
from kafka_segments.files.storage.delta_metadata import create_table
from kafka_segments.files.storage.delta_writes import (
    MEETS_CONSTRAINTS,
    append_files,
    append_rows,
    merge_rows,
)

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
CONSTRAINT = {"id": "id > 0"}


def _made(folder: Path, **properties: str) -> str:
    """Make an empty table for such rows by our own first commit."""
    write_deltalake(str(folder / "model"), ROWS)
    schema = DeltaTable(str(folder / "model")).schema().to_json()
    uri = str(folder / "table")
    assert create_table(uri, schema=schema, properties=MEASURED | properties)
    return uri


@pytest.fixture
def table(tmp_path: Path) -> str:
    """Give a table of one version with rows, after its first one."""
    uri = _made(tmp_path)
    write_deltalake(uri, ROWS, mode="append")
    return uri


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    """Give files of no, one and two rows, the last one in two groups."""
    paths = []
    for rows in (0, 1, 2):
        paths.append(str(tmp_path / f"{rows}.parquet"))
        pq.write_table(ROWS.slice(2 - rows), paths[-1], row_group_size=1)
    return paths


def _said(table: str, kind: str) -> list[dict[str, Any]]:
    """Return the actions of a kind in a table's last commit."""
    log = Path(table, "_delta_log", f"{DeltaTable(table).version():020d}.json")
    actions = map(json.loads, log.read_text("utf-8").splitlines())
    return [action[kind] for action in actions if kind in action]


def _rows(table: str) -> list[dict[str, Any]]:
    found = pa.table(DeltaTable(table).to_pyarrow_table())
    return sorted(found.to_pylist(), key=repr)


def _left(table: str) -> set[Path]:
    return {file for file in Path(table).rglob("*") if file.is_file()}


def _one(**values: Any) -> pa.Table:
    row = {"id": 1, "name": "new", **values}
    return pa.Table.from_pylist([row], schema=ROWS.schema)


def test_rows_are_appended_with_the_statistics_that_the_table_names(table: str) -> None:
    assert append_rows(table, ROWS.append_column("more", pa.array([1, 2])))

    assert _rows(table) == sorted([*ROWS.to_pylist(), *ROWS.to_pylist()], key=repr)
    (stats,) = [json.loads(add["stats"]) for add in _said(table, "add")]
    assert stats["numRecords"] == 2
    assert set(stats["minValues"]) == {"id", "name", "long"}
    assert (stats["minValues"]["id"], stats["maxValues"]["id"]) == (1, 3)
    (commit,) = _said(table, "commitInfo")
    assert commit["isBlindAppend"] is True


def test_no_rows_make_no_commit(table: str) -> None:
    before = _left(table)

    assert append_rows(table, ROWS.slice(0, 0))
    assert merge_rows(table, ROWS.slice(0, 0), keys=["id"])

    assert _left(table) == before


def test_each_tenth_commit_has_a_checkpoint(table: str) -> None:
    assert all(append_rows(table, _one()) for _ in range(10))

    assert [file.name for file in Path(table, "_delta_log").glob("*.parquet")] == [
        f"{10:020d}.checkpoint.parquet"
    ]
    assert len(_rows(table)) == 12


@pytest.mark.parametrize("writes", ["append", "merge"])
def test_rows_that_do_not_meet_a_constraint_are_left_to_spark(tmp_path: Path, writes: str) -> None:
    table = _made(tmp_path, **{"delta.constraints.id": "id > 0"})

    def is_written(rows: pa.Table, constraints: dict[str, str]) -> bool:
        if writes == "append":
            return append_rows(table, rows, constraints=constraints)
        return merge_rows(table, rows, keys=["id"], constraints=constraints)

    assert is_written(ROWS, CONSTRAINT)
    before = DeltaTable(table).version()
    assert not is_written(_one(id=-1), CONSTRAINT)
    assert not is_written(_one(id=None), CONSTRAINT)
    assert not is_written(ROWS, {})  # somebody else's: deltalake may read it otherwise
    assert not is_written(ROWS, {"id": "id > 1"})
    assert DeltaTable(table).version() == before


def test_constraints_of_which_the_protocol_does_not_tell_are_left_to_spark(tmp_path: Path) -> None:
    """deltalake passes them over."""
    table = _made(tmp_path, **{"delta.constraints.id": "id > 0"})
    _change_first_commit(table, "protocol", {"minWriterVersion": 2})

    assert not append_rows(table, ROWS, constraints=CONSTRAINT)


@pytest.mark.parametrize("is_text", [False, True])
def test_rows_of_other_columns_or_types_are_left_to_spark(table: str, is_text: bool) -> None:
    rows = ROWS.set_column(0, "id", pa.array(["a", "b"])) if is_text else ROWS.drop("list")

    assert not append_rows(table, rows)
    assert not merge_rows(table, rows, keys=["id"])
    assert DeltaTable(table).version() == 1


OTHERS: list[tuple[str, dict[str, Any]]] = [
    ("protocol", {"minReaderVersion": 1, "minWriterVersion": 4}),
    ("protocol", {"minReaderVersion": 2, "minWriterVersion": 5}),
    *(
        ("protocol", {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": features})
        for features in (["appendOnly", "rowTracking"], ["domainMetadata", "clustering"])
    ),
    (
        "protocol",
        {
            "minReaderVersion": 3,
            "minWriterVersion": 7,
            "readerFeatures": ["deletionVectors"],
            "writerFeatures": ["deletionVectors"],
        },
    ),
    ("metaData", {"partitionColumns": ["id"]}),
]


@pytest.mark.parametrize(("kind", "other"), OTHERS)
def test_what_asks_more_of_a_writer_is_left_to_spark(
    tmp_path: Path, kind: str, other: dict[str, Any]
) -> None:
    table = _made(tmp_path)
    _change_first_commit(table, kind, other)
    before = _left(table)

    assert not append_rows(table, ROWS)
    assert not merge_rows(table, ROWS, keys=["id"])
    assert _left(table) == before


def _change_first_commit(table: str, kind: str, other: dict[str, Any]) -> None:
    first = Path(table, "_delta_log", f"{0:020d}.json")
    actions = [json.loads(line) for line in first.read_text("utf-8").splitlines()]
    for action in actions:
        if kind in action:
            action[kind] |= other
    first.write_text("".join(json.dumps(action) + "\n" for action in actions), "utf-8")


def test_where_there_is_no_table_or_only_a_path_of_spark_nothing_is_written(
    table: str, tmp_path: Path
) -> None:
    assert not append_rows(str(tmp_path / "nowhere"), ROWS)
    odd = Path(table).rename(tmp_path / "a%20b")
    assert not append_rows(str(odd), ROWS)
    assert not merge_rows(str(odd), ROWS, keys=["id"])
    assert {path.name for path in tmp_path.iterdir()} == {"_locks", "model", "a%20b"}


def test_where_a_disk_is_almost_full_it_is_left_to_spark(
    table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delta_writes, "free_bytes", lambda _: 1024 * 1024)

    assert not append_rows(table, ROWS)
    assert not merge_rows(table, ROWS, keys=["id"])


def test_several_rows_of_a_key_and_keys_that_engines_compare_otherwise_are_left_to_spark(
    table: str,
) -> None:
    assert not merge_rows(table, pa.concat_tables([ROWS, ROWS]), keys=["id"])
    assert not merge_rows(table, ROWS, keys=["list"])
    assert DeltaTable(table).version() == 1


def test_what_failed_after_its_commit_is_not_written_again(
    table: str, monkeypatch: pytest.MonkeyPatch
) -> None:

    def written_and_failed(*given: Any, **options: Any) -> None:
        write_deltalake(*given, **options)
        raise DeltaError("no room")

    monkeypatch.setattr(delta_writes, "write_deltalake", written_and_failed)

    with pytest.raises(DeltaError, match="no room"):
        append_rows(table, ROWS)
    assert len(_rows(table)) == 4


def test_what_is_committed_under_the_lock_is_on_disk_then(
    table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: set[str] = set()
    seen: list[bool] = []

    def write(*given: Any, **options: Any) -> None:
        seen.append(_is_locked(Path(table)))
        write_deltalake(*given, **options)

    monkeypatch.setattr(delta_writes, "sync_file", lambda file: synced.add(file.name))
    monkeypatch.setattr(delta_writes, "sync_folder", lambda folder: synced.add(folder.name))
    monkeypatch.setattr(delta_writes, "write_deltalake", write)

    assert append_rows(table, ROWS)

    (add,) = _said(table, "add")
    assert synced == {add["path"], f"{2:020d}.json", "table", "_delta_log"}
    assert seen == [True]
    assert not _is_locked(Path(table))


def _is_locked(table: Path) -> bool:
    with (table.parent / "_locks" / f"{table.name}.commits").open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def test_files_become_those_of_the_table_by_one_commit(table: str, files: list[str]) -> None:
    assert append_files(table, files)

    for file in files:
        Path(file).unlink()
    assert _rows(table) == sorted(
        pa.concat_tables([ROWS, ROWS, ROWS.slice(1)]).to_pylist(), key=repr
    )
    one, two = (json.loads(add["stats"]) for add in _said(table, "add"))
    assert one["numRecords"] == 1
    assert two == {
        "numRecords": 2,
        "minValues": {"id": 1, "name": "b", "long": "x" * 32},
        "maxValues": {"id": 3, "name": "é", "long": "y"},
        "nullCount": {"id": 0, "name": 0, "none": 2, "long": 0},
    }


def test_files_without_rows_make_no_commit(table: str, files: list[str]) -> None:
    assert append_files(table, files[:1])
    assert append_files(table, [])

    assert DeltaTable(table).version() == 1


@pytest.mark.parametrize("marked", [(0, 1, 2), (1, 2)])
def test_files_meet_constraints_if_each_says_so(
    tmp_path: Path, files: list[str], marked: tuple[int, ...]
) -> None:
    table = _made(tmp_path, **{"delta.constraints.id": "id > 0"})
    for number in marked:
        rows = pq.read_table(files[number])
        with pq.ParquetWriter(files[number], rows.schema) as written:
            written.write_table(rows)
            written.add_key_value_metadata({MEETS_CONSTRAINTS: b"true"})

    assert append_files(table, files, constraints=CONSTRAINT) is (len(marked) == len(files))


@pytest.mark.parametrize("refused", ["link", "commit"])
def test_files_that_are_not_taken_leave_the_table_as_it_was(
    table: str, files: list[str], refused: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = _left(table)
    link, links = os.link, []

    def linked(file: str, target: Path) -> None:
        if links and refused == "link":
            raise OSError("another disk")
        links.append(target)
        link(file, target)

    def refuse(*_: object) -> None:
        raise DeltaError("refused")

    monkeypatch.setattr(os, "link", linked)
    monkeypatch.setattr(delta_writes, "_statistics", refuse)

    assert not append_files(table, files)
    assert _left(table) == before
    assert all(map(os.path.exists, files))


@pytest.mark.parametrize("writes", ["append", "merge"])
def test_another_engine_that_commits_first_and_knows_no_lock(
    table: str, monkeypatch: pytest.MonkeyPatch, writes: str
) -> None:
    takes_rows = delta_writes._takes_rows

    def and_another_writes(*given: Any) -> bool:
        if writes == "append":
            write_deltalake(table, ROWS, mode="append")
        else:
            DeltaTable(table).delete("id = 1")
        return takes_rows(*given)

    monkeypatch.setattr(delta_writes, "_takes_rows", and_another_writes)

    if writes == "append":
        assert append_rows(table, _one())
        assert len(_rows(table)) == 5
    else:
        assert not merge_rows(table, _one(), keys=["id"])
        assert [row["id"] for row in _rows(table)] == [3]
