"""What the file system of a local folder refuses of what tables and index files need."""

import errno
import fcntl
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from kafka_segments.files.storage.durable_files import temporary_name

# Of a mount that has no such call; vfat and some gateways answer EPERM to a link.
_REFUSED = {errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.ENOLCK, errno.EPERM}


def refused_call(folder: Path) -> str | None:
    """Try a lock, a hard link and a rename in a folder; return in words which is refused.

    None: none is, or it cannot be tried.
    """
    first, second = (temporary_name(str(folder / name)) for name in ("tried", "tried-too"))
    try:
        descriptor = os.open(first, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError:
        return None
    calls: dict[str, Callable[[], object]] = {
        "locks": lambda: fcntl.flock(descriptor, fcntl.LOCK_SH),
        "hard links": lambda: os.link(first, second),
        "renames": lambda: os.replace(first, second),
    }
    try:
        return next((what for what, call in calls.items() if _is_refused(call)), None)
    finally:
        os.close(descriptor)
        for path in (first, second):
            with suppress(OSError):
                os.unlink(path)


def _is_refused(call: Callable[[], object]) -> bool:
    try:
        call()
    except OSError as error:
        return error.errno in _REFUSED
    return False
