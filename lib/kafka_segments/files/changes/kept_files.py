"""Keep the files that a run replaces or removes, and put them back; on a local disk only.

A run has a folder with the files themselves and a manifest. The manifest has a line for each file:
where it was, and what is there now. Each line is a manifest of its own (``storage.manifests``).
"""

import hashlib
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar, NamedTuple

from kafka_segments.errors import SetAsideError, UsageError
from kafka_segments.files.changes.backups import is_there
from kafka_segments.files.changes.manifests import (
    AbsolutePath,
    Count,
    Manifest,
    Sha256,
    encoded,
    parse_manifest,
)
from kafka_segments.files.changes.plain_files import is_plain_folder, open_plain
from kafka_segments.files.storage.durable_files import (
    TEMPORARY,
    move_durably,
    sha256_of,
    write_durably,
)
from kafka_segments.kafka.text.names import parse_partition_folder

MANIFEST = "manifest.jsonl"
_BY_HAND = "copy it back by hand"
_CHANGED = re.compile(
    r"[0-9]{20}(\.(index|timeindex|txnindex)|(\..+)?\.(deleted|cleaned|swap))", re.DOTALL
)


class Kept(Manifest):
    """A line of a manifest.

    ``path`` lies below the folder ``below``, and ``kept`` ends as it does. ``sha256`` is of the
    bytes left at ``path``, None: it was removed. ``kept_sha256`` is of those kept; of a link, as of
    ``sha256_of``.
    """

    remedy: ClassVar[str] = f"its file is not put back: if it was changed, {_BY_HAND}"

    path: AbsolutePath
    kept: AbsolutePath
    below: AbsolutePath
    action: str
    bytes_before: Count
    bytes_after: Count
    sha256: Sha256 | None
    kept_sha256: Sha256


class Undone(NamedTuple):
    """How many files an undo put back, and of each that it did not, why."""

    restored: int
    left: list[str]


class KeptFiles:
    """Replaces and removes files for one run; the first ones are kept in the run's folder.

    ``by_root``: files below several folders are changed, each of which has its own place there.
    """

    def __init__(self, folder: str, *, by_root: bool = False) -> None:
        self.folder = folder
        self._by_root = by_root

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
        note = Kept(
            path=path,
            kept=kept,
            below=below,
            action=str(action),
            bytes_before=len(before),
            bytes_after=len(after),
            sha256=_digest(after),
            kept_sha256=_digest(before),
        )
        self._note(note)
        write_durably(Path(path), after, finish=lambda whole: shutil.copymode(kept, whole))
        return note

    def remove(self, path: str, *, below: str, action: str) -> Kept:
        """Move a file, or a link as such, to the run's folder.

        Raises:
            SetAsideError: see ``move_durably``.
            OSError: see ``move_durably``.
        """
        kept = self._name(path, below)
        note = Kept(
            path=path,
            kept=kept,
            below=below,
            action=str(action),
            bytes_before=Path(path).lstat().st_size,
            bytes_after=0,
            sha256=None,
            kept_sha256=sha256_of(Path(path)),
        )
        self._note(note)
        move_durably(Path(path), Path(kept))
        return note

    def _name(self, path: str, below: str) -> str:
        root = below.lstrip("/") if self._by_root else ""
        kept = Path(self.folder, root, os.path.relpath(path, below))
        kept.parent.mkdir(parents=True, exist_ok=True)
        return str(kept)

    def _note(self, note: Kept) -> None:
        with open(os.path.join(self.folder, MANIFEST), "ab") as log:
            log.write(encoded(note, indent=None) + b"\n")
            log.flush()
            os.fsync(log.fileno())


def read_notes(folder: str) -> Iterator[Kept | SetAsideError]:
    """Yield what a run noted, in order, and of each line that cannot be used, why.

    Raises:
        UsageError: the folder has no manifest.
        SetAsideError: the folder or the manifest is a link.
    """
    manifest = Path(folder) / MANIFEST
    if not is_plain_folder(Path(folder)) or not is_there(manifest):
        raise UsageError(f"{folder} has no {MANIFEST}: no compact run left it")
    with open_plain(manifest, "rb") as stream:
        for number, line in enumerate(stream, start=1):
            place = f"{manifest}, line {number}"
            try:
                note = parse_manifest(line, Kept, place=place)
                _check_place(folder, note, place)
            except SetAsideError as error:
                yield error
            else:
                yield note


