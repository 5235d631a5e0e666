"""Keep the files that a run replaces or removes, and put them back; on a local disk only.

A run has a folder with the files themselves and a manifest. The manifest has a line for each file:
where it was, and what is there now.
"""

import hashlib
import json
import os
import shutil
from pathlib import Path
from typing import NamedTuple

from kafka_segments.errors import SetAsideError, UsageError
from kafka_segments.storage.backups import is_there
from kafka_segments.storage.durable_files import move_durably, write_durably

MANIFEST = "manifest.jsonl"


class Kept(NamedTuple):
    """A line of a manifest; ``sha256`` is of the bytes left at ``path``, None: it was removed."""

    path: str
    kept: str
    action: str
    bytes_before: int
    bytes_after: int
    sha256: str | None


class Undone(NamedTuple):
    """How many files an undo put back, and which it left because they have changed since."""

    restored: int
    left: list[str]


class KeptFiles:
    """Replaces and removes files for one run; the first ones are kept in the run's folder."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def replace(self, path: str, *, below: str, action: str, before: bytes, after: bytes) -> Kept:
        """Keep the bytes of a file and put others in their place; its mode stays.

        ``below``: the folder that the file's path in the run's folder is relative to.

        Raises:
            SetAsideError: the path is a link: the bytes lie elsewhere.
            OSError: a step was refused; the file is as it was, or replaced.
        """
        if Path(path).is_symlink():
            raise SetAsideError(path, "a symbolic link, not followed: its file is left as it is")
        kept = self._name(path, below)
        write_durably(Path(kept), before, finish=lambda whole: shutil.copymode(path, whole))
        note = Kept(path, kept, action, len(before), len(after), _digest(after))
        self._note(note)
        write_durably(Path(path), after, finish=lambda whole: shutil.copymode(kept, whole))
        return note

    def remove(self, path: str, *, below: str, action: str) -> Kept:
        """Move a file, or a link as such, to the run's folder.

        Raises:
            SetAsideError: as of ``move_durably``.
            OSError: as of ``move_durably``.
        """
        kept = self._name(path, below)
        note = Kept(path, kept, action, Path(path).lstat().st_size, 0, None)
        self._note(note)
        move_durably(Path(path), Path(kept))
        return note

    def _name(self, path: str, below: str) -> str:
        kept = Path(self.folder, os.path.relpath(path, below))
        kept.parent.mkdir(parents=True, exist_ok=True)
        return str(kept)

    def _note(self, note: Kept) -> None:
        with open(os.path.join(self.folder, MANIFEST), "a", encoding="utf-8") as log:
            log.write(json.dumps(note._asdict()) + "\n")
            log.flush()
            os.fsync(log.fileno())


def read_manifest(folder: str) -> list[Kept]:
    """Return what a run noted, in order.

    Raises:
        UsageError: the folder has no manifest.
    """
    manifest = Path(folder) / MANIFEST
    if not manifest.is_file():
        raise UsageError(f"{folder} has no {MANIFEST}: no compact run left it")
    lines = manifest.read_text("utf-8").splitlines()
    return [Kept(**json.loads(line)) for line in lines]


def undo(folder: str) -> Undone:
    """Put back what a run kept, wherever the place is as that run left it.

    It can be run again: files that are back already are left alone.

    Raises:
        UsageError: the folder has no manifest.
        SetAsideError: as of ``move_durably``.
        OSError: as of ``move_durably``.
    """
    notes = read_manifest(folder)
    restored: int = 0
    left: list[str] = []
    for note in reversed(notes):
        if not is_there(Path(note.kept)):
            continue
        if not _is_as_left(note):
            left.append(note.path)
            continue
        Path(note.path).parent.mkdir(parents=True, exist_ok=True)
        move_durably(Path(note.kept), Path(note.path))
        restored += 1
    return Undone(restored, left)


def _is_as_left(note: Kept) -> bool:
    path = Path(note.path)
    if not is_there(path):
        return note.sha256 is None
    if note.sha256 is None or path.is_symlink() or not path.is_file():
        return False
    found = path.read_bytes()
    return _digest(found) == note.sha256 or found == Path(note.kept).read_bytes()


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
