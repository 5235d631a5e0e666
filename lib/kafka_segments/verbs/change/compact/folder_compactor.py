"""Compact the index files of one partition's folder, on a local disk."""

import os
import re
from collections.abc import Sequence, Set
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path

from kafka_segments.errors import NoFolderError, SetAsideError, SourceError
from kafka_segments.files.changes.index_files import MOST_INDEX_BYTES
from kafka_segments.files.changes.kept_files import KeptFiles
from kafka_segments.files.storage.durable_files import older_temporaries
from kafka_segments.files.storage.files import list_folder, place
from kafka_segments.files.storage.local_file import LocalFile
from kafka_segments.kafka.text.names import (
    OFFSET_INDEX_SUFFIX,
    TIME_INDEX_SUFFIX,
    file_name,
    parse_segment_name,
)
from kafka_segments.verbs.change.compact.decide.actions import IndexAction
from kafka_segments.verbs.change.compact.decide.leftovers import Leftovers, find_leftovers
from kafka_segments.verbs.change.compact.decide.thinning import IndexBytes, compact_files

_INDEX = re.compile(r"([0-9]{20})\.(?:index|timeindex)")
_SUFFIXES = (OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX)


@dataclass(frozen=True)
class CompactedFile:
    """A file that was or would be changed."""

    path: str
    action: IndexAction
    bytes_before: int
    bytes_after: int


@dataclass
class FolderChanges:
    """What compaction found in a folder.

    ``waiting``: files that only a broker may resolve. ``unfinished``: those of runs that died.
    """

    changes: list[CompactedFile] = field(default_factory=list)
    waiting: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    unfinished: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class FolderCompactor:
    """Compacts one folder after another.

    Attributes:
        root: The folder that all of them lie below.
        set_aside: Keeps the files that are changed; None: nothing is changed, only said.
        index_interval_bytes: Entries that lie closer together are thinned; None: none are.
        unfinished_before_ns: Temporary files of ours that are older are removed.
    """

    root: str
    set_aside: KeptFiles | None
    index_interval_bytes: int | None
    unfinished_before_ns: int = 0

    def compact(
        self, folder: str, *, base_offsets: Set[int] | None = None, origins: Sequence[str] = ()
    ) -> FolderChanges:
        """Remove the files that are left over; trim and thin the others.

        Args:
            folder: the folder.
            base_offsets: of the segments that the index files belong to; None: those in the folder.
            origins: folders whose segments count, too: tables may lack what was built since.
        """
        found = FolderChanges()
        try:
            names = {entry.name for entry in os.scandir(folder) if entry.is_file()}
            left_over = _left_over(names, base_offsets, origins)
        except SourceError as error:
            found.problems.append(str(error))
            return found
        except OSError as error:
            found.problems.append(f"{folder}: {error.strerror}")
            return found
        found.waiting.extend(os.path.join(folder, name) for name in left_over.waiting)
        kept = names - set(left_over.removable)
        indexed = sorted({int(m[1]) for name in kept if (m := _INDEX.fullmatch(name))})
        try:
            self._remove_unfinished(Path(folder), found)
            for name, why in left_over.removable.items():
                found.changes.append(self._remove(os.path.join(folder, name), why))
            for base_offset in indexed:
                stem = os.path.join(folder, file_name(base_offset, ""))
                links = [stem + suffix for suffix in _SUFFIXES if Path(stem + suffix).is_symlink()]
                found.problems.extend(f"{link}: a symbolic link, not followed" for link in links)
                if not links:
                    found.changes.extend(self._shrink(stem, base_offset))
        except SetAsideError as error:
            found.problems.append(str(error))
        except OSError as error:
            found.problems.append(f"{error.filename or folder}: {error.strerror or error}")
        return found

    def _remove_unfinished(self, folder: Path, found: FolderChanges) -> None:
        """Remove what our own killed runs left half written: there is nothing in it to keep."""
        for path in older_temporaries(folder, before_ns=self.unfinished_before_ns):
            found.unfinished.append(str(path))
            if self.set_aside is not None:
                path.unlink(missing_ok=True)

    def _remove(self, path: str, why: IndexAction) -> CompactedFile:
        size = Path(path).lstat().st_size
        if self.set_aside is not None:
            self.set_aside.remove(path, below=self.root, action=why)
        return CompactedFile(path, why, size, 0)

    def _shrink(self, stem: str, base_offset: int) -> list[CompactedFile]:
        before = IndexBytes(*(_read(stem + suffix) for suffix in _SUFFIXES))
        trimmed = compact_files(before, base_offset=base_offset, index_interval_bytes=None)
        after = compact_files(
            before, base_offset=base_offset, index_interval_bytes=self.index_interval_bytes
        )
        changes = []
        for suffix, old, cut, new in zip(_SUFFIXES, before, trimmed, after, strict=True):
            if old is None or new is None or new == old:
                continue
            action = IndexAction.TRIM if new == cut else IndexAction.THIN
            changes.append(CompactedFile(stem + suffix, action, len(old), len(new)))
            if self.set_aside is not None:
                self.set_aside.replace(
                    stem + suffix, below=self.root, action=action, before=old, after=new
                )
        return changes


def _left_over(names: Set[str], base_offsets: Set[int] | None, origins: Sequence[str]) -> Leftovers:
    """Return what is left over of a folder's files, see ``FolderCompactor.compact``.

    Raises:
        SourceError: one of ``origins`` is there and cannot be listed.
    """
    found = find_leftovers(names, base_offsets=base_offsets)
    if base_offsets is None or IndexAction.ORPHAN not in found.removable.values():
        return found
    there = set().union(*map(_segments_there, origins))
    return find_leftovers(names, base_offsets=base_offsets | there)


def _segments_there(folder: str) -> set[int]:
    """Return the base offsets of the segments that lie in a folder now; none where it is gone."""
    with suppress(NoFolderError):
        names = (entry.name for entry in list_folder(place(folder)) if not entry.is_folder)
        return {at for name in names if (at := parse_segment_name(name)) is not None}
    return set()


def _read(path: str) -> bytes | None:
    try:
        with closing(LocalFile(path)) as file:
            if file.size_bytes > MOST_INDEX_BYTES:
                return None
            return file.read(0, file.size_bytes)
    except FileNotFoundError:
        return None
