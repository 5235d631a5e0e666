"""Marks by which each source of a warehouse is read again once."""

import json
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from kafka_segments.errors import SourceError
from kafka_segments.files.storage.read_again import mark_read_again, marks_of, note_read_again
from kafka_segments.files.storage.table_versions import (
    OF_SOURCES,
    mark_taken_back,
    note_versions,
)


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
    table = tmp_path / "offset_index"
    write_deltalake(table, pa.table({"offset": [1]}))
    warehouse = str(tmp_path)
    note_versions(warehouse, ("offset_index",))
    _commit(table, 1, "OPTIMIZE")
    none = mark_taken_back(warehouse, OF_SOURCES)
    _commit(table, 2, "RESTORE")

    told = mark_taken_back(warehouse, OF_SOURCES)  # before a build
    marks = marks_of(warehouse, ["/logs"])
    again = note_versions(warehouse, ("offset_index",))  # at its end
    _commit(table, 3, "DELETE")
    meanwhile = note_versions(warehouse, ("offset_index",))  # one came while it was under way

    assert (none, told) == (
        [],
        ["table offset_index: rows were taken back by RESTORE in version 2"],
    )
    assert (again, meanwhile) == (
        [],
        ["table offset_index: rows were taken back by DELETE in version 3"],
    )
    assert (len(marks), len(marks_of(warehouse, ["/logs"]))) == (1, 2)
    assert mark_taken_back(warehouse, OF_SOURCES) == []


def test_what_was_taken_back_of_a_table_of_which_nothing_is_noted_is_marked_too(
    tmp_path: Path,
) -> None:
    table = tmp_path / "offset_index"
    write_deltalake(table, pa.table({"offset": [1]}))
    _commit(table, 1, "RESTORE")

    told = note_versions(str(tmp_path), ("offset_index",))  # at the end of the first build

    assert told == ["table offset_index: rows were taken back by RESTORE in version 1"]
    assert len(marks_of(str(tmp_path), ["/logs"])) == 1


def _commit(table: Path, version: int, operation: str) -> None:
    told = {"commitInfo": {"operation": operation, "timestamp": 1_800_000_000_000 + version}}
    (table / "_delta_log" / f"{version:020d}.json").write_text(json.dumps(told) + "\n")
