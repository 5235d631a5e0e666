"""Compaction of a folder's files, and the way back."""

import os
from pathlib import Path

import pytest

from kafka_segments.compact.decide.leftovers import find_leftovers
from kafka_segments.compact.folder_compactor import FolderCompactor
from kafka_segments.errors import UsageError
from kafka_segments.storage.kept_files import KeptFiles, undo

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


def test_an_undo_leaves_what_changed_since(folder: Path, tmp_path: Path) -> None:
    _compactor(folder, tmp_path / "kept").compact(str(folder))
    (folder / INDEX).write_bytes(b"a build came after")

    done = undo(str(tmp_path / "kept"))

    assert done.left == [str(folder / INDEX)]
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

    assert done.left == [str(folder / INDEX)]
    assert str((folder / INDEX).readlink()) == str(tmp_path / "moved")


def test_a_run_that_died_between_note_and_change_can_be_undone(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = _files(folder)

    def die(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("kafka_segments.storage.kept_files.move_durably", die)
    with pytest.raises(KeyboardInterrupt):
        _compactor(folder, tmp_path / "kept").compact(str(folder))
    monkeypatch.undo()

    undo(str(tmp_path / "kept"))

    assert _files(folder) == before


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
