"""Compaction of a folder's files, and the way back."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from kafka_segments.errors import UsageError
from kafka_segments.files.changes.kept_files import MANIFEST, KeptFiles, undo
from kafka_segments.files.changes.manifests import signed
from kafka_segments.files.storage.durable_files import TEMPORARY
from kafka_segments.verbs.change.compact.decide.leftovers import find_leftovers
from kafka_segments.verbs.change.compact.folder_compactor import FolderCompactor

LOG, INDEX, TIME = "0" * 20 + ".log", "0" * 20 + ".index", "0" * 20 + ".timeindex"
ENTRIES = b"".join(n.to_bytes(4, "big") + (n * 1_000).to_bytes(4, "big") for n in range(5, 25))
TIMES = b"".join((n * 10).to_bytes(8, "big") + n.to_bytes(4, "big") for n in range(5, 25))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A partition's folder with a segment whose index files were never trimmed, and leftovers."""
    folder = tmp_path / "logs" / "t-0"
    folder.mkdir(parents=True)
    (folder / LOG).write_bytes(b"log")
    (folder / INDEX).write_bytes(ENTRIES + bytes(800))
    (folder / TIME).write_bytes(TIMES + bytes(1_200))
    for name in (f"{5:020d}.index", f"{6:020d}.log.deleted", f"{9:020d}.timeindex.cleaned"):
        (folder / name).write_bytes(b"left over")
    return folder


def _files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def _compactor(folder: Path, kept: Path | None, interval: int | None = None) -> FolderCompactor:
    set_aside = None if kept is None else KeptFiles(str(kept))
    return FolderCompactor(str(folder.parent), set_aside, interval)


def test_files_are_trimmed_thinned_and_removed_and_come_back(folder: Path, tmp_path: Path) -> None:
    before, kept = _files(folder), tmp_path / "kept"

    found = _compactor(folder, kept, 4_000).compact(str(folder))

    after = _files(folder)
    actions = {Path(change.path).name: change.action for change in found.changes}
    assert actions == {
        INDEX: "thin",
        TIME: "thin",
        f"{5:020d}.index": "orphan",
        f"{6:020d}.log.deleted": "deleted",
        f"{9:020d}.timeindex.cleaned": "cleaned",
    }
    assert set(after) == {LOG, INDEX, TIME}
    assert after[INDEX] == ENTRIES[0:8] + ENTRIES[40:48] + ENTRIES[80:88] + ENTRIES[120:128]
    assert after[TIME].endswith(TIMES[-12:])
    assert _compactor(folder, kept, 4_000).compact(str(folder)).changes == []

    assert (undo(str(kept)).restored, undo(str(kept)).restored) == (5, 0)
    assert _files(folder) == before


def test_a_dry_run_says_the_same_and_changes_nothing(folder: Path, tmp_path: Path) -> None:
    before = _files(folder)

    said = _compactor(folder, None).compact(str(folder))
    untouched = _files(folder)
    done = _compactor(folder, tmp_path / "kept").compact(str(folder))

    assert untouched == before
    assert said.changes == done.changes


def test_what_our_own_killed_runs_left_goes_once_it_is_old(folder: Path, tmp_path: Path) -> None:
    old, young = (folder / f".{INDEX}.{n:032x}{TEMPORARY}" for n in range(2))
    for path, age in ((old, 10), (young, 30)):
        path.write_bytes(b"half")
        os.utime(path, ns=(age, age))

    said = FolderCompactor(str(folder.parent), None, None, 20).compact(str(folder))
    assert (said.unfinished, old.exists()) == ([str(old)], True)
    kept = KeptFiles(str(tmp_path / "kept"))
    done = FolderCompactor(str(folder.parent), kept, None, 20).compact(str(folder))

    assert (done.unfinished, old.exists(), young.exists()) == ([str(old)], False, True)


def test_an_undo_leaves_what_changed_since(folder: Path, tmp_path: Path) -> None:
    _compactor(folder, tmp_path / "kept").compact(str(folder))
    (folder / INDEX).write_bytes(b"a build came after")

    done = undo(str(tmp_path / "kept"))

    assert done.left == [f"{folder / INDEX}: changed since, left as it is"]
    assert (folder / INDEX).read_bytes() == b"a build came after"
    assert done.restored == 4


def test_links_are_not_followed_and_come_back_as_links(folder: Path, tmp_path: Path) -> None:
    other, left_over = tmp_path / "other.index", folder / f"{6:020d}.log.deleted"
    (folder / INDEX).rename(other)
    (folder / INDEX).symlink_to(other)
    left_over.unlink()
    left_over.symlink_to("../../other.index")

    found = _compactor(folder, tmp_path / "kept").compact(str(folder))

    assert found.problems == [f"{folder / INDEX}: a symbolic link, not followed"]
    assert str((folder / INDEX).readlink()) == str(other)
    assert other.read_bytes() == ENTRIES + bytes(800)
    assert not os.path.lexists(left_over)
    assert undo(str(tmp_path / "kept")).left == []
    assert str(left_over.readlink()) == "../../other.index"


def test_an_undo_leaves_a_link_that_took_the_place_of_a_file(folder: Path, tmp_path: Path) -> None:
    _compactor(folder, tmp_path / "kept").compact(str(folder))
    (folder / INDEX).rename(tmp_path / "moved")
    (folder / INDEX).symlink_to(tmp_path / "moved")

    done = undo(str(tmp_path / "kept"))

    assert done.left == [f"{folder / INDEX}: changed since, left as it is"]
    assert str((folder / INDEX).readlink()) == str(tmp_path / "moved")


