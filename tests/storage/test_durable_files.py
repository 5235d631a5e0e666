"""Files that get their names together, folders that appear whole, and what killed runs left."""

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kafka_segments.files.storage.durable_files import (
    TEMPORARY,
    name_folder,
    remove_older_temporaries,
    remove_temporaries,
    temporary_name,
    write_durably,
    write_together,
)


@pytest.fixture
def changes(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Syncs and renames in the order in which they come, by the names of the files."""
    found: list[str] = []

    def noted(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            descriptor = Path(f"/proc/self/fd/{arguments[0]}")
            path = descriptor.readlink() if name == "sync" else Path(arguments[1])
            is_temporary = path.name.endswith(TEMPORARY)
            found.append(f"{name} {path.name.split('.')[1] if is_temporary else path.name}")
            return function(*arguments)

        return call

    monkeypatch.setattr(os, "fsync", noted("sync", os.fsync))
    monkeypatch.setattr(os, "replace", noted("name", os.replace))
    return found


def _left(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_file_is_whole_where_the_disk_takes_a_few_bytes_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: write(descriptor, data[:3]))

    write_durably(tmp_path / "a", b"0123456789")
    write_durably(tmp_path / "empty", b"")

    assert _left(tmp_path) == {"a": b"0123456789", "empty": b""}


def test_of_a_file_that_cannot_be_written_nothing_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a").write_bytes(b"first")

    def full(_descriptor: int, _data: bytes) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "write", full)

    with pytest.raises(OSError, match=r"0 of 2 bytes were written, \d+ are free"):
        write_durably(tmp_path / "a", b"12")

    assert _left(tmp_path) == {"a": b"first"}


def test_files_written_together_are_all_on_disk_before_the_first_has_its_name(
    tmp_path: Path, changes: list[str]
) -> None:
    for name in ("a", "kept"):
        (tmp_path / name).write_bytes(b"first")
    Path(temporary_name(str(tmp_path / "of a killed run"))).touch()
    finished: list[bytes] = []

    write_together(
        tmp_path,
        [("a", b"1"), ("b", b"2")],
        finish=lambda whole: finished.append(whole.read_bytes()),
        present=["kept"],
    )

    assert _left(tmp_path) == {"a": b"1", "b": b"2", "kept": b"first"}
    assert finished == [b"1", b"2"]
    assert changes == ["sync kept", "sync a", "sync b", "name a", "name b"]


def test_an_error_leaves_files_that_were_to_be_written_together_as_they_were(
    tmp_path: Path, changes: list[str]
) -> None:
    (tmp_path / "a").write_bytes(b"first")

    def refuse(whole: Path) -> None:
        if whole.read_bytes() == b"2":
            raise OSError(errno.ENOSPC, "no room")

    with pytest.raises(OSError, match="no room"):
        write_together(tmp_path, [("a", b"1"), ("b", b"2")], finish=refuse)

    assert _left(tmp_path) == {"a": b"first"}
    assert changes == []


def test_a_file_that_replaces_none_leaves_one_of_its_name_as_it_is(tmp_path: Path) -> None:
    write_durably(tmp_path / "a", b"1", replaces=False)
    with pytest.raises(FileExistsError):
        write_durably(tmp_path / "a", b"2", replaces=False)

    assert _left(tmp_path) == {"a": b"1"}
    write_durably(tmp_path / "a", b"3")
    assert _left(tmp_path) == {"a": b"3"}


def test_a_folder_is_on_disk_and_noted_before_it_has_its_name(
    tmp_path: Path, changes: list[str]
) -> None:
    whole, folder = tmp_path / "unfinished", tmp_path / "folder"
    whole.mkdir()

    name_folder(whole, folder, note=lambda: changes.append("note"))

    assert [entry.name for entry in tmp_path.iterdir()] == ["folder"]
    assert changes == ["sync unfinished", "note", "name folder", f"sync {tmp_path.name}"]


@pytest.mark.parametrize("is_there", [True, False])
def test_a_folder_that_is_replaced_goes_aside_first(
    tmp_path: Path, changes: list[str], is_there: bool
) -> None:
    whole, folder, aside = (tmp_path / name for name in ("unfinished", "folder", "aside"))
    whole.mkdir()
    (whole / "new").touch()
    if is_there:
        folder.mkdir()
        (folder / "old").touch()

    name_folder(whole, folder, replaced=aside, is_synced=False)

    assert [entry.name for entry in folder.iterdir()] == ["new"]
    assert aside.exists() == is_there
    assert changes == (["name aside", "name folder"] if is_there else ["name folder"])


def test_temporary_files_are_removed_of_a_folder_or_of_one_name(tmp_path: Path) -> None:
    for name in ("t-0.json", "at-0.json", "t-0.jso[n]"):
        Path(temporary_name(str(tmp_path / name))).touch()
    (tmp_path / "t-0.json").touch()

    def left() -> set[str]:
        return {path.name.removesuffix(TEMPORARY)[:-33] or path.name for path in tmp_path.iterdir()}

    remove_temporaries(tmp_path, name="t-0.json")
    assert left() == {"t-0.json", ".at-0.json", ".t-0.jso[n]"}
    remove_temporaries(tmp_path, name="t-0.jso[n]")
    assert left() == {"t-0.json", ".at-0.json"}
    remove_temporaries(tmp_path)
    assert left() == {"t-0.json"}


def test_of_a_file_that_is_whole_what_is_a_day_older_goes(tmp_path: Path) -> None:
    path = tmp_path / "[x]"
    path.touch()
    names = {"old": path, "young": path, "of another": tmp_path / "y"}
    left = {what: Path(temporary_name(str(of))) for what, of in names.items()}
    for what, temporary in left.items():
        temporary.touch()
        age = 3_600 if what == "young" else 90_000
        os.utime(temporary, (0, path.stat().st_mtime - age))

    remove_older_temporaries(path)

    assert {what for what, temporary in left.items() if temporary.exists()} == {
        "young",
        "of another",
    }
