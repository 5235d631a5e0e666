"""What this user may not read: who may, and the commands that let it be read."""

import errno
import getpass
import os
import pwd
import re
import stat
from pathlib import Path

_SHOWN = re.compile(r"'([^']+)'")
_ARROW = re.compile(r"\[errno (?:13|1)\]", re.IGNORECASE)


def is_forbidden(error: BaseException) -> bool:
    """Tell whether an error says that this user may not read a file or folder of this machine."""
    if not isinstance(error, OSError):
        return False
    is_told = error.errno in (errno.EACCES, errno.EPERM) or _ARROW.search(str(error)) is not None
    return is_told and "://" not in str(error)


def permission_step(error: BaseException) -> str:
    """Say whose the file or folder is that an error names, and how it can be read."""
    shown = _SHOWN.search(str(error))
    path = getattr(error, "filename", None) or (shown[1] if shown else None)
    owner, told = _owner(path)
    return (
        f"{told}this user may not read it, which is no damage: run this by `sudo -u {owner}`, or"
        f" let yours read by `setfacl -R -m u:{_me()}:rX` on the log directory"
    )


def _owner(path: str | bytes | None) -> tuple[str, str]:
    """Return a file's owner, and a clause about it; the broker's usual one where none is told."""
    try:
        found = None if path is None else Path(os.fsdecode(path)).stat()
    except (OSError, ValueError):
        found = None
    if found is None:
        return "kafka", ""
    owner = _name(found.st_uid)
    return owner, f"it is {owner}'s, mode {stat.S_IMODE(found.st_mode):o}; "


def _name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"#{uid}"


def _me() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())
