"""Compact the index files of one partition's folder, on a local disk."""

import os
import re
from collections.abc import Set
from dataclasses import dataclass, field
from pathlib import Path

from kafka_segments.audit.found_indexes import MOST_INDEX_BYTES
from kafka_segments.compact.leftovers import find_leftovers
from kafka_segments.compact.thinning import IndexFiles, compact_files
from kafka_segments.storage.kept_files import SetAside
from kafka_segments.wire.names import OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX, file_name

_INDEX = re.compile(r"([0-9]{20})\.(?:index|timeindex)")
_SUFFIXES = (OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX)


@dataclass(frozen=True)
class Change:
    """A file that was or would be changed.

    ``action``: trim, thin, orphan, deleted, cleaned or swap.
    """

    path: str
    action: str
    bytes_before: int
    bytes_after: int


@dataclass
class FolderChanges:
    """What compaction found in a folder; ``waiting``: what only a broker may resolve."""

    changes: list[Change] = field(default_factory=list)
    waiting: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class FolderCompactor:
    """Compacts folder after folder.

    ``root``: what all lie below. ``set_aside`` None: say what would be done, change nothing.
    ``index_interval_bytes`` None: entries are not thinned.
    """

    root: str
    set_aside: SetAside | None
    index_interval_bytes: int | None

    def compact(self, folder: str, *, base_offsets: Set[int] | None = None) -> FolderChanges:
        """Remove what is left over, trim and thin the rest.

        ``base_offsets``: of the segments that exist, where these lie elsewhere.
        """
        found = FolderChanges()
        try:
            names = {entry.name for entry in os.scandir(folder) if entry.is_file()}
        except OSError as error:
            found.problems.append(f"{folder}: {error.strerror}")
            return found
        left_over = find_leftovers(names, base_offsets=base_offsets)
        found.waiting.extend(os.path.join(folder, name) for name in left_over.waiting)
        kept = names - set(left_over.removable)
        indexed = sorted({int(m[1]) for name in kept if (m := _INDEX.fullmatch(name))})
        try:
            for name, why in left_over.removable.items():
                found.changes.append(self._remove(os.path.join(folder, name), why))
            for base_offset in indexed:
                stem = os.path.join(folder, file_name(base_offset, ""))
                found.changes.extend(self._shrink(stem, base_offset))
        except OSError as error:
            found.problems.append(f"{error.filename or folder}: {error.strerror or error}")
        return found

    def _remove(self, path: str, why: str) -> Change:
        size = Path(path).stat().st_size
        if self.set_aside is not None:
            self.set_aside.remove(path, below=self.root, action=why)
        return Change(path, why, size, 0)

    def _shrink(self, stem: str, base_offset: int) -> list[Change]:
        before = IndexFiles(*(_read(stem + suffix) for suffix in _SUFFIXES))
        trimmed = compact_files(before, base_offset=base_offset, index_interval_bytes=None)
        after = compact_files(
            before, base_offset=base_offset, index_interval_bytes=self.index_interval_bytes
        )
        changes = []
        for suffix, old, cut, new in zip(_SUFFIXES, before, trimmed, after, strict=True):
            if old is None or new is None or new == old:
                continue
            action = "trim" if new == cut else "thin"
            changes.append(Change(stem + suffix, action, len(old), len(new)))
            if self.set_aside is not None:
                self.set_aside.replace(
                    stem + suffix, below=self.root, action=action, before=old, after=new
                )
        return changes


def _read(path: str) -> bytes | None:
    try:
        with open(path, "rb") as stream:
            if os.fstat(stream.fileno()).st_size > MOST_INDEX_BYTES:
                return None
            return stream.read()
    except FileNotFoundError:
        return None