def _check_place(folder: str, note: Kept, place: str) -> None:
    """Check that a file is one that a run changes, and lies where the run would have kept it.

    Raises:
        SetAsideError: it is not, or does not.
    """
    name = os.path.relpath(note.path, note.below)
    parent, file = os.path.split(note.path)
    is_changed = _CHANGED.fullmatch(file) and parse_partition_folder(os.path.basename(parent))
    if not is_changed or note.path != os.path.join(note.below, name):
        raise SetAsideError(
            place, f"path: found {note.path!a}, no index file below {note.below!a}; {note.remedy}"
        )
    ends = (name, os.path.join(note.below.lstrip("/"), name))
    run = os.path.basename(folder)
    if not note.kept.endswith(tuple(os.path.join(f"/{run}", end) for end in ends)):
        raise SetAsideError(
            place,
            f"kept: found {note.kept!a}, {name!a} in the run's folder expected; {note.remedy}",
        )


def undo(folder: str) -> Undone:
    """Put back what a run kept, wherever the place is as that run left it.

    It can be run again: files that are back already are left alone.

    Raises:
        UsageError: the folder has no manifest.
        SetAsideError: the folder or the manifest is a link.
        OSError: see ``move_durably``.
    """
    restored, left = 0, []
    for note in reversed(list(read_notes(folder))):
        try:
            if isinstance(note, SetAsideError):
                raise note
            restored += _put_back(folder, note)
        except SetAsideError as error:
            left.append(str(error))
    named = {_kept(folder, note) for note in read_notes(folder) if isinstance(note, Kept)}
    left += [
        f"{path}: {MANIFEST} does not say where it was; {_BY_HAND}"
        for path in sorted(path for path in Path(folder).rglob("*") if not path.is_dir())
        if path not in named and path.name != MANIFEST and not path.name.endswith(TEMPORARY)
    ]
    return Undone(restored, left)


def _kept(folder: str, note: Kept) -> Path:
    """Return where a file is kept; the set-aside folder may have been moved since."""
    _, _, name = note.kept.rpartition(f"/{os.path.basename(folder)}/")
    return Path(folder, name)


def _put_back(folder: str, note: Kept) -> bool:
    """Put a file back; return whether that was to be done.

    Raises:
        SetAsideError: the place, or what is kept, is not as the run left it.
    """
    kept, path = _kept(folder, note), Path(note.path)
    if not _is_below(kept, Path(folder)) or not is_there(kept):
        if (
            _is_below(path, Path(note.below))
            and is_there(path)
            and _sha256(path) == note.kept_sha256
        ):
            return False
        reason = f"gone, and {path} is not as it was before that run; restore it from elsewhere"
        raise SetAsideError(kept, reason)
    status = kept.lstat()
    if (status.st_size, sha256_of(kept)) != (note.bytes_before, note.kept_sha256):
        raise SetAsideError(kept, f"it is not as it was kept, by {MANIFEST}; {note.remedy}")
    if not is_there(Path(note.below)):
        raise SetAsideError(note.below, f"this folder is gone; {note.remedy}")
    _is_below(path, Path(note.below))
    if not _is_as_left(note):
        raise SetAsideError(path, "changed since, left as it is")
    path.parent.mkdir(parents=True, exist_ok=True)
    move_durably(kept, path)
    return True


def _is_below(path: Path, root: Path) -> bool:
    """Tell whether the folders between a root and a path exist, and are no links.

    Raises:
        SetAsideError: one is a link, or no folder.
    """
    between = [folder for folder in path.parents if folder != root and folder.is_relative_to(root)]
    return all(map(is_plain_folder, reversed(between)))


def _is_as_left(note: Kept) -> bool:
    path = Path(note.path)
    if not is_there(path):
        return note.sha256 is None
    if note.sha256 is None or path.is_symlink() or not path.is_file():
        return False
    return sha256_of(path) in (note.sha256, note.kept_sha256)


def _sha256(path: Path) -> str | None:
    return None if path.is_dir() and not path.is_symlink() else sha256_of(path)


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
