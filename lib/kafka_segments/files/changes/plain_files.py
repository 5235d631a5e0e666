"""Files and folders that are what their names say: a symbolic link in their place is refused.

Who may write beside our files can put a link there, at any moment. So a path is looked at when it
is used, and opened so that the kernel follows no link.
"""

import os
import stat
from pathlib import Path
from typing import Any, BinaryIO, Literal

from kafka_segments.errors import SetAsideError

_LINK = "a symbolic link, not followed: put its file or folder here, or move it away"


def plain_status(path: Path) -> os.stat_result:
    """Return the status of a plain file.

    Raises:
        SetAsideError: it is a link, a folder or a device.
        FileNotFoundError: there is nothing of that name.
    """
    return _status(path, stat.S_ISREG, "no plain file: move it away")


def check_folder(path: Path) -> None:
    """Check that a path is a folder, and no link to one.

    Raises:
        SetAsideError: it is neither, or not there.
    """
    try:
        _status(path, stat.S_ISDIR, "no folder: move it away")
    except FileNotFoundError:
        raise SetAsideError(path, "this folder is gone: put it back") from None


def is_plain_folder(path: Path) -> bool:
    """Tell whether a folder exists.

    Raises:
        SetAsideError: there is something else of that name, a link say.
    """
    if not os.path.lexists(path):
        return False
    check_folder(path)
    return True


def open_plain(path: Path, mode: Literal["rb", "r+b"]) -> BinaryIO:
    """Open a file, but no link in its place.

    Raises:
        SetAsideError: it is a link, a folder or a device.
        OSError: it cannot be opened.
    """
    plain_status(path)
    return open(path, mode, opener=_opened)


def _opened(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW)


def _status(path: Path, is_kind: Any, otherwise: str) -> os.stat_result:
    status = path.lstat()
    if not is_kind(status.st_mode):
        raise SetAsideError(path, _LINK if stat.S_ISLNK(status.st_mode) else otherwise)
    return status
