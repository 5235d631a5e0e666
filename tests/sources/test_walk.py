"""Finding every segment below a source."""

import threading
from pathlib import Path
from typing import Any

import pytest

from kafka_segments.engine.sources.list import bare_sources
from kafka_segments.errors import SourceError
from kafka_segments.files.folders import walk
from kafka_segments.files.folders.kinds import UNLISTED
from kafka_segments.files.folders.listing_rows import Listed
from kafka_segments.files.folders.source_folder import list_source_folder
from kafka_segments.files.folders.walk import UnlistedFolder, find_segments, list_folders
from kafka_segments.files.storage.threads import Watch


def _make(root: Path, *names: str) -> str:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x" * 10)
    return str(root)


def _name(base_offset: int) -> str:
    return f"{base_offset:020d}.log"


def test_a_segment_knows_where_the_next_one_begins(tmp_path: Path) -> None:
    source = _make(tmp_path, *(f"t-0/{_name(base)}" for base in (0, 50, 7)), f"t-1/{_name(9)}")

    found = find_segments([source])

    assert [(s.partition, s.base_offset, s.next_base_offset) for s in found.segments] == [
        (0, 0, 7),
        (0, 7, 50),
        (0, 50, None),
        (1, 9, None),
    ]
    assert found.segments[0].path == f"{source}/t-0/{_name(0)}"
    assert found.segments[0].size_bytes == 10


@pytest.mark.parametrize("source", ["", "disk-a", "disk-a/t-0"])
def test_a_source_may_be_several_log_directories_one_or_a_partition(
    tmp_path: Path, source: str
) -> None:
    _make(tmp_path, f"disk-a/t-0/{_name(0)}")

    found = find_segments([str(tmp_path / source).rstrip("/")])

    assert [(s.topic, s.partition, s.path) for s in found.segments] == [
        ("t", 0, f"{tmp_path}/disk-a/t-0/{_name(0)}")
    ]


@pytest.mark.parametrize("name", ["server.log", "kafkaServer-gc.log", "7.log", "my.log"])
def test_a_disk_named_like_a_partition_is_none_whatever_programs_log_there(
    tmp_path: Path, name: str
) -> None:
    _make(tmp_path, f"node-1/a/t-0/{_name(0)}", f"node-1/{name}", f"data-kafka-0/t-1/{_name(0)}")
    _make(
        tmp_path, f"data-kafka-0/{name}", f"t-2/{_name(0)}", f"t-2/{name}", f"t-2/backup/{_name(5)}"
    )

    found = find_segments([str(tmp_path)])

    assert sorted((s.topic, s.partition, s.base_offset) for s in found.segments) == [
        ("t", 0, 0),
        ("t", 1, 0),
        ("t", 2, 0),
    ]


def test_folders_a_broker_does_not_serve_are_passed_over(tmp_path: Path) -> None:
    future = f"t-1.{'a' * 32}-future"
    source = _make(
        tmp_path,
        f"t-0/{_name(0)}",
        f"t-2.{'a' * 32}-delete/{_name(0)}",
        f"t-3.{'a' * 32}-stray/{_name(0)}",
        f"{future}/{_name(0)}",
    )

    assert [s.relative_path for s in find_segments([source]).segments] == ["t-0"]
    assert [s.partition for s in find_segments([f"{source}/{future}"]).segments] == [1]


def test_a_source_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="cannot list"):
        find_segments([str(tmp_path / "missing")])


def test_a_folder_that_cannot_be_listed_does_not_stop_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = _make(tmp_path, f"t-0/{_name(0)}", f"t-1/{_name(0)}")
    list_rows = walk._list_rows

    def refused(folder: tuple[str, str], **options: Any) -> list[Listed]:
        if folder[1] == "t-0":
            return [Listed(UNLISTED, *folder, reason="Permission denied")]
        return list_rows(folder, **options)

    monkeypatch.setattr(walk, "_list_rows", refused)
    found = find_segments([source])

    assert [s.partition for s in found.segments] == [1]
    assert found.unlisted == [
        UnlistedFolder(f"{source}/t-0", "t", 0, "cannot list the folder: Permission denied")
    ]


