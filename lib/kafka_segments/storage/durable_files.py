"""Files that appear whole, on disk before they have their name; a failure leaves nothing."""

import errno
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from kafka_segments.storage.set_aside import sync_folder

TEMPORARY = ".kafka-segments-tmp"
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@contextmanager
def durable_file(
    path: Path, *, size_bytes: int | None, finish: Callable[[Path], object] | None = None
) -> Iterator[BinaryIO]:
    """Open a file for writing that gets its name when all is written and on disk.

    ``size_bytes``: what it is to have, for the message where there is no room; None: that is not
    known. ``finish`` is called with the whole file before that, to set its owner and mtime.

    Raises:
        OSError: it cannot be written; where there is no room it says how much there is.
    """
    temporary = path.with_name(f"{path.name}.{os.getpid()}{TEMPORARY}")
    try:
        with temporary.open("wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        if finish is not None:
            finish(temporary)
        os.replace(temporary, path)
        sync_folder(path.parent)
    except BaseException as error:
        written_bytes = _removed(temporary)
        if isinstance(error, OSError) and error.errno in _NO_ROOM:
            wanted = "" if size_bytes is None else f" of {size_bytes}"
            reason = f"{os.strerror(error.errno)}: {written_bytes}{wanted} bytes were written,"
            free = free_bytes(path.parent)
            raise OSError(error.errno, f"{reason} {free} are free", str(path)) from None
        raise


def _removed(unfinished: Path) -> int:
    """Remove a file that may be there; gives the bytes it had."""
    try:
        size_bytes = unfinished.stat().st_size
    except FileNotFoundError:
        return 0
    unfinished.unlink()
    return size_bytes


def write_durably(
    path: Path, data: bytes, *, finish: Callable[[Path], object] | None = None
) -> None:
    """Make a file appear whole, on disk before its name is.

    Raises:
        OSError: as ``durable_file``.
    """
    with durable_file(path, size_bytes=len(data), finish=finish) as stream:
        stream.write(data)


def copy_durably(source: Path, path: Path) -> None:
    """Copy a file with its mode and mtimes, whole or not at all.

    Raises:
        OSError: as ``durable_file``, or the source cannot be read.
    """
    size_bytes = source.stat().st_size
    with (
        source.open("rb") as read,
        durable_file(
            path, size_bytes=size_bytes, finish=lambda whole: shutil.copystat(source, whole)
        ) as stream,
    ):
        shutil.copyfileobj(read, stream)


def free_bytes(path: Path) -> int:
    """Give what may still be written to the file system that a path lies in, or is to lie in."""
    found = os.statvfs(nearest_folder(path))
    return found.f_bavail * found.f_frsize


def nearest_folder(path: Path) -> Path:
    """Give the path, or the nearest folder above it that is there."""
    return next(folder for folder in (path, *path.parents) if folder.exists())
