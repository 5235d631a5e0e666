"""Marks by which each source of a warehouse is read again once."""

import json
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from kafka_segments.errors import SourceError
from kafka_segments.files.delta.commit import commit_info, publish_commit
from kafka_segments.files.delta.notes import OF_SOURCES
from kafka_segments.files.delta.table_versions import mark_taken_back, note_versions
from kafka_segments.files.storage.read_again import mark_read_again, marks_of, note_read_again

ROWS = pa.table({"offset": [1]})


def test_each_source_is_read_again_once_for_each_mark(tmp_path: Path) -> None:
    warehouse, sources = str(tmp_path), ("/data/a", "s3://b/\udcff")
    assert marks_of(warehouse, sources) == {}

    mark_read_again(warehouse, "table segments is broken")
    first = marks_of(warehouse, sources)
    note_read_again(warehouse, first, sources[:1])

    assert list(first.values()) == ["table segments is broken"]
    assert marks_of(warehouse, sources[:1]) == {}
    assert marks_of(warehouse, sources) == marks_of(warehouse, ["/new"]) == first

    meanwhile = "broken again, while a build runs that knows of the first alone"
    mark_read_again(warehouse, meanwhile)
    note_read_again(warehouse, first, sources)

    assert list(marks_of(warehouse, sources).values()) == [meanwhile]


def test_a_source_is_read_again_as_a_part_of_another_one(tmp_path: Path) -> None:
    warehouse, whole, part = str(tmp_path), "/data/a", "/data/a/orders-0"
    mark_read_again(warehouse, "table segments is broken")

    note_read_again(warehouse, marks_of(warehouse, [whole]), [whole])

    assert marks_of(warehouse, [whole, part]) == {}
    assert len(marks_of(warehouse, [part])) == 1
    assert len(marks_of(warehouse, [whole, "/data/ab"])) == 1


def test_marks_that_cannot_be_listed_are_not_taken_for_none(tmp_path: Path) -> None:
    (tmp_path / "_read_again").touch()

    with pytest.raises(SourceError, match="_read_again"):
        marks_of(str(tmp_path), ("/data",))


def test_a_mark_that_cannot_be_read_holds_and_says_so(tmp_path: Path) -> None:
    mark_read_again(str(tmp_path), "table segments is broken")
    mark_read_again(str(tmp_path), "")
    for number, mark in enumerate(sorted((tmp_path / "_read_again").iterdir())):
        if number == 0:
            mark.unlink()
            mark.mkdir()

    told = list(marks_of(str(tmp_path), ["/logs"]).values())

    assert len(told) == 2
    assert "which says why, cannot be read: " in told[0]


def test_what_somebody_took_back_is_marked_once_wherever_a_build_meets_it(tmp_path: Path) -> None:
    table, warehouse = _table_of(tmp_path)
    note_versions(warehouse, ("offset_index",))
    write_deltalake(table, ROWS, mode="append")
    added = _told(warehouse)
    DeltaTable(table).restore(0)

    told = _told(warehouse)  # before a build
    note_versions(warehouse, ("offset_index",))  # at its end
    marks = marks_of(warehouse, ["/logs"])
    DeltaTable(table).delete()
    note_versions(warehouse, ("offset_index",))  # it came while a build was under way
    meanwhile = marks_of(warehouse, ["/logs"])

    why = "table offset_index: rows were {} by {} in version {}"
    assert added == [why.format("added", "an append", 1)]
    assert told == [why.format("taken back", "RESTORE", 2)]
    assert list(marks.values()) == [*added, *told]
    assert set(meanwhile.values()) == {*added, *told, why.format("taken back", "DELETE", 3)}
    assert _told(warehouse) == []


def test_what_was_added_before_a_release_signed_its_commits_may_be_its_own(tmp_path: Path) -> None:
    table, warehouse = _table_of(tmp_path)
    note_versions(warehouse, ("offset_index",))
    notes = tmp_path / "_versions.json"
    noted = json.loads(notes.read_text())
    for log in noted.values():
        log.pop("signed", None)
        log.pop("sum", None)
    notes.write_text(json.dumps(noted))
    write_deltalake(table, ROWS, mode="append")

    by_older = _told(warehouse)
    signed = [commit_info("WRITE", {}, read_version=1)]
    publish_commit(str(table), 2, signed)
    write_deltalake(table, ROWS, mode="append")
    later = _told(warehouse)

    assert by_older == []
    assert later == ["table offset_index: rows were added by an append in version 3"]


@pytest.mark.parametrize(
    ("stats", "told"),
    [
        ('{"numRecords": 0}', []),
        ("not JSON", ["may have been added"]),
        (None, ["may have been added"]),
        ('{"numRecords": "2"}', ["were added"]),
        ("[]", ["may have been added"]),
    ],
)
def test_how_many_rows_a_commit_says_that_it_adds_is_not_believed_in_another_form(
    tmp_path: Path, stats: str | None, told: list[str]
) -> None:
    table, warehouse = _table_of(tmp_path)
    note_versions(warehouse, ("offset_index",))
    add = {"path": "gone.parquet", "size": 1, "partitionValues": {}, "stats": stats}
    publish_commit(str(table), 1, [{"add": {**add, "modificationTime": 0, "dataChange": True}}])

    found = _told(warehouse)

    why = "table offset_index: rows {} by a commit that does not say what it did in version 1"
    assert found == [why.format(what) for what in told]


def test_what_was_taken_back_of_a_table_of_which_nothing_is_noted_is_marked_too(
    tmp_path: Path,
) -> None:
    table, warehouse = _table_of(tmp_path)
    DeltaTable(table).delete()

    note_versions(warehouse, ("offset_index",))  # at the end of the first build

    told = list(marks_of(warehouse, ["/logs"]).values())
    assert told == ["table offset_index: rows were taken back by DELETE in version 1"]


def test_rows_that_may_be_other_ones_are_read_again_too_and_it_is_not_said_that_they_are(
    tmp_path: Path,
) -> None:
    table, warehouse = _table_of(tmp_path)
    before = DeltaTable(table).file_uris()
    write_deltalake(table, ROWS, mode="overwrite")
    for file in before:
        Path(file).unlink()

    told = _told(warehouse)

    assert told == [
        "table offset_index: rows may have been taken back by an overwrite in version 1"
    ]


@pytest.mark.parametrize(
    "said", [{"timestamp": "then"}, {"operationParameters": ["all"]}, {"operationParameters": None}]
)
def test_what_a_commit_says_in_another_form_hides_no_rows_that_it_took(
    tmp_path: Path, said: dict[str, object]
) -> None:
    table, warehouse = _table_of(tmp_path)
    DeltaTable(table).delete()
    commit = table / "_delta_log" / f"{1:020d}.json"
    actions = [json.loads(line) for line in commit.read_text().splitlines()]
    for action in actions:
        if "commitInfo" in action:
            action["commitInfo"] |= said
    commit.write_text("".join(json.dumps(action) + "\n" for action in actions))

    told = _told(warehouse)

    assert told in (
        ["table offset_index: rows were taken back by DELETE in version 1"],
        ["table offset_index: rows may have been taken back by DELETE in version 1"],
    )


def _told(warehouse: str) -> list[str]:
    return list(mark_taken_back(warehouse, OF_SOURCES).values())


def _table_of(tmp_path: Path) -> tuple[Path, str]:
    table = tmp_path / "offset_index"
    write_deltalake(table, ROWS)
    return table, str(tmp_path)
