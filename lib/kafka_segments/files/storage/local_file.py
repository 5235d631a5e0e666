"""What lies on a local disk, and ranges of files: by the system's own calls, as files are many."""

import errno
import os
import stat
from enum import Enum

_BLOCK_BYTES = 512
_MOST_HOLES = 10_000


class Kind(Enum):
    """What lies at a place, as Arrow names it."""

    NOTHING = "NotFound"
    FILE = "File"
    FOLDER = "Directory"
    OTHER = "Unknown"


def local_kind(path: str) -> Kind:
    """Tell what a path leads to.

    Raises:
        OSError: it cannot be told, as where a folder above may not be entered.
    """
    try:
        mode = os.stat(path).st_mode  # noqa: PTH116  a Path takes ten times as long
    except (FileNotFoundError, NotADirectoryError):
        return Kind.NOTHING
    if stat.S_ISDIR(mode):
        return Kind.FOLDER
    return Kind.FILE if stat.S_ISREG(mode) else Kind.OTHER


class LocalFile:
    """An open file, to be closed.

    Ranges may be read by several threads. ``size_bytes`` is its size when it was opened.
    """

    def __init__(self, path: str, *, is_plain: bool = False) -> None:
        """Open a file; a pipe in its place is not waited for.

        ``is_plain``: a symbolic link is not followed.

        Raises:
            OSError: it cannot be opened, or is no file.
        """
        flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | (os.O_NOFOLLOW if is_plain else 0)
        self._descriptor = os.open(path, flags)
        status = os.fstat(self._descriptor)
        if not stat.S_ISREG(status.st_mode):
            os.close(self._descriptor)
            if stat.S_ISDIR(status.st_mode):
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
            raise OSError(errno.EINVAL, "a pipe, socket or device, no file", path)
        self.size_bytes = status.st_size
        self._allocated_bytes = status.st_blocks * _BLOCK_BYTES

    def written_bytes(self) -> int:
        """Return where the last byte ends that was ever written; zeros follow it.

        A preallocated file has no blocks there. Where the file system cannot tell, all counts.
        """
        if self._allocated_bytes >= self.size_bytes:
            return self.size_bytes
        end = position = 0
        try:
            for _ in range(_MOST_HOLES):
                position = os.lseek(self._descriptor, position, os.SEEK_DATA)
                end = position = os.lseek(self._descriptor, position, os.SEEK_HOLE)
        except OSError as error:
            return end if error.errno == errno.ENXIO else self.size_bytes
        return self.size_bytes

    def read(self, position: int, length: int) -> bytes:
        """Return a range of the file, shorter only at its end."""
        data = os.pread(self._descriptor, length, position)
        if len(data) in (0, length):
            return data
        rest = self.read(position + len(data), length - len(data))
        return data + rest

    def read_into(self, position: int, view: memoryview) -> int:
        """Fill the view from a position; return the bytes read, fewer only at the file's end."""
        filled = 0
        while filled < len(view):
            read = os.preadv(self._descriptor, [view[filled:]], position + filled)
            if not read:
                break
            filled += read
        return filled

    def close(self) -> None:
        """Close it."""
        os.close(self._descriptor)