def test_folders_are_listed_in_the_order_given_and_no_deeper(tmp_path: Path) -> None:
    for partition in range(40):
        (tmp_path / f"t-{partition}").mkdir()
        (tmp_path / f"t-{partition}" / "00000000000000000000.log").write_bytes(b"")
    source = str(tmp_path)
    folders = [(source, ""), *((source, f"t-{partition}") for partition in range(40))]

    listed = list(list_folders(folders))

    assert listed == [row for folder in folders for row in list_source_folder(*folder)]
    assert [row.partition for row in listed if row.kind == "segment"] == list(range(40))


@pytest.mark.parametrize(
    ("source", "waits", "here"),
    [("/data", False, 100), ("/data", True, 1), ("s3://b", False, 0)],
    ids=["in memory", "waited for", "a store"],
)
def test_only_folders_that_are_waited_for_are_listed_many_at_a_time(
    monkeypatch: pytest.MonkeyPatch, source: str, here: int, *, waits: bool
) -> None:
    listed_here = []

    def listed(folder: tuple[str, str], **_: object) -> list[Listed]:
        if threading.current_thread() is threading.main_thread():
            listed_here.append(folder)
        return [Listed("segment", *folder)]

    monkeypatch.setattr(walk, "_list_rows", listed)
    monkeypatch.setattr(Watch, "was_waiting", lambda _: waits)
    folders = [(source, f"t-{number}") for number in range(100)]

    rows = walk.walk_folders(folders).folders

    assert [(row.source, row.relative_path) for (row,) in rows] == folders
    assert len(listed_here) == here


def test_a_disk_that_was_waited_for_is_asked_again_some_chunks_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    watched = iter([True])  # once
    monkeypatch.setattr(Watch, "was_waiting", lambda _: next(watched, False))
    here: list[str] = []

    def listed(folder: tuple[str, str], **_: object) -> list[Listed]:
        if threading.current_thread() is threading.main_thread():
            here.append(folder[1])
        return [Listed("segment", *folder)]

    monkeypatch.setattr(walk, "_list_rows", listed)

    walk.walk_folders([("/data", f"{number}") for number in range(400)])

    assert here == ["0", *(f"{number}" for number in range(8 * 32, 400))]


def test_links_to_folders_and_segments_are_told_and_others_are_not(tmp_path: Path) -> None:
    disk, source = tmp_path / "disk", tmp_path / "logs"
    _make(disk, f"t-0/{_name(0)}", f"u-0/{_name(5)}", "notes.txt")
    _make(source, f"v-0/{_name(0)}")
    (source / "disk").symlink_to(disk)
    (source / "t-0").symlink_to(disk / "t-0")
    (source / "v-0" / _name(5)).symlink_to(disk / "u-0" / _name(5))
    (source / "notes.txt").symlink_to(disk / "notes.txt")
    (source / "loop").symlink_to(".")

    found = find_segments([str(source)])

    assert [s.topic for s in found.segments] == ["v"]
    assert {(left.path, left.topic, left.partition) for left in found.unlisted} == {
        (f"{source}/disk", None, None),
        (f"{source}/t-0", "t", 0),
        (f"{source}/v-0/{_name(5)}", "v", 0),
    }
    assert all("a link out of the source, to " in left.reason for left in found.unlisted)


def test_what_links_and_sources_lead_to_is_read_once_below_the_first_source(
    tmp_path: Path,
) -> None:
    disk, source = tmp_path / "disk", tmp_path / "logs"
    _make(disk, f"t-0/{_name(0)}", f"other/w-0/{_name(0)}")
    _make(source, f"v-0/{_name(0)}")
    (source / "t-0").symlink_to(disk / "t-0")
    (source / "again").symlink_to(disk / "other")
    (source / "u-0").symlink_to(source / "v-0")  # to a broker another partition

    found = find_segments([str(source), str(disk), str(disk / "t-0")], follow_links=True)

    assert [segment.path for segment in found.segments] == [
        f"{source}/{folder}/{_name(0)}" for folder in ("again/w-0", "t-0", "u-0", "v-0")
    ]
    assert found.unlisted == []
    assert bare_sources([str(source), str(disk / "t-0")], follow_links=True) == ()
