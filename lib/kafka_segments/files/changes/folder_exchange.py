"""Swap two folders in one step of the kernel: both names exist at every moment."""

import ctypes
import errno
import os
from pathlib import Path

from kafka_segments.errors import SetAsideError
from kafka_segments.files.storage.durable_files import sync_folder

_AT_FDCWD = -100
_RENAME_EXCHANGE = 2
_UNABLE = (errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.EXDEV)


def exchange_folders(one: Path, other: Path) -> None:
    """Swap two folders of one file system, and sync the folders that hold them.

    Raises:
        SetAsideError: the kernel or the file system cannot swap; nothing has changed.
        OSError: the swap was refused; nothing has changed.
    """
    renameat2 = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    number = errno.ENOSYS
    if renameat2 is not None:
        names = os.fsencode(one), os.fsencode(other)
        if renameat2(_AT_FDCWD, names[0], _AT_FDCWD, names[1], _RENAME_EXCHANGE) == 0:
            sync_folder(one.parent)
            sync_folder(other.parent)
            return
        number = ctypes.get_errno()
    if number in _UNABLE:
        raise SetAsideError(
            one,
            f"it cannot swap places with {other} in one step ({os.strerror(number)}): both must"
            " lie on one local file system of Linux, such as ext4 or xfs (--stage-dir)",
        )
    raise OSError(number, os.strerror(number), str(one))


def check_exchange(folder: Path) -> None:
    """Check that folders in ``folder`` can be swapped, with two that are made for it.

    Raises:
        SetAsideError: they cannot be swapped.
        OSError: the folder cannot be written to.
    """
    trials = [folder / f"{name}-{os.getpid()}" for name in ("one", "other")]
    for trial in trials:
        trial.mkdir(exist_ok=True)
    try:
        exchange_folders(*trials)
    finally:
        for trial in trials:
            trial.rmdir()
