"""Files moved or changed with a way back: a folder a run, a manifest that says what was where."""

import hashlib
import json
import os
import shutil
from pathlib import Path
from typing import NamedTuple

from kafka_segments.errors import UsageError

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
    """What an undo put back, and what it left because it had changed since."""

    restored: int
    left: list[str]


class SetAside:
    """Keeps what a run replaces or removes; local files only.

    A file is kept, then noted, then changed: a run that dies leaves at most a note too many.
    """

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def replace(self, path: str, *, below: str, action: str, before: bytes, after: bytes) -> Kept:
        """Keep the file's bytes and put others in their place.

        ``below``: the root that the file's place in the folder is relative to.
        """
        kept = self._name(path, below)
        _write(kept, before)
        note = Kept(path, kept, action, len(before), len(after), _digest(after))
        self._note(note)
        shutil.copymode(path, kept)
        _write(path, after, like=kept)
        return note

    def remove(self, path: str, *, below: str, action: str) -> Kept:
        """Move a file away."""
        kept = self._name(path, below)
        note = Kept(path, kept, action, Path(path).stat().st_size, 0, None)
        self._note(note)
        _move(path, kept)
        return note

    def _name(self, path: str, below: str) -> str:
        return os.path.join(self.folder, os.path.relpath(path, below))

    def _note(self, note: Kept) -> None:
        Path(self.folder).mkdir(parents=True, exist_ok=True)
        with open(os.path.join(self.folder, MANIFEST), "a", encoding="utf-8") as log:
            log.write(json.dumps(note._asdict()) + "\n")
            log.flush()
            os.fsync(log.fileno())


def read_manifest(folder: str) -> list[Kept]:
    """Read what a run noted, in its order.

    Raises:
        UsageError: the folder has no manifest.
    """
    manifest = Path(folder) / MANIFEST
    if not manifest.is_file():
        raise UsageError(f"{folder} has no {MANIFEST}: no compact run left it")
    lines = manifest.read_text("utf-8").splitlines()
    return [Kept(**json.loads(line)) for line in lines]


def undo(folder: str) -> Undone:
    """Put back what a run set aside, where the place is as that run left it.

    Can be run again: what is back already is left alone.

    Raises:
        UsageError: the folder has no manifest.
    """
    notes = read_manifest(folder)
    restored: int = 0
    left: list[str] = []
    for note in reversed(notes):
        if not Path(note.kept).is_file():
            continue
        if not _is_as_left(note):
            left.append(note.path)
            continue
        _move(note.kept, note.path)
        restored += 1
    return Undone(restored, left)


def _is_as_left(note: Kept) -> bool:
    if not os.path.lexists(note.path):
        return note.sha256 is None
    if note.sha256 is None or not Path(note.path).is_file():
        return False
    with open(note.path, "rb") as stream:
        found = stream.read()
    with open(note.kept, "rb") as stream:
        return _digest(found) == note.sha256 or found == stream.read()


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _write(path: str, data: bytes, *, like: str | None = None) -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    temporary = f"{path}.{os.getpid()}.kafka-segments-tmp"
    with open(temporary, "wb") as stream:
        stream.write(data)
        stream.flush()
        os.fsync(stream.fileno())
    if like is not None:
        shutil.copymode(like, temporary)
    os.replace(temporary, path)


def _move(path: str, target: str) -> None:
    """Rename a file; to another disk it is copied whole first, then renamed there."""
    Path(target).parent.mkdir(parents=True, exist_ok=True)
    try:
        os.replace(path, target)
    except OSError:
        temporary = f"{target}.{os.getpid()}.kafka-segments-tmp"
        shutil.copy2(path, temporary)
        os.replace(temporary, target)
        os.unlink(path)
