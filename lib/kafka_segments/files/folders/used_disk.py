"""The bytes that folders of a local disk take, file by file, as ``du`` counts them.

A file's bytes are its blocks: of a preallocated file only those that were written, more than its
size where the last block is not full. A file with several names counts once, as the first. Links
count as links, and are not followed; folders below that lie on another file system count, too.
"""

import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from kafka_segments.files.storage.local_folder import as_text, mtime_ns_of
from kafka_segments.files.storage.permissions import is_forbidden, permission_step

_BLOCK = 512  # the unit of st_blocks, whatever the file system's own is
_NS_A_MS = 1_000_000


class UsedFile(NamedTuple):
    """A name in a folder, and what it takes.

    Attributes:
        name: Its name, as Python decodes it.
        is_folder: Its own blocks are meant; what lies in it is a ``UsedFolder`` of its own.
        used_bytes: Of its blocks; 0: the same file was counted by another name.
        size_bytes: Its size, which a reader of it sees; of a folder 0.
        mtime_ms: When its bytes were last written, in ms since 1970.
        ctime_ms: When it was last renamed, or changed in another way, in ms since 1970.
        is_shared: It has another name, here or elsewhere: without this one no block is freed.
    """

    name: str
    is_folder: bool
    used_bytes: int
    size_bytes: int
    mtime_ms: int
    ctime_ms: int
    is_shared: bool


class UsedFolder(NamedTuple):
    """A folder: its path below the root it was found from, and the names in it.

    ``problem``: why it, or a name in it, could not be looked at; None: all was. ``used_bytes``: its
    own blocks.
    """

    root: str
    path: str
    files: list[UsedFile]
    used_bytes: int
    problem: str | None = None


class DiskSpace(NamedTuple):
    """A file system: its bytes in all, those in use, and those that a broker can still write."""

    device: int
    total_bytes: int
    used_bytes: int
    free_bytes: int

    @property
    def full_percent(self) -> int:
        """Return how full it is."""
        return full_percent(self.used_bytes, self.free_bytes)


def full_percent(used_bytes: int, free_bytes: int) -> int:
    """Return how full a disk is, as ``df`` tells it: of what a broker can use."""
    return 100 * used_bytes // max(used_bytes + free_bytes, 1)


def walk_disk(roots: Iterable[str]) -> Iterator[UsedFolder]:
    """Yield each folder from some local folders on down, a folder before those that lie in it.

    What vanishes meanwhile is left out; what cannot be looked at is a problem of its folder.
    """
    seen: set[tuple[int, int]] = set()
    for root in roots:
        waiting = [""]
        while waiting:
            path = waiting.pop()
            folder = _look(root, path, seen)
            if folder is not None:
                yield folder
                names = sorted((file.name for file in folder.files if file.is_folder), reverse=True)
                waiting += [f"{path}/{name}".lstrip("/") for name in names]


def disk_space(folder: str) -> DiskSpace:
    """Return the file system of a folder.

    Raises:
        OSError: it cannot be asked.
    """
    found = os.statvfs(folder)
    unit = found.f_frsize
    return DiskSpace(
        Path(folder).stat().st_dev,
        found.f_blocks * unit,
        (found.f_blocks - found.f_bfree) * unit,
        found.f_bavail * unit,
    )


def _look(root: str, path: str, seen: set[tuple[int, int]]) -> UsedFolder | None:
    """Look at a folder; None: it has gone, or another root has counted it."""
    place = os.path.join(root, path)
    try:
        own = Path(place).stat(follow_symlinks=not path)  # a root may be given by a link
    except FileNotFoundError:
        return None
    if _is_counted(own, seen):
        return None
    files: list[UsedFile] = []
    problem = None
    try:
        with os.scandir(place) as names:
            for name in names:
                try:
                    files.append(_file(name, seen))
                except FileNotFoundError:
                    continue  # gone since the folder was opened
                except OSError as error:
                    problem = f"{as_text(name.name)}: {_why(error)}"
    except FileNotFoundError:
        return None
    except OSError as error:
        problem = _why(error)
    return UsedFolder(root, path, files, own.st_blocks * _BLOCK, problem)


def _is_counted(status: os.stat_result, seen: set[tuple[int, int]]) -> bool:
    key = (status.st_dev, status.st_ino)
    if key in seen:
        return True
    seen.add(key)
    return False


def _file(name: os.DirEntry[str], seen: set[tuple[int, int]]) -> UsedFile:
    status = name.stat(follow_symlinks=False)
    is_folder = stat.S_ISDIR(status.st_mode)
    is_shared = not is_folder and status.st_nlink > 1
    used = status.st_blocks * _BLOCK
    if is_folder or (is_shared and _is_counted(status, seen)):
        used = 0  # a folder's own blocks are counted where it is listed
    return UsedFile(
        name.name,
        is_folder,
        used,
        0 if is_folder else status.st_size,
        mtime_ns_of(status) // _NS_A_MS,
        status.st_ctime_ns // _NS_A_MS,
        is_shared,
    )


def _why(error: OSError) -> str:
    text = error.strerror or str(error)
    return f"{text}; {permission_step(error)}" if is_forbidden(error) else text
