"""Folders that a process needs for a while. A process that is killed leaves its own behind.

It locks a file in its folder as long as it lives; by that, and by the age, a later process knows
what it may remove.
"""

import atexit
import fcntl
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

_PREFIX = "ks-"
_OWNER = "kafka-segments.owner"
_DAY_SECONDS = 86_400  # a JVM may live on for a while when its process was killed


@cache
def scratch_folder() -> Path:
    """Return the folder of this process, made at the first call and removed when it ends.

    There is one a process, as PySpark starts one JVM, which outlives its sessions.
    """
    folder, _ = _made(Path(tempfile.gettempdir()))
    atexit.register(_remove, folder, os.getpid())
    return folder


@contextmanager
def scratch_below(parent: Path) -> Iterator[Path]:
    """Make a folder below another one; it is removed at the end.

    Raises:
        OSError: it cannot be made there.
    """
    folder, locked = _made(parent)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        for descriptor in locked:
            os.close(descriptor)


def _made(parent: Path) -> tuple[Path, list[int]]:
    """Make a folder and lock it; return it, and what is to be closed. Left ones go."""
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent))
    owner = os.open(folder / _OWNER, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(owner, fcntl.LOCK_EX)  # the kernel lets go of it when the process ends
    # systemd-tmpfiles leaves a folder alone that is locked itself, and what lies below it.
    itself = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    fcntl.flock(itself, fcntl.LOCK_SH)
    remove_left(parent, before=folder.stat().st_mtime - _DAY_SECONDS)
    return folder, [owner, itself]


def remove_left(parent: Path, *, before: float) -> None:
    """Remove the folders of this user's processes that were killed; younger ones stay.

    ``before``: in seconds since 1970. Folders without our own locked file are not ours.
    """
    for folder in parent.glob(f"{_PREFIX}*"):
        with suppress(OSError):
            if _is_left(folder, before):
                shutil.rmtree(folder, ignore_errors=True)


def _is_left(folder: Path, before: float) -> bool:
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid():
        return False
    owner = os.open(folder / _OWNER, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(owner, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return os.fstat(owner).st_mtime < before
    finally:
        os.close(owner)


def _remove(folder: Path, owner: int) -> None:
    """Remove it; a process that was forked from its owner ends without."""
    if os.getpid() == owner:
        shutil.rmtree(folder, ignore_errors=True)
