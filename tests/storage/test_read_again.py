"""Marks by which each source of a warehouse is read again once."""

from pathlib import Path

import pytest

from kafka_segments.errors import SourceError
from kafka_segments.files.storage.read_again import mark_read_again, marks_of, note_read_again


def test_each_source_is_read_again_once_for_each_mark(tmp_path: Path) -> None:
    warehouse, sources = str(tmp_path), ("/data/a", "s3://b/\udcff")
    assert marks_of(warehouse, sources) == frozenset()

    mark_read_again(warehouse, "table segments is broken")
    first = marks_of(warehouse, sources)
    note_read_again(warehouse, first, sources[:1])

    assert len(first) == 1
    assert marks_of(warehouse, sources[:1]) == frozenset()
    assert marks_of(warehouse, sources) == marks_of(warehouse, ["/new"]) == first

    mark_read_again(warehouse, "broken again, while a build runs that knows of the first alone")
    note_read_again(warehouse, first, sources)

    assert len(marks_of(warehouse, sources)) == 1
    assert marks_of(warehouse, sources) != first


def test_marks_that_cannot_be_listed_are_not_taken_for_none(tmp_path: Path) -> None:
    (tmp_path / "_read_again").touch()

    with pytest.raises(SourceError, match="_read_again"):
        marks_of(str(tmp_path), ("/data",))