def test_a_run_that_died_between_note_and_change_can_be_undone(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = _files(folder)

    def die(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("kafka_segments.files.changes.kept_files.move_durably", die)
    with pytest.raises(KeyboardInterrupt):
        _compactor(folder, tmp_path / "kept").compact(str(folder))
    monkeypatch.undo()

    undo(str(tmp_path / "kept"))

    assert _files(folder) == before


def _spoil(line: dict[str, Any], **changes: object) -> bytes:
    """Change a line of a manifest, with a digest of its own: the other checks are what counts."""
    rest = {**line, **changes}
    del rest["digest"]
    return signed(rest, indent=None)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"path": "/elsewhere/t-0/x"}, "path: found '/elsewhere/t-0/x', no index file below"),
        ({"path": "{}/t-0/partition.metadata"}, "no index file below"),
        ({"path": "{}/u-0/../t-0/00000000000000000005.index"}, "no absolute path"),
        ({"path": 7}, "path: found 7"),
        ({"path": "a\0b"}, "path: found 'a\\x00b'"),
        ({"kept": "/etc/passwd"}, "kept: found '/etc/passwd'"),
        ({"kept_sha256": "0" * 64}, "it is not as it was kept"),
        ({"bytes_before": 3}, "it is not as it was kept"),
        ({"bytes_before": 10**30}, "bytes_before: found 1000"),
        ({"surprise": 1}, "surprise: found 1"),
        ({"version": 1}, "version: found 1, 2 expected"),
    ],
)
def test_a_line_that_names_something_else_puts_nothing_back_and_the_others_do(
    folder: Path, tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    before, kept = _files(folder), tmp_path / "kept"
    _compactor(folder, kept).compact(str(folder))
    after = _files(folder)
    first, *others = (kept / MANIFEST).read_bytes().splitlines()
    filled = {k: v.format(folder.parent) if isinstance(v, str) else v for k, v in change.items()}
    line = json.loads(first)
    spoilt = [_spoil(line, **filled), *others]
    (kept / MANIFEST).write_bytes(b"".join(each + b"\n" for each in spoilt))

    done = undo(str(kept))

    name = Path(line["path"]).name
    assert any(message in said for said in done.left), done.left
    assert f"{MANIFEST}" in " ".join(done.left)
    assert done.restored == len(others)
    expected = {each: data for each, data in before.items() if each != name}
    assert _files(folder) == expected | ({name: after[name]} if name in after else {})
    assert Path(line["kept"]).is_file()


@pytest.mark.parametrize("data", [b'{"path": "/', b"[1]\n", b"\n\n", b"\xff\n", b"[" * 100_000])
def test_lines_that_are_none_are_told_and_what_was_kept_for_them(
    folder: Path, tmp_path: Path, data: bytes
) -> None:
    _compactor(folder, tmp_path / "kept").compact(str(folder))
    after = _files(folder)
    (tmp_path / "kept" / MANIFEST).write_bytes(data)

    done = undo(str(tmp_path / "kept"))

    assert done.restored == 0
    assert "line 1: no manifest that can be used" in " ".join(done.left)
    assert sum("copy it back by hand" in said for said in done.left) >= 5
    assert _files(folder) == after


def test_links_in_the_place_of_folders_and_kept_files_are_not_followed(
    folder: Path, tmp_path: Path
) -> None:
    _compactor(folder, tmp_path / "kept").compact(str(folder))
    folder.rename(tmp_path / "moved")
    folder.symlink_to(tmp_path / "moved")
    after = _files(tmp_path / "moved")

    done = undo(str(tmp_path / "kept"))

    assert done.restored == 0
    assert all(f"{folder}: a symbolic link, not followed" in said for said in done.left)
    assert _files(tmp_path / "moved") == after


def test_files_of_several_roots_are_kept_apart(folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "others" / "t-0"
    shutil.copytree(folder, other)
    (other / INDEX).write_bytes(ENTRIES + bytes(1_600))
    before = _files(folder), _files(other)
    kept = KeptFiles(str(tmp_path / "kept"), by_root=True)
    for each in (folder, other):
        FolderCompactor(str(each.parent), kept, None).compact(str(each))

    assert undo(str(tmp_path / "kept")) == (10, [])
    assert (_files(folder), _files(other)) == before


def test_an_undo_of_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no compact run left it"):
        undo(str(tmp_path))


def test_a_swap_file_waits_for_the_broker_unless_its_compaction_did_not_end() -> None:
    swap, cleaned = f"{7:020d}.log.swap", f"{5:020d}.log.cleaned"

    alone = find_leftovers({swap, f"{7:020d}.index", f"{8:020d}.index.deleted"})
    unfinished = find_leftovers({swap, cleaned})

    assert alone.waiting == [swap]
    assert alone.removable == {f"{8:020d}.index.deleted": "deleted"}
    assert unfinished.removable == {swap: "swap", cleaned: "cleaned"}
    assert unfinished.waiting == []


def test_files_of_segments_that_lie_elsewhere_are_no_orphans(folder: Path) -> None:
    (folder / LOG).unlink()

    found = _compactor(folder, None).compact(str(folder), base_offsets={0})

    orphans = [change.path for change in found.changes if change.action == "orphan"]
    assert orphans == [str(folder / f"{5:020d}.index")]
